/* smoothed.h - any piecewise-linear function with at most 8 kinks, smoothed.
 * SPDX-License-Identifier: MIT
 *
 * Line plus bump, as BerLU, around the knot whose transition is nearest: its numbers are selected
 * by comparing x with the middles between transitions. With c = x - kink, r = max(0, eps - |c|) /
 * (2 eps) and v = 1 - 2r
 *
 *     f  = y + (c < 0 ? left : right) c + jump eps r^(m+1) Q_m(v)
 *     f' = side +- jump r^m W_m(v)
 *
 * (docs/math.md, sections 1 and 8). Kinks and eps are f32 numbers; y and slopes are rounded once.
 * Bounds, with u = 2^-24 and S the largest |slope|: value 4 u (|y| + S |c|) + u (12 |jump| + S) eps
 * (the jump is that of the rounded slopes), derivative 12 u S plus the effect of a rounding of c,
 * |jump| K_m / (2 eps) u |c|, which is 0 for a kink at 0 or 2 eps away from it. Level lines are
 * exact: relu6 ends at 6. */
#ifndef ACT_FORMULAS_SMOOTHED_H
#define ACT_FORMULAS_SMOOTHED_H

#include "act/formulas/formula.h"
#include "act/formulas/smoothed_numbers.h"

#define ACT_PARAMS       0
#define ACT_FROM_OUTPUT  0
#define ACT_FAST_PATH(k) ((k)->order == 1)
#define ACT_DEGREES      1

/* A table for v_lookup16. */
typedef struct smoothed_table {
    float at[16];
} __attribute__((aligned(64))) smoothed_table;

/* Plain numbers, the same for all lanes; copied, so that no store of a result can seem to change
 * them. */
typedef struct act_consts {
    smoothed_table x, y, eps, half, left, right; /* of the knots; half: 1 / (2 eps) */
    float until[SMOOTHED_KNOTS], q[SMOOTHED_KNOTS], w[SMOOTHED_KNOTS], peak;
    int count, order; /* knots; m, half the degree */
} act_consts;

V_FN act_consts act_prepare(const v_f32 *params, const act_shape *shape)
{
    act_consts k;
    const float *n = shape->numbers;
    (void)params;
    k.count = (int)n[SMOOTHED_COUNT];
    k.order = shape->degree / 2;
    k.peak = n[SMOOTHED_PEAK];
    for (int i = 0; i < SMOOTHED_KNOTS; i++) {
        k.x.at[i] = n[SMOOTHED_X + i];
        k.y.at[i] = n[SMOOTHED_Y + i];
        k.eps.at[i] = n[SMOOTHED_EPS + i];
        k.half.at[i] = 0.5f / n[SMOOTHED_EPS + i];
        k.left.at[i] = n[SMOOTHED_SLOPE + i];
        k.right.at[i] = n[SMOOTHED_SLOPE + i + 1];
        k.until[i] = i + 1 < SMOOTHED_KNOTS ? n[SMOOTHED_UNTIL + i] : 0.0f;
        k.q[i] = n[SMOOTHED_Q + i];
        k.w[i] = n[SMOOTHED_W + i];
    }
    return k;
}

typedef struct smoothed_knot {
    v_f32 x, y, eps, half, left, right;
} smoothed_knot;

V_FN v_f32 smoothed_pick(const smoothed_table *t, int count, v_mask second)
{
    return count == 1 ? v_set(t->at[0]) : v_select(second, v_set(t->at[1]), v_set(t->at[0]));
}

/* One or two knots by selection; more by look-up of the number of middles at or left of x (NaN:
 * none). */
