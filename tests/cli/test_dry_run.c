/* test_dry_run.c - the command's report before training, and one JSON object from every command.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "support/command_json.h"
#include "support/folder.h"
#include "support/sanitized.h"

#define TINY                                                                                                           \
    "train", "--model", "vit_micro", "--image-size", "16", "--patch", "8", "--data", "synthetic",                      \
        "--synthetic-images", "64", "--act", "berlu", "--threads", "1", "--workers", "1"

static void a_dry_run_tells_memory_and_time_and_writes_nothing(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH];
    folder_path(run, folder_fresh(folder, "dry-run"), "run");
    command_result r;
    command_run(&r, TINY, "--batch", "8", "--lr", "1e-3", "--epochs", "50", "--run", run, "--dry-run", "--json", NULL);
    assert_non_null(strstr(r.err, "time       about "));
    json_t *root = json_of(&r);
    assert_int_equal(json_integer_value(json_object_get(root, "updates")), 400);
    assert_true(json_integer_value(json_object_get(root, "planned_bytes")) > 100000);
    double rate = json_real_value(json_object_get(root, "images_per_s"));
    double seconds = json_real_value(json_object_get(root, "seconds"));
    assert_true(rate > 0 && seconds >= 3200 / rate); /* evaluations come on top */
    assert_int_equal(strlen(json_string_value(json_object_get(root, "settings_hash"))), 64);
    json_decref(root);
    assert_false(file_exists(run) || folder_exists(run));
}

/* The folder, the file of --init, a busy name: refused as the command itself refuses it. */
static void a_dry_run_refuses_what_the_run_would_refuse(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], file[FOLDER_PATH], inside[FOLDER_PATH];
    folder_path(file, folder_fresh(folder, "dry-refused"), "file");
    assert_int_equal(file_write_atomic(file, "x", 1), BERLU_OK);
    folder_path(inside, file, "run");
    const char *const bad[][2] = {{"--run", file},
                                  {"--run", inside},
                                  {"--run", ""},
                                  {"--run", folder},
                                  {"--init", "/nowhere/w.safetensors"},
                                  {"--init", ""},
                                  {"--mean", ""},
                                  {"--act-constraint", "beta:0:1"},
                                  {"--act-constraint", "eps:0.001:"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        command_result dry, real;
        command_run(&dry, TINY, "--epochs", "1", "--batch", "8", bad[i][0], bad[i][1], "--dry-run", NULL);
        command_run(&real, TINY, "--epochs", "1", "--batch", "8", "--run", folder, bad[i][0], bad[i][1], NULL);
        if (dry.code == 0 || (i != 4 && dry.code != 2))
            fail_msg("%s %s: exit %d", bad[i][0], bad[i][1], dry.code);
        assert_int_not_equal(real.code, 0);
        command_free(&dry);
        command_free(&real);
    }
}

static int64_t planned(const char *eval_batch)
{
    command_result r;
    command_run(&r, TINY, "--batch", "8", "--epochs", "1", "--eval-batch", eval_batch, "--dry-run", "--json", NULL);
    json_t *root = json_of(&r);
    int64_t bytes = json_integer_value(json_object_get(root, "planned_bytes"));
    json_decref(root);
    return bytes;
}

static void an_evaluation_takes_no_more_than_the_set(void **state)
{
    (void)state;
    assert_int_equal(planned("1000000"), planned("64")); /* 64 training images are evaluated, too, and 12 test images */
    assert_true(planned("32") < planned("64"));
}

/* A set of one image is evaluated as fast as a full batch, not image by image: the estimate of a run
 * with it was a hundred times too long. */
static void one_test_image_makes_no_run_long(void **state)
{
    (void)state;
    double rate[2];
    if (SANITIZED)
        skip(); /* half a minute */
    for (int one = 0; one < 2; one++) {
        command_result r;
        command_run(&r, "train", "--model", "vit_micro", "--data", "synthetic", "--act", "gelu", "--batch", "1024",
                    "--lr", "1e-3", "--dry-run", "--json", "--test-images", one ? "1" : "0", NULL);
        json_t *root = json_of(&r);
        rate[one] = json_real_value(json_object_get(root, "images_per_s"));
        json_decref(root);
    }
    if (rate[1] < rate[0] / 10)
        fail_msg("%g images/s with one test image, %g with all", rate[1], rate[0]);
}

/* With 1.5 GiB of address space: the message names what is taken, what is free and a batch, and
 * that batch works. */
