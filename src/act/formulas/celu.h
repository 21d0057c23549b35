/* celu.h - celu(x) = x for x > 0, else alpha (e^(x/alpha) - 1), and its derivatives.
 * SPDX-License-Identifier: MIT
 *
 * z = x / alpha is carried in two parts (the reciprocal of alpha is prepared in two parts as well),
 * so that its rounding does not add to that of e^z. A negative alpha makes z positive: then e^z
 * grows without bound, in a path of its own. d/dalpha is e^z - 1 - z e^z, by a polynomial near 0,
 * where the two terms cancel. From the output, alpha > 0: e^z = 1 + y / alpha.
 *
 * Bounds: value 2 ULP, derivative 4 ULP. Largest errors over all floats with a normal result, alpha
 * = 1: value 1.089, derivative 1.021 ULP; in a sample (every 997th float) alpha = 0.3 1.49 and
 * 0.97, -0.7 1.96 and 0.99; d/dalpha 3.7. */
#ifndef ACT_FORMULAS_CELU_H
#define ACT_FORMULAS_CELU_H

#include "act/formulas/celu_tables.h"
#include "act/formulas/formula.h"
#include "simd/vmath.h"

#define ACT_QUICK 1 /* act/cuda/quick.cuh */
#define ACT_PARAMS                                                                                                     \
    1 /* alpha, 2^-100 <= |alpha| <= 2^100, so that its reciprocal is a normal number, low part included */
#define ACT_FROM_OUTPUT 1
#define ACT_COSTLY      1

typedef struct act_consts {
    v_f32 alpha, right, inverse, inverse_low;
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    (void)shape;
    v_f32 alpha = params[0], inverse = v_div(v_one(), alpha);
    return (act_consts){.alpha = alpha,
                        .right = v_select(v_is_nan(alpha), alpha, v_one()),
                        .inverse = inverse,
                        .inverse_low = v_mul(v_fnma(inverse, alpha, v_one()), inverse)};
}

/* x / alpha = z + *low, within [-170, 170]. At 170 alpha e^z and e^z / alpha are infinite for every
 * alpha of the range, at -170 celu_exp() is 0. */
V_FN v_f32 celu_argument(v_f32 x, const act_consts *k, v_f32 *low)
{
    v_f32 z = v_mul(x, k->inverse), rest = v_fma(x, k->inverse_low, v_fms(x, k->inverse, z));
    *low = v_select(v_less(v_abs(z), v_set(170.0f)), rest, v_zero());
    return v_min(v_max(z, v_set(-170.0f)), v_set(170.0f));
}

/* factor e^(z + low), which may be a normal number where e^z alone is infinite or subnormal */
V_FN v_f32 celu_exp(v_f32 z, v_f32 low, v_f32 factor)
{
    v_f32 shifted, tail = v_exp_two(z, low, &shifted), power = v_power(shifted);
    v_f32 y = v_mul(factor, v_fma(power, tail, power));
    v_mask far = v_less(v_set(87.0f), v_abs(z));
    if (v_any(far)) {
        y = v_select(far, v_scale(v_fma(factor, tail, factor), shifted), y);
        y = v_select(v_less_equal(z, v_set(-170.0f)), v_mul(v_zero(), factor), y);
    }
    return y;
}

/* alpha (e^z - 1) for z > 80, which needs alpha < 0: the -1 is lost in rounding, and alpha may keep
 * the product finite */
V_FN v_f32 celu_grown(v_f32 z, v_f32 low, v_f32 alpha)
{
    v_f32 shifted, tail = v_exp_two(z, low, &shifted);
    return v_scale(v_fma(alpha, tail, alpha), shifted);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    v_f32 low, z = celu_argument(x, k, &low);
    v_f32 y = v_mul(k->alpha, v_expm1_two(v_max(z, v_set(-30.0f)), v_select(v_less(z, v_set(-30.0f)), v_zero(), low)));
    /* Near 0 the line is right to less than half a unit, and z may be subnormal where x is not. */
    v_mask left = v_and(v_less(x, v_zero()), v_less(v_set(0x1p-25f), v_abs(z)));
    v_mask grown = v_less(v_set(80.0f), z);
    if (v_any(v_and(grown, left)))
        y = v_select(grown, celu_grown(z, low, k->alpha), y);
    return v_select(left, y, v_mul(x, k->right));
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    v_f32 low, z = celu_argument(x, k, &low);
    v_f32 slope = v_select(v_less_equal(x, v_zero()), celu_exp(z, low, k->right), k->right);
    return v_select(v_is_nan(x), x, slope);
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    v_f32 low, z = celu_argument(x, k, &low);
    v_f32 curve = v_select(v_less_equal(x, v_zero()), celu_exp(z, low, k->inverse), v_sub(k->right, v_one()));
    return v_select(v_is_nan(x), x, curve);
}

#define CELU_NEAR 1.25f /* d/dalpha: by a polynomial */

V_FN v_f32 celu_alpha_near(v_f32 z, v_f32 low) /* (z + low)^2 times a polynomial */
{
    return v_mul(v_fma(z, z, v_mul(v_add(z, z), low)), v_polynomial(celu_alpha_terms, 8, z));
}

V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    v_f32 low, z = celu_argument(x, k, &low), grown = celu_exp(z, low, v_one());
    v_f32 bounded = v_max(z, v_set(-30.0f));
    v_f32 growth = v_expm1_two(bounded, v_select(v_less(z, v_set(-30.0f)), v_zero(), low));
    v_f32 slope = v_select(v_less(v_abs(z), v_set(CELU_NEAR)), celu_alpha_near(z, low), v_fnma(z, grown, growth));
    v_mask high = v_less(v_set(80.0f), z); /* alpha < 0: the difference of two infinities would be NaN */
    if (v_any(high))
        slope = v_select(high, v_mul(v_sub(v_one(), z), grown), slope);
    slope = v_select(v_less(x, v_zero()), slope, v_min0(x));
    out[0] = v_select(v_is_nan(k->right), k->right, slope);
}

V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    v_f32 slope = v_select(v_less_equal(y, v_zero()), v_fma(y, k->inverse, k->right), k->right);
    return v_select(v_is_nan(y), y, slope);
}

V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    v_f32 u = v_div(v_min0(y), k->alpha), z = v_log1p(u);
    v_f32 slope = v_fnma(z, v_add(u, v_one()), u);
    slope = v_select(v_less_equal(u, v_set(-1.0f)), v_set(-1.0f), slope); /* z e^z -> 0 */
    slope = v_select(v_less(v_abs(z), v_set(CELU_NEAR)), celu_alpha_near(z, v_zero()), slope);
    out[0] = v_select(v_is_nan(k->right), k->right, v_select(v_is_nan(y), y, slope));
}

#endif
