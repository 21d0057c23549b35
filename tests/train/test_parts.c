/* test_parts.c - parts of a set, evaluations now and then, a bit per test image, and how
 * straight an activation is. SPDX-License-Identifier: MIT */
#include <math.h>
#include <omp.h>

#include "runs.h"
#include "train/eval_run.h"
#include "train/subset.h"

static data_source *synthetic(size_t images)
{
    data_source *data;
    assert_int_equal(data_open(&data, "synthetic", &(data_options){.images = images}), BERLU_OK);
    return data;
}

static void count_classes(size_t counts[10], const data_source *data, data_split split, const uint64_t *list, size_t n)
{
    memset(counts, 0, 10 * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || list[i] > list[i - 1]); /* in stored order, none twice */
        counts[data_label(data, split, list[i])]++;
    }
}

static void a_part_has_as_many_of_each_class(void **state)
{
    (void)state;
    data_source *data = synthetic(2000);
    for (size_t n = 1; n <= 400; n += 33) {
        uint64_t *list;
        size_t counts[10], least = n, most = 0;
        assert_int_equal(subset_choose(&list, data, DATA_TRAIN, PART_ALL, 0, n, "train_images"), BERLU_OK);
        count_classes(counts, data, DATA_TRAIN, list, n);
        for (int c = 0; c < 10; c++) {
            least = counts[c] < least ? counts[c] : least;
            most = counts[c] > most ? counts[c] : most;
        }
        assert_true(most - least <= 1);
        free(list);
    }
    data_close(data);
}

/* Where a class has too few the others fill up, up to all there is. */
static void a_part_may_be_all_of_it_and_not_more(void **state)
{
    (void)state;
    data_source *data = synthetic(100);
    uint64_t *list;
    assert_int_equal(subset_choose(&list, data, DATA_TRAIN, PART_ALL, 0, 100, "train_images"), BERLU_OK);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(list[i], i);
    free(list);
    assert_int_equal(subset_choose(&list, data, DATA_TRAIN, PART_ALL, 0, 101, "train_images"), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "train_images: 101, but there are only 100"));
    data_close(data);
}

static int holds(const uint64_t *list, size_t n, uint64_t index)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == index)
            return 1;
    return 0;
}

static void a_smaller_part_lies_inside_a_larger_one_and_apart_from_the_holdout(void **state)
{
    (void)state;
    data_source *data = synthetic(500);
    uint64_t *small, *large, *held;
    assert_int_equal(subset_choose(&small, data, DATA_TRAIN, PART_KEPT, 100, 50, "train_images"), BERLU_OK);
    assert_int_equal(subset_choose(&large, data, DATA_TRAIN, PART_KEPT, 100, 200, "train_images"), BERLU_OK);
    assert_int_equal(subset_choose(&held, data, DATA_TRAIN, PART_HELD, 100, 100, "test_images"), BERLU_OK);
    for (size_t i = 0; i < 50; i++)
        assert_true(holds(large, 200, small[i]));
    for (size_t i = 0; i < 200; i++)
        assert_false(holds(held, 100, large[i]));
    free(small);
    free(large);
    free(held);
    data_close(data);
}

static void a_run_uses_the_part_it_was_given(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_result r = run_whole(run_place(run, "part"), (const char *const[]){"train_images=32", "test_images=10",
                                                                             "synthetic_images=100", "epochs=2", NULL});
    assert_int_equal(r.updates, 8); /* 2 epochs of 32 / 8 */
    score s;
    eval_request request = {.run = run, .which = "last", .batch = 5};
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    assert_int_equal(s.images, 10);
    assert_true(score_top1(&s) == metric(run, 1, "test_top1"));
    request.train_split = 1;
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    assert_int_equal(s.images, 32);
}

