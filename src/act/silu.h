/* silu.h - silu(x) = x s(x), s(x) = 1 / (1 + e^-x), and its derivatives. SPDX-License-Identifier: MIT
 *
 * The value is x / (1 + e^-x) with e^-x = 2^k (1 + tail) never rounded by itself; where 2^k swallows the 1 (x < -16) it is
 * x e^x (1 - e^x) instead. The slope at -t (t = |x|) is one of sixteen polynomials for t < 8 and a short series in e^-t further
 * out; slope(t) = 1 - slope(-t). The second derivative is even. */
#ifndef ACT_SILU_H
#define ACT_SILU_H

#include "act/formula.h"
#include "act/silu_tables.h"
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

#define SILU_FAR   -16.0f /* value: 1 + 2^k is exact above */
#define SILU_NEAR  8.0f   /* slope: inside the table */
#define SILU_LIMIT 110.0f /* x e^x rounds to zero below -108.7 */

/* e^-t = 2^k (1 + tail), and once rounded, kept above 2^-100 */
V_FN v_f32 silu_exp(v_f32 t, v_f32 *tail, v_f32 *shifted)
{
    *tail = v_exp(v_neg(t), shifted);
    v_f32 power = v_power(v_max(*shifted, v_set(V_SHIFT - 100.0f)));
    return v_fma(power, *tail, power);
}

/* t e^-t / (1 + e^-t) for t > 16: e^-t (1 - e^-t), the next term is below 2^-46 */
V_FN v_f32 silu_far(v_f32 t)
{
    v_f32 tail, shifted, s = v_min(v_set(SILU_LIMIT), t), q = silu_exp(s, &tail, &shifted);
    return v_shrink(v_fma(s, v_sub(tail, v_fma(q, tail, q)), s), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 shifted, z = v_min(v_max(v_neg(x), v_set(-87.0f)), v_set(20.0f)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(shifted), y = v_div(x, v_fma(power, tail, v_add(power, v_one())));
    v_mask far = v_less(x, v_set(SILU_FAR));
    if (v_any(far))
        y = v_select(far, v_neg(silu_far(v_abs(x))), y);
    return y;
}

V_FN v_i32 silu_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(1.9375f), v_set(V_SHIFT)));
}

/* -slope(-t) for t >= 8: q (t - 1) - q^2 (2 t - 1) + q^3 (3 t - 1), q = e^-t */
V_FN v_f32 silu_slope_far(v_f32 t)
{
    v_f32 tail, shifted, s = v_min(v_set(SILU_LIMIT), t), q = silu_exp(s, &tail, &shifted);
    v_f32 third = v_fma(s, v_set(3.0f), v_set(-1.0f)), second = v_fma(s, v_set(2.0f), v_set(-1.0f));
    v_f32 size = v_fnma(q, v_fnma(q, third, second), v_sub(s, v_one()));
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(silu_slope_part, 6, silu_interval(t), t);
    v_mask near = v_less(t, v_set(SILU_NEAR));
    if (v_any(v_not(near)))
        part = v_select(near, part, v_select(v_is_nan(x), x, v_neg(silu_slope_far(t))));
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* For t >= 8: q (2 - t) - q^2 (4 - 4 t) + q^3 (6 - 9 t), q = e^-t */
V_FN v_f32 silu_curve_far(v_f32 t)
{
    v_f32 tail, shifted, s = v_min(v_set(SILU_LIMIT), t), q = silu_exp(s, &tail, &shifted);
    v_f32 third = v_fma(s, v_set(-9.0f), v_set(6.0f)), second = v_fma(s, v_set(-4.0f), v_set(4.0f));
    v_f32 size = v_fnma(q, v_fnma(q, third, second), v_sub(v_set(2.0f), s));
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(silu_curve_part, 6, silu_interval(t), t);
    v_mask near = v_less(t, v_set(SILU_NEAR));
    if (v_any(v_not(near)))
        curve = v_select(near, curve, v_select(v_is_nan(x), x, silu_curve_far(t)));
    return curve;
}

#endif
