/* sigmoid.h - sigmoid(x) = 1 / (1 + e^-x) and its derivatives. SPDX-License-Identifier: MIT
 *
 * logistic.h has the parts. The slope is even, the second derivative odd: s'' = -s' tanh(x / 2).
 * From the output, in f32 only: y (1 - y), where 1 - y is exact from one half on.
 *
 * Bounds: value and slope 2 ULP. Seen at one float in 128: value 1.626 ULP (at -0x1.1dea5p+0),
 * slope 1.128 ULP (at -0x1.ce5af6p+2); subnormal results within 1 unit. */
#ifndef ACT_FORMULAS_SIGMOID_H
#define ACT_FORMULAS_SIGMOID_H

#include "act/formulas/logistic.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_COSTLY      1

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    return logistic(x);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_select(v_is_nan(x), x, logistic_slope(v_abs(x), 1));
}

/* tanh(t / 2) = -m / (2 + m), m = e^-t - 1 */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), m = v_expm1(v_max(v_neg(t), v_set(-30.0f))), half = v_div(m, v_add(m, v_set(2.0f)));
    return v_select(v_is_nan(x), x, v_mul(v_mul(logistic_slope(t, 1), half), v_copysign(v_one(), x)));
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    return v_mul(y, v_sub(v_one(), y));
}

#endif
