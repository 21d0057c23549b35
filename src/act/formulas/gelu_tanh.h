/* gelu_tanh.h - gelu_tanh(x) = x s(w), s the sigmoid, w = 2 sqrt(2/pi) (x + 0.044715 x^3).
 * SPDX-License-Identifier: MIT
 *
 * The tanh form of GELU and its derivatives. With t = |x| the value is max(x, 0) - t / (1 +
 * e^w(t)), where w is carried in two parts because its rounding would be multiplied by w (up to
 * 106). The derivative at -t is a piecewise polynomial in t over thirty-two intervals, found by
 * table look-up: in the first sixteen, t <= 3.1, of the derivative itself, in the others of the
 * derivative over 2^(a + b h + c h^2), h = t less the centre of its interval. This power, with a, b
 * and c from the table and 0 for near t, is multiplied back. f'(t) = 1 - f'(-t). The second
 * derivative is even.
 *
 * Below -10.2 derivative and value are subnormal, and on many processors an operation with one such
 * operand or result costs a hundred ordinary ones. So subnormal results are computed as a larger
 * float and converted by integer operations (see v_shrink in vmath.h); act_far_backward()
 * multiplies by dy before that, with the same bits: the derivative is rounded where it would be,
 * then the product.
 *
 * Bounds: value 2.5 ULP, derivative 4 ULP. Largest errors over all floats with a normal result:
 * value 2.064 ULP (at -0x1.6110ep+1), derivative 2.563 ULP (at -0x1.5e8c1cp+2), near the
 * derivative's zero 0.08 * 2^-24 absolute; subnormal results within 1.4 units. Second derivative,
 * sampled: 3.8 ULP, near its zeros 0.2 * 2^-24. */
#ifndef ACT_FORMULAS_GELU_TANH_H
#define ACT_FORMULAS_GELU_TANH_H

#include "act/formulas/formula.h"
#include "act/formulas/gelu_tanh_tables.h"
#include "simd/vmath.h"

#define ACT_QUICK       1 /* act/cuda/quick.cuh */
#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1
#define ACT_PRODUCT     v_product
#define ACT_SLOPE_PATHS 1

ACT_NO_CONSTS

#define TANH_LIMIT 11.5f    /* everything rounds to zero from 11.02 on */
#define TANH_FAR   9.0f     /* value: 2^-k is a normal number up to here, and e^-w is negligible beside 1 beyond */
#define TANH_TINY  -10.102f /* value: 2^-126.03 */

/* w log2(e) = B x (x^2 + C). C has 21 bits and a low part, so that the rounding error of x^2 + C is
 * computed exactly. */
#define TANH_B     0.102943242f
#define TANH_B_LOW -1.95855357e-08f /* the rounding error of B, over B */
#define TANH_C     22.3638611f
#define TANH_C_LOW -1.081748e-06f

/* e^w(z) with rate = B, e^-w(z) with rate = -B, as 2^k (1 + tail), shifted = origin + k, |z| <=
 * 11.5. The integer k is subtracted inside a fused product, so w itself is never rounded. */
V_FN v_f32 tanh_exp(v_f32 z, float rate, float origin, v_f32 *shifted)
{
    v_f32 b = v_set(rate), c = v_set(TANH_C), sum = v_fma(z, z, c);
    v_f32 rest = v_add(v_fma(z, z, v_sub(c, sum)), v_set(TANH_C_LOW));
    v_f32 cubic = v_mul(z, sum), low = v_fma(z, rest, v_fms(z, sum, cubic));
    *shifted = v_fma(cubic, b, v_set(origin));
    low = v_fma(cubic, v_set(TANH_B_LOW), low);
    v_f32 r = v_fma(low, b, v_fms(cubic, b, v_sub(*shifted, v_set(origin))));
    return v_mul(r, v_polynomial(v_exp2_terms, 5, r));
}

/* The value below -9 as well: there 2^-k is negligible and may overflow. Where the result is below
 * 2^-126 the fraction is times 2^149: less 2^23 it has the subnormal's bits in its low places.
 * Large x are lowered, which does not change t / (1 + e^w). */
