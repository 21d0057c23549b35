/* softplus.h - softplus(x) = log(1 + e^x) and its derivatives. SPDX-License-Identifier: MIT
 *
 * max(x, 0) + log(1 + q), q = e^-|x|; below -16 it is q (1 - q / 2), the power multiplied on last.
 * The slope is the logistic function (logistic.h), the second derivative its slope. From the
 * output: 1 - e^-y. scale=k gives what PyTorch calls beta.
 *
 * Bounds: value and slope 2 ULP. Seen at one float in 128: value 1.685 ULP (at -0x1.979372p-1),
 * slope 1.626 ULP (at -0x1.1dea5p+0); subnormal results within 1 unit. */
#ifndef ACT_FORMULAS_SOFTPLUS_H
#define ACT_FORMULAS_SOFTPLUS_H

#include "act/formulas/logistic.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_COSTLY      1

ACT_NO_CONSTS

/* q (1 - q / 2) for x < -16; the next term is below 2^-47. Not for NaN. */
V_FN v_f32 softplus_far(v_f32 x)
{
    v_f32 shifted, tail = v_exp(v_max(x, v_set(-LOGISTIC_LIMIT)), &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f)));
    v_f32 half = v_mul(v_fma(power, tail, power), v_set(0.5f));
    return v_shrink(v_add(v_one(), v_sub(tail, v_fma(half, tail, half))), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 shifted, tail = v_exp(v_neg(v_min(v_abs(x), v_set(87.0f))), &shifted), power = v_power(shifted);
    v_f32 y = v_add(v_max0(x), v_log1p(v_fma(power, tail, power)));
    v_mask far = v_less(x, v_set(LOGISTIC_FAR));
    if (v_any(far))
        y = v_select(far, softplus_far(x), y);
    return y;
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    return logistic(x);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_select(v_is_nan(x), x, logistic_slope(v_abs(x), 1));
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    return v_neg(v_expm1(v_max(v_neg(y), v_set(-30.0f))));
}

#endif
