/* mish.h - mish(x) = x tanh(log(1 + e^x)) and its derivatives. SPDX-License-Identifier: MIT
 *
 * The factor tanh(log(1 + e^x)) is one of sixteen polynomials for x > -13; further out on the left,
 * with q = e^x, it is q (1 - q/2). The two derivatives are sixteen polynomials each for |x| < 4,
 * and short series in q = e^-|x| further out. No division, and the left tail is scaled last.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result: value
 * 1.753 ULP (at 0x1.83f97cp-3), derivative 2.158 ULP (at -0x1.a9fbfap-1), near the derivative's
 * zero 0.19 * 2^-24 absolute; subnormal results within 1 unit. Second derivative, sampled: 3.2 ULP,
 * near its zeros 0.2 * 2^-24. */
#ifndef ACT_FORMULAS_MISH_H
#define ACT_FORMULAS_MISH_H

#include "act/formulas/formula.h"
#include "act/formulas/mish_tables.h"
#include "simd/vmath.h"

#define ACT_QUICK       1 /* act/cuda/quick.cuh */
#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1
#define ACT_VALUE_PATHS 1
#define ACT_SLOPE_PATHS 1

ACT_NO_CONSTS

#define MISH_LEFT  -13.0f /* value: inside the table above */
#define MISH_RIGHT 9.04f  /* value: the factor rounds to 1 from here on */
#define MISH_FIRST 4.9f   /* value: inside the first eight intervals */
#define MISH_NEAR  4.0f   /* derivatives: inside the tables */
#define MISH_EDGE  80.0f  /* derivatives: results are normal up to here */
#define MISH_LIMIT 110.0f /* x e^x rounds to zero below -108.7 */

/* x e^x (1 - e^x / 2) for x < -13, where the next term is below 2^-50 */
V_FN v_f32 mish_far(v_f32 x)
{
    v_f32 shifted, z = v_max(x, v_set(-MISH_LIMIT)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f)));
    v_f32 half = v_mul(v_fma(power, tail, power), v_set(0.5f));
    return v_shrink(v_fma(z, v_sub(tail, v_fma(half, tail, half)), z), shifted);
}

/* The interval of the factor; the one around 0 is number 4, so that the first eight, which take a
 * cheaper look-up, are those from -6.4 to 4.9. */
V_FN v_i32 mish_place(v_f32 x)
{
    return v_bits(v_fma(x, v_set(0.703125f), v_set(V_SHIFT + 4.0f)));
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 z = v_min(x, v_set(MISH_RIGHT));
    v_f32 y = v_mul(x, v_piecewise(mish_factor, 9, mish_place(z), z));
    v_mask far = v_less(x, v_set(MISH_LEFT));
    if (v_any(far))
        y = v_select(far, mish_far(x), y);
    return y;
}

V_FN int act_value_path(const v_f32 *x, int n)
{
    v_f32 most = act_most(x, n);
    if (v_all(v_less_equal(most, v_set(MISH_FIRST))))
        return ACT_ALL_NEAR;
    return v_all(v_less(most, v_set(-MISH_LEFT))) ? ACT_SOME_FAR : ACT_SOME_BEYOND;
}

V_FN void act_near_value(v_f32 *x, int n)
{
    ACT_EACH x[v] = v_mul(x[v], v_piecewise8(mish_factor, 9, mish_place(x[v]), x[v]));
}

V_FN void act_far_value(v_f32 *x, int n)
{
    v_f32 z[ACT_INTERLEAVED], factor[ACT_INTERLEAVED];
    v_i32 place[ACT_INTERLEAVED];
    ACT_EACH z[v] = v_min(x[v], v_set(MISH_RIGHT));
    ACT_EACH place[v] = mish_place(z[v]);
    v_piecewises(factor, mish_factor[0], 16, 9, place, z, n, 0);
    ACT_EACH x[v] = v_mul(x[v], factor[v]);
}

V_FN v_i32 mish_interval(v_f32 x)
{
    return v_bits(v_fma(x, v_set(1.875f), v_set(V_SHIFT)));
}

/* left:  q ((1 + x) - q ((1/2 + x) - q^2 ((1/4 + x) - q (1/4 + 5 x / 4))))
 * right: 1 + q^2 ((4 x - 2) - q ((12 x - 4) - q (16 x - 4))) */
