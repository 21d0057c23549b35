/* clamp.h - f(x) = x held between two limits, the formula that relu6 and hard_tanh share.
 * SPDX-License-Identifier: MIT
 *
 * Exact. The including header defines CLAMP_LOW and CLAMP_HIGH. At both kinks the derivative is 0,
 * and the output shows whether it was reached, so the derivative can be computed from y too. */
#ifndef ACT_FORMULAS_CLAMP_H
#define ACT_FORMULAS_CLAMP_H

#include "act/formulas/formula.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1
#define ACT_EXACT16     1

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    return v_min(v_max(x, v_set(CLAMP_LOW)), v_set(CLAMP_HIGH));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_mask inside = v_and(v_less(v_set(CLAMP_LOW), x), v_less(x, v_set(CLAMP_HIGH)));
    return v_select(inside, v_one(), v_select(v_is_nan(x), x, v_zero()));
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
