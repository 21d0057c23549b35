/* relu2.h - f(x) = max(x, 0)^2. One rounding. SPDX-License-Identifier: MIT
 *
 * The slope 2 x is exact; it has no bound, so the Lipschitz constant is infinite. At the kink the
 * slope is 0. From the output: 2 sqrt(y). */
#ifndef ACT_FORMULAS_RELU2_H
#define ACT_FORMULAS_RELU2_H

#include "act/formulas/formula.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 y = v_max0(x);
    return v_mul(y, y);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 y = v_max0(x);
    return v_add(y, y);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 curve = v_select(v_less(v_zero(), x), v_set(2.0f), v_zero());
    return v_select(v_is_nan(x), x, curve);
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    v_f32 root = v_sqrt(y);
    return v_add(root, root);
}

#endif
