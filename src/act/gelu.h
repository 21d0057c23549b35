/* gelu.h - gelu(x) = x Phi(x), Phi the normal distribution function, and its derivatives. SPDX-License-Identifier: MIT
 *
 * With t = |x|: gelu(x) = max(x, 0) - t Phi(-t), which cancels nowhere and keeps the far negative tail right. For t < 4 Phi(-t)
 * is one of sixteen polynomials; there is no exp and no division. Further out t Phi(-t) = e^(-t^2/2) times a polynomial in
 * 1 / t^2 (Mills' ratio), with t^2 in two parts. The slope at -t is Phi(-t) - t n(t), and slope(t) = 1 - slope(-t).
 *
 * Bounds: value 2 ULP, slope 4 ULP. Seen over all floats with a normal result: value 1.970 ULP (at -0x1.0b9dbap+2), slope
 * 2.353 ULP (at -0x1.ba35cap+2), near the slope's zero 0.16 * 2^-24 absolute; subnormal results within 1.5 units. Second
 * derivative, sampled: 3.1 ULP, near its zeros 0.4 * 2^-24. */
#ifndef ACT_GELU_H
#define ACT_GELU_H

#include "act/formula.h"
#include "act/gelu_tables.h"
#include "simd/vmath.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1

ACT_NO_CONSTS

#define GELU_NEAR  4.0f
#define GELU_EDGE  13.0f /* results are normal up to here */
#define GELU_LIMIT 15.0f /* everything rounds to zero from 14.73 on */

V_FN v_i32 gelu_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT)));
}

/* e^(-t^2/2) = 2^k (1 + tail) and, for the polynomials, -t/2 and 1 / t^2 */
typedef struct gelu_bell {
    v_f32 tail, shifted, minus_half, inverse;
} gelu_bell;

V_FN gelu_bell gelu_bell_at(v_f32 t)
{
    gelu_bell b;
    b.minus_half = v_mul(t, v_set(-0.5f));
    v_f32 z = v_mul(b.minus_half, t);
    b.tail = v_exp_two(z, v_fms(b.minus_half, t, z), &b.shifted);
    b.inverse = v_div(v_set(-0.5f), z);
    return b;
}

/* t Phi(-t) 2^-k for t >= 4 */
V_FN v_f32 gelu_far(const gelu_bell *b)
{
    v_f32 mills = v_polynomial(gelu_tail, 5, b->inverse);
    return v_fma(mills, b->tail, mills);
}

/* t Phi(-t) to the end: subnormal, then zero. v_min turns a NaN into the limit. */
V_FN v_f32 gelu_edge(v_f32 t)
{
    gelu_bell b = gelu_bell_at(v_min(v_set(GELU_LIMIT), t));
    return v_shrink(gelu_far(&b), b.shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), line = v_max(x, v_set(-0.0f)); /* -0: so that the left tail ends in -0 */
    v_f32 y = v_fnma(t, v_piecewise(gelu_part, 6, gelu_interval(t), t), line);
    v_mask near = v_less(t, v_set(GELU_NEAR)), inside = v_less(t, v_set(GELU_EDGE));
    if (!v_all(near)) {
        gelu_bell b = gelu_bell_at(t);
        v_f32 far = v_fnma(gelu_far(&b), v_power(b.shifted), line);
        if (!v_all(inside))
            far = v_select(inside, far, v_sub(line, gelu_edge(t)));
        y = v_select(near, y, far);
    }
    return y;
}

/* slope(-t), likewise */
V_FN v_f32 gelu_slope_far(const gelu_bell *b)
{
    v_f32 size = v_mul(b->minus_half, v_polynomial(gelu_slope_tail, 5, b->inverse));
    return v_fma(size, b->tail, size);
}
V_FN v_f32 gelu_slope_edge(v_f32 t)
{
    gelu_bell b = gelu_bell_at(v_min(v_set(GELU_LIMIT), t));
    return v_select(v_is_nan(t), t, v_shrink(gelu_slope_far(&b), b.shifted));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(gelu_slope_part, 5, gelu_interval(t), t);
    v_mask near = v_less(t, v_set(GELU_NEAR)), inside = v_less(t, v_set(GELU_EDGE));
    if (!v_all(near)) {
        gelu_bell b = gelu_bell_at(t);
        v_f32 far = v_mul(gelu_slope_far(&b), v_power(b.shifted));
        if (!v_all(inside))
            far = v_select(inside, far, gelu_slope_edge(t));
        part = v_select(near, part, far);
    }
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* (2 - x^2) n(x) */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_min(v_set(GELU_LIMIT), v_abs(x)), square = v_mul(t, t);
    gelu_bell b = gelu_bell_at(t);
    v_f32 size = v_mul(v_sub(v_sub(v_set(2.0f), square), v_fms(t, t, square)), v_set(0.398942280401432678f));
    return v_select(v_is_nan(x), x, v_shrink(v_fma(size, b.tail, size), b.shifted));
}

#endif
