/* berlu.h - BerLU: leaky ReLU with a Bernstein polynomial in place of its kink.
 * SPDX-License-Identifier: MIT
 *
 * The kinked line plus a bump on |x| < eps: with d = max(0, eps - |x|), for degree 2
 *
 *     f  = (x < 0 ? alpha x : x) + (1 - alpha) / (4 eps) d^2
 *     f' = (x < 0 ? alpha + (1 - alpha) / (2 eps) d : 1 - (1 - alpha) / (2 eps) d)
 *
 * so outside the transition f is exactly x or alpha x, inside nothing cancels, and there is no
 * branch. Degree 2m: with r = d / (2 eps) and v = 1 - 2r the bump is (1 - alpha) eps r^(m+1) Q_m(v)
 * and f' differs from the slope of the line by (1 - alpha) r^m W_m(v); Q and W have positive
 * coefficients only (docs/math.md has the derivation). In this order below: the function and its
 * derivatives, the same from the output, higher degrees, constants.
 *
 * Bounds: value 5 ULP (degree 2), 12 (4 and 6) or 20 (above) of the larger of line and bump; exact
 * for x > eps, one rounding for x < -eps. The sign of x selects the side, so alpha may lie on
 * either side of 1. */
#ifndef ACT_FORMULAS_BERLU_H
#define ACT_FORMULAS_BERLU_H

#include "act/formulas/formula.h"
#include "smooth/limits.h"

#define ACT_PARAMS        2 /* alpha, eps */
#define ACT_FROM_OUTPUT   1 /* degree 2, alpha > 0 */
#define ACT_FAST_PATH(k)  ((k)->order == 1 && (k)->all_alpha_in_unit_interval && !(k)->some_knee_exact)
#define ACT_EXACT_KNEE(k) ((k)->all_knee_exact)
#define ACT_SECOND_PATH(k)                                                                                             \
    ((k)->order == 1 && (k)->no_alpha_in_unit_interval && !(k)->all_knee_exact && !(k)->some_knee_exact)
#define ACT_DEGREES 1 /* shape->degree selects the polynomial */

typedef struct act_consts {
    v_f32 alpha, eps;
    v_f32 jump;                    /* 1 - alpha; -0 when alpha is 1, so that f(-0) = -0 there */
    v_f32 square;                  /* jump / (4 eps) */
    v_f32 quarter;                 /* 1 / (4 eps); NaN when alpha is, so that NaN reaches every parameter derivative */
    v_f32 inverse_alpha;           /* finite, so that it times 0 is 0 */
    v_f32 slope_rate;              /* jump / (2 eps), and */
    v_f32 slope_end;               /* eps, both adjusted by berlu_fit_slope() */
    v_f32 alpha_rate;              /* quarter, adjusted by berlu_fit_alpha() */
    v_mask alpha_in_unit_interval; /* 0 < alpha <= 1 */
    v_mask knee_exact; /* alpha_in_unit_interval, slope_end is eps, and 2 eps alpha_rate is 1/2 to the bit */
    int order;         /* m: half the degree */
    int all_alpha_in_unit_interval; /* in every lane */
    int no_alpha_in_unit_interval;  /* in no lane: a learned alpha usually becomes negative */
    int all_knee_exact;             /* in every lane */
    int some_knee_exact;            /* in some lanes, not in all: only where parameters are per channel */
} act_consts;

/* Higher degrees, below: the bump over jump, and the difference of slopes over jump */
V_FN v_f32 berlu_r(v_f32 depth, const act_consts *k);
V_FN v_f32 berlu_bump(v_f32 eps, v_f32 r, int m);
V_FN v_f32 berlu_step(v_f32 r, int m);
V_FN v_f32 berlu_power(v_f32 r, int n);

/* ---- The function and its derivatives -------------------------------------------------------- */

/* x or alpha x, for every alpha: one of the two terms is 0, 0 * inf included. */
V_FN v_f32 berlu_line_any(v_f32 x, const act_consts *k)
{
    return v_fma(k->alpha, v_min0(x), v_max0(x));
}

