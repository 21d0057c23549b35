/* gelu_tanh.h - gelu_tanh(x) = x s(w), s the sigmoid, w = 2 sqrt(2/pi) (x + 0.044715 x^3). SPDX-License-Identifier: MIT
 *
 * The tanh form of GELU and its derivatives; structure as in gelu.h: max(x, 0) - t s(-w(t)) with t = |x|, a table for t < 4, and
 * further out s(-w) = e^-w (1 - e^-w), where w is carried in two parts because its rounding would be multiplied by w (up to
 * 106). slope(t) = 1 - slope(-t); the second derivative is even.
 *
 * Over all floats with a normal result: value 1.981 ULP (at -0x1.dea0a2p+1), slope 3.336 ULP (at -0x1.05d3f4p+2), near the slope's
 * zero 0.16 * 2^-24 absolute; subnormal results within 1.4 units. Second derivative, sampled: 3.8 ULP, near its zeros 0.2 * 2^-24. */
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

V_FN v_i32 tanh_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT)));
}

/* w log2(e) = t (A + B t^2). A has 17 bits and a low part, so that for t >= 4 the sum minus A is exact. */
#define TANH_A     2.302215576171875f
#define TANH_A_LOW -7.37802748e-06f
#define TANH_B     0.102943242f
#define TANH_B_LOW -2.01619854e-09f

/* e^-w(t) = 2^k (1 + tail), t >= 4 */
V_FN v_f32 tanh_exp(v_f32 t, v_f32 *shifted)
{
    v_f32 minus = v_neg(t), square = v_mul(t, t), sum = v_fma(square, v_set(TANH_B), v_set(TANH_A));
    v_f32 low = v_fma(square, v_set(TANH_B_LOW), v_set(TANH_A_LOW));
    low = v_fma(v_fms(t, t, square), v_set(TANH_B), low);
    low = v_add(low, v_fms(square, v_set(TANH_B), v_sub(sum, v_set(TANH_A)))); /* what the rounding of sum left out */
    v_f32 w = v_mul(minus, sum), w_low = v_fma(minus, low, v_fms(minus, sum, w));
    *shifted = v_add(w, v_set(V_EXP_SHIFT));
    v_f32 r = v_add(v_sub(w, v_unshift(*shifted)), w_low);
    return v_mul(r, v_polynomial(v_exp2_terms, 5, r));
}

/* q = e^-w once rounded, kept above 2^-100, where no term needs it any more */
V_FN v_f32 tanh_rounded(v_f32 tail, v_f32 shifted)
{
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f)));
    return v_fma(power, tail, power);
}

/* t s(-w) = t q (1 - q) for t >= 4, where q < 2^-15. v_min turns a NaN into the limit. */
V_FN v_f32 tanh_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    return v_shrink(v_fma(s, v_sub(tail, v_fma(q, tail, q)), s), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), line = v_max(x, v_set(-0.0f)); /* -0: so that the left tail ends in -0 */
    v_f32 y = v_fnma(t, v_piecewise(tanh_part, 6, tanh_interval(t), t), line);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (!v_all(near))
        y = v_select(near, y, v_sub(line, tanh_far(t)));
    return y;
}

/* w'(t) = D + 3 E t^2 with D = 2 sqrt(2/pi), E = 0.044715 D */
#define TANH_D      1.59576917f
#define TANH_D_LOW  -4.53406805e-08f
#define TANH_3E     0.214064449f
#define TANH_3E_LOW -2.54083421e-10f
#define TANH_12E    0.856257796f

/* slope(-t) = q (c - q (2 c - 1)), c = 1 - t w', for t >= 4 */
V_FN v_f32 tanh_slope_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    v_f32 c = v_fnma(s, v_fma(v_mul(s, s), v_set(TANH_3E), v_set(TANH_D)), v_one());
    v_f32 size = v_fnma(q, v_fma(c, v_set(2.0f), v_set(-1.0f)), c);
    return v_select(v_is_nan(t), t, v_shrink(v_fma(size, tail, size), shifted));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(tanh_slope_part, 5, tanh_interval(t), t);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (!v_all(near))
        part = v_select(near, part, tanh_slope_far(t));
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* For t >= 4, with q = e^-w, steady = 2 w' + t w'', turn = t w'^2: q (steady - turn - q (2 steady - 4 turn)) */
V_FN v_f32 tanh_curve_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted);
    v_f32 q = tanh_rounded(tail, shifted);
    v_f32 square = v_mul(s, s), low = v_fma(square, v_set(TANH_3E_LOW), v_set(TANH_D_LOW));
    low = v_fma(v_fms(s, s, square), v_set(TANH_3E), low); /* what the roundings of t^2, D and 3 E left out */
    v_f32 w1 = v_fma(square, v_set(TANH_3E), v_add(v_set(TANH_D), low)), turn = v_mul(v_mul(s, w1), w1);
    v_f32 steady = v_fma(square, v_set(TANH_12E), v_set(2 * TANH_D));
    v_f32 size = v_fnma(q, v_fma(turn, v_set(-4.0f), v_add(steady, steady)), v_sub(steady, turn));
    return v_select(v_is_nan(t), t, v_shrink(v_fma(size, tail, size), shifted));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(tanh_curve_part, 6, tanh_interval(t), t);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (!v_all(near))
        curve = v_select(near, curve, tanh_curve_far(t));
    return curve;
}

#endif
