/* test_command.c - the command as people meet it: exit codes, one line of error, one object of
 * JSON. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "support/command.h"
#include "support/folder.h"

static void assert_one_line(const char *text, const char *begin)
{
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("'%s' does not begin with '%s'", text, begin);
    const char *end = strchr(text, '\n');
    assert_true(end && end[1] == 0);
}

/* Exit 2, nothing on stdout, one line on stderr. */
#define assert_refused(begin, ...)                                                                                     \
    do {                                                                                                               \
        command_result refused;                                                                                        \
        command_run(&refused, __VA_ARGS__, NULL);                                                                      \
        assert_one_line(refused.err, begin);                                                                           \
        assert_int_equal(refused.code, 2);                                                                             \
        assert_string_equal(refused.out, "");                                                                          \
        command_free(&refused);                                                                                        \
    } while (0)

static void bad_input_is_one_line_and_exit_2(void **state)
{
    (void)state;
    assert_refused("berlu: unknown command 'doctr'; did you mean 'doctor'?", "doctr");
    assert_refused("berlu: unknown command 'xyzzyx'; `berlu --help`", "xyzzyx");
    assert_refused("berlu: unknown option --doctor; `berlu --help`", "--doctor");
    assert_refused("berlu: doctor: unknown option --jsno; did you mean --json?", "doctor", "--jsno");
    assert_refused("berlu: doctor: option --threads: 'many' is not a whole number", "doctor", "--threads", "many");
    assert_refused("berlu: doctor: option --threads: '-1' is outside 0 to 1024", "doctor", "--threads", "-1");
    assert_refused("berlu: doctor: option --isa: 'sse9' is not one of", "doctor", "--isa", "sse9");
    assert_refused("berlu: doctor: unexpected argument 'now'", "doctor", "now");
}

static void options_without_effect_are_refused(void **state)
{
    (void)state;
    assert_refused("berlu: eval: option --act: has no effect on a run", "eval", "runs/x", "--act", "relu");
    assert_refused("berlu: eval: option --image-size: has no effect", "eval", "runs/x", "--image-size", "32");
    assert_refused("berlu: eval: option --patch: has no effect", "eval", "runs/x", "--patch", "4");
    assert_refused("berlu: eval: option --act-params: has no effect", "eval", "runs/x", "--act-params", "channel");
    assert_refused("berlu: eval: option --ema: has no effect with", "eval", "vit_micro", "--weights", "w", "--ema");
    assert_refused("berlu: eval: option --which: has no effect with", "eval", "m", "--weights", "w", "--which", "best");
    assert_refused("berlu: eval: option --confusion: x.svg takes one plot", "eval", "runs/x", "--svg", "x.svg",
                   "--confusion", "x.svg");
    assert_refused("berlu: train: option --json-lines: ", "train", "--model", "vit_micro", "--data", "synthetic",
                   "--act", "relu", "--dry-run", "--json", "--json-lines");
}

/* Common mistakes in training, evaluation and data: reported before anything is written or
 * shown. */
