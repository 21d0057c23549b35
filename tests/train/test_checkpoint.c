/* test_checkpoint.c - checkpoints are restored to the bit, appear complete or not at all, and are
 * pruned. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "cpu/cpu.h"
#include "models/models.h"
#include "models/weights.h"
#include "support/fail.h"
#include "support/folder.h"
#include "train/checkpoint.h"

typedef struct bench {
    char run[FOLDER_PATH];
    folder_handle folder;
    checkpoint_store store;
    model *model;
    engine *engine;
    double site_metrics[6];
} bench;

static void bench_open(bench *b, const char *name, int ema)
{
    static int made;
    char place[32];
    snprintf(place, sizeof place, "checkpoint-%d", made++);
    folder_fresh(b->run, place);
    assert_int_equal(folder_hold(&b->folder, b->run), BERLU_OK);
    b->store = (checkpoint_store){.run = &b->folder};
    assert_int_equal(model_create(&b->model, name, NULL), BERLU_OK);
    engine_options o = {
        .backend = cpu_backend(), .mode = ENGINE_TRAIN, .batch = 1, .loss = LOSS_CROSS_ENTROPY, .ema = ema};
    assert_int_equal(engine_create(&b->engine, b->model->graph, &o), BERLU_OK);
    assert_int_equal(weights_init(b->engine, 1, NULL), BERLU_OK);
    for (int i = 0; i < 6; i++)
        b->site_metrics[i] = 0.1 * i;
}

static void bench_close(bench *b)
{
    engine_free(b->engine);
    model_free(b->model);
    folder_release(&b->folder);
    assert_int_equal(folder_remove(b->run), BERLU_OK);
}

static train_state state_at(bench *b, uint64_t updates, uint64_t best)
{
    return (train_state){.updates = updates,
                         .epoch = 2,
                         .batches = 3,
                         .images = 192,
                         .norms = 3,
                         .metrics_bytes = 777,
                         .best_updates = best,
                         .loss_sum = 1.0 / 3,
                         .norm_sum = 2.0 / 3,
                         .best_top1 = 55.5,
                         .site_metrics = b->site_metrics,
                         .site_metric_count = 6};
}

static int step_there(const bench *b, unsigned step)
{
    char path[FOLDER_PATH + 64];
    snprintf(path, sizeof path, "%s/checkpoints/step-%08u", b->run, step);
    return folder_exists(path);
}

/* Fills an array with values that depend on array, parameter and index. */
static void array_fill(engine *e, engine_array array, float salt)
{
    for (int p = 0; p < graph_param_count(engine_graph(e)); p++) {
        size_t n = (size_t)tensor_elements(graph_tensor(engine_graph(e), graph_param(engine_graph(e), p)));
        float *v = malloc(n * sizeof *v);
        for (size_t i = 0; i < n; i++)
            v[i] = salt + (float)p * 0.01f + (float)(i % 97) * 1e-4f;
        assert_int_equal(engine_set(e, array, p, v), BERLU_OK);
        free(v);
    }
}

static void arrays_equal(engine *a, engine *b, engine_array array)
{
    for (int p = 0; p < graph_param_count(engine_graph(a)); p++) {
        size_t n = (size_t)tensor_elements(graph_tensor(engine_graph(a), graph_param(engine_graph(a), p)));
        float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        assert_int_equal(engine_get(a, array, p, x), BERLU_OK);
        assert_int_equal(engine_get(b, array, p, y), BERLU_OK);
        assert_memory_equal(x, y, n * sizeof *x);
        free(x);
        free(y);
    }
}

static const engine_array arrays[] = {ARRAY_WEIGHT, ARRAY_MOMENT1, ARRAY_MOMENT2, ARRAY_EMA};

static void everything_comes_back_to_the_bit(void **state)
{
    (void)state;
    bench a, b;
    bench_open(&a, "vit_micro", 1);
    bench_open(&b, "vit_micro", 1);
    for (size_t i = 0; i < COUNT(arrays); i++)
        array_fill(a.engine, arrays[i], (float)i + 1);
    train_state s = state_at(&a, 123, 100), back = {.site_metrics = b.site_metrics, .site_metric_count = 6};
    memset(b.site_metrics, 0, sizeof b.site_metrics);
    assert_int_equal(checkpoint_save(&a.store, a.engine, &s), BERLU_OK);
    char path[CHECKPOINT_PATH];
    assert_int_equal(checkpoint_newest(a.run, 0, path, NULL), BERLU_OK);
    assert_int_equal(checkpoint_load(path, b.engine, &back), BERLU_OK);
    assert_memory_equal(a.site_metrics, b.site_metrics, sizeof a.site_metrics);
    back.site_metrics = s.site_metrics;
    assert_memory_equal(&s, &back, sizeof s);
    for (size_t i = 0; i < COUNT(arrays); i++)
        arrays_equal(a.engine, b.engine, arrays[i]);
    bench_close(&a);
    bench_close(&b);
}

