/* selu.h - selu(x) = lambda x for x > 0, else lambda alpha (e^x - 1), and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * As elu.h, with both factors fixed (Klambauer, Unterthiner, Mayr, Hochreiter 2017). From the
 * output: lambda alpha e^x is y + lambda alpha.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result: value
 * 1.863 ULP (at -0x1.2dc142p-3), derivative 1.860 ULP (at -0x1.52bdp+1). */
#ifndef ACT_FORMULAS_SELU_H
#define ACT_FORMULAS_SELU_H

#include "act/formulas/formula.h"
#include "simd/vmath.h"

#define ACT_QUICK       1 /* act/cuda/quick.cuh */
#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 1

ACT_NO_CONSTS

#define SELU_RIGHT 1.05070098735548049342f /* lambda */
#define SELU_LEFT  1.75809934084737685994f /* lambda alpha */

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 growth = v_expm1(v_max(x, v_set(-30.0f))); /* -1 well before */
    return v_select(v_less(x, v_zero()), v_mul(growth, v_set(SELU_LEFT)), v_mul(x, v_set(SELU_RIGHT)));
}

/* lambda alpha e^x for x <= 0, `right` for x > 0 */
V_FN v_f32 selu_exp(v_f32 x, v_f32 right)
{
    v_f32 shifted, tail = v_exp(v_max(x, v_set(-110.0f)), &shifted), power = v_power(shifted), c = v_set(SELU_LEFT);
    v_f32 y = v_mul(c, v_fma(power, tail, power));
    v_mask far = v_less(x, v_set(-87.0f));
    if (v_any(far))
        y = v_select(far, v_shrink(v_fma(c, tail, c), shifted), y);
    return v_select(v_is_nan(x), x, v_select(v_less_equal(x, v_zero()), y, right));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    return selu_exp(x, v_set(SELU_RIGHT));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    return selu_exp(x, v_zero());
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    (void)k;
    v_f32 slope = v_select(v_less_equal(y, v_zero()), v_add(y, v_set(SELU_LEFT)), v_set(SELU_RIGHT));
    return v_select(v_is_nan(y), y, slope);
}

#endif