V_FN v_f32 tanh_value_far(v_f32 x, v_mask inside)
{
    v_f32 t = v_min_abs(v_min(x, v_set(TANH_FAR)), v_set(TANH_LIMIT)), shifted;
    v_f32 tail = tanh_exp(t, TANH_B, V_SHIFT, &shifted);
    v_mask tiny = v_less(x, v_set(TANH_TINY));
    v_i32 fall = v_shift_left(v_bits(shifted), 23), top = v_isub(v_bits(t), fall); /* k << 23, t 2^-k */
    v_i32 inverse = v_iselect(inside, v_isub(v_iset(127 << 23), fall), v_iset(0));
    top = v_iselect(tiny, v_iadd(top, v_iset(149 << 23)), top);
    v_f32 line = v_select(tiny, v_set(-0x1p23f), v_max(x, v_set(-0.0f)));
    v_f32 y = v_sub(line, v_div(v_float(top), v_add(v_one(), v_add(tail, v_float(inverse)))));
    return v_float(v_iselect(tiny, v_isub(v_bits(y), v_iset(150 << 23)), v_bits(y)));
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_mask inside = v_less_equal(v_set(-TANH_FAR), x);
    if (!v_all(inside))
        return tanh_value_far(x, inside);
    /* -0: the limit of the left tail */
    v_f32 t = v_min_abs(x, v_set(TANH_FAR)), line = v_max(x, v_set(-0.0f)), shifted;
    v_f32 tail = tanh_exp(t, TANH_B, V_SHIFT, &shifted);
    v_i32 fall = v_shift_left(v_bits(shifted), 23);
    v_f32 top = v_float(v_isub(v_bits(t), fall)), inverse = v_float(v_isub(v_iset(127 << 23), fall));
    return v_sub(line, v_div(top, v_add(v_one(), v_add(tail, inverse))));
}

#define TANH_NEAR 3.1f  /* derivative: 5 t rounds to 15 or less up to here, to 16 or more beyond */
#define TANH_END  11.0f /* derivative: rounds to zero before */
/* derivative: far intervals per unit of t; 30 begins where the derivative becomes subnormal */
#define TANH_STEP  1.90522707f
#define TANH_SMALL -9.185256f /* derivative: the last x of interval 27. From 28 on it is kept times 2^64. */
#define TANH_UNIT  0x1p-62f   /* derivative: 2^-126, times 2^64 */

V_FN v_f32 tanh_near_place(v_f32 t)
{
    return v_fma(t, v_set(5.0f), v_set(V_SHIFT));
}

/* From f'(-t) to f'(x) */
V_FN v_f32 tanh_side(v_f32 part, v_f32 x)
{
    return v_select(v_less_equal(v_zero(), x), v_sub(v_one(), part), part);
}

V_FN int act_slope_path(const v_f32 *x, int n)
{
    return v_all(v_less_equal(act_most(x, n), v_set(TANH_NEAR))) ? ACT_ALL_NEAR : ACT_SOME_FAR;
}

V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 t[ACT_INTERLEAVED], part[ACT_INTERLEAVED];
    v_i32 place[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_abs(x[v]);
    ACT_EACH place[v] = v_bits(tanh_near_place(t[v]));
    v_piecewises(part, tanh_slope_part[0], 32, 5, place, t, n, 0);
    ACT_EACH x[v] = v_mul(tanh_side(part[v], x[v]), dy[v]);
}

/* f'(-t), times 2^64 from interval 28 on, where it is rounded as the derivative itself would be: by
 * a sum with TANH_UNIT, from the table */
