/* vmath.h - elementary functions over the vocabulary of vec.h. SPDX-License-Identifier: MIT
 *
 * Their accuracy comes from roundings that they avoid. e^z is returned as 2^k (1 + tail), and the
 * caller puts k and tail where they cost the least: 1 + e^z is fma(2^k, tail, 2^k + 1), e^z - 1 is
 * fma(2^k, tail, 2^k - 1), x e^z is fma(x, tail, x) 2^k. The argument may come in two parts,
 * because in e^(-x^2/2) a rounded argument would cost dozens of units in the last place.
 *
 * Adding V_SHIFT rounds to the nearest integer and leaves it in the low bits of the sum: a table
 * index. With V_EXP_SHIFT these bits are k + 127, the exponent of 2^k as a float stores it; we pass
 * that sum ("shifted") around, since both k and 2^k are one cheap operation away. NaN propagates
 * through every function. tests/simd/test_vmath.c checks the bounds. Coefficients:
 * tools/coefficients. */
#ifndef SIMD_VMATH_H
#define SIMD_VMATH_H

#include "simd/vec.h"
#include "simd/vmath_tables.h"

#define V_SHIFT     12582912.0f /* 1.5 * 2^23: floats around it are the integers */
#define V_EXP_SHIFT 12583039.0f /* V_SHIFT + 127 */
#define V_LOG2E     1.44269504088896341f
#define V_LN2       0.693147180559945309f /* as a float too large by 1.9e-9 */
#define V_LN2_HI    0.693145751953125f    /* sixteen bits, so k * V_LN2_HI is exact for |k| < 256 */
#define V_LN2_LO    1.42860682030941723e-6f

/* k, 2^k for k in [-126, 127], from shifted = V_EXP_SHIFT + k */
V_FN v_f32 v_unshift(v_f32 shifted)
{
    return v_sub(shifted, v_set(V_EXP_SHIFT));
}
V_FN v_f32 v_power(v_f32 shifted)
{
    return v_float(v_shift_left(v_bits(shifted), 23));
}

/* first + r^2 q(r) for q of degree 4: with first = r the tail of e^r */
V_FN v_f32 v_exp_series(v_f32 r, v_f32 first, const float *q)
{
    v_f32 r2 = v_mul(r, r);
    v_f32 low = v_fma(v_set(q[1]), r, v_set(q[0])), high = v_fma(v_set(q[3]), r, v_set(q[2]));
    return v_fma(r2, v_fma(v_fma(v_set(q[4]), r2, high), r2, low), first);
}

/* e^z = 2^k (1 + tail), |z| <= 170; the error of 1 + tail is below 0.72 * 2^-24 of it */
V_FN v_f32 v_exp(v_f32 z, v_f32 *shifted)
{
    *shifted = v_fma(z, v_set(V_LOG2E), v_set(V_EXP_SHIFT));
    v_f32 k = v_unshift(*shifted);
    v_f32 r = v_fnma(k, v_set(V_LN2_LO), v_fnma(k, v_set(V_LN2_HI), z));
    return v_exp_series(r, r, v_exp_terms);
}

/* The same for e^(z + low), |low| <= ulp(z) */
V_FN v_f32 v_exp_two(v_f32 z, v_f32 low, v_f32 *shifted)
{
    *shifted = v_fma(z, v_set(V_LOG2E), v_set(V_EXP_SHIFT));
    v_f32 k = v_unshift(*shifted);
    v_f32 r = v_add(v_fnma(k, v_set(V_LN2_HI), z), v_fnma(k, v_set(V_LN2_LO), low));
    return v_exp_series(r, r, v_exp_terms);
}

/* e^(z + low) - 1 for z in [-87, 87], within 1 ULP: the tail keeps its relative accuracy where k =
 * 0, because the low part is added to the small terms and not to r */
V_FN v_f32 v_expm1_two(v_f32 z, v_f32 low)
{
    v_f32 shifted = v_fma(z, v_set(V_LOG2E), v_set(V_EXP_SHIFT)), k = v_unshift(shifted), power = v_power(shifted);
    v_f32 high = v_fnma(k, v_set(V_LN2_HI), z), rest = v_fnma(k, v_set(V_LN2_LO), low);
    v_f32 tail = v_add(high, v_exp_series(v_add(high, rest), rest, v_expm1_terms));
    return v_fma(power, tail, v_sub(power, v_one()));
}
/* The same in one part for z in [-87, 1]: ln 2 needs no second part, since k times its error is
 * lost beside -1. */
V_FN v_f32 v_expm1(v_f32 z)
{
    v_f32 shifted = v_fma(z, v_set(V_LOG2E), v_set(V_EXP_SHIFT)), k = v_unshift(shifted), power = v_power(shifted);
    v_f32 r = v_fnma(k, v_set(V_LN2), z);
    return v_fma(power, v_exp_series(r, r, v_expm1_terms), v_sub(power, v_one()));
}