static void mistakes_in_training_and_data_are_told_at_once(void **state)
{
    (void)state;
    static const char *const bad[][6] = {
        {"train", "--recipe", "nope", NULL},
        {"train", "--lr", "0", NULL},
        {"train", "--lr", "nan", NULL},
        {"train", "--lr", "-1", NULL},
        {"train", "--epochs", "-1", NULL},
        {"train", "--epochs", "1.5", NULL},
        {"train", "--batch", "0", NULL},
        {"train", "--batch", "10001", NULL},
        {"train", "--accumulate", "10", NULL}, /* an epoch has nine batches */
        {"train", "--holdout", "10000", NULL},
        {"train", "--seed", "-1", NULL},
        {"train", "--ema", "1", NULL},
        {"train", "--warmup", "1e6", NULL},
        {"train", "--image-size", "33", NULL},
        {"train", "--keep", "output", NULL},
        {"train", "--config", "no.yaml", NULL},
        {"train", "--run", "/dev/null", NULL},
        {"train", "--run", "/dev/null/x", NULL},
        {"train", "--run", "", NULL},
        {"train", "--distill", "hard", NULL},
        {"train", "--teacher", "x", NULL},
        {"train", "--act-constraint", "a", NULL},
        {"train", "--workers", "-1", NULL},
        {"train", "--schedule", "stepp", NULL},
        {"train", "extra", NULL},
        {"eval", "no-run", NULL},
        {"eval", "no-run", "--which", "x", NULL},
        {"eval", "vit_micro", "--weights", "no", NULL},
        {"eval", NULL},
        {"eval", "no-run", "--svg", "", NULL},
        {"export", "onnx", "no-run", "", NULL},
        {"data", "make", "synthetic", "--out", "", NULL},
        {"data", "info", "no-set", NULL},
        {"data", "pack", "no-set", "--out", "x", NULL},
        {"data", "make", "shapes", "--out", "x", NULL},
        {"data", "get", "mnist", NULL},
        {"summary", "no-model", NULL},
        {"summary", "vit_micro", "--act", "no", NULL},
        {"forward", "no-model", NULL},
        {"bench", "data", "no-set", NULL},
        {"bench", "act", "--act", "no", NULL},
        {"bench", "step", "--batch", "0", NULL},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *argv[24] = {"berlu"};
        size_t n = 1;
        for (const char *const *word = bad[i]; *word; word++)
            argv[n++] = *word;
        static const char *const rest[] = {"--model", "vit_micro", "--data", "synthetic", "--act",
                                           "berlu",   "--epochs",  "2",      "--run",     "no-such-run-of-a-test"};
        for (size_t k = 0; strcmp(bad[i][0], "train") == 0 && k < COUNT(rest); k += 2)
            if (!bad[i][1] || strcmp(rest[k], bad[i][1]) != 0)
                argv[n++] = rest[k], argv[n++] = rest[k + 1];
        command_result r;
        command_run_with(&r, (char *const *)argv, 0, NULL);
        if (r.code != 2 || *r.out || access("no-such-run-of-a-test", F_OK) == 0)
            fail_msg("%s %s %s: exit %d, '%s'", bad[i][0], bad[i][1] ? bad[i][1] : "",
                     bad[i][1] && bad[i][2] ? bad[i][2] : "", r.code, r.err);
        assert_one_line(r.err, "berlu: ");
        command_free(&r);
    }
}

static void an_instruction_set_that_is_not_there_is_refused(void **state)
{
    (void)state;
    const char *missing = cpu_has(CPU_NEON) ? "avx2" : "neon";
    assert_refused("berlu: doctor: option --isa: this processor has no", "doctor", "--isa", missing);
    setenv("BERLU_ISA", missing, 1);
    assert_refused("berlu: doctor: environment variable BERLU_ISA", "doctor");
    setenv("BERLU_ISA", "sse9", 1);
    assert_refused("berlu: doctor: environment variable BERLU_ISA", "doctor");
    unsetenv("BERLU_ISA");
}

static void help_and_version_go_to_stdout(void **state)
{
    (void)state;
    command_result r;
    const char *const words[] = {"--help", "-h", "--version", "-V", "help"};
    for (size_t i = 0; i < COUNT(words); i++) {
        command_run(&r, words[i], NULL);
        assert_int_equal(r.code, 0);
        assert_true(strlen(r.out) > 0);
        assert_string_equal(r.err, "");
        command_free(&r);
    }
    command_run(&r, "doctor", "--help", "--nonsense", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "usage: berlu doctor [options]"));
    command_free(&r);
    command_run(&r, NULL, NULL); /* nothing asked: the help, as an error */
    assert_int_equal(r.code, 2);
    assert_string_equal(r.out, "");
    assert_non_null(strstr(r.err, "usage: berlu COMMAND"));
    command_free(&r);
}

static size_t longest_line(const char *text)
{
    size_t most = 0;
    for (; *text; text += text[strcspn(text, "\n")] ? strcspn(text, "\n") + 1 : strlen(text))
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return most;
}

