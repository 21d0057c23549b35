/* test_vmath.c - the bounds that vmath.h states, over the scalar words (the others give the same
 * bits). SPDX-License-Identifier: MIT */
#define V_TARGET_SCALAR
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "simd/vmath.h"

/* in units of the last place of the exact value, subnormals included (math: |computed - exact| /
 * ulp(exact)) */
static double ulps(double computed, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return fabs(computed - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* Floats of either sign from `low` to `high` in magnitude, about `count` of them, evenly over their
 * bit patterns. */
typedef struct floats {
    uint32_t at, to, step;
} floats;
static floats floats_between(float low, float high, uint32_t count)
{
    uint32_t a = (uint32_t)v_bits(low), b = (uint32_t)v_bits(high);
    return (floats){a, b, (b - a) / count | 1};
}
static int floats_next(floats *f, float *x)
{
    if (f->at > f->to)
        return 0;
    *x = v_float((int32_t)f->at);
    f->at += f->step;
    return 1;
}

static void exp_is_two_to_the_k_times_one_plus_tail(void **state)
{
    (void)state;
    floats f = floats_between(0x1p-40f, 120.0f, 300000);
    for (float x, shifted; floats_next(&f, &x);)
        for (int sign = -1; sign <= 1; sign += 2) {
            double tail = v_exp((float)sign * x, &shifted), k = v_unshift(shifted);
            double exact = exp(sign * (double)x) / exp2(k);
            assert_true(fabs(1 + tail - exact) <= 0x1p-24 * 0.72 * exact);
            assert_true(fabs(tail) < 0.43);
        }
}

static void exp_two_takes_the_low_part_of_the_argument(void **state)
{
    (void)state;
    floats f = floats_between(0x1p-10f, 110.0f, 300000);
    for (float x, shifted; floats_next(&f, &x);) {
        double low = -0.37 * (nextafterf(x, INFINITY) - x);
        double tail = v_exp_two(-x, (float)low, &shifted),
               exact = exp(-(double)x + (float)low) / exp2(v_unshift(shifted));
        assert_true(fabs(1 + tail - exact) <= 0x1p-24 * 0.72 * exact);
    }
}

static void expm1_is_within_one_ulp(void **state)
{
    (void)state;
    floats f = floats_between(0x1p-126f, 80.0f, 300000);
    for (float x; floats_next(&f, &x);) {
        assert_true(ulps(v_expm1(-x), expm1(-(double)x)) < 1);
        assert_true(ulps(v_expm1_two(-x, 0.0f), expm1(-(double)x)) < 1);
    }
}

static void log1p_is_within_two_ulp(void **state)
{
    (void)state;
    floats f = floats_between(0x1p-126f, 0x1p20f, 300000);
    for (float x; floats_next(&f, &x);) {
        assert_true(ulps(v_log1p(x), log1p((double)x)) < 2);
        if (x < 1)
            assert_true(ulps(v_log1p(-x), log1p(-(double)x)) < 2);
    }
    assert_true(v_log1p(-1.0f) == -INFINITY);
    assert_true(v_log1p(0.0f) == 0 && signbit(v_log1p(-0.0f)));
}

static void scale_and_shrink_round_once_down_to_zero(void **state)
{
    (void)state;
    for (int k = -190; k <= 0; k++)
        for (float y = 0.125f; y < 128; y *= 1.00131f) {
            float exact = (float)ldexp(y, k), shifted = V_EXP_SHIFT + (float)k;
            assert_true(v_scale(y, shifted) == exact);
            assert_true(v_scale(-y, shifted) == -exact);
            assert_true(v_bits(v_shrink(y, shifted)) == v_bits(exact));
            assert_true(v_bits(v_shrink(-y, shifted)) == v_bits(-exact));
        }
}

static void products_of_subnormals_are_products(void **state)
{
    (void)state;
    static const float plain[] = {0.0f, 1.0f, 0.7f, 3.0f, 0x1p-149f, 0x1.8p-130f, 0x1p100f, 0x1.fffffep127f, INFINITY};
    for (uint32_t i = 0; i < 1 << 18; i++) { /* magnitudes up to 2^-90, subnormal ones in half of them */
        uint32_t bits = i % 2 ? i * 32u + i % 31 : i * 1111u % 0x12000000u;
        float a = v_float((int32_t)bits);
        for (size_t j = 0; j < sizeof plain / sizeof *plain; j++) {
            float b = plain[j] * (1 + (float)(i % 997) * 0x1p-10f), want = a * b, got = v_product(a, b);
            assert_true(isnan(want) ? isnan(got) : v_bits(got) == v_bits(want));
            assert_true(isnan(want) ? isnan(got) : v_bits(v_product(-a, b)) == v_bits(-a * b));
        }
    }
    assert_true(isnan(v_product(NAN, 1.0f)) && isnan(v_product(0x1p-140f, NAN)));
}

static void nan_goes_through(void **state)
{
    (void)state;
    float shifted, nan = NAN;
    assert_true(isnan(v_exp(nan, &shifted)) && isnan(v_exp_two(nan, 0.0f, &shifted)));
    assert_true(isnan(v_expm1(nan)) && isnan(v_expm1_two(nan, 0.0f)) && isnan(v_log1p(nan)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_two_to_the_k_times_one_plus_tail),
        cmocka_unit_test(exp_two_takes_the_low_part_of_the_argument),
        cmocka_unit_test(expm1_is_within_one_ulp),
        cmocka_unit_test(log1p_is_within_two_ulp),
        cmocka_unit_test(scale_and_shrink_round_once_down_to_zero),
        cmocka_unit_test(products_of_subnormals_are_products),
        cmocka_unit_test(nan_goes_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
