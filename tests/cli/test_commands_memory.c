/* test_commands_memory.c - every command without memory or disk: an error that says so, no half
 * answer and no half file. SPDX-License-Identifier: MIT
 *
 * main() of the command is linked in under another name, so that the failing allocator reaches all
 * of it, SQLite included. Each command runs once to count its allocations and then with
 * one of them failing, at moments spread evenly over all. It must end with 0, the same answer as
 * before, where the allocation was one it could do without (a library's cache, a speed that is only
 * shown); else with 1 and a message, and nothing on standard output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "capture.h"
#include "support/command.h"
#include "support/fail.h"
#include "support/folder.h"

int berlu_main(int argc, char **argv);

enum {
    WORDS = 24,
    LINE = 256,
    MEMORY = FAIL_ALLOC | FAIL_ARENA,
    DISK = FAIL_WRITE | FAIL_SHORT | FAIL_SYNC | FAIL_RENAME | FAIL_MKDIR
};

/* How many allocations fail, each in a run of its own, and the command. What it reads is prepared;
 * answers go to names that begin with "out". */
typedef struct attempt {
    int moments;
    const char *line;
} attempt;

static const attempt attempts[] = {
    {60, "act list --json"},
    {60, "act eval berlu:eps=0.1 --x -1 0.5 --json"},
    {60, "act plot gelu berlu --svg out.svg"},
    {60, "smooth relu --json"},
    {60, "smooth check relu --json"},
    {60, "models --json"},
    {60, "recipes --json"},
    {100, "summary vit_micro --patch 8 --json"},
    {120, "forward linear --image-size 4 --weights fill --batch fill --out out.st"},
    {100, "data info images --json"},
    {100, "eval run --json --threads 1"},
    {100, "predict run images/train/cross-dots/000001.png --json"},
    {100, "compare run second --json"},
    {120, "export onnx run out.onnx --json"},
    {120, "export timm run out-timm --json"},
    {60, "analyze lipschitz gelu berlu --json"},
    {100, "analyze regions run --json"},
    {20, "analyze spectrum run --json"},
    {4, "analyze card berlu --no-speed --svg out.svg --json"},
    {8, "analyze landscape run --images 4 --grid 3 --eigenvalues 1 --steps 2 --batch 4 --json"},
    {120, "study status study.yaml --dir study --json"},
    {60, "study list study.yaml --dir study --json"},
    {50, "study compare study.yaml --dir study --a lr=1e-3 --b lr=1e-2 --json"},
    {80, "study rebuild study.yaml --dir study --json"},
    {200, "study pack study --out out.tar --json"},
    {30, "study report study --out out-page --json"},
    {150, "study import other.csv --out study --json"},
};

/* The same for people: what was printed before stays, the exit code and the message tell. */
static const attempt shown[] = {
    {12, "doctor"},
    {12, "act list"},
    {12, "act eval berlu:eps=0.1 --x -1 0.5"},
    {12, "smooth hard_tanh --eps 0.2 --svg out.svg"},
    {12, "models"},
    {12, "recipes"},
    {12, "summary vit_micro --patch 8"},
    {12, "summary convnext_micro --graph"},
    {12, "summary linear --image-size 4 --graph=dot"},
    {12, "forward linear --image-size 4 --weights fill --batch fill --out out.st --grads --json"},
    {12, "data info images --sample 4"},
    {12, "eval run --threads 1 --which best"},
    {12, "eval run --threads 1 --ema"},
    {12, "predict run images/train/cross-dots/000001.png"},
    {12, "compare run second"},
    {12, "analyze lipschitz run"},
    {12, "analyze regions run"},
    {6, "analyze spectrum run --svg out.svg"},
    {6, "analyze linearity berlu gelu --json"},
    {12, "study status study.yaml --dir study"},
    {12, "study list study.yaml --dir study"},
    {12, "study list study.yaml --dir study --commands"},
    {12, "study compare study.yaml --dir study --a lr=1e-3 --b lr=1e-2"},
    {12, "study pack study --out out.tar"},
};

static void capture_end(capture *c, command_result *r)
{
    size_t size;
    capture_restore(c);
    r->out = command_slurp(c->out, &r->out_size);
    r->err = command_slurp(c->err, &size);
}

/* One run of the command in this process, with the n-th call of `kinds` failing (0: none). */
static int attempt_run(command_result *r, const attempt *a, int kinds, int n, int *calls)
{
    char line[LINE], *words[WORDS] = {"berlu"}, *rest = NULL;
    int count = 1;
    capture c;
    snprintf(line, sizeof line, "%s", a->line);
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    assert_int_equal(folder_remove("out-timm"), BERLU_OK);
    (void)unlink("out.tar");
    capture_begin(&c);
    fail_after(kinds, n ? n : INT32_MAX);
    r->code = berlu_main(count, words);
    *calls = fail_calls();
    int hit = fail_hit();
    capture_end(&c, r);
    return hit;
}

/* Whether the last line says what is wrong, and nothing else than memory. */
static int says_memory(const char *err)
{
    const char *line = err;
    for (const char *at = err; (at = strstr(at, "berlu: ")); at++)
        line = at;
    return strstr(line, "memory") != NULL;
}

/* How many of the moments went wrong; the first is shown. `silent`: nothing may be on standard
 * output after a failure. */
