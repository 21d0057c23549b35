/* test_loader.c - order, shards, workers, resume, broken images, memory.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <unistd.h>

#include "data/loader.h"
#include "data/permute.h"
#include "support.h"

static data_source *shapes_open(size_t images)
{
    data_source *s = NULL;
    assert_ok(data_open(&s, "synthetic", &(data_options){.images = images, .threads = 1}));
    return s;
}

static loader_options strong_options(size_t batch)
{
    loader_options o = {.batch = batch, .shuffle = 1, .drop_last = 1, .seed = 7, .workers = 2};
    assert_ok(augment_preset(&o.augment, "deit", 32));
    o.mix = (mix_options){.mixup = 0.8, .cutmix = 1.0, .probability = 1, .switch_to_cutmix = 0.5, .smoothing = 0.1};
    return o;
}

static void a_permutation_is_a_bijection_for_every_size(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 300; n++) {
        permutation p = {n, 42, PURPOSE_SHUFFLE, (uint32_t)n};
        unsigned char seen[300] = {0};
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = permutation_at(&p, i);
            assert_true(to < n);
            assert_int_equal(seen[to]++, 0);
        }
    }
    permutation large = {50000, 1, PURPOSE_SHUFFLE, 3};
    unsigned char *seen = calloc(50000, 1);
    for (uint64_t i = 0; i < 50000; i++)
        assert_int_equal(seen[permutation_at(&large, i)]++, 0);
    free(seen);
}

/* 20,000 seeds of a permutation of ten: each of the 100 (place, value) pairs has probability 1/10.
 * The sum of squared deviations over expectations is chi-squared with 81 degrees of freedom; 146
 * has probability 1e-5. */
static void a_permutation_puts_every_element_everywhere_equally_often(void **state)
{
    (void)state;
    double counts[10][10] = {{0}}, sum = 0;
    for (uint64_t seed = 0; seed < 20000; seed++)
        for (uint64_t i = 0; i < 10; i++)
            counts[i][permutation_at(&(permutation){10, seed, PURPOSE_SHUFFLE, 0}, i)]++;
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            sum += (counts[i][j] - 2000) * (counts[i][j] - 2000) / 2000;
    assert_true(sum < 146);
    assert_true(sum > 35); /* and not too even either, as no random thing is */
}

/* All of an epoch, one batch after the other, in one block. */
typedef struct epoch_copy {
    float *images, *targets;
    int32_t *labels;
    uint64_t *indices;
    size_t rows, count;
} epoch_copy;

static void epoch_take(epoch_copy *c, loader *l, uint32_t epoch, size_t first)
{
    const loader_batch *b;
    *c = (epoch_copy){0};
    assert_ok(loader_start(l, epoch, first));
    for (size_t number = first;; number++) {
        assert_ok(loader_next(l, &b));
        if (!b)
            break;
        assert_int_equal(b->number, number);
        size_t floats = 3 * (size_t)b->side * (size_t)b->side, all = c->rows + b->rows;
        c->images = realloc(c->images, all * floats * sizeof(float));
        c->labels = realloc(c->labels, all * sizeof *c->labels);
        c->indices = realloc(c->indices, all * sizeof *c->indices);
        c->targets = realloc(c->targets, all * b->classes * sizeof(float));
        memcpy(c->images + c->rows * floats, b->images, b->rows * floats * sizeof(float));
        memcpy(c->labels + c->rows, b->labels, b->rows * sizeof *b->labels);
        memcpy(c->indices + c->rows, b->indices, b->rows * sizeof *b->indices);
        if (b->targets)
            memcpy(c->targets + c->rows * b->classes, b->targets, b->rows * b->classes * sizeof(float));
        c->rows = all;
        c->count += b->count;
    }
}

static void epoch_free(epoch_copy *c)
{
    free(c->images);
    free(c->targets);
    free(c->labels);
    free(c->indices);
}