/* Runs `berlu help` and these words; the text must fit a terminal of 80 columns. */
static void help_of(command_result *r, const char *first, const char *second, const char *third)
{
    command_run(r, "help", first, second, third, NULL);
    assert_int_equal(r->code, 0);
    assert_string_equal(r->err, "");
    if (longest_line(r->out) > 80)
        fail_msg("berlu help %s: a line of %zu columns", first ? first : "", longest_line(r->out));
}

static void help_takes_the_name_of_a_command(void **state)
{
    (void)state;
    command_result by_name, by_option;
    help_of(&by_name, "act", "eval", NULL);
    command_run(&by_option, "act", "eval", "-h", NULL);
    assert_string_equal(by_name.out, by_option.out);
    command_free(&by_name);
    command_free(&by_option);
    help_of(&by_name, "act", NULL, NULL);
    assert_non_null(strstr(by_name.out, "act plot"));
    command_free(&by_name);
    assert_refused("berlu: unknown command 'trian'; did you mean 'train'?", "help", "trian");
    assert_refused("berlu: unknown option -v; the version is --version or -V", "-v");
    assert_refused("berlu: options come after the command: berlu doctor ... --json", "--json", "doctor");
}

/* Where `option` is explained in a help text, up to the next option or heading. */
static void assert_explained(const char *help, const char *option, const char *part)
{
    char begin[64], body[1024];
    snprintf(begin, sizeof begin, "\n  --%s", option);
    const char *at = strstr(help, begin);
    assert_non_null(at);
    const char *end = strstr(at + 3, "\n  --");
    snprintf(body, sizeof body, "%.*s", end ? (int)(end - at) : 1000, at);
    if (!strstr(body, part))
        fail_msg("'%s' is not in '%s'", part, body);
}

static void training_is_explained_in_groups_with_the_defaults_of_the_recipe(void **state)
{
    (void)state;
    static const char *const groups[] = {"\nwhat is trained\n", "\ndata\n",   "\nrecipe\n",
                                         "\nactivation\n",      "\ndevice\n", "\nthe run itself\n"};
    command_result r;
    help_of(&r, "train", NULL, NULL);
    const char *at = r.out;
    for (size_t i = 0; i < COUNT(groups); i++)
        if (!(at = strstr(at, groups[i])))
            fail_msg("no group%s", groups[i]);
    assert_explained(r.out, "batch", "(default: 1024)");
    assert_explained(r.out, "recipe", "(default: paper)");
    assert_null(strstr(r.out, "1e+38"));
    const char *flag = strstr(r.out, "\n  --nesterov  ");
    assert_non_null(flag);
    assert_null(memmem(flag, strcspn(flag + 1, "\n") + 1, "0 to 1", 6));
    command_free(&r);
    help_of(&r, "train", "--recipe", "deit");
    assert_explained(r.out, "epochs", "(default: 300)");
    assert_explained(r.out, "mixup", "(default: 0.8)");
    command_free(&r);
}

static void options_that_do_nothing_are_not_offered(void **state)
{
    (void)state;
    command_result r;
    help_of(&r, "data", "get", NULL);
    assert_null(strstr(r.out, "--threads"));
    assert_null(strstr(r.out, "--isa"));
    command_free(&r);
    assert_refused("berlu: data get: option --threads: has no effect on this command", "data", "get", "cifar10",
                   "--threads", "2");
    assert_refused("berlu: smooth: option --isa: has no effect on this command", "smooth", "relu", "--isa=scalar");
}

/* Every line of the list of commands names one that answers --help. */
static void every_command_explains_itself(void **state)
{
    (void)state;
    command_result all, one;
    int count = 0;
    command_run(&all, "--help", NULL);
    assert_true(longest_line(all.out) <= 80);
    char *list = strstr(all.out, "\ncommands\n") + strlen("\ncommands\n"), *rest = NULL;
    *strstr(list, "\n\n") = 0;
    for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), count++) {
        char name[32] = "", *words[] = {"berlu", name, "--help", NULL, NULL}, *space;
        if (line[2] == ' ') /* continuation of the summary */
            continue;
        snprintf(name, sizeof name, "%.18s", line + 2);
        for (char *end = name + strlen(name); end > name && end[-1] == ' ';)
            *--end = 0;
        if ((space = strchr(name, ' '))) {
            *space = 0;
            words[2] = space + 1;
            words[3] = "--help";
        }
        command_run_with(&one, words, 0, NULL);
        if (one.code != 0 || !strstr(one.out, "usage: berlu ") || *one.err || longest_line(one.out) > 80)
            fail_msg("berlu %s --help: exit %d, %zu columns, %s", line, one.code, longest_line(one.out), one.err);
        command_free(&one);
    }
    assert_true(count > 0);
    command_free(&all);
}

