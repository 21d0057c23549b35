/* mish.h - mish(x) = x tanh(log(1 + e^x)) and its derivatives. SPDX-License-Identifier: MIT
 *
 * For |x| < 4 the factor tanh(log(1 + e^x)), the slope and the second derivative are sixteen polynomials each. Further out, with q = e^-|x|, the
 * factor is 1 - 2 q^2 + 4 q^3 - 4 q^4 ... on the right and q (1 - q/2 + q^3/4 - q^4/4 ...) on the left: short series, no
 * division, and the left tail is scaled last. */
#ifndef ACT_MISH_H
#define ACT_MISH_H

#include "act/formula.h"
#include "act/mish_tables.h"
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

#define MISH_NEAR  4.0f
#define MISH_LIMIT 110.0f /* x e^x rounds to zero below -108.7 */

V_FN v_i32 mish_interval(v_f32 x)
{
    return v_bits(v_fma(x, v_set(1.875f), v_set(V_SHIFT)));
}

/* q = e^-t = 2^k (1 + tail). The rounded q stays above 2^least: its powers must not become subnormal (slow), and where it is
 * that small the series no longer need it. */
V_FN v_f32 mish_exp(v_f32 t, float least, v_f32 *tail, v_f32 *shifted)
{
    *tail = v_exp(v_neg(t), shifted);
    v_f32 power = v_power(v_max(*shifted, v_set(V_SHIFT + least)));
    return v_fma(power, *tail, power);
}

/* Both tails, |x| >= 4; NaN gives NaN. */
V_FN v_f32 mish_far(v_f32 x)
{
    v_f32 tail, shifted, t = v_min(v_set(MISH_LIMIT), v_abs(x)), q = mish_exp(t, -60.0f, &tail, &shifted),
                         q2 = v_mul(q, q);
    v_f32 right = v_mul(q2, v_fma(q, v_fma(q, v_set(4.0f), v_set(-4.0f)), v_set(2.0f)));
    v_f32 left = v_fma(q2, v_fma(q, v_set(0.25f), v_set(-0.25f)), v_set(0.5f));
    left = v_fma(t, v_fnma(left, v_fma(q, tail, q), tail), t);
    return v_select(v_less(x, v_zero()), v_neg(v_shrink(left, shifted)), v_fnma(v_min(x, v_set(0x1p30f)), right, x));
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 y = v_mul(x, v_piecewise(mish_factor, 6, mish_interval(x), x));
    v_mask near = v_less(v_abs(x), v_set(MISH_NEAR));
    if (v_any(v_not(near)))
        y = v_select(near, y, mish_far(x));
    return y;
}

/* left:  q ((1 + x) - q ((1/2 + x) - q^2 ((1/4 + x) - q (1/4 + 5 x / 4))))
 * right: 1 + q^2 ((4 x - 2) - q ((12 x - 4) - q (16 x - 4))) */
V_FN v_f32 mish_slope_far(v_f32 x)
{
    v_f32 tail, shifted, t = v_min(v_set(MISH_LIMIT), v_abs(x)), q = mish_exp(t, -60.0f, &tail, &shifted),
                         q2 = v_mul(q, q);
    v_f32 right = v_fnma(q, v_fma(t, v_set(16.0f), v_set(-4.0f)), v_fma(t, v_set(12.0f), v_set(-4.0f)));
    right = v_fma(q2, v_fnma(q, right, v_fma(t, v_set(4.0f), v_set(-2.0f))), v_one());
    v_f32 inner = v_fnma(q, v_fma(t, v_set(-1.25f), v_set(0.25f)), v_sub(v_set(0.25f), t));
    v_f32 left = v_fnma(q, v_fnma(q2, inner, v_sub(v_set(0.5f), t)), v_sub(v_one(), t));
    left = v_shrink(v_fma(left, tail, left), shifted);
    return v_select(v_is_nan(x), x, v_select(v_less(x, v_zero()), left, right));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 slope = v_piecewise(mish_slope_part, 6, mish_interval(x), x);
    v_mask near = v_less(v_abs(x), v_set(MISH_NEAR));
    if (v_any(v_not(near)))
        slope = v_select(near, slope, mish_slope_far(x));
    return slope;
}

/* left:  q ((2 + x) - q ((2 + 2 x) - q^2 ((2 + 4 x) - q (5/2 + 25 x / 4))))
 * right: q^2 ((8 - 8 x) - q ((24 - 36 x) - q ((32 - 64 x) - q^2 ((96 - 288 x) - q (224 - 784 x))))) */
V_FN v_f32 mish_curve_far(v_f32 x)
{
    v_f32 tail, shifted, t = v_min(v_set(MISH_LIMIT), v_abs(x)), q = mish_exp(t, -100.0f, &tail, &shifted);
    v_f32 p = v_max(q, v_set(0x1p-60f)), p2 = v_mul(p, p), two = v_set(2.0f); /* powers of p are never subnormal */
    v_f32 inner = v_fnma(p, v_fma(t, v_set(-6.25f), v_set(2.5f)), v_fma(t, v_set(-4.0f), two));
    v_f32 left = v_fnma(p, v_fnma(p2, inner, v_fma(t, v_set(-2.0f), two)), v_sub(two, t));
    left = v_shrink(v_fma(left, tail, left), shifted);
    inner = v_fnma(p, v_fma(t, v_set(-784.0f), v_set(224.0f)), v_fma(t, v_set(-288.0f), v_set(96.0f)));
    inner = v_fnma(p2, inner, v_fma(t, v_set(-64.0f), v_set(32.0f)));
    inner = v_fnma(p, inner, v_fma(t, v_set(-36.0f), v_set(24.0f)));
    v_f32 right = v_mul(v_mul(v_fnma(p, inner, v_fma(t, v_set(-8.0f), v_set(8.0f))), q), q);
    return v_select(v_less(x, v_zero()), left, right);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 curve = v_piecewise(mish_curve_part, 7, mish_interval(x), x);
    v_mask near = v_less(v_abs(x), v_set(MISH_NEAR));
    if (v_any(v_not(near)))
        curve = v_select(near, curve, v_select(v_is_nan(x), x, mish_curve_far(x)));
    return curve;
}

#endif