static void a_lack_of_memory_names_the_batch_that_fits(void **state)
{
    (void)state;
    command_result r;
    char *words[] = {"berlu",
                     "train",
                     "--model",
                     "vit_micro",
                     "--data",
                     "synthetic",
                     "--act",
                     "berlu",
                     "--lr",
                     "1e-3",
                     "--threads",
                     "1",
                     "--workers",
                     "1",
                     "--batch",
                     "8192",
                     "--synthetic-images",
                     "8192",
                     "--max-steps",
                     "1",
                     "--eval-batch",
                     "8",
                     "--dry-run",
                     NULL};
    size_t limit = (size_t)3 << 29;
    if (SANITIZED)
        skip(); /* terabytes of addresses are reserved */
    command_run_with(&r, words, limit, NULL);
    assert_int_equal(r.code, 1);
    char *advice = strstr(r.err, "--batch ");
    if (!advice || !strstr(r.err, "GiB are free"))
        fail_msg("%s", r.err);
    int batch = atoi(advice + strlen("--batch "));
    assert_true(batch >= 1 && batch < 8192);
    command_free(&r);
    char smaller[16];
    snprintf(smaller, sizeof smaller, "%d", batch);
    words[15] = smaller;
    command_run_with(&r, words, limit, NULL);
    if (r.code != 0)
        fail_msg("--batch %s does not fit: %s", smaller, r.err);
    command_free(&r);
}

static void a_small_automatic_rate_is_pointed_out(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, TINY, "--batch", "8", "--epochs", "1", "--dry-run", NULL);
    assert_non_null(strstr(r.err, "automatic learning rate for 8 images"));
    command_free(&r);
    command_run(&r, TINY, "--batch", "8", "--epochs", "1", "--lr", "7.8125e-6", "--dry-run", NULL);
    assert_null(strstr(r.err, "automatic"));
    command_free(&r);
}

static void every_command_prints_one_object(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], svg[FOLDER_PATH], set[FOLDER_PATH], run[FOLDER_PATH], numbers[FOLDER_PATH],
        out[FOLDER_PATH];
    folder_path(svg, folder_fresh(folder, "json-all"), "f.svg");
    folder_path(set, folder, "set");
    folder_path(run, folder, "run");
    folder_path(numbers, folder, "x.f32");
    folder_path(out, folder, "y.f32");
    float x[4] = {-1, 0, 1, 2};
    assert_int_equal(file_write_atomic(numbers, (const char *)x, sizeof x), BERLU_OK);
    const char *const commands[][24] = {
        {"doctor"},
        {"smooth", "relu"},
        {"smooth", "relu", "--svg", svg},
        {"smooth", "check", "relu"},
        {"act", "list"},
        {"act", "eval", "gelu", "--x", "1"},
        {"act", "eval", "gelu", "--in", numbers, "--out", out},
        {"act", "plot", "gelu", "--svg", svg},
        {"models"},
        {"recipes"},
        {"summary", "vit_micro"},
        {"forward", "vit_micro", "--weights", "fill", "--batch", "fill", "--out", out},
        {"data", "make", "synthetic", "--out", set, "--images", "64"},
        {"data", "info", "synthetic"},
        {TINY, "--batch", "8", "--epochs", "1", "--run", run},
        {TINY, "--batch", "8", "--epochs", "1", "--dry-run"},
        {"eval", run},
        {"analyze", "lipschitz", "berlu"},
        {"analyze", "linearity", "berlu"},
        {"analyze", "card", "relu"},
    };
    for (size_t i = 0; i < COUNT(commands); i++) {
        command_result r;
        char *words[32] = {"berlu"};
        size_t n = 1;
        for (size_t k = 0; k < COUNT(commands[i]) && commands[i][k]; k++)
            words[n++] = (char *)commands[i][k];
        words[n] = "--json";
        command_run_with(&r, words, 0, NULL);
        if (r.code != 0)
            fail_msg("%s %s: %s", commands[i][0], commands[i][1] ? commands[i][1] : "", r.err);
        json_t *root = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(root) || !json_is_string(json_object_get(root, "berlu")))
            fail_msg("%s %s printed '%s'", commands[i][0], commands[i][1] ? commands[i][1] : "", r.out);
        json_decref(root);
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dry_run_tells_memory_and_time_and_writes_nothing),
        cmocka_unit_test(a_dry_run_refuses_what_the_run_would_refuse),
        cmocka_unit_test(an_evaluation_takes_no_more_than_the_set),
        cmocka_unit_test(one_test_image_makes_no_run_long),
        cmocka_unit_test(a_lack_of_memory_names_the_batch_that_fits),
        cmocka_unit_test(a_small_automatic_rate_is_pointed_out),
        cmocka_unit_test(every_command_prints_one_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