/* The same in fewer operations for 0 < alpha <= 1; both have the same bits there. */
V_FN v_f32 berlu_line(v_f32 x, const act_consts *k)
{
    return k->all_alpha_in_unit_interval ? v_max(x, v_mul(k->alpha, x)) : berlu_line_any(x, k);
}

/* Degree 2: the bump added to the line. */
V_FN v_f32 berlu_smoothed(v_f32 x, v_f32 line, const act_consts *k)
{
    v_f32 depth = v_sub(k->eps, v_min_abs(x, k->eps)); /* berlu_depth() but for NaN, which the line keeps */
    return v_fma(v_mul(k->square, depth), depth, line);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    v_f32 line = berlu_line(x, k);
    if (k->order == 1)
        return berlu_smoothed(x, line, k);
    v_f32 depth = v_sub(k->eps, v_min_abs(x, k->eps));
    /* eps times h first: it is at most eps, so a bump of 0 stays 0 where jump eps would overflow */
    return v_fma(k->jump, berlu_bump(k->eps, berlu_r(depth, k), k->order), line);
}

/* Depth inside the transition: eps - |x|, 0 outside. */
V_FN v_f32 berlu_depth(v_f32 x, const act_consts *k)
{
    return v_max0(v_sub(k->eps, v_abs(x)));
}

/* Distance from -eps: 0 on the left, slope_end + eps on the right; `capped` is min(x,
 * slope_end). */
V_FN v_f32 berlu_distance(v_f32 capped, const act_consts *k)
{
    return v_max0(v_add(capped, k->eps));
}

/* Degree 2, 0 < alpha <= 1: all terms are positive, so both sides can start from alpha, without a
 * compare or a select. */
V_FN v_f32 berlu_slope_unit_interval(v_f32 x, const act_consts *k)
{
    return v_fma(k->slope_rate, berlu_distance(v_min(x, k->slope_end), k), k->alpha);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    if (k->order == 1 && k->all_alpha_in_unit_interval)
        return berlu_slope_unit_interval(x, k);
    v_f32 depth = berlu_depth(x, k), rate = k->jump, t = depth;
    if (k->order == 1)
        rate = k->square, t = v_add(depth, depth); /* square is finite, twice of it may not be */
    else
        t = berlu_step(berlu_r(depth, k), k->order);
    v_f32 slope = v_select(v_less(x, v_zero()), v_fma(rate, t, k->alpha), v_fnma(rate, t, v_one()));
    return k->order > 1 || k->no_alpha_in_unit_interval
               ? slope
               : v_select(k->alpha_in_unit_interval, berlu_slope_unit_interval(x, k), slope);
}

/* (1 - alpha) / (2 eps) K_m w^(m-1), w = 1 - (x / eps)^2 = 4 r (1 - r); the joins belong to the
 * transition. */
V_TABLE float berlu_k[9] = {0, 1.0f, 1.5f, 1.875f, 2.1875f, 2.4609375f, 2.70703125f, 2.9326171875f, 3.14208984375f};
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    v_f32 depth = v_sub(k->eps, v_abs(x)), r = berlu_r(v_max0(depth), k);
    v_f32 w = v_mul(v_mul(v_set(4.0f), r), v_sub(v_one(), r));
    v_f32 inside = v_set(2.0f * berlu_k[k->order]);
    if (k->order > 1)
        inside = v_mul(inside, berlu_power(w, k->order - 1));
    inside = v_mul(k->square, inside); /* last: square is finite, twice of it may not be */
    v_f32 outside = v_select(v_is_nan(k->jump), k->jump, v_zero());
    return v_select(v_less(depth, v_zero()), outside, v_fma(depth, v_zero(), inside)); /* + 0 depth: NaN stays */
}

/* Degree 2, by alpha: x on the left, -(eps - x)^2 / (4 eps) inside, 0 on the right. With w the
 * distance, capped - w^2 / (4 eps) is all three. It cancels: the error is up to 2.5 ulp of eps (of
 * the other form 5), and near eps its sign may be wrong. */
