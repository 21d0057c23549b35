/* logistic.h - the logistic function s(x) = 1 / (1 + e^-x) and its slope, for sigmoid, tanh and
 * softplus. SPDX-License-Identifier: MIT
 *
 * e^z = 2^k (1 + tail) is never rounded by itself: 1 + e^z is fma(2^k, tail, 2^k + 1), and the
 * power is multiplied on last, by integers where the result is subnormal (v_shrink). */
#ifndef ACT_FORMULAS_LOGISTIC_H
#define ACT_FORMULAS_LOGISTIC_H

#include "act/formulas/formula.h"
#include "simd/vmath.h"

#define LOGISTIC_FAR   -16.0f /* value: 1 + 2^k is exact above */
#define LOGISTIC_LIMIT 110.0f /* e^-t rounds to zero above 103.98 */

/* s(x) for x < -16: e^x (1 - e^x), the next term is below 2^-46. Not for NaN. */
V_FN v_f32 logistic_far(v_f32 x)
{
    v_f32 shifted, tail = v_exp(v_max(x, v_set(-LOGISTIC_LIMIT)), &shifted);
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), q = v_fma(power, tail, power);
    return v_shrink(v_add(v_one(), v_sub(tail, v_fma(q, tail, q))), shifted);
}

V_FN v_f32 logistic(v_f32 x)
{
    v_f32 shifted, z = v_min(v_max(v_neg(x), v_set(-87.0f)), v_set(20.0f)), tail = v_exp(z, &shifted);
    v_f32 power = v_power(shifted), y = v_div(v_one(), v_fma(power, tail, v_add(power, v_one())));
    v_mask far = v_less(x, v_set(LOGISTIC_FAR));
    if (v_any(far))
        y = v_select(far, logistic_far(x), y);
    return y;
}

/* 1 + q and its square in two parts each, and one over the square; q = 2^k (1 + tail), k <= 0. A
 * quotient by the rounded square would be off by three units; with what both roundings lost it is
 * off by its own. */
typedef struct logistic_parts {
    v_f32 d, low;       /* 1 + q */
    v_f32 square, rest; /* (1 + q)^2 */
    v_f32 inverse;      /* of `square` */
} logistic_parts;

V_FN logistic_parts logistic_square(v_f32 power, v_f32 tail)
{
    logistic_parts p;
    v_f32 base = v_add(v_one(), power), lost = v_sub(power, v_sub(base, v_one()));
    p.d = v_fma(power, tail, base);
    p.low = v_add(v_fma(power, tail, v_sub(base, p.d)), lost);
    p.square = v_mul(p.d, p.d);
    p.rest = v_fma(v_add(p.d, p.d), p.low, v_fms(p.d, p.d, p.square));
    p.inverse = v_div(v_one(), p.square);
    return p;
}

/* factor s'(t) for t >= 0, factor a power of two: with q = e^-t it is q / (1 + q)^2. Not for
 * NaN. */
V_FN v_f32 logistic_slope(v_f32 t, float factor)
{
    v_f32 shifted, tail = v_exp(v_neg(v_min(t, v_set(LOGISTIC_LIMIT))), &shifted);
    logistic_parts p = logistic_square(v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f))), tail);
    v_f32 first = v_mul(v_add(v_one(), tail), p.inverse);
    v_f32 off = v_fnma(first, p.rest, v_add(v_fnma(first, p.square, v_one()), tail));
    return v_shrink(v_mul(v_fma(off, p.inverse, first), v_set(factor)), shifted);
}

#endif
