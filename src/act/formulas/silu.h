/* silu.h - silu(x) = x s(x), s(x) = 1 / (1 + e^-x), and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * The value is x / (1 + e^-x) with e^-x = 2^k (1 + tail) never rounded by itself; where 2^k absorbs
 * the 1 (x < -16) it is x e^x (1 - e^x) instead. The derivative at -t (t = |x|) is one of sixteen
 * polynomials for t < 12.5 and a short series in e^-t further out; f'(t) = 1 - f'(-t). The second
 * derivative is even.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result: value
 * 1.716 ULP (at -0x1.7c3cb2p+2), derivative 1.522 ULP (at -0x1.1657b6p+4), near the derivative's
 * zero 0.13 * 2^-24 absolute; subnormal results within 1 unit. Second derivative, sampled: 1.5 ULP,
 * near its zeros 0.1 * 2^-24. */
#ifndef ACT_FORMULAS_SILU_H
#define ACT_FORMULAS_SILU_H

#include "act/formulas/formula.h"
#include "act/formulas/silu_tables.h"
#include "simd/vmath.h"

#define ACT_QUICK       1 /* act/cuda/quick.cuh */
#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1
#define ACT_SLOPE_PATHS (V_LANES < 16) /* with AVX-512 all look-ups cost the same */

ACT_NO_CONSTS

#define SILU_FAR   -16.0f /* value: 1 + 2^k is exact above */
#define SILU_FIRST 6.0f   /* derivative: inside the first eight intervals */
#define SILU_NEAR  12.5f  /* derivatives: inside the tables */
#define SILU_LIMIT 110.0f /* x e^x rounds to zero below -108.7 */

/* x e^x / (1 + e^x) for x < -16: x e^x (1 - e^x), the next term is below 2^-46 */
V_FN v_f32 silu_far(v_f32 x)
{
    v_f32 shifted, z = v_max(x, v_set(-SILU_LIMIT)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), q = v_fma(power, tail, power);
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
    return v_bits(v_fma(t, v_set(1.24f), v_set(V_SHIFT)));
}

/* Both derivatives at x = -t, t >= 12.5, are q (a + b x - q (c + d x)) with q = e^x, to the end of
 * the tail; the next term is below 2^-35. The power inside the bracket is kept from subnormals,
 * where it is negligible. */
V_FN v_f32 silu_series(v_f32 t, float a, float b, float c, float d)
{
    v_f32 shifted, x = v_neg(v_min(t, v_set(SILU_LIMIT))), tail = v_exp(x, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), q = v_fma(power, tail, power);
    v_f32 size = v_fnma(q, v_fma(x, v_set(d), v_set(c)), v_fma(x, v_set(b), v_set(a)));
    return v_shrink(v_fma(size, tail, size), shifted);
}

/* From f'(-t) to f'(x) */
V_FN v_f32 silu_side(v_f32 part, v_f32 x)
{
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* f'(-t) = q (1 + x) - q^2 (1 + 2 x) ... */
V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(silu_slope_part, 7, silu_interval(t), t);
    v_mask far = v_less_equal(v_set(SILU_NEAR), t);
    if (v_any(far))
        part = v_select(far, silu_series(t, 1, 1, 1, 2), part);
    return silu_side(part, x);
}

V_FN int act_slope_path(const v_f32 *x, int n)
{
    v_f32 most = act_most(x, n);
    if (v_all(v_less_equal(most, v_set(SILU_FIRST))))
        return ACT_ALL_NEAR;
    return v_all(v_less(most, v_set(SILU_NEAR))) ? ACT_SOME_FAR : ACT_SOME_BEYOND;
}

V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n)
{
    ACT_EACH
    {
        v_f32 t = v_abs(x[v]), part = v_piecewise8(silu_slope_part, 7, silu_interval(t), t);
        x[v] = v_mul(silu_side(part, x[v]), dy[v]);
    }
}

V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 t[ACT_INTERLEAVED], part[ACT_INTERLEAVED];
    v_i32 interval[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_abs(x[v]);
    ACT_EACH interval[v] = silu_interval(t[v]);
    v_piecewises(part, silu_slope_part[0], 16, 7, interval, t, n, 0);
    ACT_EACH x[v] = v_mul(silu_side(part[v], x[v]), dy[v]);
}

/* q (2 + x) - q^2 (4 + 4 x) ... */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(silu_curve_part, 8, silu_interval(t), t);
    v_mask far = v_less_equal(v_set(SILU_NEAR), t);
    if (v_any(far))
        curve = v_select(far, silu_series(t, 2, 1, 4, 4), curve);
    return curve;
}

#endif
