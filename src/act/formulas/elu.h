/* elu.h - elu(x) = x for x > 0, else alpha (e^x - 1), and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * e^x - 1 = fma(2^k, e^r - 1, 2^k - 1) without cancellation, x = k ln 2 + r. The constants for x >
 * 0 exist only to propagate a NaN alpha. The tail of the derivative, alpha e^x, is scaled in two
 * steps where e^x alone would be subnormal. From the output, alpha > 0: alpha e^x = y + alpha, and
 * d/dalpha = y / alpha.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result, alpha
 * = 1: value 0.989 ULP (at -0x1.95c798p-2), derivative 1.021 ULP (at -0x1.77bb66p+2). Another alpha
 * adds one rounding (sampled: 1.63 and 1.75 ULP). */
#ifndef ACT_FORMULAS_ELU_H
#define ACT_FORMULAS_ELU_H

#include "act/formulas/formula.h"
#include "simd/vmath.h"

#define ACT_QUICK        1 /* act/cuda/quick.cuh */
#define ACT_PARAMS       1 /* alpha */
#define ACT_FROM_OUTPUT  1
#define ACT_FAST_PATH(k) ((k)->one)

typedef struct act_consts {
    v_f32 alpha;
    v_f32 right, zero; /* derivative and lower end of the right side: 1 and 0, or NaN both */
    int one;           /* alpha is 1 in every lane: no product with it is needed */
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    (void)shape;
    v_f32 alpha = params[0];
    v_mask nan = v_is_nan(alpha);
    return (act_consts){.alpha = alpha,
                        .right = v_select(nan, alpha, v_one()),
                        .zero = v_select(nan, alpha, v_zero()),
                        .one = v_all(v_equal(alpha, v_one()))};
}

V_FN v_f32 elu_times(v_f32 y, const act_consts *k)
{
    return k->one ? y : v_mul(y, k->alpha);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    v_f32 growth = v_expm1(v_max(x, v_set(-30.0f))); /* -1 well before */
    return v_select(v_less_equal(k->zero, x), x, elu_times(growth, k));
}

/* alpha e^x for x <= 0; other lanes are not used. Below -170 it counts as 0, as it is for |alpha|
 * <= 2^94 and at -inf. */
V_FN v_f32 elu_exp(v_f32 x, const act_consts *k)
{
    v_f32 shifted, tail = v_exp(v_max(x, v_set(-170.0f)), &shifted), power = v_power(shifted);
    v_f32 y = elu_times(v_fma(power, tail, power), k);
    v_mask far = v_less(x, v_set(-87.0f));
    if (v_any(far)) {
        y = v_select(far, v_scale(v_fma(k->alpha, tail, k->alpha), shifted), y);
        y = v_select(v_less(x, v_set(-170.0f)), v_mul(v_zero(), k->alpha), y);
    }
    return y;
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    v_f32 slope = v_select(v_less_equal(x, v_zero()), elu_exp(x, k), k->right);
    return v_select(v_is_nan(x), x, slope);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    v_f32 curve = v_select(v_less_equal(x, v_zero()), elu_exp(x, k), v_sub(k->right, v_one()));
    return v_select(v_is_nan(x), x, curve);
}

V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    v_f32 growth = v_select(v_less(x, v_zero()), v_expm1(v_max(x, v_set(-30.0f))), v_min0(x));
    out[0] = v_select(v_is_nan(k->right), k->right, growth);
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    v_f32 slope = v_select(v_less_equal(y, v_zero()), v_add(y, k->alpha), k->right);
    return v_select(v_is_nan(y), y, slope);
}

V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    out[0] = v_div(v_min0(y), k->alpha);
}

#endif
