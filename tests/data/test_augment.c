/* test_augment.c - the distributions of crops, flips, jitter, erasing and mixing, and where pixels
 * end up. SPDX-License-Identifier: MIT
 *
 * Statistics are of fixed seeds, so they are the same every time; bounds are five standard errors
 * wide, which a right implementation misses once in two million. */
#include <math.h>

#include "data/augment_plan.h"
#include "data/mix.h"
#include "support.h"

static const double half[3] = {0.5, 0.5, 0.5};

static augment_plan plan_of(augment_options o)
{
    augment_plan p;
    data_info info = {.width = 32, .height = 32};
    assert_ok(augment_prepare(&p, &o, &info, half, half, 11));
    return p;
}

static void presets_are_the_recipes(void **state)
{
    (void)state;
    augment_options o;
    assert_ok(augment_preset(&o, "none", 224));
    assert_true(o.crop == CROP_EVAL && !o.flip && !o.randaugment && o.erase == 0);
    assert_ok(augment_preset(&o, "crop-flip", 32));
    assert_true(o.crop == CROP_PAD && o.flip && !o.randaugment);
    assert_ok(augment_preset(&o, "crop-flip", 224));
    assert_true(o.crop == CROP_RESIZED && o.flip && o.filter == RESIZE_BICUBIC);
    assert_ok(augment_preset(&o, "deit", 224));
    assert_true(o.randaugment == 2 && o.magnitude == 9 && o.magnitude_std == 0.5 && o.erase == 0.25);
    assert_ok(augment_preset(&o, "convnext", 32));
    assert_true(o.crop == CROP_PAD && o.randaugment == 2);
    assert_refused(augment_preset(&o, "strong", 32), BERLU_ERR_ARG, "strong");
}

/* ---- one image, many draws: a source of one image whose pixel (x, y) is (x, y, 200) ---------- */

static berlu_status one_read(data_source *s, data_split split, size_t index, const image_request *request, image *out)
{
    static uint8_t pixels[48 * 48 * 3];
    int side = s->info.width;
    (void)split, (void)index;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            uint8_t *p = pixels + (y * side + x) * 3;
            p[0] = (uint8_t)(x + 1), p[1] = (uint8_t)(y + 1), p[2] = 200;
        }
    return image_copy_part(out, pixels, side, image_ask(request, side, side));
}

static const data_kind one_kind = {.name = "one", .read = one_read};

static data_source one_source(int side)
{
    return (data_source){.kind = &one_kind, .info = {.images = {1, 0}, .classes = 1, .width = side, .height = side}};
}

static void pad_and_crop_is_a_shifted_window_on_black(void **state)
{
    (void)state;
    augment_options o;
    assert_ok(augment_preset(&o, "crop-flip", 32));
    o.flip = 0;
    augment_plan p = plan_of(o);
    data_source s = one_source(32);
    augment_scratch w = {0};
    int counts[9][9] = {{0}};
    const int draws_made = 8100;
    for (uint64_t sample = 0; sample < (uint64_t)draws_made; sample++) {
        assert_ok(augment_image(&p, &s, DATA_TRAIN, 0, 0, sample, &w));
        const uint8_t *middle = w.current.pixels + (16 * 32 + 16) * 3;
        int left = middle[0] - 1 - 16, top = middle[1] - 1 - 16;
        assert_true(left >= -4 && left <= 4 && top >= -4 && top <= 4);
        counts[top + 4][left + 4]++;
        if (sample < 200)
            for (int y = 0; y < 32; y++)
                for (int x = 0; x < 32; x++) {
                    const uint8_t *q = w.current.pixels + (y * 32 + x) * 3;
                    int inside = x + left >= 0 && x + left < 32 && y + top >= 0 && y + top < 32;
                    assert_int_equal(q[0], inside ? x + left + 1 : 0);
                    assert_int_equal(q[2], inside ? 200 : 0);
                }
    }
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            assert_true(abs(counts[i][j] - 100) < 50); /* each of 81 windows: 100 +- 10 */
    augment_scratch_free(&w);
}

