/* test_gpu_note.c - the CPU is the default; where a GPU is usable one line says so.
 * SPDX-License-Identifier: MIT
 *
 * The driver is a library of ours (fake_cuda.c) in FAKE_CUDA_FOLDER, which the loader finds
 * first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "support/command_json.h"
#include "support/folder.h"

#define TINY                                                                                                           \
    "train", "--model", "vit_micro", "--image-size", "16", "--patch", "8", "--data", "synthetic",                      \
        "--synthetic-images", "64", "--act", "berlu", "--threads", "1", "--workers", "1", "--batch", "8", "--dry-run"

static int cuda_built(void)
{
    command_result r;
    command_run(&r, "doctor", "--json", NULL);
    json_t *root = json_of(&r);
    int built = json_is_true(json_object_get(json_object_get(root, "features"), "cuda"));
    json_decref(root);
    return built;
}

/* Whether `words` are in what the command said; frees the result. */
static int said(command_result *r, const char *words)
{
    int found = strstr(r->err, words) || strstr(r->out, words);
    assert_int_equal(r->code, 0);
    command_free(r);
    return found;
}

static void a_gpu_that_could_train_is_mentioned_once(void **state)
{
    (void)state;
    static const char *const capability[] = {"9.0", "8.6", "7.5"};
    setenv("LD_LIBRARY_PATH", FAKE_CUDA_FOLDER, 1);
    int built = cuda_built();
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_CUDA", capability[i], 1);
        command_result r;
        command_run(&r, TINY, NULL);
        assert_int_equal(said(&r, "note: this machine has a GPU, Paper GPU; --device cuda trains on it\n"),
                         built && i < 2);
        command_run(&r, TINY, "--device", "cpu", NULL);
        assert_false(said(&r, "Paper GPU"));
        command_run(&r, TINY, "--quiet", NULL);
        assert_false(said(&r, "Paper GPU"));
        char compute[32];
        snprintf(compute, sizeof compute, "Paper GPU, compute %s, 24 GiB", capability[i]);
        command_run(&r, "doctor", NULL);
        assert_true(said(&r, compute));
    }
}

static void assert_one_line(command_result *r)
{
    assert_int_equal(r->code, 1);
    assert_string_equal(r->out, "");
    assert_non_null(strchr(r->err, '\n'));
    assert_ptr_equal(strchr(r->err, '\n'), strrchr(r->err, '\n'));
    command_free(r);
}

/* One line, exit 1, nothing written: the machine lacks something, the command line does not. */
static void a_gpu_that_cannot_be_opened_is_one_line_and_exit_1(void **state)
{
    (void)state;
    command_result r;
    char run[FOLDER_PATH];
    folder_fresh(run, "gpu_note");
    assert_int_equal(rmdir(run), 0);
    command_run(&r, "bench", "step", "vit_micro", "--device", "cuda", "--seconds", "0", NULL);
    assert_one_line(&r);
    command_run(&r, "doctor", "--device", "cuda", NULL);
    assert_one_line(&r);
    command_run(&r, "forward", "vit_micro", "--weights", "fill", "--batch", "fill", "--out", run, "--device", "cuda",
                NULL);
    assert_one_line(&r);
    command_run(&r, "train", "--model", "vit_micro", "--data", "synthetic", "--act", "berlu", "--device", "cuda",
                "--run", run, NULL);
    assert_one_line(&r);
    assert_int_equal(access(run, F_OK), -1);
    command_run(&r, "bench", "step", "vit_micro", "--device", "cuda", "--precision", "fp8", NULL);
    assert_int_equal(r.code, 2);
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_could_train_is_mentioned_once),
        cmocka_unit_test(a_gpu_that_cannot_be_opened_is_one_line_and_exit_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
