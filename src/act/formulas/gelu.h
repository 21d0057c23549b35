/* gelu.h - gelu(x) = x Phi(x), Phi the normal distribution function, and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * With t = |x|: gelu(x) = max(x, 0) - t Phi(-t), which cancels nowhere and keeps the far negative
 * tail right. The derivative at -t is Phi(-t) - t n(t), and f'(t) = 1 - f'(-t). Both are piecewise
 * polynomials in t over thirty-two intervals, found by table look-up: in the first sixteen, t <=
 * 3.1, of the function itself; in the others of the function times 2^(0.72 t^2), which is nearly
 * constant; the result is multiplied by 2^(-0.72 t^2), t^2 being carried as high + low. In a vector
 * that has both, near lanes use an exponential of zero, which changes no bit; a vector of near
 * lanes alone skips it. There is no division.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result: value
 * 1.741 ULP (at -0x1.d37d3cp+1), derivative 2.026 ULP (at -0x1.8f8ddap+3), near the derivative's
 * zero 0.08 * 2^-24 absolute; subnormal results within 1.3 units. Second derivative, sampled: 3.1
 * ULP, near its zeros 0.4 * 2^-24. */
#ifndef ACT_FORMULAS_GELU_H
#define ACT_FORMULAS_GELU_H

#include "act/formulas/formula.h"
#include "act/formulas/gelu_tables.h"
#include "simd/vmath.h"

#define ACT_QUICK       1 /* act/cuda/quick.cuh */
#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1
#define ACT_VALUE_PATHS 1
#define ACT_SLOPE_PATHS (V_LANES < 16) /* with AVX-512 single vectors are faster on data of variance 1 */

ACT_NO_CONSTS

#define GELU_NEAR  3.1f                   /* 5 t rounds to 15 or less up to here, to 16 or more beyond */
#define GELU_EDGE  13.0f                  /* results are normal up to here */
#define GELU_LIMIT 15.0f                  /* everything rounds to zero from 14.73 on */
#define GELU_RATE  -0.721347520444481704f /* -log2(e) / 2; the tables compensate its rounding error */

/* The interval of a near t, as V_SHIFT plus its number */
V_FN v_f32 gelu_place(v_f32 t)
{
    return v_fma(t, v_set(5.0f), v_set(V_SHIFT));
}