static void assert_epochs_equal(const epoch_copy *a, const epoch_copy *b, size_t skip_rows)
{
    assert_int_equal(a->rows, b->rows + skip_rows);
    assert_memory_equal(a->images + skip_rows * 3072, b->images, b->rows * 3072 * sizeof(float));
    assert_memory_equal(a->targets + skip_rows * 10, b->targets, b->rows * 10 * sizeof(float));
    assert_memory_equal(a->labels + skip_rows, b->labels, b->rows * sizeof *b->labels);
    assert_memory_equal(a->indices + skip_rows, b->indices, b->rows * sizeof *b->indices);
}

static void the_number_of_workers_changes_no_bit(void **state)
{
    (void)state;
    data_source *s = shapes_open(500);
    loader_options o = strong_options(48);
    epoch_copy one, eight;
    loader *l;
    o.workers = 1;
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&one, l, 3, 0);
    loader_close(l);
    o.workers = 8;
    o.budget = 3 << 20; /* another number of slots, too */
    o.budget += 8 << 20;
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&eight, l, 3, 0);
    loader_close(l);
    assert_int_equal(one.rows, 480);
    assert_epochs_equal(&one, &eight, 0);
    epoch_free(&one);
    epoch_free(&eight);
    data_close(s);
}

static void a_resume_gives_the_rest_of_the_epoch(void **state)
{
    (void)state;
    data_source *s = shapes_open(500);
    loader_options o = strong_options(48);
    epoch_copy whole, rest;
    loader *l;
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&whole, l, 5, 0);
    epoch_take(&rest, l, 5, 4);
    assert_epochs_equal(&whole, &rest, 4 * 48);
    epoch_free(&rest);
    const loader_batch *b; /* leaving an epoch in the middle disturbs nothing */
    assert_ok(loader_start(l, 6, 0));
    assert_ok(loader_next(l, &b));
    epoch_take(&rest, l, 5, 0);
    assert_epochs_equal(&whole, &rest, 0);
    epoch_free(&rest);
    epoch_free(&whole);
    loader_close(l);
    data_close(s);
}

static void epochs_and_seeds_differ_in_order_and_pixels(void **state)
{
    (void)state;
    data_source *s = shapes_open(500);
    loader_options o = strong_options(50);
    epoch_copy a, b;
    loader *l;
    size_t same = 0;
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&a, l, 0, 0);
    epoch_take(&b, l, 1, 0);
    for (size_t i = 0; i < a.rows; i++)
        same += a.indices[i] == b.indices[i];
    assert_true(same < 10); /* one in 500 is expected */
    loader_close(l);
    epoch_free(&a);
    epoch_free(&b);
    data_close(s);
}

static void every_image_comes_once_an_epoch(void **state)
{
    (void)state;
    data_source *s = shapes_open(303);
    loader_options o = {.batch = 32, .shuffle = 1, .seed = 3};
    epoch_copy c;
    loader *l;
    unsigned char seen[303] = {0};
    assert_ok(augment_preset(&o.augment, "crop-flip", 32));
    assert_ok(loader_open(&l, s, &o));
    assert_int_equal(loader_batches(l), 10);
    assert_int_equal(loader_images(l), 303);
    epoch_take(&c, l, 0, 0);
    assert_int_equal(c.count, 303);
    for (size_t i = 0; i < 303; i++) {
        assert_int_equal(seen[c.indices[i]]++, 0);
        assert_int_equal(c.labels[i], c.indices[i] % 10);
        assert_int_equal(c.indices[i], loader_index_at(l, 0, i));
    }
    for (size_t i = 303; i < c.rows; i++) /* the tail of the last batch is empty */
        for (size_t k = 0; k < 3072; k++)
            assert_true(c.images[i * 3072 + k] == 0);
    epoch_free(&c);
    loader_close(l);
    data_close(s);
}

/* Ranks are handed whole batches: each is one of a single process's, its draws and its mixing
 * included, and in a resumed epoch too. An epoch of 12 batches ends with a whole group of four, one
 * of 10 (repeats) does not. */
