/* gelu_tanh.h - gelu_tanh(x) = x s(w), s the sigmoid, w = 2 sqrt(2/pi) (x + 0.044715 x^3). SPDX-License-Identifier: MIT
 *
 * The tanh form of GELU and its derivatives; structure as in gelu.h: max(x, 0) - t s(-w(t)) with t = |x|, a table for t < 4, and
 * further out s(-w) = e^-w (1 - e^-w), where w is carried in two parts because its rounding would be multiplied by w (up to
 * 106). slope(t) = 1 - slope(-t); the second derivative is even. */
#ifndef ACT_GELU_TANH_H
#define ACT_GELU_TANH_H

#include "act/formula.h"
#include "act/gelu_tanh_tables.h"
#include "simd/vmath.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1

typedef struct act_consts {
    int none;
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    (void)params, (void)shape;
    return (act_consts){0};
}

#define TANH_NEAR  4.0f
#define TANH_LIMIT 11.5f /* everything rounds to zero from 11.02 on */

/* w = t (A + B t^2), each constant in two parts */
#define TANH_A      1.59576917f
#define TANH_A_LOW  -4.53406805e-8f
#define TANH_B      0.0713548139f
#define TANH_B_LOW  2.39883247e-9f
#define TANH_3B     0.214064449f
#define TANH_3B_LOW -2.54083421e-10f

V_FN v_i32 tanh_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT)));
}

/* e^-w(t) = 2^k (1 + tail). The sum A + B t^2 is taken apart exactly: `lost` is what its rounding dropped. */
V_FN v_f32 tanh_exp(v_f32 t, v_f32 *shifted)
{
    v_f32 square = v_mul(t, t), square_low = v_fms(t, t, square);
    v_f32 b = v_mul(square, v_set(TANH_B)), b_low = v_fms(square, v_set(TANH_B), b);
    v_f32 sum = v_add(b, v_set(TANH_A)), kept = v_sub(sum, v_set(TANH_A));
    v_f32 lost = v_add(v_sub(v_set(TANH_A), v_sub(sum, kept)), v_sub(b, kept));
    v_f32 low = v_fma(square, v_set(TANH_B_LOW), v_set(TANH_A_LOW));
    low = v_add(v_fma(square_low, v_set(TANH_B), low), v_add(lost, b_low));
    v_f32 minus = v_neg(t), w = v_mul(minus, sum);
    return v_exp_two(w, v_fma(minus, low, v_fms(minus, sum, w)), shifted);
}

/* e^-w once rounded, kept above 2^-100 */
V_FN v_f32 tanh_rounded(v_f32 tail, v_f32 shifted)
{
    v_f32 power = v_power(v_max(shifted, v_set(V_SHIFT - 100.0f)));
    return v_fma(power, tail, power);
}

/* t s(-w(t)) for t >= 4, where e^-w < 2^-15 */
V_FN v_f32 tanh_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    return v_shrink(v_fma(s, v_sub(tail, v_fma(q, tail, q)), s), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), y = v_fnma(t, v_piecewise(tanh_part, 6, tanh_interval(t), t), v_max0(x));
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (v_any(v_not(near)))
        y = v_select(near, y, v_copysign(v_sub(v_max0(x), tanh_far(t)), x)); /* -0, not 0, far on the left */
    return y;
}

/* -slope(-t) for t >= 4: q (c - q (2 c + 1)), q = e^-w, c = t w'(t) - 1 = t (A + 3 B t^2) - 1 */
V_FN v_f32 tanh_slope_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    v_f32 c = v_fms(s, v_fma(v_mul(s, s), v_set(TANH_3B), v_set(TANH_A)), v_one());
    v_f32 size = v_fnma(q, v_fma(c, v_set(2.0f), v_one()), c);
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(tanh_slope_part, 5, tanh_interval(t), t);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (v_any(v_not(near)))
        part = v_select(near, part, v_select(v_is_nan(x), x, v_neg(tanh_slope_far(t))));
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* For t >= 4, with q = e^-w, steady = 2 w' + t w'', turn = t w'^2: q (steady - turn - q (2 steady - 4 turn)) */
V_FN v_f32 tanh_curve_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    v_f32 square = v_mul(s, s), low = v_fma(square, v_set(TANH_3B_LOW), v_set(TANH_A_LOW));
    low = v_fma(v_fms(s, s, square), v_set(TANH_3B), low); /* what the roundings of t^2, A and 3 B left out */
    v_f32 w1 = v_fma(square, v_set(TANH_3B), v_add(v_set(TANH_A), low));
    v_f32 steady = v_fma(square, v_set(12 * TANH_B), v_set(2 * TANH_A)), turn = v_mul(v_mul(s, w1), w1);
    v_f32 size = v_fnma(q, v_fma(turn, v_set(-4.0f), v_add(steady, steady)), v_sub(steady, turn));
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(tanh_curve_part, 6, tanh_interval(t), t);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (v_any(v_not(near)))
        curve = v_select(near, curve, v_select(v_is_nan(x), x, tanh_curve_far(t)));
    return curve;
}

#endif
