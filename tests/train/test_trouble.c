/* test_trouble.c - failures leave the last good state, and bad input leaves nothing.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "runs.h"
#include "support/fail.h"
#include "train/run_lock.h"
#include "train/trainer_internal.h"

static void a_loss_that_is_not_finite_names_the_first_bad_tensor(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    const char *const extra[] = {"lr=1e30", "clip=0", "warmup=0", "checkpoint_every=1", NULL};
    train_settings s;
    tiny_settings(&s, run_place(run, "infinite"), extra);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_NUMERIC);
    assert_non_null(strstr(berlu_last_error(), "is not finite; first bad: "));
    assert_non_null(strstr(berlu_last_error(), "the checkpoint of step 1 is kept"));
    assert_true(folder_exists(folder_path(path, run, "checkpoints/step-00000001")));
    recipe_free(&s);
}

/* The system would grant the memory and later kill the process that uses it. */
static void a_run_that_the_free_memory_cannot_hold_is_refused(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    tiny_settings(&s, run_place(run, "memory-free"), NULL);
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    const engine_options train = {
        .backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = (int)s.batch, .loss = LOSS_CROSS_ENTROPY};
    const engine_options eval = {.backend = cpu_backend(), .mode = ENGINE_INFER, .batch = t->eval_batch};
    double planned = (double)report_planned_bytes(t);
    assert_true(memory_free() > planned);
    assert_int_equal(memory_check(t, &train, &eval, memory_free()), BERLU_OK);
    assert_int_equal(memory_check(t, &train, &eval, planned), BERLU_ERR_MEMORY); /* no place for batches of images */
    assert_int_equal(memory_check(t, &train, &eval, 0), BERLU_OK);               /* not known */
    trainer_close(t);
    recipe_free(&s);
}

static void a_folder_that_vanishes_stops_the_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    tiny_settings(&s, run_place(run, "vanished"), NULL);
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(folder_remove(run), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), run));
    trainer_close(t);
    recipe_free(&s);
}

/* The disk is full from the n-th write on: the run stops with an error, and completes once there is
 * space. */
static void a_full_disk_stops_the_run_and_nothing_is_lost(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "roomy"), NULL);
    tiny_settings(&s, run_place(run, "full"), NULL);
    int failures = 0;
    for (int n = 1;; n += 7) {
        fail_from(FAIL_WRITE | FAIL_MKDIR, n);
        berlu_status status = run_with(&s, 1, NULL, NULL);
        int hit = fail_hit();
        if (status == BERLU_OK)
            break;
        assert_true(hit);
        assert_int_equal(status, BERLU_ERR_IO);
        failures++;
    }
    assert_true(failures >= 3);
    runs_equal(whole, run);
    recipe_free(&s);
}

static void bad_input_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"batch=65", "larger than the 64 training images"},
                                         {"holdout=64", "leaves nothing of 64"},
                                         {"model=vit_nano", "vit_nano"},
                                         {"act=rellu", "rellu"},
                                         {"classes=7", "7 classes"},
                                         {"data=/no/such/place", "/no/such/place"},
                                         {"distill=hard", "vit_micro has one head"},
                                         {"epochs=1000000000", "more than the 4294967295 a run can count"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char run[FOLDER_PATH];
        train_settings s;
        const char *const extra[] = {bad[i][0],
                                     strncmp(bad[i][0], "data", 4) == 0      ? "synthetic_images="
                                     : strncmp(bad[i][0], "distill", 7) == 0 ? "teacher=nobody"
                                                                             : NULL,
                                     NULL};
        tiny_settings(&s, run_place(run, "bad"), extra);
        berlu_status status = run_with(&s, 0, NULL, NULL);
        assert_true(status == BERLU_ERR_ARG || status == BERLU_ERR_INPUT || status == BERLU_ERR_UNSUPPORTED);
        if (!strstr(berlu_last_error(), bad[i][1]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i][1]);
        assert_false(folder_exists(run));
        recipe_free(&s);
    }
}

/* A build without CUDA, or a machine without a GPU; where there is one the run is made. */
static void a_device_that_is_missing_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    tiny_settings(&s, run_place(run, "no-device"), (const char *const[]){"device=cuda", NULL});
    berlu_status status = run_with(&s, 0, NULL, NULL);
    if (status != BERLU_OK) {
        assert_int_equal(status, BERLU_ERR_DEVICE);
        assert_true(*berlu_last_error());
        assert_false(folder_exists(run));
    }
    recipe_free(&s);
}

