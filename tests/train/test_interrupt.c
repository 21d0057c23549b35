/* test_interrupt.c - runs give the same bytes however they were interrupted, and on any number of
 * threads. SPDX-License-Identifier: MIT */
#include <glob.h>
#include <math.h>
#include <omp.h>
#include <unistd.h>

#include "runs.h"

static const char *const everything[] = {
    "ema=0.9",       "drop_path=0.2",      "augment=crop-flip",       "mixup=0.8", "cutmix=1", "accumulate=3",
    "smoothing=0.1", "checkpoint_every=2", "act_constraint=alpha:0:", NULL};

/* Stops and resumes repeatedly, each time a little later. */
static void stopped_often_equals_uninterrupted(const char *const *extra, const char *phase, const char *name)
{
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    train_result r;
    char place[64];
    snprintf(place, sizeof place, "%s-whole", name);
    run_whole(run_place(whole, place), extra);
    snprintf(place, sizeof place, "%s-cut", name);
    tiny_settings(&s, run_place(cut, place), extra);
    int stops = 0;
    for (uint64_t at = 1;; at += 2) {
        stopper stop = {.phase = phase, .at = at};
        berlu_status status = run_with(&s, 1, &stop, &r);
        if (status == BERLU_OK)
            break;
        if (status != BERLU_ERR_STOPPED)
            fail_msg("%s", berlu_last_error());
        stops++;
        assert_true(stops < 50);
    }
    assert_true(stops >= 2);
    runs_equal(whole, cut);
    if (s.ema > 0)
        files_equal(whole, cut, "checkpoints/last/ema.safetensors");
    recipe_free(&s);
}

static void a_run_stopped_between_updates_gives_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(NULL, "train", "plain");
}

static void a_run_with_everything_switched_on_resumes_to_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(everything, "train", "everything");
}

static void a_run_stopped_during_an_evaluation_gives_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(NULL, "test", "evaluation");
}

/* The histograms are taken at the epoch's last update, and a resume does not repeat it. */
static void a_stop_during_an_evaluation_keeps_the_histograms(void **state)
{
    (void)state;
    char run[FOLDER_PATH], events[FOLDER_PATH];
    train_settings s;
    trainer *t;
    stopper stop = {.phase = "test", .at = 1};
    train_hooks hooks = {.stop = &stop.stop, .progress = stopper_tick, .context = &stop};
    tiny_settings(&s, run_place(run, "histograms"), NULL);
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_STOPPED);
    trainer_close(t);
    glob_t found;
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(glob(folder_path(events, run, "events.out.tfevents.*"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(file_in_all(&bytes, &size, found.gl_pathv[0]), BERLU_OK);
    static const char tag[] = "pre_activation/blocks.0.mlp.act";
    assert_non_null(memmem(bytes, size, tag, sizeof tag - 1));
    free(bytes);
    globfree(&found);
    recipe_free(&s);
}

static void a_limit_of_updates_cuts_an_epoch_and_a_resume_makes_it_whole(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "limit-whole"), NULL);
    tiny_settings(&s, run_place(cut, "limit-cut"), NULL);
    for (int64_t limit = 5; limit <= 25; limit += 5) {
        s.max_steps = limit;
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
        csv_table t = metrics_of(cut); /* the cut epoch has its row too */
        assert_int_equal(t.rows, limit >= 24 ? 3 : limit / 8 + 1);
        csv_free(&t);
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK); /* again: nothing changes */
        t = metrics_of(cut);
        assert_int_equal(t.rows, limit >= 24 ? 3 : limit / 8 + 1);
        csv_free(&t);
    }
    runs_equal(whole, cut);
    recipe_free(&s);
}

static void a_run_without_a_checkpoint_resumes_from_the_beginning(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "begin-whole"), NULL);
    tiny_settings(&s, run_place(cut, "begin-cut"), NULL);
    run_folder folder;
    int there;
    assert_int_equal(run_take(&folder, cut, &(run_taking){0}, &there), BERLU_OK);
    assert_int_equal(run_begin(&folder, &(run_about){.settings = &s}), BERLU_OK); /* died right after run.json */
    run_close(&folder);
    assert_int_equal(file_write_atomic(folder_path(path, cut, "metrics.csv"), "half a li", 9), BERLU_OK);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    runs_equal(whole, cut);
    recipe_free(&s);
}

