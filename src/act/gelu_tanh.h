/* gelu_tanh.h - gelu_tanh(x) = x s(w), s the sigmoid, w = 2 sqrt(2/pi) (x + 0.044715 x^3). SPDX-License-Identifier: MIT
 *
 * The tanh form of GELU and its derivatives. The value is x / (1 + e^-w), where w is carried in two parts because its rounding would
 * be multiplied by w (up to 106). The slope at -t (t = |x|) is one of sixteen polynomials for t < 4 and a short series in e^-w
 * further out; slope(t) = 1 - slope(-t). The second derivative is even.
 *
 * Bounds: value 2.5 ULP, slope 4 ULP. Seen over all floats with a normal result: value 2.064 ULP (at -0x1.6110ep+1), slope
 * 3.412 ULP (at -0x1.0e34dep+2), near the slope's zero 0.15 * 2^-24 absolute; subnormal results within 1.4 units. Second
 * derivative, sampled: 3.8 ULP, near its zeros 0.2 * 2^-24. */
#ifndef ACT_GELU_TANH_H
#define ACT_GELU_TANH_H

#include "act/formula.h"
#include "act/gelu_tanh_tables.h"
#include "simd/vmath.h"

#define ACT_PARAMS      0
#define ACT_FROM_OUTPUT 0
#define ACT_COSTLY      1
#define ACT_PRODUCT     v_product /* below -10.2 the slope is subnormal */

ACT_NO_CONSTS

#define TANH_NEAR  4.0f     /* derivatives: inside the tables */
#define TANH_LIMIT 11.5f    /* everything rounds to zero from 11.02 on */
#define TANH_RIGHT 6.0f     /* value: 1 + e^-w rounds to 1 from 5.3 on */
#define TANH_FAR   -9.0f    /* value: e^-w may overflow below */
#define TANH_TINY  -10.102f /* value: 2^-126.03 */

/* w log2(e) = B x (x^2 + C). C has 21 bits and a low part, so that what x^2 + C loses by rounding comes out exactly. */
#define TANH_B     0.102943242f
#define TANH_B_LOW -1.95855357e-08f /* what B lacks, over B */
#define TANH_C     22.3638611f
#define TANH_C_LOW -1.081748e-06f

/* e^-w(z) = 2^k (1 + tail), |z| <= 11.5. The integer k is taken off inside a fused product, so w itself is never rounded. */
V_FN v_f32 tanh_exp(v_f32 z, v_f32 *shifted)
{
    v_f32 b = v_set(-TANH_B), c = v_set(TANH_C), sum = v_fma(z, z, c);
    v_f32 rest = v_add(v_fma(z, z, v_sub(c, sum)), v_set(TANH_C_LOW));
    v_f32 cubic = v_mul(z, sum), low = v_fma(z, rest, v_fms(z, sum, cubic));
    *shifted = v_fma(cubic, b, v_set(V_EXP_SHIFT));
    low = v_fma(cubic, v_set(TANH_B_LOW), low);
    v_f32 r = v_fma(low, b, v_fms(cubic, b, v_unshift(*shifted)));
    return v_mul(r, v_polynomial(v_exp2_terms, 5, r));
}

/* (1 + e^-w) / 2^k, the 1 as 2^-k among the small terms; inverse = 2^-k */
V_FN v_f32 tanh_bottom(v_f32 tail, v_f32 inverse)
{
    return v_add(v_one(), v_add(tail, inverse));
}

/* x / (1 + e^-w) for x < -9, both parts of the fraction times 2^-60 lest the lower one overflow. 2^-k may then be out of range: its
 * bits are a negative number, and zero does as well. Where the result is below 2^-126 the upper part is times 2^89 instead: the
 * result times 2^149, plus 2^23, has the subnormal's bits in its low places, and no operation has to deal with a subnormal
 * number, which on many machines costs a hundred ordinary ones. */