/* y 2^k for k in [-252, 252], in two factors. The first product is exact for |y| in [2^-30, 2^30]
 * and |k| <= 190, and for larger |y| and negative k, so the result is rounded once; zeros,
 * infinities and NaN stay. */
V_FN v_f32 v_scale(v_f32 y, v_f32 shifted)
{
    v_i32 k = v_isub(v_bits(shifted), v_iset(0x4b40007f)), half = v_shift_right_signed(k, 1);
    v_f32 first = v_float(v_shift_left(v_iadd(half, v_iset(127)), 23));
    v_f32 second = v_float(v_shift_left(v_iadd(v_isub(k, half), v_iset(127)), 23));
    return v_mul(v_mul(y, first), second);
}

/* The same for |y| < 2^24 and k in [-190, 0], |y| 2^k being normal or |y| >= 2^-3, without a
 * subnormal operand or result in between: on many processors one costs a hundred ordinary ones. Not
 * for zero, infinities and NaN.
 *
 * The exponent is added by integers. Below 2^-126 the float |y| 2^(k + 149) plus 2^23 rounds at the
 * last subnormal place, and the low bits of that sum are the subnormal's bits. (From k = -100 on
 * nothing is subnormal, and the lift must not overflow.) */
V_FN v_f32 v_shrink(v_f32 y, v_f32 shifted)
{
    v_i32 k = v_isub(v_shift_left(v_bits(shifted), 23), v_bits(v_one())); /* k << 23 */
    v_i32 least = v_shift_left(v_bits(v_min(shifted, v_set(V_EXP_SHIFT - 100.0f))), 23);
    v_f32 lift = v_float(v_iadd(least, v_bits(v_set(0x1p22f)))); /* 2^(k + 149) */
    v_f32 sum = v_fma(v_abs(y), lift, v_set(0x1p23f));
    v_f32 tiny = v_copysign(v_float(v_isub(v_bits(sum), v_bits(v_set(0x1p23f)))), y);
    return v_select(v_less(sum, v_set(0x1p24f)), tiny, v_float(v_iadd(v_bits(y), k)));
}

/* a b, bit for bit the product, where a is often subnormal and so is the result: the same method.
 * |a| 2^149 is an integer, or a float with a larger exponent; times |b|, plus 2^23, it is rounded
 * once. */
V_FN v_f32 v_product(v_f32 a, v_f32 b)
{
    v_mask small = v_less(v_abs(a), v_set(0x1p-100f));
    if (!v_any(small))
        return v_mul(a, b);
    v_f32 size = v_min(v_abs(a), v_set(0x1p-100f)); /* other lanes must not become subnormal by chance */
    v_f32 lifted = v_float(v_iadd(v_bits(size), v_bits(v_set(0x1p22f))));
    lifted = v_select(v_less(size, v_set(0x1p-126f)), v_from_int(v_bits(size)), lifted);
    v_f32 sum = v_fma(lifted, v_abs(b), v_set(0x1p23f));
    v_mask tiny = v_and(small, v_less(sum, v_set(0x1p24f)));
    v_f32 product = v_mul(v_select(tiny, v_copysign(v_one(), a), a), b); /* only the sign of a tiny one is used */
    return v_select(tiny, v_copysign(v_float(v_isub(v_bits(sum), v_bits(v_set(0x1p23f)))), product), product);
}

/* log(1 + y) for y in (-1, 2^20), within 2 ULP; -1 gives -inf. With u = fl(1 + y) = 2^k m, m near
 * 1, and the part of y that u lost: log m = 2 atanh((m - 1) / (m + 1)), and where k = 0 the
 * numerator is y itself. */
V_FN v_f32 v_log1p(v_f32 y)
{
    v_f32 u = v_add(v_one(), y);
    v_f32 lost = v_sub(y, v_sub(u, v_one()));
    v_i32 bits = v_isub(v_bits(u), v_iset(0x3f3504f3)); /* sqrt(1/2) */
    v_i32 k = v_shift_right_signed(bits, 23);
    v_f32 power = v_float(v_isub(v_iset(0x3f800000), v_shift_left(k, 23))); /* 2^-k */
    v_f32 whole = v_from_int(k);
    v_f32 top = v_fma(lost, power, v_fms(u, power, v_one()));
    v_f32 bottom = v_fma(u, power, v_one());
    v_f32 s = v_div(top, bottom), s2 = v_mul(s, s);
    const float *c = v_log_terms;
    v_f32 g = v_fma(v_fma(v_fma(v_set(c[3]), s2, v_set(c[2])), s2, v_set(c[1])), s2, v_set(c[0]));
    /* 2 s = top - s top, up to the rounding of s: this keeps the leading term exact */
    v_f32 small = v_fma(v_mul(s2, g), s, v_fnma(s, top, v_mul(whole, v_set(V_LN2_LO))));
    v_f32 result = v_fma(whole, v_set(V_LN2_HI), v_add(top, small));
    return v_select(v_equal(u, v_zero()), v_set(-1.0f / 0.0f), v_select(v_equal(y, v_zero()), y, result));
}