static void doctor_answers_in_json(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "doctor", "--json", "--isa", "scalar", "--threads", "3", NULL);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.err, "");
    json_t *root = json_loads(r.out, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "isa")), "scalar");
    assert_int_equal(json_integer_value(json_object_get(root, "threads")), 3);
    assert_true(json_is_string(json_object_get(root, "blas")));
    assert_true(json_is_boolean(json_object_get(root, "cuda")));
    assert_true(json_is_object(json_object_get(root, "features")));
    json_decref(root);
    command_free(&r);
}

static void a_full_disk_behind_stdout_is_told(void **state)
{
    (void)state;
    struct stat info;
    if (stat("/dev/full", &info) != 0)
        skip();
    command_result r;
    command_run_with(&r, (char *[]){"berlu", "doctor", "--json", NULL}, 0, "/dev/full");
    assert_int_equal(r.code, 1);
    assert_one_line(r.err, "berlu: doctor: standard output: ");
    command_free(&r);
    command_run_with(&r, (char *[]){"berlu", "--help", NULL}, 0, "/dev/full");
    assert_int_equal(r.code, 1);
    command_free(&r);
    /* The first line is lost long before the command ends, and other files are opened meanwhile. */
    char *train[] = {"berlu", "train",   "--model", "linear",       "--data", "synthetic", "--synthetic-images",
                     "64",    "--batch", "8",       "--lr",         "1e-3",   "--epochs",  "2",
                     "--run", NULL,      "--quiet", "--json-lines", NULL};
    char folder[FOLDER_PATH], run[FOLDER_PATH];
    folder_path(run, folder_fresh(folder, "stdout-full"), "run");
    train[15] = run;
    command_run_with(&r, train, 0, "/dev/full");
    assert_int_equal(r.code, 1);
    assert_one_line(r.err, "berlu: train: standard output: No space left on device");
    command_free(&r);
}

/* The first file that a run opens for reading and writing is its lock, which takes 256 bytes. */
static void messages_to_closed_streams_go_into_no_file(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH], lock[FOLDER_PATH], line[2 * FOLDER_PATH + 256];
    struct stat info;
    command_result r;
    folder_path(run, folder_fresh(folder, "streams-closed"), "run");
    folder_path(lock, run, "lock");
    snprintf(line, sizeof line,
             "exec '%s/berlu' train --model linear --data synthetic --synthetic-images 64 --batch 8 --epochs 2 "
             "--recipe plain --run '%s' </dev/null >&- 2>&-",
             getenv("BERLU_BUILD_DIR"), run);
    assert_int_equal(system(line), 0);
    assert_int_equal(stat(lock, &info), 0);
    assert_int_equal(info.st_size, 256);
    command_run(&r, "train", "--run", run, "--resume", "--quiet", NULL);
    assert_int_equal(r.code, 0);
    command_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_input_is_one_line_and_exit_2),
        cmocka_unit_test(options_without_effect_are_refused),
        cmocka_unit_test(mistakes_in_training_and_data_are_told_at_once),
        cmocka_unit_test(an_instruction_set_that_is_not_there_is_refused),
        cmocka_unit_test(help_and_version_go_to_stdout),
        cmocka_unit_test(help_takes_the_name_of_a_command),
        cmocka_unit_test(training_is_explained_in_groups_with_the_defaults_of_the_recipe),
        cmocka_unit_test(options_that_do_nothing_are_not_offered),
        cmocka_unit_test(every_command_explains_itself),
        cmocka_unit_test(doctor_answers_in_json),
        cmocka_unit_test(a_full_disk_behind_stdout_is_told),
        cmocka_unit_test(messages_to_closed_streams_go_into_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
