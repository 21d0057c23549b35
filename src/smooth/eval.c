/* eval.c - value and first two derivatives as line plus bump. SPDX-License-Identifier: MIT
 *
 * Near a kink the kinked function is y + side * c with the slope of that side; the smoothed one is
 * that plus jump * bump, and the bump is a sum of positive terms that vanishes at the joins. So
 * nothing cancels, and outside the transitions only the line remains (docs/math.md, "Line plus
 * bump"). Functions made of curves use the control points directly. */
#include <math.h>

#include "smooth/bernstein.h"
#include "smooth/smooth.h"

const knot *knot_near(const berlu_smooth *f, double x)
{
    size_t low = 0, high = f->count - 1; /* the result is in [low, high] */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (x < f->knots[middle].until)
            high = middle;
        else
            low = middle + 1;
    }
    return &f->knots[low];
}

static double horner(const double *coefficients, int count, double v)
{
    double sum = coefficients[count - 1];
    for (int i = count - 2; i >= 0; i--)
        sum = sum * v + coefficients[i];
    return sum;
}

static double power(double base, int exponent)
{
    double result = 1;
    for (int i = 0; i < exponent; i++)
        result *= base;
    return result;
}

static int inside(const knot *k, double c)
{
    return c >= -k->eps_left && c <= k->eps_right;
}

/* The depth r of a centred transition, 1/2 at the kink and 0 at the joins; from eps - |c|, which is
 * exact in the outer half. */
static double depth(const knot *k, double c)
{
    return (k->eps_left - fabs(c)) / (2 * k->eps_left);
}

/* t and 1 - t of an off-centre transition, each from its own end. */
typedef struct place {
    double t, s, width;
} place;

static place place_of(const knot *k, double c)
{
    double width = k->eps_left + k->eps_right;
    return (place){(c + k->eps_left) / width, (k->eps_right - c) / width, width};
}

/* The control values of one side lie off the other side's line, by width/n times a whole number
 * plus lambda (left) or 1 - lambda (right). */
static double offcentre_height(const knot *k, int n, double c)
{
    place at = place_of(k, c);
    double sum = 0;
    if (c < 0)
        for (int i = k->split + 1; i <= n; i++)
            sum += (k->lambda + (i - k->split - 1)) * bernstein_weight(n, i, at.t, at.s);
    else
        for (int i = 0; i <= k->split; i++)
            sum += (1 - k->lambda + (k->split - i)) * bernstein_weight(n, i, at.t, at.s);
    return at.width / n * sum;
}

static double offcentre_turn(const knot *k, int n, double c)
{
    place at = place_of(k, c);
    double sum = (c < 0 ? k->lambda : 1 - k->lambda) * bernstein_weight(n - 1, k->split, at.t, at.s);
    if (c < 0)
        for (int i = k->split + 1; i < n; i++)
            sum += bernstein_weight(n - 1, i, at.t, at.s);
    else
        for (int i = 0; i < k->split; i++)
            sum += bernstein_weight(n - 1, i, at.t, at.s);
    return sum;
}

static double offcentre_bend(const knot *k, int n, double c)
{
    place at = place_of(k, c);
    double sum = k->lambda * bernstein_weight(n - 2, k->split - 1, at.t, at.s) +
                 (1 - k->lambda) * bernstein_weight(n - 2, k->split, at.t, at.s);
    return (n - 1) / at.width * sum;
}

double bump_height(const berlu_smooth *f, const knot *k, double c)
{
    if (!inside(k, c))
        return 0;
    if (!k->centred)
        return offcentre_height(k, f->piece_degree, c);
    double r = depth(k, c);
    return k->eps_left * (power(r, f->bump.m + 1) * horner(f->bump.q, f->bump.m, 1 - 2 * r));
}

double bump_turn(const berlu_smooth *f, const knot *k, double c)
{
    if (!inside(k, c))
        return 0;
    if (!k->centred)
        return offcentre_turn(k, f->piece_degree, c);
    double r = depth(k, c);
    return power(r, f->bump.m) * horner(f->bump.w, f->bump.m, 1 - 2 * r);
}

