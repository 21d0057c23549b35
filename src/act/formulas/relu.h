/* relu.h - f(x) = x > 0 ? x : 0. Exact. At the kink the derivative is 0; f(-0) = -0.
 * SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_RELU_H
#define ACT_FORMULAS_RELU_H

#include "act/formulas/formula.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_EXACT16     1

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_max0(x);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_select(v_less(v_zero(), x), v_one(), v_min(v_max0(x), v_zero())); /* +0, or NaN */
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_select(v_is_nan(x), x, v_zero());
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    return act_slope(y, k);
}

#endif