V_FN v_f32 berlu_slope_by_alpha_short(v_f32 x, const act_consts *k)
{
    v_f32 capped = v_min(x, k->slope_end), distance = berlu_distance(capped, k);
    return v_fnma(v_mul(k->alpha_rate, distance), distance, capped);
}

/* Where that would not be 0 on the right (no knee_exact), use the square of the distance to
 * slope_end, and the part of x beyond -eps. */
V_FN v_f32 berlu_slope_by_alpha(v_f32 x, const act_consts *k)
{
    v_f32 exact = berlu_slope_by_alpha_short(x, k);
    if (k->all_knee_exact)
        return exact;
    v_f32 capped = v_min(x, k->slope_end), held = v_max(capped, v_neg(k->eps)), rest = v_sub(k->slope_end, held);
    v_f32 longer = v_fnma(v_mul(k->quarter, rest), rest, v_sub(capped, held));
    return k->some_knee_exact ? v_select(k->knee_exact, exact, longer) : longer;
}

V_TABLE float berlu_half_p0[9] = {
    0, 0.25f, 0.1875f, 0.15625f, 0.13671875f, 0.123046875f, 0.11279296875f, 0.104736328125f, 0.0981903076171875f};

V_FN void act_param_slopes(v_f32 x, const act_consts *k, v_f32 *out)
{
    v_f32 depth = berlu_depth(x, k), r = berlu_r(depth, k);
    if (k->order == 1) {
        out[0] = berlu_slope_by_alpha(x, k);
        out[1] = v_mul(v_mul(k->jump, r), v_sub(v_one(), r));
    } else {
        v_f32 w = v_mul(v_mul(v_set(4.0f), r), v_sub(v_one(), r));
        out[0] = v_sub(v_min0(x), berlu_bump(k->eps, r, k->order));
        out[1] = v_mul(v_mul(k->jump, v_set(berlu_half_p0[k->order])), berlu_power(w, k->order));
    }
}

/* ---- From the output ------------------------------------------------------------------------- */

/* The square of f' inside, a line in y. */
V_FN v_f32 berlu_slope_squared(v_f32 y, const act_consts *k)
{
    return v_fma(v_mul(k->square, v_set(4.0f)), y, k->alpha);
}

/* Degree 2: f' = sqrt(alpha + (1 - alpha) y / eps) inside; clamped between the two slopes it holds
 * everywhere. Below the smaller slope the root of its square is taken, which is that slope to the
 * bit, and not the root of 0: on CUDA a root outside of 2^-101 .. 2^127 is a call. */
V_FN v_f32 act_slope_from_output(v_f32 y, const act_consts *k)
{
    v_f32 one = v_one(), least = v_min(k->alpha, one), squared = berlu_slope_squared(y, k);
    v_f32 floor = v_select(v_less(v_set(0x1p-60f), least), v_mul(least, least), v_zero());
    return v_min(v_max(v_sqrt(v_max(squared, floor)), least), v_max(k->alpha, one));
}

/* With y held to [-alpha eps, eps]: d/dalpha = -(eps - y)^2 / (eps (1 + g)^2), left of it plus the
 * part of y beyond, over alpha; d/deps = (1 - alpha) (1 - y/eps) (alpha + y/eps) / ((1 + g) (g +
 * alpha)). No form divides by 1 - alpha. */
V_FN void act_param_slopes_from_output(v_f32 y, const act_consts *k, v_f32 *out)
{
    v_f32 one = v_one(), per_eps = v_mul(k->quarter, v_set(4.0f)), g = act_slope_from_output(y, k);
    v_f32 beyond = v_min0(v_fma(k->alpha, k->eps, y));
    v_f32 held = v_min(v_max(y, v_neg(v_mul(k->alpha, k->eps))), k->eps);
    v_f32 ratio = v_div(v_sub(k->eps, held), v_add(one, g));
    out[0] = v_fnma(v_mul(ratio, ratio), per_eps, v_mul(beyond, k->inverse_alpha));
    v_f32 rest = v_div(v_fma(held, per_eps, k->alpha), v_add(g, k->alpha));
    out[1] = v_mul(v_mul(k->jump, v_mul(ratio, per_eps)), rest);
}