V_FN void tanh_far_part(v_f32 *part, const v_f32 *x, int n)
{
    v_f32 t[ACT_INTERLEAVED], h[ACT_INTERLEAVED], base[ACT_INTERLEAVED], first[ACT_INTERLEAVED],
        second[ACT_INTERLEAVED], shifted[ACT_INTERLEAVED], r[ACT_INTERLEAVED], series[ACT_INTERLEAVED];
    v_i32 j[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_min(v_abs(x[v]), v_set(TANH_END));
    ACT_EACH shifted[v] = v_fma(t[v], v_set(TANH_STEP), v_set(V_SHIFT + 10.0f));
    ACT_EACH j[v] = v_bits(v_min(tanh_near_place(v_abs(x[v])), shifted[v]));
    v_lookups(h, tanh_slope_part[0], j, n);
    ACT_EACH h[v] = v_sub(t[v], h[v]);
    v_lookups(base, tanh_slope_scale[0], j, n);
    v_lookups(first, tanh_slope_scale[1], j, n);
    ACT_EACH shifted[v] = v_fma(first[v], h[v], base[v]);
    v_piecewises(part, tanh_slope_part[0], 32, 5, j, t, n, 1);
    ACT_EACH base[v] = v_sub(shifted[v], base[v]);
    ACT_EACH r[v] = v_fms(first[v], h[v], base[v]);
    v_lookups(second, tanh_slope_scale[2], j, n);
    ACT_EACH r[v] = v_fma(v_mul(second[v], h[v]), h[v], r[v]); /* from -3/4 to 1/2 */
    ACT_EACH series[v] = v_set(tanh_exp2_terms[5]);
    V_FOR(int i = 4; i >= 0; i--)
        ACT_EACH series[v] = v_fma(series[v], r[v], v_set(tanh_exp2_terms[i]));
    ACT_EACH r[v] = v_mul(part[v], r[v]);
    v_lookups(base, tanh_slope_scale[3], j, n);
    ACT_EACH part[v] = v_fma(r[v], series[v], part[v]);
    ACT_EACH part[v] = v_fms(part[v], v_power(shifted[v]), base[v]);
    ACT_EACH part[v] = v_add(part[v], base[v]);
}

V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 slope[ACT_INTERLEAVED], product[ACT_INTERLEAVED], scale[ACT_INTERLEAVED], unit = v_set(TANH_UNIT);
    v_i32 sum[ACT_INTERLEAVED];
    v_mask small[ACT_INTERLEAVED], tiny[ACT_INTERLEAVED];
    tanh_far_part(slope, x, n);
    ACT_EACH slope[v] = tanh_side(slope[v], x[v]);
    ACT_EACH small[v] = v_less(x[v], v_set(TANH_SMALL));
    ACT_EACH product[v] = v_mul(slope[v], dy[v]);
    /* a small derivative is negative or zero */
    ACT_EACH sum[v] = v_bits(v_fnma(slope[v], dy[v], v_copysign(unit, dy[v])));
    ACT_EACH tiny[v] = v_and(small[v], v_less(v_abs(product[v]), unit));
    ACT_EACH sum[v] = v_iadd(sum[v], v_iset(0x5f800000)); /* less the bits of TANH_UNIT, with the sign flipped */
    ACT_EACH scale[v] = v_select(v_and(small[v], v_not(tiny[v])), v_set(0x1p-64f), v_one());
    ACT_EACH product[v] = v_mul(product[v], scale[v]); /* none of these is tiny, not even in lanes that are discarded */
    ACT_EACH x[v] = v_float(v_iselect(tiny[v], sum[v], v_bits(product[v])));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 one = v_one();
    if (act_slope_path(&x, 1) == ACT_ALL_NEAR)
        act_near_backward(&x, &one, 1);
    else
        act_far_backward(&x, &one, 1);
    return x;
}

/* w'(t) = D + 3 E t^2 with D = 2 sqrt(2/pi), E = 0.044715 D */
#define TANH_D      1.59576917f
#define TANH_D_LOW  -4.53406805e-08f
#define TANH_3E     0.214064449f
#define TANH_3E_LOW -2.54083421e-10f
#define TANH_12E    0.856257796f

/* q = e^-w rounded once, kept above 2^-100, where it no longer matters to any term */
V_FN v_f32 tanh_rounded(v_f32 tail, v_f32 shifted)
{
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f)));
    return v_fma(power, tail, power);
}

/* For t >= 4, with q = e^-w, steady = 2 w' + t w'', turn = t w'^2: q (steady - turn - q (2 steady -
 * 4 turn)) */
V_FN v_f32 tanh_curve_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, -TANH_B, V_EXP_SHIFT, &shifted);
    v_f32 q = tanh_rounded(tail, shifted);
    v_f32 square = v_mul(s, s), low = v_fma(square, v_set(TANH_3E_LOW), v_set(TANH_D_LOW));
    low = v_fma(v_fms(s, s, square), v_set(TANH_3E), low); /* the rounding errors of t^2, D and 3 E */
    v_f32 w1 = v_fma(square, v_set(TANH_3E), v_add(v_set(TANH_D), low)), turn = v_mul(v_mul(s, w1), w1);
    v_f32 steady = v_fma(square, v_set(TANH_12E), v_set(2 * TANH_D));
    v_f32 size = v_fnma(q, v_fma(turn, v_set(-4.0f), v_add(steady, steady)), v_sub(steady, turn));
    return v_select(v_is_nan(t), t, v_shrink(v_fma(size, tail, size), shifted));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(tanh_curve_part, 6, v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT))), t);
    v_mask near = v_less(t, v_set(4.0f));
    if (!v_all(near))
        curve = v_select(near, curve, tanh_curve_far(t));
    return curve;
}

#endif