static void half_of_the_images_are_mirrored(void **state)
{
    (void)state;
    augment_plan p = plan_of((augment_options){.image_size = 32, .flip = 1});
    data_source s = one_source(32);
    augment_scratch w = {0};
    int mirrored = 0;
    for (uint64_t sample = 0; sample < 10000; sample++) {
        assert_ok(augment_image(&p, &s, DATA_TRAIN, 0, 1, sample, &w));
        int first = w.current.pixels[0], last = w.current.pixels[31 * 3];
        assert_true((first == 1 && last == 32) || (first == 32 && last == 1));
        mirrored += first == 32;
    }
    assert_true(abs(mirrored - 5000) < 250);
    augment_scratch_free(&w);
}

static void random_crops_have_the_area_and_shape_asked_for(void **state)
{
    (void)state;
    double area = 0, log_shape = 0, middle = 0;
    const int n = 20000;
    for (int i = 0; i < n; i++) {
        draws d = draws_for(1, PURPOSE_CROP, 0, (uint64_t)i);
        image_part c = crop_random(&d, 500, 375, 0.08, 1);
        assert_true(c.left >= 0 && c.top >= 0 && c.left + c.width <= 500 && c.top + c.height <= 375);
        double shape = (double)c.width / c.height, share = (double)c.width * c.height / (500.0 * 375);
        assert_true(share > 0.079 && share <= 1.0);
        assert_true(shape > 0.74 && shape < 1.35);
        area += share, log_shape += log(shape), middle += (c.left + c.width / 2.0) / 500;
    }
    /* Areas that do not fit are drawn again, so the mean lies below the 0.54 of the uniform. The
     * same rule in Python, a million draws: area 0.4329, logarithm of the shape 0.0308. */
    assert_true(fabs(area / n - 0.4329) < 5 * 0.24 / sqrt(n));
    assert_true(fabs(log_shape / n - 0.0308) < 5 * 0.16 / sqrt(n));
    assert_true(fabs(middle / n - 0.5) < 0.005);
}

static void an_image_too_long_for_any_crop_gives_its_middle(void **state)
{
    (void)state;
    int fallback = 0;
    for (int i = 0; i < 200; i++) {
        draws d = draws_for(2, PURPOSE_CROP, 0, (uint64_t)i);
        image_part c = crop_random(&d, 1000, 10, 1, 1);
        fallback += c.left == (1000 - 13) / 2 && c.top == 0 && c.width == 13 && c.height == 10;
    }
    assert_int_equal(fallback, 200);
}

static void evaluation_takes_the_middle_with_ties_to_even(void **state)
{
    (void)state;
    augment_scratch w = {0};
    static const int sides[] = {33, 34, 35, 36, 37},
                     expected[] = {0, 1, 2, 2, 2}; /* Python: round(0.5), 1, round(1.5) ... */
    for (int i = 0; i < 5; i++) {
        augment_plan p = plan_of((augment_options){.image_size = 32, .crop_pct = 32.0 / sides[i]});
        data_source s = one_source(sides[i]);
        assert_ok(augment_image(&p, &s, DATA_TRAIN, 0, 0, 0, &w));
        assert_int_equal(w.current.width, 32);
        assert_int_equal(w.current.pixels[0] - 1, expected[i]);
        assert_int_equal(w.current.pixels[1] - 1, expected[i]);
    }
    augment_scratch_free(&w);
}