static void the_two_newest_and_the_best_are_kept(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 0);
    for (unsigned step = 1; step <= 5; step++) {
        train_state s = state_at(&b, step, step < 2 ? step : 2);
        assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    }
    assert_true(!step_there(&b, 1) && step_there(&b, 2) && !step_there(&b, 3) && step_there(&b, 4) &&
                step_there(&b, 5));
    char link[FOLDER_PATH + 64], target[64] = {0};
    snprintf(link, sizeof link, "%s/checkpoints/last", b.run);
    assert_true(readlink(link, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000005");
    snprintf(link, sizeof link, "%s/checkpoints/best", b.run);
    memset(target, 0, sizeof target);
    assert_true(readlink(link, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000002");
    bench_close(&b);
}

static void a_broken_checkpoint_is_passed_over(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 0);
    for (unsigned step = 1; step <= 2; step++) {
        train_state s = state_at(&b, step, 0);
        assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    }
    char path[CHECKPOINT_PATH];
    snprintf(path, sizeof path, "%s/checkpoints/step-00000002/state.safetensors", b.run);
    assert_int_equal(file_truncate_in(NULL, path, 100), BERLU_OK);
    assert_int_equal(checkpoint_newest(b.run, 0, path, NULL), BERLU_OK);
    assert_non_null(strstr(path, "step-00000001"));
    bench_close(&b);
}

/* A run whose checkpoints a failing disk does not list is not one without checkpoints. */
static void a_checkpoint_that_is_not_listed_is_no_missing_one(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 0);
    train_state s = state_at(&b, 1, 0);
    assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    char path[CHECKPOINT_PATH];
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_READ, n), status = checkpoint_newest(b.run, 0, path, NULL), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_INPUT);
    assert_int_equal(status, BERLU_OK);
    assert_non_null(strstr(path, "step-00000001"));
    assert_true(n > 3);
    bench_close(&b);
}

/* One flipped bit anywhere in any file: the previous checkpoint is loaded. With none left the
 * resume is refused rather than started over. */
static void a_flipped_bit_is_noticed(void **state)
{
    (void)state;
    static const char *const names[] = {"model.safetensors", "state.safetensors"};
    bench b;
    char path[CHECKPOINT_PATH], newest[CHECKPOINT_PATH], *bytes;
    size_t size;
    bench_open(&b, "vit_micro", 0);
    for (unsigned step = 1; step <= 2; step++) {
        train_state s = state_at(&b, step, 0);
        assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/checkpoints/step-00000002/%s", b.run, names[i]);
        assert_int_equal(file_read_all(&bytes, &size, path, 1u << 30), BERLU_OK);
        for (size_t at = 0; at < size; at += at == size - 1 ? 1 : size - 1 - at < 40009 ? size - 1 - at : 40009) {
            bytes[at] ^= 4;
            assert_int_equal(file_write_atomic(path, bytes, size), BERLU_OK);
            assert_int_equal(checkpoint_newest(b.run, 0, newest, NULL), BERLU_OK);
            assert_non_null(strstr(newest, "step-00000001"));
            bytes[at] ^= 4;
        }
        assert_int_equal(file_write_atomic(path, bytes, size), BERLU_OK);
        assert_int_equal(checkpoint_newest(b.run, 0, newest, NULL), BERLU_OK);
        assert_non_null(strstr(newest, "step-00000002"));
        free(bytes);
    }
    for (unsigned step = 1; step <= 2; step++) {
        snprintf(path, sizeof path, "%s/checkpoints/step-%08u/model.safetensors", b.run, step);
        assert_int_equal(file_truncate_in(NULL, path, 100), BERLU_OK);
    }
    assert_int_equal(checkpoint_newest(b.run, 0, newest, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "none of its 2 checkpoints"));
    bench_close(&b);
}

static void a_checkpoint_without_its_average_is_passed_over_by_who_needs_it(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 1);
    for (unsigned step = 1; step <= 2; step++) {
        train_state s = state_at(&b, step, 0);
        assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    }
    char path[CHECKPOINT_PATH];
    snprintf(path, sizeof path, "%s/checkpoints/step-00000002/ema.safetensors", b.run);
    assert_int_equal(file_truncate_in(NULL, path, 100), BERLU_OK);
    assert_int_equal(checkpoint_newest(b.run, 1, path, NULL), BERLU_OK);
    assert_non_null(strstr(path, "step-00000001"));
    assert_int_equal(checkpoint_newest(b.run, 0, path, NULL), BERLU_OK);
    assert_non_null(strstr(path, "step-00000002"));
    bench_close(&b);
}