static void ranks_share_whole_batches_exactly(void **state)
{
    (void)state;
    data_source *s = shapes_open(303);
    for (int repeats = 1; repeats <= 3; repeats += 2)
        for (size_t first = 0; first < 7; first += 3)
            for (int ranks = 1; ranks <= 4; ranks *= 2) {
                loader_options o = strong_options(24);
                epoch_copy whole;
                loader *l;
                o.repeats = repeats;
                assert_ok(loader_open(&l, s, &o));
                epoch_take(&whole, l, 2, 0);
                size_t batches = loader_batches(l), next[4], seen = 0;
                loader_close(l);
                o.group = 4, o.ranks = ranks;
                for (o.rank = 0; o.rank < ranks; o.rank++) {
                    const loader_batch *b;
                    assert_ok(loader_open(&l, s, &o));
                    assert_int_equal(loader_batches(l), batches);
                    assert_ok(loader_start(l, 2, first));
                    for (next[o.rank] = first; loader_next(l, &b) == BERLU_OK && b; seen++) {
                        assert_true(b->number >= next[o.rank] && b->number < batches);
                        assert_int_equal(b->number % 4 * (size_t)ranks / 4, o.rank);
                        next[o.rank] = b->number + 1;
                        assert_memory_equal(b->indices, whole.indices + b->number * 24, 24 * sizeof *b->indices);
                        assert_memory_equal(b->images, whole.images + b->number * 24 * 3072, 24 * 3072 * sizeof(float));
                    }
                    loader_close(l);
                }
                assert_int_equal(seen, batches - first);
                epoch_free(&whole);
            }
    data_close(s);
}

static void repeated_augmentation_shows_an_image_three_times_each_time_differently(void **state)
{
    (void)state;
    data_source *s = shapes_open(1000);
    loader_options o = {.batch = 96, .shuffle = 1, .drop_last = 1, .repeats = 3, .seed = 1};
    epoch_copy c;
    loader *l;
    size_t different = 0;
    assert_ok(augment_preset(&o.augment, "crop-flip", 32));
    assert_ok(loader_open(&l, s, &o));
    assert_int_equal(loader_images(l), 768); /* floor(1000 / 256) * 256, as DeiT's sampler */
    epoch_take(&c, l, 0, 0);
    for (size_t i = 0; i + 2 < c.rows; i += 3) {
        assert_int_equal(c.indices[i], c.indices[i + 1]);
        assert_int_equal(c.indices[i], c.indices[i + 2]);
        different += memcmp(c.images + i * 3072, c.images + (i + 1) * 3072, 3072 * sizeof(float)) != 0;
    }
    assert_true(different > 240); /* of 256; two equal crops and flips have probability 1/162 */
    epoch_free(&c);
    loader_close(l);
    data_close(s);
}

static void a_holdout_and_the_rest_are_the_whole_and_do_not_meet(void **state)
{
    (void)state;
    data_source *s = shapes_open(300);
    loader_options o = {.batch = 30, .holdout = 70, .part = PART_HELD};
    unsigned char seen[300] = {0};
    epoch_copy held, kept, again;
    loader *l;
    assert_ok(augment_preset(&o.augment, "none", 32));
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&held, l, 0, 0);
    loader_close(l);
    assert_int_equal(held.count, 70);
    o.part = PART_KEPT;
    o.shuffle = 1;
    o.seed = 99; /* the order of training does not move the holdout */
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&kept, l, 4, 0);
    loader_close(l);
    assert_int_equal(kept.count, 230);
    for (size_t i = 0; i < 70; i++)
        assert_int_equal(seen[held.indices[i]]++, 0);
    for (size_t i = 0; i < 230; i++)
        assert_int_equal(seen[kept.indices[i]]++, 0);
    o = (loader_options){.batch = 30, .holdout = 70, .part = PART_HELD, .holdout_seed = 5};
    assert_ok(augment_preset(&o.augment, "none", 32));
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&again, l, 0, 0);
    loader_close(l);
    assert_memory_not_equal(again.indices, held.indices, 70 * sizeof *held.indices);
    epoch_free(&held);
    epoch_free(&kept);
    epoch_free(&again);
    data_close(s);
}

/* ---- broken images --------------------------------------------------------------------------- */

