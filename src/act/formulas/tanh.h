/* tanh.h - tanh(x) and its derivatives. SPDX-License-Identifier: MIT
 *
 * With t = |x| and m = e^-2t - 1, which v_expm1 gives without cancellation, tanh t = -m / (2 + m).
 * What the sum 2 + m and the quotient lose by rounding is known and put back in one step. The slope
 * is 4 s'(2 x), s the logistic function (logistic.h); the second derivative is -2 tanh tanh'. From
 * the output, in f32 only: 1 - y^2.
 *
 * Bounds: value and slope 2 ULP. Seen at one float in 128: value 1.872 ULP (at 0x1.0513eep-1),
 * slope 1.185 ULP (at -0x1.75f37ap+1); subnormal slopes within 1 unit. */
#ifndef ACT_FORMULAS_TANH_H
#define ACT_FORMULAS_TANH_H

#include "act/formulas/logistic.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_COSTLY      1

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 two = v_set(2.0f), m = v_expm1(v_max(v_mul(v_abs(x), v_set(-2.0f)), v_set(-30.0f)));
    v_f32 sum = v_add(m, two), lost = v_sub(m, v_sub(sum, two));
    v_f32 inverse = v_div(v_one(), sum), y = v_mul(v_neg(m), inverse);
    v_f32 off = v_fnma(y, lost, v_fnma(y, sum, v_neg(m)));
    return v_copysign(v_fma(off, inverse, y), x);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x);
    return v_select(v_is_nan(x), x, logistic_slope(v_add(t, t), 4));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    return v_mul(v_mul(act_value(x, k), v_set(-2.0f)), act_slope(x, k));
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    return v_fnma(y, y, v_one());
}

#endif
