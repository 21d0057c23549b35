/* hard_sigmoid.h - f(x) = min(max(x + 3, 0), 6) / 6. SPDX-License-Identifier: MIT
 *
 * Bound 1 ULP (largest error 0.51): x + 3 is carried in two parts. At both kinks the derivative is
 * 0. From the output in f32 only: a 16-bit y may have been rounded to 0 or 1. */
#ifndef ACT_FORMULAS_HARD_SIGMOID_H
#define ACT_FORMULAS_HARD_SIGMOID_H

#include "act/formulas/sixth.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_VALUE16     hard_sigmoid_short

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 low, sum = three_plus(v_min(v_max(x, v_set(-3.0f)), v_set(3.0f)), &low);
    return sixth_of(sum, low);
}

/* For 16-bit x: x + 3 is exact for all but small x, and an error of 1 ULP of f32 leads across a
 * boundary of rounding to 16 bits for none of them. */
V_FN v_f32 hard_sigmoid_short(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_mul(v_add(v_min(v_max(x, v_set(-3.0f)), v_set(3.0f)), v_set(3.0f)), v_set(1.0f / 6));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 outside = v_select(v_is_nan(x), x, v_zero());
    return v_select(v_less(v_abs(x), v_set(3.0f)), v_set(1.0f / 6), outside);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_select(v_is_nan(x), x, v_zero());
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    v_mask inside = v_and(v_less(v_zero(), y), v_less(y, v_one()));
    return v_select(inside, v_set(1.0f / 6), v_select(v_is_nan(y), y, v_zero()));
}

#endif