static const char *broken_set(char folder[FOLDER_PATH])
{
    char path[FOLDER_PATH];
    folder_fresh(folder, "loader_broken");
    png_set(folder, "train", "a", 6, 16, 16);
    png_set(folder, "train", "b", 6, 16, 16);
    png_set(folder, "val", "a", 4, 16, 16);
    png_set(folder, "val", "b", 4, 16, 16);
    assert_ok(file_write_atomic(folder_path(path, folder, "train/a/2.png"), "no image", 8));
    assert_ok(file_write_atomic(folder_path(path, folder, "val/b/1.png"), "", 0));
    return folder;
}

static void a_broken_training_image_is_replaced_by_the_next_and_counted_once(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    loader *l;
    epoch_copy c;
    assert_ok(data_open(&s, broken_set(folder), &(data_options){.max_bad_given = 1, .max_bad = 1}));
    loader_options o = {.batch = 4, .shuffle = 1, .drop_last = 1, .workers = 3};
    assert_ok(augment_preset(&o.augment, "crop-flip", 16));
    assert_ok(loader_open(&l, s, &o));
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
        int threes = 0;
        epoch_take(&c, l, epoch, 0);
        for (size_t i = 0; i < c.rows; i++) {
            assert_int_not_equal(c.indices[i], 2);
            threes += c.indices[i] == 3;
        }
        assert_int_equal(threes, 2);
        epoch_free(&c);
    }
    assert_int_equal(data_bad_count(s), 1);
    assert_non_null(strstr(data_bad_message(s, 0), "train/a/2.png: neither a JPEG nor a PNG"));
    loader_close(l);
    data_close(s);
}

static void evaluation_leaves_a_broken_image_out(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    loader *l;
    epoch_copy c;
    assert_ok(data_open(&s, broken_set(folder), &(data_options){.max_bad_given = 1, .max_bad = 5}));
    loader_options o = {.split = DATA_TEST, .batch = 8};
    assert_ok(augment_preset(&o.augment, "none", 16));
    assert_ok(loader_open(&l, s, &o));
    epoch_take(&c, l, 0, 0);
    assert_int_equal(c.count, 7);
    static const uint64_t expected[] = {0, 1, 2, 3, 4, 6, 7};
    assert_memory_equal(c.indices, expected, sizeof expected);
    assert_int_equal(c.labels[5], 1);
    epoch_free(&c);
    loader_close(l);
    data_close(s);
}

static void one_broken_image_too_many_stops_the_loader_with_its_name(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    loader *l;
    const loader_batch *b = NULL;
    assert_ok(data_open(&s, broken_set(folder), NULL)); /* one in a thousand of twenty is none */
    loader_options o = {.batch = 12, .shuffle = 1, .drop_last = 1};
    assert_ok(augment_preset(&o.augment, "none", 16));
    assert_ok(loader_open(&l, s, &o));
    assert_ok(loader_start(l, 0, 0));
    assert_refused(loader_next(l, &b), BERLU_ERR_INPUT, "train/a/2.png");
    assert_refused(loader_next(l, &b), BERLU_ERR_INPUT, "--max-bad");
    assert_null(b);
    loader_close(l);
    data_close(s);
}

/* ---- settings -------------------------------------------------------------------------------- */

static void impossible_settings_are_refused_with_the_reason(void **state)
{
    (void)state;
    data_source *s = shapes_open(100);
    loader *l = NULL;
    loader_options good = {.batch = 10, .shuffle = 1}, o;
    assert_ok(augment_preset(&good.augment, "none", 32));
    o = good, o.batch = 0;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "batch of 0");
    o = good, o.ranks = 3;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "3 ranks");
    o = good, o.rank = 2, o.ranks = 2;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "rank 2");
    o = good, o.batch = 128, o.drop_last = 1;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "128");
    o = good, o.part = PART_KEPT, o.holdout = 100;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "holdout of 100");
    o = good, o.mix.mixup = 0.8, o.drop_last = 1, o.batch = 15;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "even");
    o = good, o.mix.mixup = 0.8;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "whole batches");
    o = good, o.budget = 1 << 20;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "budget");
    o = good, o.augment.image_size = 0;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "image size 0");
    o = good, o.std[0] = 1;
    assert_refused(loader_open(&l, s, &o), BERLU_ERR_ARG, "std");
    assert_null(l);
    data_close(s);
}