V_FN v_f32 tanh_far(v_f32 x, v_f32 top, v_f32 tail, v_f32 power, v_f32 inverse)
{
    v_mask far = v_less(x, v_set(TANH_FAR)), tiny = v_less(x, v_set(TANH_TINY));
    v_f32 less = v_float(v_iadd(v_bits(power), v_bits(v_set(-0x1p69f)))); /* the exponent less 60, modulo 2^9 */
    v_f32 upper = v_select(tiny, v_mul(top, v_set(0x1p89f)), v_select(far, v_mul(top, v_set(0x1p-60f)), top));
    v_f32 y = v_div(upper, v_mul(v_select(far, less, power), tanh_bottom(tail, v_max0(inverse))));
    v_i32 low = v_iadd(v_bits(v_sub(v_set(0x1p23f), y)), v_bits(v_set(0x1p-21f))); /* the sign, less the bits of 2^23 */
    return v_select(tiny, v_float(low), y);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 top = v_max(x, v_set(-TANH_LIMIT)), shifted, tail = tanh_exp(v_min(top, v_set(TANH_RIGHT)), &shifted);
    v_f32 power = v_power(shifted), inverse = v_float(v_isub(v_bits(v_set(0x1p127f)), v_bits(power)));
    if (v_any(v_less(x, v_set(TANH_FAR))))
        return tanh_far(x, top, tail, power, inverse);
    return v_div(top, v_mul(power, tanh_bottom(tail, inverse)));
}

/* slope(-t) and the second derivative, t = |x|: a table for t < 4 */
V_FN v_i32 tanh_interval(v_f32 t)
{
    return v_bits(v_fma(t, v_set(3.875f), v_set(V_SHIFT)));
}

/* q = e^-w once rounded, kept above 2^-100, where no term needs it any more */
V_FN v_f32 tanh_rounded(v_f32 tail, v_f32 shifted)
{
    v_f32 power = v_power(v_max(shifted, v_set(V_EXP_SHIFT - 100.0f)));
    return v_fma(power, tail, power);
}

/* w'(t) = D + 3 E t^2 with D = 2 sqrt(2/pi), E = 0.044715 D */
#define TANH_D      1.59576917f
#define TANH_D_LOW  -4.53406805e-08f
#define TANH_3E     0.214064449f
#define TANH_3E_LOW -2.54083421e-10f
#define TANH_12E    0.856257796f

/* slope(-t) = q (c - q (2 c - 1)), c = 1 - t w', for t >= 4 */
V_FN v_f32 tanh_slope_far(v_f32 t)
{
    v_f32 shifted, s = v_min(t, v_set(TANH_LIMIT)), tail = tanh_exp(s, &shifted), q = tanh_rounded(tail, shifted);
    v_f32 c = v_fnma(s, v_fma(v_mul(s, s), v_set(TANH_3E), v_set(TANH_D)), v_one());
    v_f32 size = v_fnma(q, v_fma(c, v_set(2.0f), v_set(-1.0f)), c);
    return v_shrink(v_fma(size, tail, size), shifted);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), part = v_piecewise(tanh_slope_part, 5, tanh_interval(t), t);
    v_mask far = v_less_equal(v_set(TANH_NEAR), t);
    if (v_any(far))
        part = v_select(far, tanh_slope_far(t), part);
    return v_select(v_is_negative(x), part, v_sub(v_one(), part));
}

/* For t >= 4, with q = e^-w, steady = 2 w' + t w'', turn = t w'^2: q (steady - turn - q (2 steady - 4 turn)) */
V_FN v_f32 tanh_curve_far(v_f32 t)
{
    v_f32 shifted, s = v_min(v_set(TANH_LIMIT), t), tail = tanh_exp(s, &shifted);
    v_f32 q = tanh_rounded(tail, shifted);
    v_f32 square = v_mul(s, s), low = v_fma(square, v_set(TANH_3E_LOW), v_set(TANH_D_LOW));
    low = v_fma(v_fms(s, s, square), v_set(TANH_3E), low); /* what the roundings of t^2, D and 3 E left out */
    v_f32 w1 = v_fma(square, v_set(TANH_3E), v_add(v_set(TANH_D), low)), turn = v_mul(v_mul(s, w1), w1);
    v_f32 steady = v_fma(square, v_set(TANH_12E), v_set(2 * TANH_D));
    v_f32 size = v_fnma(q, v_fma(turn, v_set(-4.0f), v_add(steady, steady)), v_sub(steady, turn));
    return v_select(v_is_nan(t), t, v_shrink(v_fma(size, tail, size), shifted));
}

V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    (void)k;
    v_f32 t = v_abs(x), curve = v_piecewise(tanh_curve_part, 6, tanh_interval(t), t);
    v_mask near = v_less(t, v_set(TANH_NEAR));
    if (!v_all(near))
        curve = v_select(near, curve, tanh_curve_far(t));
    return curve;
}

#endif
