/* curves.c - functions whose pieces are not lines, smoothed by Hermite polynomials.
 * SPDX-License-Identifier: MIT
 *
 * A transition [A, B] of width W is the polynomial of degree 2m+1 that has the value and m
 * derivatives of the left curve at A and of the right curve at B. Its control values have a closed
 * form: the first m+1 depend on the left curve alone, the last m+1 on the right one (docs/math.md,
 * "Pieces that are not lines"). */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "smooth/smooth.h"

/* The exponential part; constant where rate or scale is 0, also at infinity. */
static double exp_part(const berlu_curve *c, double x)
{
    return c->scale == 0 || c->rate == 0 ? 0 : c->scale * expm1(c->rate * x);
}

/* The limit at infinity: of terms that grow at different speed, the fastest decides. */
static double curve_limit(const berlu_curve *c, double x)
{
    double tail = exp_part(c, x);
    if (isinf(tail))
        return tail;
    if (c->square != 0)
        return c->square * x * x;
    return c->linear != 0 ? c->linear * x : c->constant + tail;
}

double curve_value(const berlu_curve *c, double x)
{
    if (isinf(x))
        return curve_limit(c, x);
    return c->constant + x * (c->linear + c->square * x) + exp_part(c, x);
}

double curve_slope(const berlu_curve *c, double x)
{
    double factor = c->scale * c->rate, tail = factor == 0 ? 0 : factor * exp(c->rate * x);
    double growth = c->square == 0 ? 0 : 2 * c->square * x;
    return isinf(tail) ? tail : c->linear + growth + tail;
}

double curve_curvature(const berlu_curve *c, double x)
{
    double factor = c->scale * c->rate * c->rate;
    return 2 * c->square + (factor == 0 ? 0 : factor * exp(c->rate * x));
}

void curve_slope_range(const berlu_curve *c, double from, double to, double *low, double *high)
{
    double a = curve_slope(c, from), b = curve_slope(c, to), ratio = -2 * c->square / (c->scale * c->rate * c->rate);
    *low = fmin(a, b);
    *high = fmax(a, b);
    if (!(ratio > 0 && isfinite(ratio))) /* no inflection: also where there is no exponential */
        return;
    double x = log(ratio) / c->rate;
    if (x > from && x < to) {
        *low = fmin(*low, curve_slope(c, x));
        *high = fmax(*high, curve_slope(c, x));
    }
}

/* Scale of the rounding error of a curve's value at x. */
static double curve_size(const berlu_curve *c, double x)
{
    return fabs(c->constant) + fabs(c->linear * x) + fabs(c->square * x * x) + fabs(c->scale) * (exp(c->rate * x) + 1);
}

static berlu_status check_curves(const berlu_smooth_curves *spec)
{
    berlu_status status = check_kinks(spec->kinks, spec->kink_count);
    if (status != BERLU_OK)
        return status;
    if (!spec->curves)
        return berlu_fail(BERLU_ERR_ARG, "the list of curves is NULL");
    for (size_t i = 0; i <= spec->kink_count; i++) {
        const berlu_curve *c = &spec->curves[i];
        const double numbers[] = {c->constant, c->linear, c->square, c->scale, c->rate};
        for (size_t j = 0; j < COUNT(numbers); j++)
            if ((status = check_finite(numbers[j], "a coefficient of curve", i)) != BERLU_OK)
                return status;
    }
    for (size_t i = 0; i < spec->kink_count; i++) {
        const berlu_curve *c = &spec->curves[i];
        double x = spec->kinks[i], left = curve_value(c, x), right = curve_value(c + 1, x);
        if (!(fabs(right - left) <= 8 * DBL_EPSILON * (curve_size(c, x) + curve_size(c + 1, x))))
            return berlu_fail(BERLU_ERR_ARG,
                              "the function jumps from %.15g to %.15g at the kink %.15g; it must be continuous", left,
                              right, x);
    }
    if ((status = check_eps(spec->eps, spec->eps_count, spec->kink_count, "eps")) != BERLU_OK)
        return status;
    if (spec->degree < 2 || spec->degree > 5)
        return berlu_fail(BERLU_ERR_ARG, "degree is %d; pieces that are not lines have degrees 2 to 5", spec->degree);
    return BERLU_OK;
}

static void knot_make(knot *k, const berlu_smooth_curves *spec, size_t i)
{
    const berlu_curve *c = &spec->curves[i];
    k->x = spec->kinks[i];
    k->y = curve_value(c + 1, k->x);
    k->left = curve_slope(c, k->x);
    k->right = curve_slope(c + 1, k->x);
    k->jump = k->right - k->left;
    k->eps_left = k->eps_right = spec->eps[spec->eps_count == 1 ? 0 : i];
    k->centred = 1;
    k->from = k->x - k->eps_left;
    k->to = k->x + k->eps_right;
}

/* The m + 1 control values that one curve determines: at = A, step = W, or at = B, step = -W. */
static void hermite_half(double out[3], const berlu_curve *c, int m, double at, double step)
{
    double value = curve_value(c, at), slope = curve_slope(c, at), bend = curve_curvature(c, at);
    out[0] = value;
    out[1] = value + step * slope / (2 * m + 1);
    out[2] = value + 2 * step * slope / 5 + step * step * bend / 20; /* used by m = 2 only */
}

static berlu_status control_make(knot *k, const berlu_curve *c, int m)
{
    double left[3], right[3], width = k->to - k->from;
    hermite_half(left, c, m, k->from, width);
    hermite_half(right, c + 1, m, k->to, -width);
    for (int i = 0; i <= m; i++) {
        k->control[i] = left[i];
        k->control[2 * m + 1 - i] = right[i];
        if (!isfinite(left[i]) || !isfinite(right[i]))
            return berlu_fail(BERLU_ERR_ARG, "the values around the kink %.15g exceed the range of double", k->x);
    }
    return BERLU_OK;
}

berlu_status berlu_smooth_make_curves(berlu_smooth **out, const berlu_smooth_curves *spec)
{
    if (out)
        *out = NULL;
    if (!out || !spec)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_make_curves() was given NULL");
    berlu_status status = check_curves(spec);
    if (status != BERLU_OK)
        return status;
    size_t bytes =
        sizeof(berlu_smooth) + spec->kink_count * sizeof(knot) + (spec->kink_count + 1) * sizeof(berlu_curve);
    berlu_smooth *f = calloc(1, bytes);
    if (!f)
        return berlu_fail_memory(bytes, "a smoothed function");
    int m = spec->degree / 2;
    f->count = spec->kink_count;
    f->degree = spec->degree;
    f->piece_degree = 2 * m + 1;
    f->curved = 1;
    for (size_t i = 0; i < f->count; i++)
        knot_make(&f->knots[i], spec, i);
    memcpy(curve_at(f, 0), spec->curves, (f->count + 1) * sizeof(berlu_curve));
    if ((status = check_spacing(f->knots, f->count)) != BERLU_OK)
        goto done;
    knots_divide(f);
    for (size_t i = 0; i < f->count; i++)
        if ((status = control_make(&f->knots[i], curve_at(f, i), m)) != BERLU_OK)
            goto done;
    *out = f;
    f = NULL;
done:
    free(f);
    return status;
}