static void erasing_hits_a_quarter_and_fills_with_noise(void **state)
{
    (void)state;
    double hit = 0, share = 0, sum = 0, squares = 0, values = 0;
    const int n = 20000;
    float planes[3 * 32 * 32];
    for (int i = 0; i < n; i++) {
        draws d = draws_for(3, PURPOSE_ERASE, 0, (uint64_t)i);
        erase_box b = erase_draw(&d, 0.25, 32, 32);
        hit += b.height > 0;
        share += (double)b.height * b.width / 1024;
        assert_true(b.top >= 0 && b.left >= 0 && b.top + b.height <= 32 && b.left + b.width <= 32);
        if (b.height == 0 || i > 2000)
            continue;
        for (int k = 0; k < 3 * 1024; k++)
            planes[k] = 99;
        erase_fill(&d, b, planes, 32, 32);
        for (int k = 0; k < 3 * 1024; k++) {
            int y = k / 32 % 32, x = k % 32,
                inside = y >= b.top && y < b.top + b.height && x >= b.left && x < b.left + b.width;
            assert_true(inside == (planes[k] != 99));
            if (inside)
                sum += planes[k], squares += planes[k] * planes[k], values++;
        }
    }
    assert_true(fabs(hit / n - 0.25) < 5 * sqrt(0.25 * 0.75 / n)); /* ten tries practically always find a box */
    assert_true(fabs(share / hit - 0.176) < 0.005);                /* the erased share measured on timm's code */
    assert_true(fabs(sum / values) < 5 / sqrt(values));
    assert_true(fabs(squares / values - 1) < 5 * sqrt(2 / values));
}

static void jitter_orders_its_four_operations_at_random(void **state)
{
    (void)state;
    augment_options o = {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};
    image a = {0};
    int darker = 0;
    double level = 0;
    const int n = 4000;
    for (int i = 0; i < n; i++) {
        draws d = draws_for(4, PURPOSE_AUGMENT, 0, (uint64_t)i);
        assert_ok(image_reserve(&a, 2, 1));
        memcpy(a.pixels, (const uint8_t[]){100, 100, 100, 100, 100, 100}, 6); /* grey: only brightness changes it */
        jitter_apply(&o, &d, &a);
        darker += a.pixels[0] < 100;
        level += a.pixels[0];
        assert_true(a.pixels[0] >= 59 && a.pixels[0] <= 140);
    }
    assert_true(abs(darker - n / 2) < 5 * 32 + 30); /* truncation pulls a little below */
    assert_true(fabs(level / n - 99.5) < 5 * 23.1 / sqrt(n));
    image_free(&a);
}

/* Counts the operations that change an image, through randaugment_apply(). */
static void randaugment_leaves_a_quarter_untouched(void **state)
{
    (void)state;
    augment_plan p =
        plan_of((augment_options){.image_size = 16, .randaugment = 2, .magnitude = 9, .magnitude_std = 0.5});
    image a = {0}, spare = {0};
    int untouched = 0;
    const int n = 4000;
    for (int i = 0; i < n; i++) {
        draws d = draws_for(5, PURPOSE_AUGMENT, 0, (uint64_t)i);
        assert_ok(image_reserve(&a, 16, 16));
        for (int k = 0; k < 768; k++)
            a.pixels[k] =
                (uint8_t)(20 + k * 37 % 200); /* a full-range image, so that no operation is the identity by chance */
        assert_ok(randaugment_apply(&p, &d, &a, &spare));
        int same = 1;
        for (int k = 0; k < 768 && same; k++)
            same = a.pixels[k] == (uint8_t)(20 + k * 37 % 200);
        untouched += same;
    }
    assert_true(fabs(untouched / (double)n - 0.25) < 5 * sqrt(0.25 * 0.75 / n));
    image_free(&a);
    image_free(&spare);
}

/* ---- mixing ---------------------------------------------------------------------------------- */

static void mixing_is_a_weighted_sum_with_the_reversed_group(void **state)
{
    (void)state;
    float images[4 * 3 * 4], before[4 * 3 * 4], targets[4 * 3];
    static const int32_t labels[4] = {0, 1, 2, 2};
    mix_draw d = {.lam = 0.7};
    for (int i = 0; i < 48; i++)
        images[i] = before[i] = (float)(i * i);
    mix_images(&d, images, 4, 3, 2, 2);
    for (int row = 0; row < 4; row++)
        for (int k = 0; k < 12; k++) {
            float want = 0.7f * before[row * 12 + k] + (1 - 0.7f) * before[(3 - row) * 12 + k];
            assert_true(images[row * 12 + k] == want);
        }
    mix_targets(&d, 0.1, labels, targets, 4, 3);
    double off = 0.1 / 3, on = 0.9 + off;
    assert_true(fabs(targets[0] - (0.7 * on + 0.3 * off)) < 1e-7); /* row 0: 0.7 of class 0, */
    assert_true(fabs(targets[2] - (0.7 * off + 0.3 * on)) < 1e-7); /* 0.3 of row 3's class 2 */
    for (int row = 0; row < 4; row++)
        assert_true(fabs(targets[row * 3] + targets[row * 3 + 1] + targets[row * 3 + 2] - 1) < 1e-6);
}