V_FN v_f32 mish_slope_far(v_f32 x)
{
    v_f32 t = v_abs(x), z = v_neg(t), shifted, tail = v_exp(z, &shifted), power = v_power(shifted);
    v_f32 q = v_fma(power, tail, power), q2 = v_mul(q, q);
    v_f32 right = v_fnma(q, v_fma(t, v_set(16.0f), v_set(-4.0f)), v_fma(t, v_set(12.0f), v_set(-4.0f)));
    right = v_fma(q2, v_fnma(q, right, v_fma(t, v_set(4.0f), v_set(-2.0f))), v_one());
    v_f32 inner = v_fnma(q, v_fma(z, v_set(1.25f), v_set(0.25f)), v_add(z, v_set(0.25f)));
    v_f32 left = v_fnma(q, v_fnma(q2, inner, v_add(z, v_set(0.5f))), v_add(z, v_one()));
    return v_select(v_is_negative(x), v_mul(v_fma(left, tail, left), power), right);
}
V_FN v_f32 mish_slope_edge(v_f32 x)
{
    v_f32 shifted, z = v_max(v_set(-MISH_LIMIT), x), tail = v_exp(z, &shifted), left = v_add(z, v_one());
    v_f32 slope = v_select(v_less(x, v_zero()), v_shrink(v_fma(left, tail, left), shifted), v_one());
    return v_select(v_is_nan(x), x, slope);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), slope = v_piecewise(mish_slope_part, 6, mish_interval(x), x);
    v_mask near = v_less(t, v_set(MISH_NEAR)), inside = v_less(t, v_set(MISH_EDGE));
    if (!v_all(near)) {
        v_f32 far = mish_slope_far(x);
        if (!v_all(inside))
            far = v_select(inside, far, mish_slope_edge(x));
        slope = v_select(near, slope, far);
    }
    return slope;
}

V_FN int act_slope_path(const v_f32 *x, int n)
{
    v_f32 most = act_most(x, n);
    if (v_all(v_less(most, v_set(MISH_NEAR))))
        return ACT_ALL_NEAR;
    return v_all(v_less(most, v_set(MISH_EDGE))) ? ACT_SOME_FAR : ACT_SOME_BEYOND;
}

V_FN void mish_slope_near(v_f32 *slope, const v_f32 *x, int n)
{
    v_i32 interval[ACT_INTERLEAVED];
    ACT_EACH interval[v] = mish_interval(x[v]);
    v_piecewises(slope, mish_slope_part[0], 16, 6, interval, x, n, 0);
}

V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 slope[ACT_INTERLEAVED];
    mish_slope_near(slope, x, n);
    ACT_EACH x[v] = v_mul(slope[v], dy[v]);
}

V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 near[ACT_INTERLEAVED], far[ACT_INTERLEAVED];
    ACT_EACH far[v] = mish_slope_far(x[v]);
    mish_slope_near(near, x, n);
    ACT_EACH x[v] = v_mul(v_select(v_less(v_abs(x[v]), v_set(MISH_NEAR)), near[v], far[v]), dy[v]);
}

/* left:  q ((2 + x) - q ((2 + 2 x) - q^2 ((2 + 4 x) - q (5/2 + 25 x / 4))))
 * right: q^2 ((8 - 8 x) - q ((24 - 36 x) - q ((32 - 64 x) - q^2 ((96 - 288 x) - q (224 - 784 x)))))
 *
 * p is q kept from subnormal powers, where the inner terms are negligible. */
V_FN v_f32 mish_curve_far(v_f32 x)
{
    v_f32 shifted, t = v_min(v_set(MISH_LIMIT), v_abs(x)), tail = v_exp(v_neg(t), &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), q = v_fma(power, tail, power);
    v_f32 p = v_max(q, v_set(0x1p-60f)), p2 = v_mul(p, p), two = v_set(2.0f);
    v_f32 inner = v_fnma(p, v_fma(t, v_set(-6.25f), v_set(2.5f)), v_fma(t, v_set(-4.0f), two));
    v_f32 left = v_fnma(p, v_fnma(p2, inner, v_fma(t, v_set(-2.0f), two)), v_sub(two, t));
    left = v_shrink(v_fma(left, tail, left), shifted);
    inner = v_fnma(p, v_fma(t, v_set(-784.0f), v_set(224.0f)), v_fma(t, v_set(-288.0f), v_set(96.0f)));
    inner = v_fnma(p2, inner, v_fma(t, v_set(-64.0f), v_set(32.0f)));
    inner = v_fnma(p, inner, v_fma(t, v_set(-36.0f), v_set(24.0f)));
    v_f32 right = v_mul(v_mul(v_fnma(p, inner, v_fma(t, v_set(-8.0f), v_set(8.0f))), q), q);
    return v_select(v_is_nan(x), x, v_select(v_less(x, v_zero()), left, right));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 curve = v_piecewise(mish_curve_part, 7, mish_interval(x), x);
    v_mask near = v_less(v_abs(x), v_set(MISH_NEAR));
    if (!v_all(near))
        curve = v_select(near, curve, mish_curve_far(x));
    return curve;
}

#endif