/* Killed between a checkpoint's rename and the update of `last`: the resume finds a complete run
 * and repairs the link. */
static void a_link_that_lags_behind_is_mended(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH], target[64] = "";
    train_settings s;
    run_whole(run_place(run, "link"), NULL);
    folder_path(path, run, "checkpoints/last");
    assert_int_equal(link_replace_in(NULL, "step-00000016", path), BERLU_OK);
    tiny_settings(&s, run, NULL);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000024");
    recipe_free(&s);
}

/* Runs of an earlier version: timing.csv is moved aside, metrics.csv with other columns is an error
 * and stays unchanged. */
static void columns_of_another_version_are_not_mixed_with_ours(void **state)
{
    (void)state;
    static const char old[] = "epoch,step,seconds\n1,8,0.5\n";
    char run[FOLDER_PATH], path[FOLDER_PATH], *bytes;
    train_settings s;
    run_whole(run_place(run, "columns"), (const char *const[]){"max_steps=16", NULL});
    folder_path(path, run, "timing.csv");
    assert_int_equal(file_write_atomic(path, old, sizeof old - 1), BERLU_OK);
    tiny_settings(&s, run, NULL);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    csv_table t;
    assert_int_equal(csv_read(&t, path), BERLU_OK);
    assert_true(t.rows == 1 && csv_column(&t, "overhead_percent") >= 0 && csv_number(&t, 0, 1) == 24);
    csv_free(&t);
    assert_int_equal(file_read_all(&bytes, NULL, folder_path(path, run, "timing-until-16.csv"), 4096), BERLU_OK);
    assert_string_equal(bytes, old);
    free(bytes);
    folder_path(path, run, "metrics.csv");
    assert_int_equal(file_read_all(&bytes, NULL, path, 1 << 20), BERLU_OK);
    bytes[0] = 'E'; /* "Epoch": as long as before */
    assert_int_equal(file_write_atomic(path, bytes, strlen(bytes)), BERLU_OK);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "other columns"));
    free(bytes);
    recipe_free(&s);
}

static void threads_and_workers_change_no_byte(void **state)
{
    (void)state;
    char one[FOLDER_PATH], two[FOLDER_PATH];
    const char *const extra[] = {"threads=2", "workers=3", "augment=crop-flip", NULL};
    const char *const plain[] = {"threads=1", "workers=1", "augment=crop-flip", NULL};
    run_whole(run_place(one, "threads-1"), plain);
    run_whole(run_place(two, "threads-2"), extra);
    runs_equal(one, two);
}

static void a_run_that_is_complete_tells_what_it_came_to(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    train_result first = run_whole(run_place(run, "complete"), NULL), again;
    tiny_settings(&s, run, NULL);
    assert_int_equal(run_with(&s, 1, NULL, &again), BERLU_OK);
    assert_true(again.last.epoch == 3 && again.last.step == 24);
    assert_true(again.last.test_top1 == first.last.test_top1 && again.last.test_loss == first.last.test_loss);
    assert_true(again.last.lr == first.last.lr && again.last.train_loss == first.last.train_loss);
    assert_true(isnan(again.last.ema_top1));
    recipe_free(&s);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_stopped_between_updates_gives_the_same_bytes),
        cmocka_unit_test(a_run_with_everything_switched_on_resumes_to_the_same_bytes),
        cmocka_unit_test(a_run_stopped_during_an_evaluation_gives_the_same_bytes),
        cmocka_unit_test(a_stop_during_an_evaluation_keeps_the_histograms),
        cmocka_unit_test(a_limit_of_updates_cuts_an_epoch_and_a_resume_makes_it_whole),
        cmocka_unit_test(a_run_without_a_checkpoint_resumes_from_the_beginning),
        cmocka_unit_test(a_link_that_lags_behind_is_mended),
        cmocka_unit_test(columns_of_another_version_are_not_mixed_with_ours),
        cmocka_unit_test(threads_and_workers_change_no_byte),
        cmocka_unit_test(a_run_that_is_complete_tells_what_it_came_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
