/* hard_swish.h - f(x) = x min(max(x + 3, 0), 6) / 6. SPDX-License-Identifier: MIT
 *
 * Bound 3 ULP for the value (four roundings; exact for x >= 3), 2 ULP for the derivative x/3 + 1/2,
 * which is exact near its zero at -3/2 up to one product. At the kinks: f'(-3) = 0, f'(3) = 1. Two
 * x share one y < 0, so the derivative cannot be computed from the output. The factor is clamped to
 * [0, 6] and x to -3 on the left, so that -inf gives -0 and not -inf * 0. */
#ifndef ACT_FORMULAS_HARD_SWISH_H
#define ACT_FORMULAS_HARD_SWISH_H

#include "act/formulas/formula.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0

ACT_NO_CONSTS

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 factor = v_min(v_max0(v_add(x, v_set(3.0f))), v_set(6.0f));
    return v_mul(v_max(x, v_set(-3.0f)), v_mul(factor, v_set(1.0f / 6))); /* 6 times the rounded 1/6 is 1 */
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 inside = v_mul(v_fma(x, v_set(2.0f), v_set(3.0f)), v_set(1.0f / 6));
    v_f32 right = v_select(v_less_equal(v_set(3.0f), x), v_one(), inside);
    return v_select(v_less_equal(x, v_set(-3.0f)), v_zero(), right);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 outside = v_select(v_is_nan(x), x, v_zero());
    return v_select(v_less(v_abs(x), v_set(3.0f)), v_set(1.0f / 3), outside);
}

#endif
