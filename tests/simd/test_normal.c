/* test_normal.c - normal draws: the inverse distribution function, the same on every machine.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "simd/normal.h"

/* Newton's step from x towards the exact quantile is the error of x: (Phi(x) - p) / density(x). */
static void the_quantile_is_right_to_2_to_the_minus_32_over_all_words(void **state)
{
    (void)state;
    for (uint64_t word = 0; word < 0x80000000u; word += word < 5000 ? 1 : 9973) {
        double p = philox_f64((uint32_t)word), x = normal_of_word((uint32_t)word);
        double error = (0.5 * erfc(-x * M_SQRT1_2) - p) * sqrt(2 * M_PI) * exp(x * x / 2);
        assert_true(fabs(error) <= 0x1p-32 * fabs(x));
    }
}

static void mirrored_words_give_opposite_numbers(void **state)
{
    (void)state;
    for (uint32_t word = 0; word < 0xfffff000u; word += 4093)
        assert_true(normal_of_word(word) == -normal_of_word(~word));
}

static void the_quantile_never_falls(void **state)
{
    (void)state;
    double last = -INFINITY;
    for (uint64_t word = 0; word <= 0xffffffffu; word += 65537) {
        double x = normal_of_word((uint32_t)word);
        assert_true(x > last);
        last = x;
    }
}

/* These bits are part of every trained network: they may not change on any machine. */
static void the_numbers_are_these_on_every_machine(void **state)
{
    (void)state;
    const struct {
        uint32_t word;
        double x;
    } known[] = {{0x00000000, -0x1.95a1198fa166ap+2},  {0x00000001, -0x1.8aa6c7fed01d9p+2},
                 {0x00003039, -0x1.22445dd49712fp+2},  {0x00100000, -0x1.be596c4ff1e13p+1},
                 {0x12345678, -0x1.77b26345ce44dp+0},  {0x40000000, -0x1.5956b871e000bp-1},
                 {0x7fffffff, -0x1.40d931ff08f76p-32}, {0x80000000, 0x1.40d931ff08f76p-32},
                 {0xdeadbeef, 0x1.202934837cf5fp+0},   {0xffffffff, 0x1.95a1198fa166ap+2}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(normal_of_word(known[i].word) == known[i].x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quantile_is_right_to_2_to_the_minus_32_over_all_words),
        cmocka_unit_test(mirrored_words_give_opposite_numbers),
        cmocka_unit_test(the_quantile_never_falls),
        cmocka_unit_test(the_numbers_are_these_on_every_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