double bump_bend(const berlu_smooth *f, const knot *k, double c)
{
    if (!inside(k, c))
        return 0;
    if (!k->centred)
        return offcentre_bend(k, f->piece_degree, c);
    double r = depth(k, c);
    return f->bump.peak / (2 * k->eps_left) * power(4 * r * (1 - r), f->bump.m - 1);
}

/* y + slope * c, with 0 * inf = 0: a level line stays level. */
static double line_value(double y, double slope, double c)
{
    return isinf(c) && slope == 0 ? y : y + slope * c;
}

static double refuse_null(const char *call)
{
    berlu_fail(BERLU_ERR_ARG, "%s() was given NULL", call);
    return NAN;
}

/* The derivative of the given order (0, 1, 2) of a function made of curves. */
static double curved_value(const berlu_smooth *f, double x, int order, int smoothed)
{
    double (*const derivative[])(const berlu_curve *, double) = {curve_value, curve_slope, curve_curvature};
    if (f->count == 0)
        return derivative[order](curve_at(f, 0), x);
    const knot *k = knot_near(f, x);
    if (!smoothed || !(x >= k->from && x <= k->to))
        return derivative[order](curve_at(f, (size_t)(k - f->knots) + (x >= k->x)), x);
    double b[BERLU_SMOOTH_MAX_DEGREE + 1], width = k->to - k->from, scale = 1;
    for (int i = 0; i <= f->piece_degree; i++)
        b[i] = k->control[i];
    for (int i = 0; i < order; i++) {
        bernstein_derivative(b, b, f->piece_degree - i);
        scale /= width;
    }
    return scale * bernstein_value(b, f->piece_degree - order, (x - k->from) / width);
}

double berlu_smooth_value(const berlu_smooth *f, double x)
{
    if (!f)
        return refuse_null("berlu_smooth_value");
    if (f->curved)
        return curved_value(f, x, 0, 1);
    if (f->count == 0)
        return line_value(f->at_y, f->first_slope, x - f->at_x);
    const knot *k = knot_near(f, x);
    double c = x - k->x;
    return line_value(k->y, c < 0 ? k->left : k->right, c) + k->jump * bump_height(f, k, c);
}

double berlu_smooth_slope(const berlu_smooth *f, double x)
{
    if (!f)
        return refuse_null("berlu_smooth_slope");
    if (isnan(x))
        return x;
    if (f->curved)
        return curved_value(f, x, 1, 1);
    if (f->count == 0)
        return f->first_slope;
    const knot *k = knot_near(f, x);
    double c = x - k->x, turn = bump_turn(f, k, c);
    return c < 0 ? k->left + k->jump * turn : k->right - k->jump * turn;
}

double berlu_smooth_curvature(const berlu_smooth *f, double x)
{
    if (!f)
        return refuse_null("berlu_smooth_curvature");
    if (isnan(x))
        return x;
    if (f->curved)
        return curved_value(f, x, 2, 1);
    if (f->count == 0)
        return 0;
    const knot *k = knot_near(f, x);
    return k->jump * bump_bend(f, k, x - k->x);
}

double berlu_smooth_kinked(const berlu_smooth *f, double x)
{
    if (!f)
        return refuse_null("berlu_smooth_kinked");
    if (f->curved)
        return curved_value(f, x, 0, 0);
    if (f->count == 0)
        return line_value(f->at_y, f->first_slope, x - f->at_x);
    const knot *k = knot_near(f, x);
    double c = x - k->x;
    return line_value(k->y, c < 0 ? k->left : k->right, c);
}

double berlu_smooth_casteljau(const berlu_smooth *f, double x)
{
    if (!f)
        return refuse_null("berlu_smooth_casteljau");
    if (f->count == 0)
        return berlu_smooth_value(f, x);
    const knot *k = knot_near(f, x);
    if (!(x >= k->from && x <= k->to))
        return berlu_smooth_value(f, x);
    double width = k->eps_left + k->eps_right;
    return bernstein_value(k->control, f->piece_degree, ((x - k->x) + k->eps_left) / width);
}
