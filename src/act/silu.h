/* silu.h - silu(x) = x s(x), s(x) = 1 / (1 + e^-x), and its derivatives. SPDX-License-Identifier: MIT
 *
 * The value is x / (1 + e^-x) with e^-x = 2^k (1 + tail) never rounded by itself; where 2^k swallows the 1 (x < -16) it is
 * x e^x (1 - e^x) instead. The slope at -t (t = |x|) is one of sixteen polynomials for t < 8 and a short series in e^-t further
 * out; slope(t) = 1 - slope(-t). The second derivative is even.
 *
 * Over all floats with a normal result: value 1.716 ULP (at -0x1.7c3cb2p+2), slope 1.590 ULP (at -0x1.564ea2p+3), near the slope's
 * zero 0.1 * 2^-24 absolute; subnormal results within 1 unit. Second derivative, sampled: 1.5 ULP, near its zeros 0.1 * 2^-24. */
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
#define SILU_NEAR  8.0f   /* derivatives: inside the tables */
#define SILU_EDGE  80.0f  /* derivatives: results are normal up to here */
#define SILU_LIMIT 110.0f /* x e^x rounds to zero below -108.7 */

/* x e^x / (1 + e^x) for x < -16: x e^x (1 - e^x), the next term is below 2^-46 */
V_FN v_f32 silu_far(v_f32 x)
{
    v_f32 shifted, z = v_max(x, v_set(-SILU_LIMIT)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_SHIFT - 100.0f))), q = v_fma(power, tail, power);
    return v_shrink(v_fma(z, v_sub(tail, v_fma(q, tail, q)), z), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 shifted, z = v_min(v_max(v_neg(x), v_set(-87.0f)), v_set(20.0f)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(shifted), y = v_div(x, v_fma(power, tail, v_add(power, v_one())));
    v_mask far = v_less(x, v_set(SILU_FAR));
    if (v_any(far))
        y = v_select(far, silu_far(x), y);
    return y;
}

V_FN v_i32 silu_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(1.9375f), v_set(V_SHIFT)));
}

/* Both derivatives at x = -t, t >= 8, are q (a - q (b - q c)) with q = e^x and a, b, c linear in x. `power` is 2^k. */
V_FN v_f32 silu_series(v_f32 tail, v_f32 power, v_f32 a, v_f32 b, v_f32 c)
{
    v_f32 q = v_fma(power, tail, power), size = v_fnma(q, v_fnma(q, c, b), a);
    return v_fma(size, tail, size);
}

/* q (1 + x) - q^2 (1 + 2 x) + q^3 (1 + 3 x) */
V_FN v_f32 silu_slope_series(v_f32 x, v_f32 tail, v_f32 power)
{
    v_f32 one = v_one();
    return silu_series(tail, power, v_add(x, one), v_fma(x, v_set(2.0f), one), v_fma(x, v_set(3.0f), one));
}
V_FN v_f32 silu_slope_far(v_f32 x)
{
    v_f32 shifted, tail = v_exp(x, &shifted), power = v_power(shifted);
    return v_mul(silu_slope_series(x, tail, power), power);
}
V_FN v_f32 silu_slope_edge(v_f32 x)
{
    v_f32 shifted, z = v_max(v_set(-SILU_LIMIT), x), tail = v_exp(z, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_SHIFT - 100.0f)));
    return v_select(v_is_nan(x), x, v_shrink(silu_slope_series(z, tail, power), shifted));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(silu_slope_part, 6, silu_interval(t), t);
    v_mask near = v_less(t, v_set(SILU_NEAR)), inside = v_less(t, v_set(SILU_EDGE));
    if (!v_all(near)) {
        v_f32 far = silu_slope_far(v_neg(t));
        if (!v_all(inside))
            far = v_select(inside, far, silu_slope_edge(v_neg(t)));
        part = v_select(near, part, far);
    }
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* q (2 + x) - q^2 (4 + 4 x) + q^3 (6 + 9 x), to the end of the tail */
V_FN v_f32 silu_curve_far(v_f32 x)
{
    v_f32 shifted, z = v_max(v_set(-SILU_LIMIT), x), tail = v_exp(z, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_SHIFT - 100.0f)));
    v_f32 a = v_add(z, v_set(2.0f)), b = v_fma(z, v_set(4.0f), v_set(4.0f)), c = v_fma(z, v_set(9.0f), v_set(6.0f));
    return v_select(v_is_nan(x), x, v_shrink(silu_series(tail, power, a, b, c), shifted));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(silu_curve_part, 6, silu_interval(t), t);
    v_mask near = v_less(t, v_set(SILU_NEAR));
    if (!v_all(near))
        curve = v_select(near, curve, silu_curve_far(v_neg(t)));
    return curve;
}

#endif