static void an_existing_run_or_a_full_folder_is_not_touched(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(run, "existing"), (const char *const[]){"epochs=1", NULL});
    tiny_settings(&s, run, (const char *const[]){"epochs=1", NULL});
    struct stat before, after;
    assert_int_equal(stat(folder_path(path, run, "metrics.csv"), &before), 0);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "--resume"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    recipe_free(&s);
    char other[FOLDER_PATH];
    folder_fresh(other, "not-a-run");
    assert_int_equal(file_write_atomic(folder_path(path, other, "thesis.txt"), "x", 1), BERLU_OK);
    tiny_settings(&s, other, NULL);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "not empty"));
    recipe_free(&s);
    assert_int_equal(run_check(run, 0), BERLU_ERR_ARG);
    assert_int_equal(run_check(run, 1), BERLU_OK);
    assert_int_equal(run_check(other, 1), BERLU_ERR_ARG);
    assert_int_equal(run_check(path, 0), BERLU_ERR_ARG); /* a file */
    assert_non_null(strstr(berlu_last_error(), "is a file"));
    char below[FOLDER_PATH + 16];
    snprintf(below, sizeof below, "%s/deep/down", path);
    assert_int_equal(run_check(below, 0), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "is no folder"));
    assert_int_equal(run_check("somewhere/new", 0), BERLU_OK);
}

static void a_resume_with_other_settings_names_them(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings asked, merged;
    run_whole(run_place(run, "settings"), (const char *const[]){"epochs=1", NULL});
    recipe_init(&asked);
    recipe_set(&asked, "run", run);
    recipe_set(&asked, "lr", "0.5");
    recipe_set(&asked, "threads", "1");
    assert_int_equal(trainer_resume_settings(&merged, &asked), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "lr (0.003, not 0.5)"));
    recipe_free(&asked);
    recipe_init(&asked);
    recipe_set(&asked, "run", run);
    recipe_set(&asked, "threads", "1");
    assert_int_equal(trainer_resume_settings(&merged, &asked), BERLU_OK);
    assert_true(merged.threads == 1 && merged.lr == 0.003 && merged.image_size == 16);
    recipe_free(&asked);
    recipe_free(&merged);
}

/* Calls of these kinds fail in a resume, one at a time: at worst an error, and the folder is
 * unchanged. */
static void failures_in_a_resume(int kinds, int least)
{
    char whole[FOLDER_PATH], run[FOLDER_PATH], newest[FOLDER_PATH];
    static const char *const small[] = {
        "model=linear",    "act=",          "image_size=4", "patch=", "synthetic_images=10", "batch=5",
        "train_images=10", "test_images=2", "epochs=2",     NULL};
    static const char *const half[] = {
        "model=linear",  "act=",     "image_size=4", "patch=", "synthetic_images=10", "batch=5", "train_images=10",
        "test_images=2", "epochs=2", "max_steps=3",  NULL};
    run_whole(run_place(whole, "trouble-whole"), small);
    run_whole(run_place(run, "trouble"), half);
    folder_path(newest, run, "checkpoints/step-00000003");
    int refused = 0, hit = 1;
    for (int n = 1; hit; n++) {
        train_settings asked, s;
        trainer *t = NULL;
        recipe_init(&asked);
        assert_int_equal(recipe_set(&asked, "run", run), BERLU_OK);
        assert_int_equal(recipe_set(&asked, "threads", "1"), BERLU_OK);
        assert_int_equal(recipe_set(&asked, "workers", "1"), BERLU_OK);
        fail_after(kinds, n);
        berlu_status status = trainer_resume_settings(&s, &asked);
        int settings = status == BERLU_OK;
        if (status == BERLU_OK)
            status = trainer_open(&t, &s, NULL);
        if (status == BERLU_OK)
            status = trainer_start(t, 1);
        hit = fail_hit();
        assert_true(hit || status == BERLU_OK);
        refused += status != BERLU_OK;
        trainer_close(t);
        if (status == BERLU_OK) { /* then no checkpoint was overlooked */
            run_record record;
            int held;
            assert_int_equal(run_record_read(&record, &held, run), BERLU_OK);
            assert_int_equal(record.step, 3);
        }
        assert_int_not_equal(status, BERLU_ERR_INPUT); /* nor is the folder to blame */
        assert_true(folder_exists(newest));
        if (settings)
            recipe_free(&s);
        recipe_free(&asked);
    }
    assert_true(refused > least);
    train_settings s;
    tiny_settings(&s, run, small);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    runs_equal(whole, run);
    recipe_free(&s);
}

static void memory_that_runs_out_in_a_resume_harms_nothing(void **state)
{
    (void)state;
    failures_in_a_resume(FAIL_ALLOC, 100);
}

static void files_that_cannot_be_opened_in_a_resume_harm_nothing(void **state)
{
    (void)state;
    failures_in_a_resume(FAIL_MANY, 20);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_that_is_not_finite_names_the_first_bad_tensor),
        cmocka_unit_test(a_run_that_the_free_memory_cannot_hold_is_refused),
        cmocka_unit_test(a_folder_that_vanishes_stops_the_run),
        cmocka_unit_test(a_full_disk_stops_the_run_and_nothing_is_lost),
        cmocka_unit_test(bad_input_is_refused_before_anything_is_written),
        cmocka_unit_test(a_device_that_is_missing_is_refused_before_anything_is_written),
        cmocka_unit_test(an_existing_run_or_a_full_folder_is_not_touched),
        cmocka_unit_test(a_resume_with_other_settings_names_them),
        cmocka_unit_test(memory_that_runs_out_in_a_resume_harms_nothing),
        cmocka_unit_test(files_that_cannot_be_opened_in_a_resume_harm_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
