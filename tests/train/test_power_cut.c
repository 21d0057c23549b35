/* test_power_cut.c - the disk stops before any fsync or rename of a run, and keeps any part of
 * what was not synced: the run resumes to the same bytes. SPDX-License-Identifier: MIT */
#include <omp.h>
#include <unistd.h>

#include "runs.h"
#include "support/crash.h"
#include "support/fail.h"

/* Four updates of a linear classifier, a checkpoint after each, an average and a best one. */
static const char *const small[] = {
    "model=linear",       "act=",    "image_size=4", "patch=", "synthetic_images=10", "batch=5", "epochs=2",
    "checkpoint_every=1", "ema=0.9", "eval_batch=5", NULL};

static void same_run(const char *whole, const char *run)
{
    runs_equal(whole, run);
    files_equal(whole, run, "checkpoints/last/ema.safetensors");
    files_equal(whole, run, "correct.bin");
}

/* In memory where possible: the disk is a pretended one anyway. */
static void place_make(char out[FOLDER_PATH], const char *name)
{
    folder_fresh(out, name);
    if (access("/dev/shm", W_OK) != 0)
        return;
    snprintf(out, FOLDER_PATH, "/dev/shm/berlu-test-%s-%ld", name, (long)getpid());
    assert_int_equal(folder_make(out), BERLU_OK);
}

/* These resumes meet no power cut, and need not wait for a disk. */
static void no_sync(int fd)
{
    (void)fd;
}

/* Every cut, every mode; of the random one, several draws. */
static void cuts(const char *base, const char *whole, const char *const *begin, int resume)
{
    enum { DRAWS = 3 };
    char root[FOLDER_PATH], run[FOLDER_PATH], after[FOLDER_PATH], again[FOLDER_PATH];
    train_settings s, rest;
    folder_path(root, base, "disk");
    folder_path(after, base, "after");
    int n = 1;
    for (int cut_short = 1; cut_short; n++) {
        assert_int_equal(folder_remove(root), BERLU_OK);
        assert_int_equal(folder_make(root), BERLU_OK);
        if (resume) { /* the disk stops in the second process */
            fail_watch(no_sync);
            tiny_settings(&s, folder_path(run, root, "run"), begin);
            assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_OK);
            recipe_free(&s);
        }
        tiny_settings(&s, folder_path(run, root, "run"), small);
        crash_start(root, n);
        if (resume)
            crash_settle();
        berlu_status status = run_with(&s, resume, NULL, NULL);
        cut_short = crash_stop();
        assert_true(cut_short || status == BERLU_OK);
        for (int mode = 0; cut_short && mode < CRASH_MODES + DRAWS - 1; mode++) {
            crash_write(after, mode < CRASH_ANY ? mode : CRASH_ANY, (uint64_t)(1000 * n + mode));
            fail_watch(no_sync);
            tiny_settings(&rest, folder_path(again, after, "run"), small);
            if (run_with(&rest, 1, NULL, NULL) != BERLU_OK)
                fail_msg("cut %d, mode %d: %s", n, mode, berlu_last_error());
            same_run(whole, again);
            recipe_free(&rest);
        }
        recipe_free(&s);
    }
    assert_true(n > 40); /* the calls of two epochs and several checkpoints */
    crash_free();
}

static void a_power_cut_at_any_sync_or_rename_loses_nothing(void **state)
{
    (void)state;
    char base[FOLDER_PATH], whole[FOLDER_PATH];
    place_make(base, "power-cut");
    run_whole(folder_path(whole, base, "whole"), small);
    cuts(base, whole, NULL, 0);
    assert_int_equal(folder_remove(base), BERLU_OK);
}

static void a_power_cut_during_a_resume_loses_nothing(void **state)
{
    (void)state;
    char base[FOLDER_PATH], whole[FOLDER_PATH];
    static const char *const begin[] = {
        "model=linear", "act=",     "image_size=4",       "patch=",  "synthetic_images=10",
        "batch=5",      "epochs=2", "checkpoint_every=1", "ema=0.9", "eval_batch=5",
        "max_steps=1",  NULL};
    place_make(base, "power-cut-resume");
    run_whole(folder_path(whole, base, "whole"), small);
    cuts(base, whole, begin, 1);
    assert_int_equal(folder_remove(base), BERLU_OK);
}

/* The layer itself: without an fsync of the file, or of its folder, nothing is promised. */
static void the_layer_drops_what_was_not_synced(void **state)
{
    (void)state;
    char root[FOLDER_PATH], after[FOLDER_PATH], path[FOLDER_PATH];
    for (int synced = 0; synced < 2; synced++) {
        folder_fresh(root, "crash-layer");
        folder_fresh(after, "crash-layer-after");
        crash_start(root, synced ? 4 : 1);
        folder_path(path, root, "file");
        if (synced) {
            assert_int_equal(file_write_atomic(path, "hello", 5), BERLU_OK);
            assert_int_equal(file_write_atomic(folder_path(path, root, "next"), "x", 1), BERLU_ERR_IO);
        } else {
            assert_int_equal(file_write_atomic(path, "hello", 5), BERLU_ERR_IO);
        }
        assert_int_equal(crash_stop(), 1);
        for (int mode = 0; synced && mode < CRASH_ANY; mode++) {
            char *bytes;
            size_t size;
            crash_write(after, mode, 1);
            assert_int_equal(file_read_all(&bytes, &size, folder_path(path, after, "file"), 100), BERLU_OK);
            assert_true(size == 5 && memcmp(bytes, "hello", 5) == 0);
            free(bytes);
        }
        crash_write(after, CRASH_DROP, 1);
        assert_int_equal(file_exists(folder_path(path, after, "file")), synced);
        assert_int_equal(folder_remove(after), BERLU_OK);
    }
    crash_free();
}

/* A file that is renamed into place without an fsync comes out empty: what the tests above would
 * notice. */
static void a_rename_before_the_data_is_what_the_layer_finds(void **state)
{
    (void)state;
    char root[FOLDER_PATH], after[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], *bytes;
    size_t size;
    folder_fresh(root, "crash-rename");
    folder_fresh(after, "crash-rename-after");
    crash_start(root, 3);
    FILE *f = fopen(folder_path(from, root, "new"), "w");
    fputs("data", f);
    fclose(f);
    assert_int_equal(path_rename(from, folder_path(to, root, "file")), BERLU_OK); /* 1: rename, 2: sync of the folder */
    assert_int_equal(folder_sync(root), BERLU_ERR_IO);
    assert_int_equal(crash_stop(), 1);
    crash_write(after, CRASH_DROP, 1);
    assert_int_equal(file_read_all(&bytes, &size, folder_path(to, after, "file"), 100), BERLU_OK);
    assert_int_equal(size, 0);
    free(bytes);
    assert_int_equal(folder_remove(after), BERLU_OK);
    crash_free();
}

int main(void)
{
    omp_set_num_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layer_drops_what_was_not_synced),
        cmocka_unit_test(a_rename_before_the_data_is_what_the_layer_finds),
        cmocka_unit_test(a_power_cut_at_any_sync_or_rename_loses_nothing),
        cmocka_unit_test(a_power_cut_during_a_resume_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