/* ---- Higher degrees -------------------------------------------------------------------------- */

/* Tables over m: coefficients of Q_m and W_m ascending in v, m = 2 to 8; above, K_m and p_m(0) / 2.
 * All are exact in f32. */
V_TABLE float berlu_q[9][8] = {
    {0},
    {0},
    {1.5f, 0.5f},
    {2.5f, 2.0f, 0.5f},
    {4.375f, 5.875f, 3.125f, 0.625f},
    {7.875f, 15.25f, 12.75f, 5.25f, 0.875f},
    {14.4375f, 37.0625f, 42.875f, 27.125f, 9.1875f, 1.3125f},
    {26.8125f, 86.5f, 128.9375f, 111.0f, 57.1875f, 16.5f, 2.0625f},
    {50.2734375f, 196.4609375f, 360.4921875f, 394.8046875f, 274.5703125f, 119.8828125f, 30.1640625f, 3.3515625f},
};
V_TABLE float berlu_w[9][8] = {
    {0},
    {0},
    {2.0f, 1.0f},
    {4.0f, 4.5f, 1.5f},
    {8.0f, 14.5f, 10.0f, 2.5f},
    {16.0f, 40.625f, 43.125f, 21.875f, 4.375f},
    {32.0f, 105.375f, 152.25f, 117.25f, 47.25f, 7.875f},
    {64.0f, 260.3125f, 478.1875f, 496.125f, 301.875f, 101.0625f, 14.4375f},
    {128.0f, 621.8125f, 1390.5f, 1819.6875f, 1485.0f, 748.6875f, 214.5f, 26.8125f},
};