static void cutmix_swaps_the_box_and_nothing_else(void **state)
{
    (void)state;
    float images[2 * 3 * 64];
    mix_draw d = {.cut = 1, .lam = 1 - 12.0 / 64, .top = 1, .left = 2, .bottom = 4, .right = 6};
    for (int i = 0; i < 2 * 192; i++)
        images[i] = (float)i;
    mix_images(&d, images, 2, 3, 8, 8);
    for (int row = 0; row < 2; row++)
        for (int k = 0; k < 192; k++) {
            int y = k / 8 % 8, x = k % 8, in_box = y >= 1 && y < 4 && x >= 2 && x < 6;
            assert_true(images[row * 192 + k] == (float)((in_box ? 1 - row : row) * 192 + k));
        }
}

static void mixing_draws_have_the_distributions_of_timm(void **state)
{
    (void)state;
    mix_options m = {.mixup = 0.8, .cutmix = 1.0, .probability = 1, .switch_to_cutmix = 0.5};
    double cuts = 0, mix_sum = 0, mix_squares = 0, cut_sum = 0;
    const int n = 20000;
    for (int i = 0; i < n; i++) {
        mix_draw d = mix_draw_for(&m, 6, 0, (uint64_t)i, 32, 32);
        assert_true(d.lam >= 0 && d.lam <= 1);
        cuts += d.cut;
        if (d.cut) {
            assert_true(d.top <= d.bottom && d.bottom <= 32 && d.left <= d.right && d.right <= 32);
            assert_true(fabs(d.lam - (1 - (d.bottom - d.top) * (d.right - d.left) / 1024.0)) < 1e-12);
            cut_sum += d.lam;
        } else {
            mix_sum += d.lam, mix_squares += d.lam * d.lam;
        }
    }
    double mixes = n - cuts, mean = mix_sum / mixes, variance = mix_squares / mixes - mean * mean;
    assert_true(fabs(cuts / n - 0.5) < 5 * 0.5 / sqrt(n));
    assert_true(fabs(mean - 0.5) < 5 * 0.31 / sqrt(mixes));
    assert_true(fabs(variance - 1 / (4 * (2 * 0.8 + 1))) < 0.004); /* of Beta(a, a): 1 / (4 (2 a + 1)) */
    assert_true(cut_sum / cuts > 0.5 && cut_sum / cuts < 0.75);    /* clipping makes boxes smaller than drawn */
    m = (mix_options){.mixup = 3, .probability = 1};
    mix_sum = mix_squares = 0;
    for (int i = 0; i < n; i++) {
        double lam = mix_draw_for(&m, 7, 0, (uint64_t)i, 32, 32).lam;
        mix_sum += lam, mix_squares += lam * lam;
    }
    mean = mix_sum / n, variance = mix_squares / n - mean * mean;
    assert_true(fabs(mean - 0.5) < 5 * 0.19 / sqrt(n));
    assert_true(fabs(variance - 1.0 / 28) < 0.002);
}

static void probabilities_of_mixing_are_taken_as_given(void **state)
{
    (void)state;
    mix_options never = {.mixup = 0.8, .cutmix = 1, .probability = 0, .switch_to_cutmix = 0.5}, mixes = never,
                cuts = never;
    mixes.probability = cuts.probability = 1;
    mixes.switch_to_cutmix = 0;
    cuts.switch_to_cutmix = 1;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(mix_draw_for(&never, 6, 0, i, 32, 32).lam == 1);
        assert_false(mix_draw_for(&mixes, 6, 0, i, 32, 32).cut);
        assert_true(mix_draw_for(&cuts, 6, 0, i, 32, 32).cut);
    }
}

