/* test_guarded.c - training on a device whose memory the host cannot touch gives the CPU's bytes.
 * SPDX-License-Identifier: MIT
 *
 * The linker replaces backend_find(), from which the trainer gets its backend. Results of the
 * guarded backend arrive three steps late, so this also proves that sums, checkpoints, evaluation
 * and a stop wait for them. */
#include "graph/guarded.h"
#include "runs.h"

static int guarded;

berlu_status __real_backend_find(const backend **out, const char *name);
berlu_status __wrap_backend_find(const backend **out, const char *name);

berlu_status __wrap_backend_find(const backend **out, const char *name)
{
    if (!guarded)
        return __real_backend_find(out, name);
    *out = guarded_backend();
    return BERLU_OK;
}

static const char *const both[] = {"epochs=3", "ema=0.9", "checkpoint_every=3", "act_constraint=alpha:0:0.02", NULL};

static void training_on_a_guarded_device_gives_the_same_bytes(void **state)
{
    (void)state;
    char cpu[FOLDER_PATH], remote[FOLDER_PATH];
    guarded = 0;
    run_whole(run_place(cpu, "guarded-cpu"), both);
    guarded = 1;
    run_whole(run_place(remote, "guarded-device"), both);
    runs_equal(cpu, remote);
}

static void accumulating_on_a_guarded_device_gives_the_same_bytes(void **state)
{
    (void)state;
    static const char *const extra[] = {"epochs=2", "accumulate=3", "mixup=0.5", "batch=8", NULL};
    char cpu[FOLDER_PATH], remote[FOLDER_PATH];
    guarded = 0;
    run_whole(run_place(cpu, "guarded-sum-cpu"), extra);
    guarded = 1;
    run_whole(run_place(remote, "guarded-sum-device"), extra);
    runs_equal(cpu, remote);
}

/* Stopped in the middle of an epoch there and resumed there. */
static void a_stopped_run_resumes_to_the_same_bytes(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    stopper stop = {.phase = "train", .at = 5};
    guarded = 0;
    run_whole(run_place(whole, "guarded-whole"), both);
    guarded = 1;
    tiny_settings(&s, run_place(cut, "guarded-cut"), both);
    assert_int_equal(run_with(&s, 0, &stop, NULL), BERLU_ERR_STOPPED);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    recipe_free(&s);
    runs_equal(whole, cut);
}

/* Images on the device as bytes, and a whole step as one list: the same run. */
static void images_on_the_device_give_the_same_bytes(void **state)
{
    (void)state;
    static const char *const mixed[] = {"epochs=2",      "image_size=32",  "augment=crop-flip", "mixup=0.8", "cutmix=1",
                                        "smoothing=0.1", "data_on=device", "ema=0.9",           NULL};
    static const char *const host[] = {"epochs=2",      "image_size=32", "augment=crop-flip", "mixup=0.8", "cutmix=1",
                                       "smoothing=0.1", "data_on=host",  "ema=0.9",           NULL};
    static const char *const parts[] = {"epochs=2",        "image_size=32",  "holdout=20",
                                        "train_images=40", "data_on=device", NULL};
    char cpu[FOLDER_PATH], remote[FOLDER_PATH];
    for (int i = 0; i < 2; i++) {
        guarded = 0;
        run_whole(run_place(cpu, "guarded-images-cpu"), i ? parts : host);
        guarded = 1;
        run_whole(run_place(remote, "guarded-images-device"), i ? parts : mixed);
        runs_equal(cpu, remote);
    }
}

static void a_set_that_streams_is_refused_on_the_device(void **state)
{
    (void)state;
    static const char *const strong[] = {"epochs=1", "image_size=32", "augment=deit", "data_on=device", NULL};
    char run[FOLDER_PATH];
    train_settings s;
    guarded = 1;
    tiny_settings(&s, run_place(run, "guarded-streams"), strong);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "data_on"));
    recipe_free(&s);
}

/* Replaces the folder of checkpoints by a file in the middle of the second epoch. */
static void checkpoints_spoil(void *context, const train_progress *p)
{
    const char *run = context;
    char path[FOLDER_PATH], aside[FOLDER_PATH];
    if (p->epoch != 2 || strcmp(p->phase, "train") != 0)
        return;
    folder_path(path, run, "checkpoints");
    folder_path(aside, run, "aside");
    if (rename(path, aside) == 0)
        assert_int_equal(file_write_atomic(path, "x", 1), BERLU_OK);
}

/* A thread writes the checkpoint; its failure ends the run, and the message names the one that is
 * left. */
static void a_checkpoint_that_cannot_be_written_ends_the_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t = NULL;
    guarded = 1;
    tiny_settings(&s, run_place(run, "guarded-spoiled"), (const char *const[]){"epochs=4", NULL});
    train_hooks hooks = {.progress = checkpoints_spoil, .context = run};
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), "checkpoints"));
    assert_non_null(strstr(berlu_last_error(), "mend it and continue with --resume"));
    trainer_close(t);
    recipe_free(&s);
}

/* Whichever call of the device fails, the run ends with its message. */
static void a_failing_device_ends_the_run_with_its_message(void **state)
{
    (void)state;
    guarded = 1;
    for (int n = 40; n < 400; n += 90) {
        char run[FOLDER_PATH];
        train_settings s;
        tiny_settings(&s, run_place(run, "guarded-fails"), both);
        guarded_fail_at(n);
        assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_DEVICE);
        assert_non_null(strstr(berlu_last_error(), "guarded device"));
        guarded_fail_at(0);
        recipe_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_on_a_guarded_device_gives_the_same_bytes),
        cmocka_unit_test(accumulating_on_a_guarded_device_gives_the_same_bytes),
        cmocka_unit_test(a_stopped_run_resumes_to_the_same_bytes),
        cmocka_unit_test(images_on_the_device_give_the_same_bytes),
        cmocka_unit_test(a_set_that_streams_is_refused_on_the_device),
        cmocka_unit_test(a_checkpoint_that_cannot_be_written_ends_the_run),
        cmocka_unit_test(a_failing_device_ends_the_run_with_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
