/* test_philox.c - the published vectors, the counter layout, and that draws look uniform.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "base/status.h"

/* The three vectors that the Random123 library publishes for philox4x32 with ten rounds: zeros,
 * ones, digits of pi. */
static void the_published_vectors_come_out(void **state)
{
    (void)state;
    static const struct {
        philox_words counter;
        uint64_t key;
        philox_words want;
    } known[] = {
        {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         0xffffffffffffffff,
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         0x299f31d0a4093822,
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        philox_words got = philox_block(known[i].counter, known[i].key);
        assert_memory_equal(&got, &known[i].want, sizeof got);
    }
}

static void the_counter_is_draw_index_epoch_purpose(void **state)
{
    (void)state;
    uint64_t seed = 0x0123456789abcdef, index = 0xabcd12345678;
    philox_words want = philox_block((philox_words){{7, 0x12345678, 5, PURPOSE_MIX << 16 | 0xabcd}}, seed);
    philox_words got = philox_draw(seed, PURPOSE_MIX, 5, index, 7);
    assert_memory_equal(&got, &want, sizeof got);
}

static void any_change_of_a_coordinate_changes_the_words(void **state)
{
    (void)state;
    const philox_words all[] = {philox_draw(1, PURPOSE_CROP, 1, 1, 1),
                                philox_draw(2, PURPOSE_CROP, 1, 1, 1),
                                philox_draw(1, PURPOSE_FLIP, 1, 1, 1),
                                philox_draw(1, PURPOSE_CROP, 2, 1, 1),
                                philox_draw(1, PURPOSE_CROP, 1, 2, 1),
                                philox_draw(1, PURPOSE_CROP, 1, 1, 2),
                                philox_draw(1, PURPOSE_CROP, 1, 1 | 1ull << 40, 1)};
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&all[i], &all[j], sizeof all[i]);
}

static void words_map_to_the_ends_of_their_ranges(void **state)
{
    (void)state;
    assert_true(philox_f32(0) == 0.0f);
    assert_true(philox_f32(0xffffffff) == 1.0f - 0x1p-24f);
    assert_true(philox_f64(0) == 0x1p-33);
    assert_true(philox_f64(0xffffffff) == 1 - 0x1p-33);
    assert_int_equal(philox_below(0, 10), 0);
    assert_int_equal(philox_below(0xffffffff, 10), 9);
    assert_int_equal(philox_below(0xffffffff, 1), 0);
    assert_int_equal(philox_below(0xffffffff, 0xffffffff), 0xfffffffe);
}

/* Chi-square over 64 cells for each of the four words: the draws are fixed, so this cannot fail by
 * chance. The bound is the mean of 63 plus five standard deviations. */
static void draws_fill_their_range_evenly(void **state)
{
    (void)state;
    enum { CELLS = 64, DRAWS = 64000 };
    for (int word = 0; word < 4; word++) {
        double cells[CELLS] = {0}, chi = 0, mean = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            uint32_t w = philox_draw(42, PURPOSE_TEST, 0, i, 0).w[word];
            cells[philox_below(w, CELLS)]++;
            mean += philox_f64(w) / DRAWS;
        }
        for (int c = 0; c < CELLS; c++)
            chi += (cells[c] - DRAWS / CELLS) * (cells[c] - DRAWS / CELLS) / (DRAWS / CELLS);
        assert_true(chi < 63 + 5 * sqrt(2.0 * 63));
        assert_true(fabs(mean - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_vectors_come_out),
        cmocka_unit_test(the_counter_is_draw_index_epoch_purpose),
        cmocka_unit_test(any_change_of_a_coordinate_changes_the_words),
        cmocka_unit_test(words_map_to_the_ends_of_their_ranges),
        cmocka_unit_test(draws_fill_their_range_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