/* Beta(a, a) for a -> 0 is a coin: nearly all draws are 0 or 1, each half of the time, also where
 * u^(1/a) is no double. */
static void a_tiny_alpha_draws_a_coin_and_ends(void **state)
{
    (void)state;
    const int n = 4000;
    for (double a = 1e-2; a > 1e-300; a *= 1e-7) {
        mix_options m = {.mixup = a, .probability = 1};
        double sum = 0;
        int between = 0;
        for (int i = 0; i < n; i++) {
            double lam = mix_draw_for(&m, 8, 0, (uint64_t)i, 32, 32).lam;
            assert_true(lam >= 0 && lam <= 1);
            sum += lam;
            between += lam > 1e-3 && lam < 1 - 1e-3;
        }
        assert_true(fabs(sum / n - 0.5) < 5 * 0.5 / sqrt(n));
        assert_true(between <= (a < 1e-3 ? 1 : n / 5));
    }
}

/* ---- draws apart from pixels ----------------------------------------------------------------- */

static void a_row_of_draws_can_be_taken_up_anywhere(void **state)
{
    (void)state;
    for (uint32_t taken = 0; taken < 13; taken++) {
        draws a = draws_for(3, PURPOSE_TEST, 1, 9), b = a;
        for (uint32_t i = 0; i < taken; i++)
            (void)draws_word(&a);
        assert_int_equal(draws_taken(&a), taken);
        draws_go(&b, taken);
        for (int i = 0; i < 9; i++)
            assert_int_equal(draws_word(&a), draws_word(&b));
    }
}

/* augment_sample() is reading, augment_draw() and augment_apply(), and a draw can be made long
 * before it is used. */
static void a_sample_is_its_draw_applied_to_its_pixels(void **state)
{
    (void)state;
    static float whole[3 * 32 * 32], parts[3 * 32 * 32];
    augment_options o;
    augment_scratch w = {0};
    data_source s = one_source(32);
    assert_ok(augment_preset(&o, "crop-flip", 32));
    o.erase = 0.5;
    augment_plan p = plan_of(o);
    int erased = 0, flipped = 0;
    for (uint64_t sample = 0; sample < 64; sample++) {
        sample_draw d = augment_draw(&p, 32, 32, 5, sample);
        assert_ok(augment_sample(&p, &s, DATA_TRAIN, 0, 5, sample, whole, &w));
        assert_ok(data_read(&s, DATA_TRAIN, 0, NULL, &w.current));
        assert_ok(augment_apply(&p, &d, 5, sample, parts, &w));
        assert_memory_equal(whole, parts, sizeof whole);
        erased += d.erase.height > 0, flipped += d.flip;
    }
    assert_true(erased > 16 && erased < 48 && flipped > 16 && flipped < 48);
    augment_scratch_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_the_recipes),
        cmocka_unit_test(pad_and_crop_is_a_shifted_window_on_black),
        cmocka_unit_test(half_of_the_images_are_mirrored),
        cmocka_unit_test(random_crops_have_the_area_and_shape_asked_for),
        cmocka_unit_test(an_image_too_long_for_any_crop_gives_its_middle),
        cmocka_unit_test(evaluation_takes_the_middle_with_ties_to_even),
        cmocka_unit_test(erasing_hits_a_quarter_and_fills_with_noise),
        cmocka_unit_test(jitter_orders_its_four_operations_at_random),
        cmocka_unit_test(randaugment_leaves_a_quarter_untouched),
        cmocka_unit_test(mixing_is_a_weighted_sum_with_the_reversed_group),
        cmocka_unit_test(cutmix_swaps_the_box_and_nothing_else),
        cmocka_unit_test(mixing_draws_have_the_distributions_of_timm),
        cmocka_unit_test(probabilities_of_mixing_are_taken_as_given),
        cmocka_unit_test(a_tiny_alpha_draws_a_coin_and_ends),
        cmocka_unit_test(a_row_of_draws_can_be_taken_up_anywhere),
        cmocka_unit_test(a_sample_is_its_draw_applied_to_its_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
