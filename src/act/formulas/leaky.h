/* leaky.h - f(x) = x > 0 ? x : alpha x, the formula that leaky_relu and prelu share.
 * SPDX-License-Identifier: MIT
 *
 * One rounding. At the kink the derivative is alpha. The factor of the right side is a constant
 * only so that a NaN alpha reaches every x. From the output: alpha > 0, and x = y / alpha. */
#ifndef ACT_FORMULAS_LEAKY_H
#define ACT_FORMULAS_LEAKY_H

#include "act/formulas/formula.h"

#define ACT_PARAMS      1 /* alpha */
#define ACT_FROM_OUTPUT 1

typedef struct act_consts {
    v_f32 alpha, right;
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    (void)shape;
    return (act_consts){.alpha = params[0], .right = v_select(v_is_nan(params[0]), params[0], v_one())};
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    return v_mul(v_select(v_less(v_zero(), x), k->right, k->alpha), x);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    return v_select(v_is_nan(x), x, v_select(v_less(v_zero(), x), k->right, k->alpha));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    return v_select(v_is_nan(x), x, v_sub(k->right, v_one()));
}

V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    out[0] = v_mul(k->right, v_min0(x));
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    return act_slope(y, k);
}

V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    out[0] = v_div(v_min0(y), k->alpha);
}

#endif
