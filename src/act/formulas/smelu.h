/* smelu.h - SmeLU (Shamir, Lin, Coviello 2020): BerLU of degree 2 with alpha = 0.
 * SPDX-License-Identifier: MIT
 *
 * f = max(x, 0) + d^2 / (4 beta), d = max(0, beta - |x|): the bits of berlu:alpha=0, save that -inf
 * gives 0. Exact for |x| > beta; inside 5 ULP of the result, since both terms are positive. The
 * derivative is sqrt(y / beta) inside, so it can be computed from the output too. */
#ifndef ACT_FORMULAS_SMELU_H
#define ACT_FORMULAS_SMELU_H

#include "act/formulas/formula.h"
#include "smooth/limits.h"

#define ACT_PARAMS      1 /* beta */
#define ACT_FROM_OUTPUT 1

typedef struct act_consts {
    v_f32 beta, square; /* square = 1 / (4 beta) */
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    (void)shape;
    v_f32 beta = v_max(params[0], v_set((float)EPS_MIN)); /* a learned one may have fallen below; NaN stays */
    return (act_consts){.beta = beta, .square = v_div(v_one(), v_mul(beta, v_set(4.0f)))};
}

V_FN v_f32 smelu_depth(v_f32 x, const act_consts *k)
{
    return v_max0(v_sub(k->beta, v_abs(x)));
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    v_f32 depth = smelu_depth(x, k);
    return v_fma(v_mul(k->square, depth), depth, v_max0(x));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    v_f32 depth = smelu_depth(x, k), steep = v_add(k->square, k->square);
    return v_select(v_less(x, v_zero()), v_mul(steep, depth), v_fnma(steep, depth, v_one()));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    v_f32 depth = v_sub(k->beta, v_abs(x)), inside = v_add(k->square, k->square);
    return v_select(v_less(depth, v_zero()), v_zero(), v_fma(depth, v_zero(), inside)); /* + 0 depth: NaN stays */
}

V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    v_f32 r = v_mul(smelu_depth(x, k), v_add(k->square, k->square));
    out[0] = v_mul(r, v_sub(v_one(), r));
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    v_f32 steep = v_mul(k->square, v_set(4.0f));
    return v_min(v_sqrt(v_max0(v_mul(steep, y))), v_one());
}

V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    v_f32 g = act_slope_from_output(y, k);
    out[0] = v_mul(g, v_sub(v_one(), g));
}

#endif