/* For near x: the piecewise polynomial */
V_FN void gelu_near(v_f32 *part, const float (*table)[32], const v_f32 *x, int n)
{
    v_f32 t[ACT_INTERLEAVED];
    v_i32 place[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_abs(x[v]);
    ACT_EACH place[v] = v_bits(gelu_place(t[v]));
    v_piecewises(part, table[0], 32, 5, place, t, n, 0);
}

/* For any t < 15: the piecewise polynomial, beyond the near intervals times 2^(RATE t^2 - k). The
 * order of its two factors is worth 7 % of a backward with AVX2: a scheduler sees no further than
 * one of them. */
V_FN void gelu_sizes(v_f32 *size, const float (*table)[32], const v_f32 *t, v_f32 *shifted, int n, int polynomial_last)
{
    v_f32 place[ACT_INTERLEAVED], rate[ACT_INTERLEAVED], square[ACT_INTERLEAVED], r[ACT_INTERLEAVED],
        series[ACT_INTERLEAVED];
    v_i32 interval[ACT_INTERLEAVED];
    ACT_EACH place[v] =
        v_fma(t[v], v_set(1.29f), v_set(V_SHIFT + 12.0f)); /* flatter, and crosses the near line at 3.2 */
    ACT_EACH interval[v] = v_bits(v_min(gelu_place(t[v]), place[v]));
    if (!polynomial_last)
        v_piecewises(size, table[0], 32, 5, interval, t, n, 1);
    ACT_EACH rate[v] = v_select(v_less_equal(t[v], v_set(GELU_NEAR)), v_zero(), v_set(GELU_RATE));
    ACT_EACH square[v] = v_mul(t[v], t[v]);
    ACT_EACH shifted[v] = v_fma(square[v], rate[v], v_set(V_EXP_SHIFT));
    ACT_EACH r[v] = v_fms(square[v], rate[v], v_unshift(shifted[v]));
    ACT_EACH r[v] = v_fma(v_fms(t[v], t[v], square[v]), rate[v], r[v]);
    ACT_EACH series[v] = v_set(v_exp2_terms[5]);
    V_FOR(int i = 4; i >= 0; i--)
        ACT_EACH series[v] = v_fma(series[v], r[v], v_set(v_exp2_terms[i]));
    if (polynomial_last)
        v_piecewises(size, table[0], 32, 5, interval, t, n, 1);
    ACT_EACH r[v] = v_mul(size[v], r[v]);
    ACT_EACH size[v] = v_fma(r[v], series[v], size[v]);
}

V_FN v_f32 gelu_size(const float (*table)[32], v_f32 t, v_f32 *shifted)
{
    v_f32 size;
    gelu_sizes(&size, table, &t, shifted, 1, 0);
    return size;
}

/* The same to the end of the tail: subnormal, then zero. v_min replaces a NaN by the limit. */
V_FN v_f32 gelu_edge(const float (*table)[32], v_f32 t)
{
    v_f32 shifted, size = gelu_size(table, v_min(v_set(GELU_LIMIT), t), &shifted);
    return v_shrink(size, shifted);
}

/* max(x, -0): so that the left tail ends in -0 */
V_FN v_f32 gelu_line(v_f32 x)
{
    return v_max(x, v_set(-0.0f));
}

V_FN int act_value_path(const v_f32 *x, int n)
{
    v_f32 most = act_most(x, n);
    if (v_all(v_less_equal(most, v_set(GELU_NEAR))))
        return ACT_ALL_NEAR;
    return v_all(v_less(most, v_set(GELU_EDGE))) ? ACT_SOME_FAR : ACT_SOME_BEYOND;
}

V_FN void act_near_value(v_f32 *x, int n)
{
    v_f32 part[ACT_INTERLEAVED];
    gelu_near(part, gelu_part, x, n);
    ACT_EACH x[v] = v_sub(gelu_line(x[v]), part[v]);
}

V_FN void act_far_value(v_f32 *x, int n)
{
    v_f32 t[ACT_INTERLEAVED], size[ACT_INTERLEAVED], shifted[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_abs(x[v]);
    gelu_sizes(size, gelu_part, t, shifted, n, 0);
    ACT_EACH x[v] = v_fnma(v_power(shifted[v]), size[v], gelu_line(x[v]));
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    int range = act_value_path(&x, 1);
    v_f32 y = x, t = v_abs(x);
    if (range == ACT_ALL_NEAR) {
        act_near_value(&y, 1);
        return y;
    }
    act_far_value(&y, 1);
    if (range == ACT_SOME_BEYOND)
        y = v_select(v_less(t, v_set(GELU_EDGE)), y, v_sub(gelu_line(x), gelu_edge(gelu_part, t)));
    return y;
}

/* From f'(-t) to f'(x) */
V_FN v_f32 gelu_side(v_f32 part, v_f32 x)
{
    return v_select(v_less_equal(v_zero(), x), v_sub(v_one(), part), part);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), shifted, part;
    v_mask near = v_less_equal(t, v_set(GELU_NEAR)), inside = v_less(t, v_set(GELU_EDGE));
    if (v_all(near)) {
        gelu_near(&part, gelu_slope_part, &x, 1);
    } else {
        v_f32 size = gelu_size(gelu_slope_part, t, &shifted);
        part = v_mul(size, v_power(shifted));
        if (!v_all(inside))
            part = v_select(v_is_nan(x), x, v_select(inside, part, gelu_edge(gelu_slope_part, t)));
    }
    return gelu_side(part, x);
}

V_FN int act_slope_path(const v_f32 *x, int n)
{
    return act_value_path(x, n);
}

V_FN void act_near_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 part[ACT_INTERLEAVED];
    gelu_near(part, gelu_slope_part, x, n);
    ACT_EACH x[v] = v_mul(gelu_side(part[v], x[v]), dy[v]);
}

V_FN void act_far_backward(v_f32 *x, const v_f32 *dy, int n)
{
    v_f32 t[ACT_INTERLEAVED], size[ACT_INTERLEAVED], shifted[ACT_INTERLEAVED];
    ACT_EACH t[v] = v_abs(x[v]);
    gelu_sizes(size, gelu_slope_part, t, shifted, n, 1);
    ACT_EACH x[v] = v_mul(gelu_side(v_mul(size[v], v_power(shifted[v])), x[v]), dy[v]);
}

/* (2 - x^2) n(x) */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_min(v_set(GELU_LIMIT), v_abs(x)), square = v_mul(t, t), low = v_fms(t, t, square), half = v_set(-0.5f);
    v_f32 shifted, tail = v_exp_two(v_mul(square, half), v_mul(low, half), &shifted);
    v_f32 size = v_mul(v_sub(v_sub(v_set(2.0f), square), low), v_set(0.398942280401432678f));
    return v_select(v_is_nan(x), x, v_shrink(v_fma(size, tail, size), shifted));
}

#endif