static int wrong(const attempt *a, int silent)
{
    command_result whole, r;
    int calls, unused, count = 0;
    attempt_run(&whole, a, MEMORY, 0, &calls);
    if (whole.code != 0) {
        print_error("%s: %s", a->line, whole.err);
        command_free(&whole);
        return 1;
    }
    for (int i = 0; i < a->moments; i++) {
        int n = 1 + (int)((int64_t)calls * i / a->moments), hit = attempt_run(&r, a, MEMORY, n, &unused);
        int right =
            r.code == 0 ? strcmp(r.out, whole.out) == 0 : r.code == 1 && says_memory(r.err) && !(silent && *r.out);
        if (hit && !right && count++ == 0)
            print_error("%s: allocation %d of %d: exit %d, '%s', '%.300s'\n", a->line, n, calls, r.code, r.err, r.out);
        command_free(&r);
    }
    command_free(&whole);
    return count;
}

static void no_command_without_memory_gives_half_an_answer(void **state)
{
    (void)state;
    int count = 0;
    for (size_t i = 0; i < COUNT(attempts); i++)
        count += wrong(&attempts[i], 1);
    for (size_t i = 0; i < COUNT(shown); i++)
        count += wrong(&shown[i], 0);
    assert_int_equal(count, 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Commands and a file that they write. */
static const struct {
    attempt a;
    const char *file;
} writers[] = {
    {{0, "act plot gelu berlu --svg out.svg"}, "out.svg"},
    {{0, "forward linear --image-size 4 --weights fill --batch fill --out out.st"}, "out.st"},
    {{0, "export onnx run out.onnx"}, "out.onnx"},
    {{0, "export timm run out-timm"}, "out-timm/model.safetensors"},
    {{0, "compare run second --svg out.svg"}, "out.svg"},
    {{0, "study report study --out out-page"}, "out-page/index.html"},
};

static void a_file_is_whole_or_not_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(writers); i++) {
        command_result r;
        char *whole = NULL, *found;
        size_t size = 0, other;
        int calls;
        attempt_run(&r, &writers[i].a, DISK, 0, &calls);
        assert_int_equal(r.code, 0);
        command_free(&r);
        const char *file = writers[i].file;
        assert_int_equal(file_read_all(&whole, &size, file, 64 << 20), BERLU_OK);
        assert_true(calls > 2);
        for (int n = 1; n <= calls; n += 1 + calls / 40) {
            int unused;
            (void)unlink(file);
            attempt_run(&r, &writers[i].a, DISK, n, &unused);
            if (r.code != 0 && (r.code != 1 || strncmp(r.err, "berlu: ", 7) != 0))
                fail_msg("%s: call %d of %d: exit %d, '%s'", writers[i].a.line, n, calls, r.code, r.err);
            if (r.code == 0 || file_exists(file)) {
                assert_int_equal(file_read_all(&found, &other, file, 64 << 20), BERLU_OK);
                assert_true(other == size && memcmp(found, whole, size) == 0);
                free(found);
            }
            assert_false(folder_exists("out-timm.part"));
            command_free(&r);
        }
        free(whole);
    }
}

static const char yaml[] = "study: t\n"
                           "base: {model: linear, image_size: 4, data: synthetic, synthetic_images: 32, epochs: 1,"
                           " warmup: 0, batch: 16, eval_batch: 16, threads: 1}\n"
                           "axes: {lr: [1e-3, 1e-2]}\nseeds: 2\n"
                           "contrasts: [{name: c, a: {lr: 1e-2}, b: {lr: 1e-3}}]\n"
                           "equivalence: {source: o}\n";
static const char other[] = "cell,seed,study,value,source\n1e-3,0,t,4,o\n1e-3,1,t,2,o\n";

static void command_must(char *const *words)
{
    command_result r;
    command_run_with(&r, words, 0, NULL);
    if (r.code != 0)
        fail_msg("%s %s: %s", words[1], words[2], r.err);
    command_free(&r);
}

/* A run, a study of four runs and an image, made by the command itself. */
static int prepare(void **state)
{
    static char folder[FOLDER_PATH];
    (void)state;
    if (chdir(folder_fresh(folder, "commands_memory")) != 0)
        return -1;
    assert_int_equal(file_write_atomic("study.yaml", yaml, sizeof yaml - 1), BERLU_OK);
    assert_int_equal(file_write_atomic("other.csv", other, sizeof other - 1), BERLU_OK);
    for (int i = 0; i < 2; i++)
        command_must((char *[]){"berlu",
                                "train",
                                "--model",
                                "vit_micro",
                                "--image-size",
                                "16",
                                "--patch",
                                "8",
                                "--data",
                                "synthetic",
                                "--synthetic-images",
                                "32",
                                "--epochs",
                                "1",
                                "--batch",
                                "8",
                                "--act",
                                "berlu",
                                "--quiet",
                                "--lr",
                                "1e-3",
                                "--threads",
                                "1",
                                "--eval-batch",
                                "8",
                                "--ema",
                                "0.9",
                                "--run",
                                i ? "second" : "run",
                                "--seed",
                                i ? "1" : "0",
                                NULL});
    command_must((char *[]){"berlu", "study", "run", "study.yaml", "--dir", "study", "--quiet", NULL});
    command_must((char *[]){"berlu", "data", "make", "synthetic", "--out", "images", "--images", "10", "--image-size",
                            "16", NULL});
    return 0;
}

int main(void)
{
    fail_sqlite();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_command_without_memory_gives_half_an_answer),
        cmocka_unit_test(a_file_is_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
