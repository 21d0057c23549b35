/* quick_gelu.h - quick_gelu(x) = x s(1.702 x), s(w) = 1 / (1 + e^-w), and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * 1.702 here is the decimal number, in two floats, and w = 1.702 x is carried in two parts: its
 * rounding would be multiplied by w in e^-w. The value is x / (1 + e^-w) as in silu.h, and x e^w (1
 * - e^w) for w < -16. With t = |w|, q = e^-t and d = 1 + q the slope at -t is q (d - t) / d^2;
 * slope(t) = 1 - slope(-t). The second derivative is even.
 *
 * Bounds: value 2 ULP, slope 4 ULP, near the slope's zero 2 * 2^-24 absolute. Seen at one float in
 * 128: value 1.719 ULP (at -0x1.606beap+2), slope 1.260 ULP (at -0x1.acd40ep+2), near its zero 0.09
 * * 2^-24; subnormal results within 1 unit. */
#ifndef ACT_FORMULAS_QUICK_GELU_H
#define ACT_FORMULAS_QUICK_GELU_H

#include "act/formulas/logistic.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1

ACT_NO_CONSTS

#define QUICK_GELU_RATE     1.702f           /* 1.702 rounded */
#define QUICK_GELU_RATE_LOW -2.19345093e-08f /* and what that lacks */
#define QUICK_GELU_FAR      -9.4f            /* value: 1 + 2^k is exact above */
#define QUICK_GELU_EDGE     47.0f            /* slope: 2^k and the result are normal up to here */
#define QUICK_GELU_LIMIT    64.6f            /* x e^w rounds to zero below -64 */

/* w and what it lacks, for |x| <= 64.6 */
V_FN v_f32 quick_gelu_rate(v_f32 x, v_f32 *low)
{
    v_f32 rate = v_set(QUICK_GELU_RATE), w = v_mul(x, rate);
    *low = v_fma(x, v_set(QUICK_GELU_RATE_LOW), v_fms(x, rate, w));
    return w;
}

/* Not for NaN. */
V_FN v_f32 quick_gelu_far(v_f32 x)
{
    v_f32 low, shifted, z = v_max(x, v_set(-QUICK_GELU_LIMIT)), w = quick_gelu_rate(z, &low);
    v_f32 tail = v_exp_two(w, low, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), q = v_fma(power, tail, power);
    return v_shrink(v_fma(z, v_sub(tail, v_fma(q, tail, q)), z), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 low, shifted, w = quick_gelu_rate(v_min(v_max(v_neg(x), v_set(-51.0f)), v_set(11.0f)), &low);
    v_f32 tail = v_exp_two(w, low, &shifted), power = v_power(shifted);
    v_f32 y = v_div(x, v_fma(power, tail, v_add(power, v_one())));
    v_mask far = v_less(x, v_set(QUICK_GELU_FAR));
    if (v_any(far))
        y = v_select(far, quick_gelu_far(x), y);
    return y;
}

/* The parts of both derivatives, at -t: t in two parts, e^-t = 2^k (1 + tail). */
typedef struct quick_gelu_parts {
    v_f32 t, low, tail, shifted, power;
    logistic_parts p;
} quick_gelu_parts;

V_FN quick_gelu_parts quick_gelu_at(v_f32 x)
{
    quick_gelu_parts q;
    q.t = quick_gelu_rate(v_min(v_abs(x), v_set(QUICK_GELU_LIMIT)), &q.low);
    q.tail = v_exp_two(v_neg(q.t), v_neg(q.low), &q.shifted);
    q.power = v_power(v_max(q.shifted, v_set(V_EXP_SHIFT - 120.0f)));
    q.p = logistic_square(q.power, q.tail);
    return q;
}

/* The difference d - t in two parts (its rounding error by Knuth's sum), times 1 + tail, over
 * d^2. */
V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    quick_gelu_parts q = quick_gelu_at(x);
    v_f32 top = v_sub(q.p.d, q.t), back = v_sub(top, q.p.d);
    v_f32 lost = v_sub(v_sub(q.p.d, v_sub(top, back)), v_add(q.t, back));
    v_f32 rest = v_add(v_sub(lost, q.low), q.p.low);
    v_f32 first = v_mul(v_fma(top, q.tail, top), q.p.inverse);
    v_f32 off = v_fma(top, q.tail, v_fnma(first, q.p.square, top));
    off = v_fnma(first, q.p.rest, v_add(off, v_fma(rest, q.tail, rest)));
    v_f32 ratio = v_fma(off, q.p.inverse, first), part = v_mul(ratio, q.power);
    v_mask far = v_less(v_set(QUICK_GELU_EDGE), v_abs(x));
    if (v_any(far))
        part = v_select(far, v_shrink(ratio, q.shifted), part);
    part = v_select(v_is_negative(x), part, v_sub(v_one(), part));
    return v_select(v_is_nan(x), x, part);
}

/* 1.702 q (2 d - t (1 - q)) / d^3 */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    quick_gelu_parts q = quick_gelu_at(x);
    v_f32 e = v_fma(q.power, q.tail, q.power), top = v_fnma(q.t, v_sub(v_one(), e), v_add(q.p.d, q.p.d));
    v_f32 rest = v_div(v_mul(v_mul(top, q.p.inverse), v_set(QUICK_GELU_RATE)), q.p.d), curve = v_mul(rest, e);
    v_mask far = v_less(v_set(QUICK_GELU_EDGE), v_abs(x));
    if (v_any(far))
        curve = v_select(far, v_shrink(v_fma(rest, q.tail, rest), q.shifted), curve);
    return v_select(v_is_nan(x), x, curve);
}

#endif