static void evaluations_come_every_so_many_epochs_and_at_the_end(void **state)
{
    (void)state;
    char run[FOLDER_PATH], plain[FOLDER_PATH];
    run_whole(run_place(run, "every"), (const char *const[]){"eval_every=2", "epochs=5", NULL});
    run_whole(run_place(plain, "every-one"), (const char *const[]){"epochs=5", NULL});
    for (size_t e = 0; e < 5; e++) {
        int evaluated = e == 1 || e == 3 || e == 4;
        assert_int_equal(!isnan(metric(run, e, "test_top1")), evaluated);
        assert_int_equal(!isnan(metric(run, e, "train_top1")), evaluated);
        assert_true(metric(run, e, "train_loss") == metric(plain, e, "train_loss")); /* it changes no weight */
        if (evaluated)
            assert_true(metric(run, e, "test_loss") == metric(plain, e, "test_loss"));
    }
    files_equal(run, plain, "checkpoints/last/model.safetensors");
    files_equal(run, plain, "correct.bin");
}

static void stopped_between_evaluations_it_resumes_to_the_same_bytes(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    static const char *const extra[] = {"eval_every=2", "epochs=4", NULL};
    train_settings s;
    run_whole(run_place(whole, "every-whole"), extra);
    tiny_settings(&s, run_place(cut, "every-cut"), extra);
    int stops = 0;
    for (uint64_t at = 3;; at += 6, stops++) {
        stopper stop = {.phase = "train", .at = at};
        if (run_with(&s, 1, &stop, NULL) == BERLU_OK)
            break;
    }
    assert_true(stops >= 3);
    runs_equal(whole, cut);
    files_equal(whole, cut, "correct.bin");
    recipe_free(&s);
}

static void correct_bin_counts_to_the_accuracy(void **state)
{
    (void)state;
    static const char *const kinds[][4] = {
        {"epochs=6", NULL}, {"epochs=6", "holdout=20", NULL}, {"epochs=6", "test_images=11", NULL}};
    static const int images[] = {13, 20, 11};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        char run[FOLDER_PATH], path[FOLDER_PATH];
        unsigned char *bytes = NULL;
        size_t size = 0;
        int right = 0;
        run_whole(run_place(run, "correct"), kinds[k]);
        assert_int_equal(file_in_all(&bytes, &size, folder_path(path, run, "correct.bin")), BERLU_OK);
        assert_int_equal(size, (images[k] + 7) / 8);
        for (int i = 0; i < 8 * (int)size; i++) {
            int bit = bytes[i / 8] >> (i % 8) & 1;
            assert_true(i < images[k] || !bit);
            right += bit;
        }
        assert_true(100.0 * right / images[k] == metric(run, 5, "test_top1"));
        free(bytes);
    }
}

/* The value itself is compared with plain loops in test_diagnose.c. */
static void nonlinear_is_zero_for_a_line_and_between_zero_and_one(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_whole(run_place(run, "straight"), (const char *const[]){"act=leaky_relu:alpha=1", "epochs=1", NULL});
    assert_true(metric(run, 0, "nonlinear.blocks.2.mlp.act") < 1e-12);
    run_whole(run_place(run, "bent"), (const char *const[]){"act=relu", "epochs=1", NULL});
    double bent = metric(run, 0, "nonlinear.blocks.2.mlp.act");
    assert_true(bent > 0.05 && bent < 1);
    run_whole(run_place(run, "slightly"), (const char *const[]){"act=leaky_relu:alpha=0.9", "epochs=1", NULL});
    assert_true(metric(run, 0, "nonlinear.blocks.2.mlp.act") < bent);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_as_many_of_each_class),
        cmocka_unit_test(a_part_may_be_all_of_it_and_not_more),
        cmocka_unit_test(a_smaller_part_lies_inside_a_larger_one_and_apart_from_the_holdout),
        cmocka_unit_test(a_run_uses_the_part_it_was_given),
        cmocka_unit_test(evaluations_come_every_so_many_epochs_and_at_the_end),
        cmocka_unit_test(stopped_between_evaluations_it_resumes_to_the_same_bytes),
        cmocka_unit_test(correct_bin_counts_to_the_accuracy),
        cmocka_unit_test(nonlinear_is_zero_for_a_line_and_between_zero_and_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
