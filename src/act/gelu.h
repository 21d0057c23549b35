/* gelu.h - gelu(x) = x Phi(x), Phi the normal distribution function, and its derivatives. SPDX-License-Identifier: MIT
 *
 * With t = |x|: gelu(x) = max(x, 0) - t Phi(-t), which cancels nowhere and keeps the far negative tail right. For t < 4 Phi(-t)
 * is one of sixteen polynomials; there is no exp and no division. Further out t Phi(-t) = e^(-t^2/2) times a polynomial in
 * 1 / t^2 (Mills' ratio), with t^2 in two parts. The slope at -t is Phi(-t) - t n(t), and slope(t) = 1 - slope(-t). */
#ifndef ACT_GELU_H
#define ACT_GELU_H

#include "act/formula.h"
#include "act/gelu_tables.h"
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

#define GELU_NEAR  4.0f
#define GELU_LIMIT 15.0f /* everything rounds to zero from 14.73 on */

V_FN v_i32 gelu_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT)));
}

/* e^(-t^2/2) = 2^k (1 + tail) */
V_FN v_f32 gelu_bell(v_f32 t, v_f32 *shifted)
{
    v_f32 half = v_mul(t, v_set(-0.5f)), z = v_mul(half, t);
    return v_exp_two(z, v_fms(half, t, z), shifted);
}

/* t Phi(-t) for t >= 4. v_min turns a NaN into the limit; the callers put it back. */
V_FN v_f32 gelu_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(GELU_LIMIT), t), tail = gelu_bell(s, &shifted);
    v_f32 mills = v_polynomial(gelu_tail, 6, v_div(v_one(), v_mul(s, s)));
    return v_shrink(v_fma(mills, tail, mills), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), y = v_fnma(t, v_piecewise(gelu_part, 6, gelu_interval(t), t), v_max0(x));
    v_mask near = v_less(t, v_set(GELU_NEAR));
    if (v_any(v_not(near)))
        y = v_select(near, y, v_copysign(v_sub(v_max0(x), gelu_far(t)), x)); /* -0, not 0, far on the left */
    return y;
}

/* -slope(-t) for t >= 4 */
V_FN v_f32 gelu_slope_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(GELU_LIMIT), t), tail = gelu_bell(s, &shifted);
    v_f32 size = v_mul(s, v_polynomial(gelu_slope_tail, 5, v_div(v_one(), v_mul(s, s))));
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(gelu_slope_part, 5, gelu_interval(t), t);
    v_mask near = v_less(t, v_set(GELU_NEAR));
    if (v_any(v_not(near)))
        part = v_select(near, part, v_select(v_is_nan(x), x, v_neg(gelu_slope_far(t))));
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* (2 - x^2) n(x) */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 shifted, t = v_min(v_set(GELU_LIMIT), v_abs(x)), tail = gelu_bell(t, &shifted);
    v_f32 square = v_mul(t, t), rest = v_sub(v_sub(v_set(2.0f), square), v_fms(t, t, square));
    v_f32 size = v_mul(rest, v_set(0.398942280401432678f));
    return v_select(v_is_nan(x), x, v_shrink(v_fma(size, tail, size), shifted));
}

#endif