V_FN v_f32 berlu_poly(const float *c, int count, v_f32 v)
{
    v_f32 sum = v_set(c[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        sum = v_fma(sum, v, v_set(c[i]));
    return sum;
}

V_FN v_f32 berlu_power(v_f32 r, int n)
{
    v_f32 power = r;
    for (int i = 1; i < n; i++)
        power = v_mul(power, r);
    return power;
}

/* a r^n from left to right: r^n alone may be subnormal where the product is not */
V_FN v_f32 berlu_times_power(v_f32 a, v_f32 r, int n)
{
    for (int i = 0; i < n; i++)
        a = v_mul(a, r);
    return a;
}

V_FN v_f32 berlu_r(v_f32 depth, const act_consts *k)
{
    return v_mul(depth, v_add(k->quarter, k->quarter));
}

/* eps r^(m+1) Q_m(v), for m > 1 */
V_FN v_f32 berlu_bump(v_f32 eps, v_f32 r, int m)
{
    v_f32 v = v_fnma(v_set(2.0f), r, v_one());
    return berlu_times_power(v_mul(eps, berlu_poly(berlu_q[m], m, v)), r, m + 1);
}

/* r^m W_m(v): the difference to the slope of the line, 0 to 1/2 of the jump; for m > 1 */
V_FN v_f32 berlu_step(v_f32 r, int m)
{
    v_f32 v = v_fnma(v_set(2.0f), r, v_one());
    return berlu_times_power(berlu_poly(berlu_w[m], m, v), r, m);
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* a / b including the low part of a, nearly rounded once. Clamped, so that it times 0 is still
 * 0. */
V_FN v_f32 berlu_ratio(v_f32 a, v_f32 a_low, v_f32 b)
{
    v_f32 q = v_div(a, b), rest = v_add(v_fnma(q, b, a), a_low);
    v_f32 better = v_add(q, v_div(rest, b)), most = v_set(0x1.fffffep127f);
    v_f32 limited = v_max(v_min(q, most), v_neg(most));
    return v_copysign(v_select(v_less(v_abs(q), most), better, limited), q); /* -0 stays */
}

V_FN v_mask berlu_slope_ends_at_one(const act_consts *k, v_f32 rate, v_f32 end)
{
    return v_equal(v_fma(rate, v_add(end, k->eps), k->alpha), v_one());
}

/* alpha + slope_rate (slope_end + eps) must be 1 to the bit, so that f' needs no limit on the
 * right. The numbers that round to 1 span 1.5 * 2^-24. A unit of slope_rate moves the sum by p / m,
 * p = 1 - alpha and m its significand, in 2^-23; two units of slope_end move it by p / n, n the
 * significand of eps, and m n is 2p or 4p. So one unit of slope_rate hits unless m < 4p/3, and then
 * n > 3/2, and one step back of slope_end hits where that unit has missed: three tries are enough.
 * Only for 0 < alpha <= 1. */
V_FN void berlu_fit_slope(act_consts *k)
{
    v_mask fits = berlu_slope_ends_at_one(k, k->slope_rate, k->slope_end);
    if (v_all(v_or(fits, v_not(k->alpha_in_unit_interval))))
        return;
    v_f32 higher = v_float(v_iadd(v_bits(k->slope_rate), v_iset(1)));
    v_f32 lower = v_float(v_isub(v_bits(k->slope_end), v_iset(2)));
    v_mask need = v_and(k->alpha_in_unit_interval, v_not(fits));
    k->slope_rate = v_select(need, higher, k->slope_rate);
    k->slope_end = v_select(v_and(need, v_not(berlu_slope_ends_at_one(k, higher, k->slope_end))), lower, k->slope_end);
}

/* 2 eps alpha_rate must round to 1/2, so that d/dalpha is 0 to the bit on the right. A quarter that
 * was rounded up does; one that was rounded down may fall short, and then one unit more hits where
 * the significand of eps is at most 3/2, else every second time. Of all pairs of alpha and eps 7 %
 * are left, those with another slope_end among them, and use the longer formula. */
V_FN void berlu_fit_alpha(act_consts *k)
{
    v_f32 most = v_add(k->eps, k->eps), half = v_set(0.5f), more = v_float(v_iadd(v_bits(k->quarter), v_iset(1)));
    k->alpha_rate = v_select(v_less(v_mul(k->quarter, most), half), more, k->quarter);
    k->knee_exact = v_and(k->alpha_in_unit_interval,
                          v_and(v_equal(v_mul(k->alpha_rate, most), half), v_equal(k->slope_end, k->eps)));
    k->all_knee_exact = v_all(k->knee_exact);
    k->some_knee_exact = !k->all_knee_exact && v_any(k->knee_exact);
}

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    v_f32 alpha = params[0], one = v_one();
    v_f32 eps = v_max(params[1], v_set((float)EPS_MIN)); /* a learned one may have fallen below; NaN stays */
    v_f32 jump = v_neg(v_sub(alpha, one));               /* low: its rounding error, which is a float */
    v_f32 part = v_sub(one, jump), low = v_add(v_sub(one, v_add(jump, part)), v_sub(part, alpha));
    v_f32 four = v_mul(eps, v_set(4.0f));
    act_consts k = {.alpha = alpha,
                    .eps = eps,
                    .jump = jump,
                    .square = berlu_ratio(jump, low, four),
                    .quarter = v_select(v_is_nan(alpha), alpha, v_div(one, four)),
                    .inverse_alpha = v_min(v_div(one, alpha), v_set(0x1.fffffep127f)),
                    .slope_end = eps,
                    .alpha_in_unit_interval = v_and(v_less(v_zero(), alpha), v_less_equal(alpha, one)),
                    .order = shape->degree / 2};
    k.slope_rate = v_add(k.square, k.square);
    k.all_alpha_in_unit_interval = v_all(k.alpha_in_unit_interval);
    k.no_alpha_in_unit_interval = !v_any(k.alpha_in_unit_interval);
    berlu_fit_slope(&k);
    berlu_fit_alpha(&k);
    return k;
}

#endif