static void no_checkpoint_is_no_error(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[CHECKPOINT_PATH];
    folder_fresh(folder, "checkpoint-none");
    assert_int_equal(checkpoint_newest(folder, 0, path, NULL), BERLU_OK);
    assert_string_equal(path, "");
    folder_handle held;
    assert_int_equal(folder_hold(&held, folder), BERLU_OK);
    assert_int_equal(checkpoint_recover(&(checkpoint_store){.run = &held}), BERLU_OK);
    folder_release(&held);
    assert_int_equal(folder_remove(folder), BERLU_OK);
    assert_int_equal(checkpoint_newest(folder, 0, path, NULL), BERLU_OK);
    assert_string_equal(path, "");
}

static void a_checkpoint_of_another_model_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    bench a, b, before;
    bench_open(&a, "vit_micro", 0);
    bench_open(&b, "deit_micro", 0);
    bench_open(&before, "deit_micro", 0);
    train_state s = state_at(&a, 9, 0), back = {.site_metrics = b.site_metrics, .site_metric_count = 6};
    assert_int_equal(checkpoint_save(&a.store, a.engine, &s), BERLU_OK);
    char path[CHECKPOINT_PATH];
    assert_int_equal(checkpoint_newest(a.run, 0, path, NULL), BERLU_OK);
    assert_int_equal(checkpoint_load(path, b.engine, &back), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "state.safetensors"));
    assert_int_equal(back.updates, 0);
    arrays_equal(b.engine, before.engine, ARRAY_WEIGHT);
    bench_close(&a);
    bench_close(&b);
    bench_close(&before);
}

/* Every file call and (in strides) every allocation of a save fails once: earlier checkpoints stay
 * readable, and no incomplete folder appears. A failure is reported unless it only concerned
 * closing a file that was already synced. */
static void a_save_that_fails_anywhere_leaves_a_whole_checkpoint(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 0);
    train_state one = state_at(&b, 1, 1), two = state_at(&b, 2, 1);
    assert_int_equal(checkpoint_save(&b.store, b.engine, &one), BERLU_OK);
    const struct {
        int kinds, stride;
    } rounds[] = {{FAIL_FILE, 1}, {FAIL_SHORT, 1}, {FAIL_ALLOC, 37}};
    for (size_t k = 0; k < COUNT(rounds); k++) {
        for (int n = 1;; n += rounds[k].stride) {
            fail_after(rounds[k].kinds, n);
            berlu_status status = checkpoint_save(&b.store, b.engine, &two);
            int hit = fail_hit(), complete = step_there(&b, 2);
            char path[CHECKPOINT_PATH];
            assert_int_equal(checkpoint_newest(b.run, 0, path, NULL), BERLU_OK);
            assert_non_null(strstr(path, complete ? "step-00000002" : "step-00000001"));
            assert_true(complete || status != BERLU_OK);
            assert_true(step_there(&b, 1));
            if (!hit)
                break;
        }
        char path[CHECKPOINT_PATH];
        snprintf(path, sizeof path, "%s/checkpoints/step-00000002", b.run);
        assert_int_equal(folder_remove(path), BERLU_OK);
    }
    bench_close(&b);
}

/* From the n-th file call on every call fails, as if the process were killed: the only checkpoint,
 * being replaced by one of the same step, is recovered. */
static void a_step_that_is_saved_again_is_never_lost(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "vit_micro", 0);
    train_state s = state_at(&b, 1, 0);
    assert_int_equal(checkpoint_save(&b.store, b.engine, &s), BERLU_OK);
    for (int n = 1, hit = 1; hit; n++) {
        char path[CHECKPOINT_PATH];
        fail_from(FAIL_FILE, n);
        checkpoint_save(&b.store, b.engine, &s);
        hit = fail_hit();
        assert_int_equal(checkpoint_recover(&b.store), BERLU_OK);
        assert_int_equal(checkpoint_newest(b.run, 0, path, NULL), BERLU_OK);
        assert_non_null(strstr(path, "step-00000001"));
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back_to_the_bit),
        cmocka_unit_test(the_two_newest_and_the_best_are_kept),
        cmocka_unit_test(a_broken_checkpoint_is_passed_over),
        cmocka_unit_test(a_checkpoint_that_is_not_listed_is_no_missing_one),
        cmocka_unit_test(a_flipped_bit_is_noticed),
        cmocka_unit_test(a_checkpoint_without_its_average_is_passed_over_by_who_needs_it),
        cmocka_unit_test(a_step_that_is_saved_again_is_never_lost),
        cmocka_unit_test(no_checkpoint_is_no_error),
        cmocka_unit_test(a_checkpoint_of_another_model_is_refused_and_changes_nothing),
        cmocka_unit_test(a_save_that_fails_anywhere_leaves_a_whole_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