V_FN smoothed_knot smoothed_near(v_f32 x, const act_consts *k)
{
    smoothed_knot n;
    v_mask second = v_less_equal(v_set(k->until[0]), x);
    if (k->count <= 2) {
        n.x = smoothed_pick(&k->x, k->count, second);
        n.y = smoothed_pick(&k->y, k->count, second);
        n.eps = smoothed_pick(&k->eps, k->count, second);
        n.half = smoothed_pick(&k->half, k->count, second);
        n.left = smoothed_pick(&k->left, k->count, second);
        n.right = smoothed_pick(&k->right, k->count, second);
        return n;
    }
    v_f32 passed = v_select(second, v_one(), v_zero());
    for (int i = 1; i + 1 < k->count; i++)
        passed = v_add(passed, v_select(v_less_equal(v_set(k->until[i]), x), v_one(), v_zero()));
    v_i32 j = v_truncate(passed);
    n.x = v_lookup16(k->x.at, j);
    n.y = v_lookup16(k->y.at, j);
    n.eps = v_lookup16(k->eps.at, j);
    n.half = v_lookup16(k->half.at, j);
    n.left = v_lookup16(k->left.at, j);
    n.right = v_lookup16(k->right.at, j);
    return n;
}

/* The polynomial with coefficients c[0] .. c[count-1], times r^exponent. */
V_FN v_f32 smoothed_poly(const float *c, int count, v_f32 r, int exponent)
{
    v_f32 v = v_fnma(v_set(2.0f), r, v_one()), sum = v_set(c[count - 1]), power = r;
    for (int i = count - 2; i >= 0; i--)
        sum = v_fma(sum, v, v_set(c[i]));
    for (int i = 1; i < exponent; i++)
        power = v_mul(power, r);
    return v_mul(power, sum);
}

V_FN v_f32 smoothed_r(v_f32 c, const smoothed_knot *n)
{
    return v_mul(v_max0(v_sub(n->eps, v_abs(c))), n->half);
}

/* A level line stays level at infinity: 0 times a large number, not 0 times infinity. NaN
 * passes. */
V_FN v_f32 smoothed_line(v_f32 c, v_f32 side, v_f32 y)
{
    v_f32 most = v_set(0x1.fffffep127f);
    v_f32 reach = v_select(v_equal(side, v_zero()), v_max(v_min(c, most), v_neg(most)), c);
    return v_fma(side, reach, y);
}

V_FN v_f32 act_value(v_f32 x, const act_consts *k)
{
    smoothed_knot n = smoothed_near(x, k);
    v_f32 c = v_sub(x, n.x), r = smoothed_r(c, &n);
    v_f32 h = k->order == 1 ? v_mul(r, r) : smoothed_poly(k->q, k->order, r, k->order + 1);
    v_f32 line = smoothed_line(c, v_select(v_less(c, v_zero()), n.left, n.right), n.y);
    return v_fma(v_mul(v_sub(n.right, n.left), n.eps), h, line);
}

V_FN v_f32 act_slope(v_f32 x, const act_consts *k)
{
    smoothed_knot n = smoothed_near(x, k);
    v_f32 c = v_sub(x, n.x), r = smoothed_r(c, &n), jump = v_sub(n.right, n.left);
    v_f32 t = k->order == 1 ? r : smoothed_poly(k->w, k->order, r, k->order);
    return v_select(v_less(c, v_zero()), v_fma(jump, t, n.left), v_fnma(jump, t, n.right));
}

/* jump / (2 eps) K_m w^(m-1), w = 4 r (1 - r); the joins belong to the transition. */
V_FN v_f32 act_curve(v_f32 x, const act_consts *k)
{
    smoothed_knot n = smoothed_near(x, k);
    v_f32 depth = v_sub(n.eps, v_abs(v_sub(x, n.x))), r = v_mul(v_max0(depth), n.half);
    v_f32 w = v_mul(v_mul(v_set(4.0f), r), v_sub(v_one(), r));
    v_f32 inside = v_set(k->peak);
    for (int i = 1; i < k->order; i++)
        inside = v_mul(inside, w);
    inside = v_mul(v_mul(v_sub(n.right, n.left), inside), n.half); /* the large factors last: times 0 they must be 0 */
    return v_select(v_less(depth, v_zero()), v_zero(), v_fma(depth, v_zero(), inside)); /* + 0 depth: NaN stays */
}

#endif
