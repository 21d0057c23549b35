/* inverse.c - the x that has a given value. SPDX-License-Identifier: MIT
 *
 * The values at the joins order the pieces, so the piece is known at once. Lines and centred
 * transitions of order 1 are solved in closed form; the rest by Newton's method inside a bracket,
 * which is halved whenever Newton would leave it or converge slowly (near a slope of 0). */
#include <float.h>
#include <math.h>

#include "smooth/smooth.h"

/* low < root < high by the sign of value - y; `sign` is 1 for an increasing function. */
static double bracket_solve(const berlu_smooth *f, double y, int sign, double low, double high, double start)
{
    double x = start, last_step = high - low;
    for (int i = 0; i < 2100; i++) { /* bisection alone needs fewer, from any bracket of doubles */
        double rest = berlu_smooth_value(f, x) - y, slope = berlu_smooth_slope(f, x), next = x - rest / slope;
        if (rest == 0)
            break;
        if (sign * rest < 0)
            low = x;
        else
            high = x;
        if (!(next > low && next < high) || fabs(2 * rest) > fabs(last_step * slope))
            next = low / 2 + high / 2;
        last_step = fabs(next - x);
        if (next == x || last_step <= DBL_EPSILON / 2 * fabs(next) || !(low < high))
            return next;
        x = next;
    }
    return x;
}

/* Order 1: the transition is a parabola. This root has no difference that could cancel and is
 * regular for jump = 0. In units of eps and of the larger slope, so that no product of slopes
 * overflows or vanishes. */
static double parabola_solve(const knot *k, double y)
{
    double unit = fmax(fabs(k->left), fabs(k->right)), left = k->left / unit, right = k->right / unit;
    double rise = (y - k->y) / unit / k->eps_left, jump = right - left;
    double slope = copysign(sqrt(fmax(left * right + jump * rise, 0)), left + right);
    double u = 4 * (rise - jump / 4) / (left + right + 2 * slope);
    return k->x + k->eps_left * fmin(fmax(u, -1), 1);
}

static double transition_solve(const berlu_smooth *f, const knot *k, double y, int sign)
{
    if (f->curved || !k->centred)
        return bracket_solve(f, y, sign, k->from, k->to, k->x);
    double start = parabola_solve(k, y);
    if (f->bump.m == 1)
        return start;
    return bracket_solve(f, y, sign, k->from, k->to, fmin(fmax(start, k->from), k->to));
}

/* The first of inner + 1, inner + 2, inner + 4, ... (`direction` -1: inner - 1, ...) whose value
 * passes y; infinite when only the limit does. */
static double curve_reach(const berlu_curve *c, double y, int sign, double inner, int direction)
{
    double x = inner + direction;
    for (double step = 2; sign * direction * (curve_value(c, x) - y) < 0; step *= 2) {
        if (fabs(x) == DBL_MAX)
            return direction * INFINITY;
        x = fmin(fmax(inner + direction * step, -DBL_MAX), DBL_MAX);
    }
    return x;
}

/* Solves on a curve's piece, which may reach to infinity: moves out from its finite end until the
 * value is passed. Infinite: never. */
static double curve_solve(const berlu_smooth *f, size_t i, double y, int sign)
{
    double low = piece_from(f, i), high = piece_to(f, i);
    const berlu_curve *c = curve_at(f, i);
    if ((isinf(low) && sign * (y - curve_value(c, low)) <= 0) ||
        (isinf(high) && sign * (y - curve_value(c, high)) >= 0))
        return INFINITY;
    double inner = isfinite(low) ? low : isfinite(high) ? high : 0;
    if (isinf(low))
        low = curve_reach(c, y, sign, inner, -1);
    if (isinf(high))
        high = curve_reach(c, y, sign, inner, 1);
    if (isinf(low) || isinf(high))
        return INFINITY;
    return bracket_solve(f, y, sign, low, high, low / 2 + high / 2);
}

/* Infinite where the slope is too small for y to be reached within double. */
static double line_solve(const berlu_smooth *f, size_t i, double y)
{
    line l = line_at(f, i);
    double rise = y - l.y, x = l.x + (isinf(rise) ? y / l.slope - l.y / l.slope : rise / l.slope);
    return fmin(fmax(x, piece_from(f, i)), piece_to(f, i));
}

berlu_status berlu_smooth_inverse(const berlu_smooth *f, double y, double *x)
{
    if (!f || !x)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_inverse() was given NULL");
    if (!isfinite(y))
        return berlu_fail(BERLU_ERR_ARG, "cannot invert at %g", y);
    int sign = berlu_smooth_monotone(f);
    if (sign == 0)
        return berlu_fail(BERLU_ERR_ARG, "the function has no inverse: it is not strictly monotone");
    double found;
    size_t i = 0; /* the first knot whose transition ends at or after y */
    while (i < f->count && sign * (berlu_smooth_value(f, f->knots[i].to) - y) < 0)
        i++;
    if (i < f->count && sign * (berlu_smooth_value(f, f->knots[i].from) - y) <= 0)
        found = transition_solve(f, &f->knots[i], y, sign);
    else
        found = f->curved ? curve_solve(f, i, y, sign) : line_solve(f, i, y);
    if (!isfinite(found))
        return berlu_fail(BERLU_ERR_ARG, "the function never takes the value %.15g at a finite double", y);
    *x = found;
    return BERLU_OK;
}