/* Sixteen polynomials of one degree, one per interval (tools/coefficients/fit.py): row 0 holds
 * centres, then coefficients. */
V_FN v_f32 v_piecewise_rows(const float *table, size_t width, int degree, v_i32 interval, v_f32 x)
{
    v_f32 h = v_sub(x, v_lookup16(table, interval));
    v_f32 sum = v_lookup16(table + (size_t)(degree + 1) * width, interval);
    V_FOR(int i = degree; i > 0; i--)
        sum = v_fma(sum, h, v_lookup16(table + (size_t)i * width, interval));
    return sum;
}
V_FN v_f32 v_piecewise(const float (*table)[16], int degree, v_i32 interval, v_f32 x)
{
    return v_piecewise_rows(table[0], 16, degree, interval, x);
}

/* The same for a vector whose intervals are all among the first eight. */
V_FN v_f32 v_piecewise8(const float (*table)[16], int degree, v_i32 interval, v_f32 x)
{
#ifdef V_FEW_REGISTERS
    /* Hides that all vectors of a loop read the same rows: the compiler would keep the rows, and
     * not the vectors, in registers. */
    __asm__("" : "+r"(table));
#endif
    v_f32 h = v_sub(x, v_lookup8(table[0], interval)), sum = v_lookup8(table[degree + 1], interval);
    V_FOR(int i = degree; i > 0; i--)
        sum = v_fma(sum, h, v_lookup8(table[i], interval));
    return sum;
}

/* The same for thirty-two intervals. */
V_FN v_f32 v_piecewise32(const float (*table)[32], int degree, v_i32 interval, v_f32 x)
{
#ifdef V_LOOKUP32_IN_HALVES
    v_mask second = v_is_negative(v_float(v_shift_left(interval, 27)));
    v_f32 low = v_piecewise_rows(table[0], 32, degree, interval, x);
    return v_select(second, v_piecewise_rows(table[0] + 16, 32, degree, interval, x), low);
#else
    v_f32 h = v_sub(x, v_lookup32(table[0], interval)), sum = v_lookup32(table[degree + 1], interval);
    V_FOR(int i = degree; i > 0; i--)
        sum = v_fma(sum, h, v_lookup32(table[i], interval));
    return sum;
#endif
}

/* Look-ups of n vectors among thirty-two, where the target finds several at once. */
V_FN void v_lookups(v_f32 *r, const float *table, const v_i32 *j, int n)
{
#ifdef V_LOOKUPS
    if (n == V_LOOKUPS) {
        v_lookups32(r, table, v_index_of(j));
        return;
    }
#endif
    V_FOR(int v = 0; v < n; v++)
        r[v] = v_lookup32(table, j[v]);
}

/* Piecewise polynomials of n vectors, where the target looks up several at once: over the first
 * sixteen intervals of rows of `width`, or over all thirty-two. */
V_FN void v_piecewises(v_f32 *sum, const float *table, size_t width, int degree, const v_i32 *interval, const v_f32 *x,
                       int n, int all)
{
#ifdef V_LOOKUPS
    if (n == V_LOOKUPS) {
        v_index index = v_index_of(interval);
        v_f32 h[V_LOOKUPS], c[V_LOOKUPS];
        (all ? v_lookups32 : v_lookups16)(c, table, index);
        V_FOR(int v = 0; v < V_LOOKUPS; v++)
            h[v] = v_sub(x[v], c[v]);
        (all ? v_lookups32 : v_lookups16)(sum, table + (size_t)(degree + 1) * width, index);
        V_FOR(int i = degree; i > 0; i--) {
            (all ? v_lookups32 : v_lookups16)(c, table + (size_t)i * width, index);
            V_FOR(int v = 0; v < V_LOOKUPS; v++)
                sum[v] = v_fma(sum[v], h[v], c[v]);
        }
        return;
    }
#endif
    V_FOR(int v = 0; v < n; v++)
        sum[v] = all ? v_piecewise32((const float(*)[32])table, degree, interval[v], x[v])
                     : v_piecewise_rows(table, width, degree, interval[v], x[v]);
}

/* c[0] + c[1] x + ... + c[degree] x^degree */
V_FN v_f32 v_polynomial(const float *c, int degree, v_f32 x)
{
    v_f32 sum = v_set(c[degree]);
    V_FOR(int i = degree - 1; i >= 0; i--)
        sum = v_fma(sum, x, v_set(c[i]));
    return sum;
}

#endif
