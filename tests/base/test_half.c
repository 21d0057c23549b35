/* test_half.c - bf16 and f16 on every 16-bit value and around every tie.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/half.h"
#include "base/philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The definition, in double: the value of 16 bits with `exponent_bits` and `fraction_bits`. */
static double half_value(uint16_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

typedef struct format {
    float (*to)(uint16_t);
    uint16_t (*from)(float);
    int exponent_bits, fraction_bits;
    uint16_t infinity;
} format;
static const format bf16 = {bf16_to_f32, bf16_from_f32, 8, 7, 0x7f80};
static const format f16 = {f16_to_f32, f16_from_f32, 5, 10, 0x7c00};

static void check_all_values(const format *f)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float got = f->to((uint16_t)bits);
        double want = half_value((uint16_t)bits, f->exponent_bits, f->fraction_bits);
        if (isnan(want)) {
            assert_true(isnan(got));
            uint16_t back = f->from(got);
            assert_true((back & 0x7fff) > f->infinity && (back & 0x8000) == (bits & 0x8000));
            continue;
        }
        assert_true((double)got == want && !signbit(got) == !signbit(want));
        assert_int_equal(f->from(got), bits);
    }
}

static void every_16_bit_value_has_its_meaning_and_comes_back(void **state)
{
    (void)state;
    check_all_values(&bf16);
    check_all_values(&f16);
}

/* Between two neighbours a < b: the middle goes to the even one, the floats beside the middle to
 * the nearer one. */
static void check_ties(const format *f)
{
    for (uint32_t bits = 0; bits < f->infinity; bits++) {
        /* The neighbour above the largest value would be the next power of two: infinity takes its
         * place. */
        double a = half_value((uint16_t)bits, f->exponent_bits, f->fraction_bits);
        double b = bits + 1u < f->infinity
                       ? half_value((uint16_t)(bits + 1), f->exponent_bits, f->fraction_bits)
                       : 2 * a - half_value((uint16_t)(bits - 1), f->exponent_bits, f->fraction_bits);
        float middle = (float)((a + b) / 2);
        assert_true((double)middle == (a + b) / 2); /* f32 holds every tie exactly */
        uint16_t even = (uint16_t)(bits & 1 ? bits + 1 : bits);
        for (uint16_t sign = 0;; sign = 0x8000) {
            float s = sign ? -1.0f : 1.0f;
            assert_int_equal(f->from(s * middle), even | sign);
            assert_int_equal(f->from(s * from_bits(bits_of(middle) - 1)), bits | sign);
            assert_int_equal(f->from(s * from_bits(bits_of(middle) + 1)), (bits + 1) | sign);
            if (sign)
                break;
        }
    }
}

static void every_tie_goes_to_the_even_neighbour(void **state)
{
    (void)state;
    check_ties(&bf16);
    check_ties(&f16);
}

static void nan_stays_nan_whatever_its_payload(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 23; bit++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            float nan = from_bits(sign << 31 | 0x7f800000 | 1u << bit);
            assert_true((bf16_from_f32(nan) & 0x7fff) > 0x7f80);
            assert_true((f16_from_f32(nan) & 0x7fff) > 0x7c00);
        }
    assert_int_equal(f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(bf16_from_f32(-INFINITY), 0xff80);
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520.0f), 0x7c00);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t hardware_f16(float value)
{
    return (uint16_t)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0);
}

static void f16_agrees_with_the_processor_on_random_floats(void **state)
{
    (void)state;
    if (!cpu_has(CPU_AVX2))
        skip();
    for (uint64_t i = 0; i < 4000000; i++) {
        philox_words w = philox_draw(3, PURPOSE_TEST, 0, i, 0);
        /* Half of them near the range of f16, where rounding happens; the rest anywhere. */
        uint32_t bits = w.w[0] & 1 ? w.w[1] : (w.w[1] & 0x807fffff) | (98 + w.w[2] % 48) << 23;
        float value = from_bits(bits);
        uint16_t want = hardware_f16(value);
        if (isnan(value))
            assert_true((f16_from_f32(value) & 0x7fff) > 0x7c00 && (want & 0x7fff) > 0x7c00);
        else if (f16_from_f32(value) != want)
            fail_msg("%a: %04x, the processor says %04x", (double)value, f16_from_f32(value), want);
    }
}
#else
static void f16_agrees_with_the_processor_on_random_floats(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_value_has_its_meaning_and_comes_back),
        cmocka_unit_test(every_tie_goes_to_the_even_neighbour),
        cmocka_unit_test(nan_stays_nan_whatever_its_payload),
        cmocka_unit_test(f16_agrees_with_the_processor_on_random_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