static void batches_made_ahead_stay_within_the_budget(void **state)
{
    (void)state;
    data_source *s = shapes_open(200);
    loader *l;
    loader_options o = {.batch = 20, .shuffle = 1, .budget = 6 << 20, .workers = 2};
    assert_ok(augment_preset(&o.augment, "none", 32));
    assert_ok(loader_open(&l, s, &o));
    assert_true(loader_bytes(l) <= o.budget / 2);
    loader_close(l);
    data_close(s);
}

static void an_image_beyond_the_budget_counts_as_broken(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    data_source *s;
    loader *l;
    const loader_batch *b;
    folder_fresh(folder, "loader_large");
    png_set(folder, "train", "a", 1, 900, 900); /* 2.4 MB */
    png_set(folder, "train", "b", 3, 20, 20);
    assert_ok(data_open(&s, folder, &(data_options){.max_bad_given = 1, .max_bad = 1}));
    loader_options o = {.batch = 4, .budget = 4 << 20, .workers = 1};
    assert_ok(augment_preset(&o.augment, "none", 16));
    assert_ok(loader_open(&l, s, &o));
    assert_ok(loader_start(l, 0, 0));
    assert_ok(loader_next(l, &b));
    assert_int_equal(b->count, 3);
    assert_non_null(strstr(data_bad_message(s, 0), "memory budget"));
    loader_close(l);
    data_close(s);
}

static void normalisation_is_exact_in_float(void **state)
{
    (void)state;
    data_source *s = shapes_open(20);
    loader *l;
    const loader_batch *b;
    image decoded = {0};
    loader_options o = {.batch = 20, .mean = {0.4, 0.5, 0.6}, .std = {0.2, 0.25, 0.3}};
    assert_ok(augment_preset(&o.augment, "none", 32));
    assert_ok(loader_open(&l, s, &o));
    assert_ok(loader_start(l, 0, 0));
    assert_ok(loader_next(l, &b));
    for (size_t i = 0; i < 20; i++) {
        assert_ok(data_read(s, DATA_TRAIN, i, NULL, &decoded));
        for (int k = 0; k < 1024; k++)
            for (int c = 0; c < 3; c++) {
                float want = ((float)decoded.pixels[k * 3 + c] / 255.0f - (float)o.mean[c]) / (float)o.std[c];
                assert_true(b->images[i * 3072 + (size_t)c * 1024 + (size_t)k] == want);
            }
    }
    image_free(&decoded);
    loader_close(l);
    data_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permutation_is_a_bijection_for_every_size),
        cmocka_unit_test(a_permutation_puts_every_element_everywhere_equally_often),
        cmocka_unit_test(the_number_of_workers_changes_no_bit),
        cmocka_unit_test(a_resume_gives_the_rest_of_the_epoch),
        cmocka_unit_test(epochs_and_seeds_differ_in_order_and_pixels),
        cmocka_unit_test(every_image_comes_once_an_epoch),
        cmocka_unit_test(ranks_share_whole_batches_exactly),
        cmocka_unit_test(repeated_augmentation_shows_an_image_three_times_each_time_differently),
        cmocka_unit_test(a_holdout_and_the_rest_are_the_whole_and_do_not_meet),
        cmocka_unit_test(a_broken_training_image_is_replaced_by_the_next_and_counted_once),
        cmocka_unit_test(evaluation_leaves_a_broken_image_out),
        cmocka_unit_test(one_broken_image_too_many_stops_the_loader_with_its_name),
        cmocka_unit_test(impossible_settings_are_refused_with_the_reason),
        cmocka_unit_test(batches_made_ahead_stay_within_the_budget),
        cmocka_unit_test(an_image_beyond_the_budget_counts_as_broken),
        cmocka_unit_test(normalisation_is_exact_in_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
