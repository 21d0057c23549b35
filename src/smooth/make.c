/* make.c - checks a description and builds the knots of a piecewise-linear function.
 * SPDX-License-Identifier: MIT
 *
 * A function that berlu_smooth_make() accepts can be evaluated without any further check, so every
 * refusal is here (and, for curves, in curves.c). Read berlu_smooth_make(), then knot_make(). */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "smooth/limits.h"
#include "smooth/smooth.h"

berlu_status check_finite(double value, const char *what, size_t index)
{
    char number[NUMBER_TEXT];
    if (isfinite(value))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG, "%s %zu is %s; it must be a finite number", what, index + 1,
                      number_text(number, value));
}

berlu_status check_kinks(const double *kinks, size_t count)
{
    if (count > BERLU_SMOOTH_MAX_KINKS)
        return berlu_fail(BERLU_ERR_ARG, "%zu kinks; at most %d are possible", count, BERLU_SMOOTH_MAX_KINKS);
    if (count > 0 && !kinks)
        return berlu_fail(BERLU_ERR_ARG, "the list of kinks is NULL");
    for (size_t i = 0; i < count; i++) {
        berlu_status status = check_finite(kinks[i], "kink", i);
        if (status != BERLU_OK)
            return status;
        if (i > 0 && kinks[i] <= kinks[i - 1])
            return berlu_fail(BERLU_ERR_ARG, "the kinks must increase, but %.15g comes after %.15g", kinks[i],
                              kinks[i - 1]);
    }
    return BERLU_OK;
}

berlu_status check_eps(const double *eps, size_t eps_count, size_t kink_count, const char *name)
{
    if (kink_count == 0)
        return BERLU_OK;
    if (!eps)
        return berlu_fail(BERLU_ERR_ARG, "the list of %s is NULL", name);
    if (eps_count != 1 && eps_count != kink_count)
        return berlu_fail(BERLU_ERR_ARG, "%s: %zu given; give one, or one per kink: %zu", name, eps_count, kink_count);
    for (size_t i = 0; i < eps_count; i++)
        if (!(eps[i] >= EPS_MIN && eps[i] <= EPS_MAX)) /* also NaN */
            return berlu_fail(BERLU_ERR_ARG, "%s is %.15g; it must be in [2^-60, 2^60]", name, eps[i]);
    return BERLU_OK;
}

/* Transitions may touch. Decimal numbers that touch on paper may miss each other by a rounding,
 * hence the slack. */
berlu_status check_spacing(const knot *knots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const knot *a = &knots[i], *b = a + 1;
        if (!(a->from < a->x && a->to > a->x))
            return berlu_fail(BERLU_ERR_ARG, "eps %.15g is lost beside the kink at %.15g; take a larger one",
                              fmin(a->eps_left, a->eps_right), a->x);
        if (i + 1 == count)
            break;
        double distance = b->x - a->x, need = a->eps_right + b->eps_left;
        if (need - distance > 4 * DBL_EPSILON * fmax(need, fmax(fabs(a->x), fabs(b->x))))
            return berlu_fail(BERLU_ERR_ARG,
                              "the transitions of the kinks %.15g and %.15g overlap: %.15g + %.15g is more than "
                              "their distance %.15g; eps = %.15g would fit",
                              a->x, b->x, a->eps_right, b->eps_left, distance, distance / 2);
    }
    return BERLU_OK;
}

void knots_divide(berlu_smooth *f)
{
    for (size_t i = 0; i < f->count; i++) {
        knot *k = &f->knots[i];
        if (i + 1 == f->count) {
            k->until = INFINITY;
            break;
        }
        if (k[1].from < k->to || k[1].from - k->to <= 4 * DBL_EPSILON * fmax(fabs(k->to), fabs(k[1].from)))
            k[1].from = k->to;
        k->until = k->to / 2 + k[1].from / 2;
    }
}

static berlu_status check_spec(const berlu_smooth_spec *spec)
{
    berlu_status status = check_kinks(spec->kinks, spec->kink_count);
    if (status != BERLU_OK)
        return status;
    if (!spec->slopes)
        return berlu_fail(BERLU_ERR_ARG, "the list of slopes is NULL");
    for (size_t i = 0; i <= spec->kink_count; i++)
        if ((status = check_finite(spec->slopes[i], "slope", i)) != BERLU_OK)
            return status;
    if (!isfinite(spec->at_x) || !isfinite(spec->at_y))
        return berlu_fail(BERLU_ERR_ARG, "at is %.15g=%.15g; both must be finite numbers", spec->at_x, spec->at_y);
    if ((status = check_eps(spec->eps, spec->eps_count, spec->kink_count, "eps")) != BERLU_OK)
        return status;
    if (spec->eps_right &&
        (status = check_eps(spec->eps_right, spec->eps_count, spec->kink_count, "eps_right")) != BERLU_OK)
        return status;
    if (spec->degree < BERLU_SMOOTH_MIN_DEGREE || spec->degree > BERLU_SMOOTH_MAX_DEGREE)
        return berlu_fail(BERLU_ERR_ARG, "degree is %d; it must be 2 to 16", spec->degree);
    if (spec->form != BERLU_SMOOTH_BERNSTEIN && spec->form != BERLU_SMOOTH_COLLINEAR)
        return berlu_fail(BERLU_ERR_ARG, "there is no form %d", (int)spec->form);
    if (spec->form == BERLU_SMOOTH_COLLINEAR && spec->degree % 2 == 0)
        return berlu_fail(BERLU_ERR_ARG, "degree is %d; the collinear form needs an odd one, 3 to 15", spec->degree);
    return BERLU_OK;
}

/* Node i lies at (i eps_right - (n - i) eps_left) / n from the kink. The sign is exact: products of
 * small whole numbers are compared together with their rounding errors. */
int node_side(const knot *k, int node, int degree)
{
    int other = degree - node;
    double right = node * k->eps_right, left = other * k->eps_left;
    double rest = right != left ? right - left : fma(node, k->eps_right, -right) - fma(other, k->eps_left, -left);
    return (rest > 0) - (rest < 0);
}

/* The last control value that lies on the left line. */
static int split_find(const knot *k, int degree)
{
    int split = 0;
    while (split + 1 < degree && node_side(k, split + 1, degree) <= 0)
        split++;
    return split;
}

/* Position of the slope between control values split and split + 1, 0 = left, 1 = right; exactly 1
 * or 0 where one of them is on the kink. */
static double lambda_find(const knot *k, int degree)
{
    if (node_side(k, k->split, degree) == 0)
        return 1;
    if (node_side(k, k->split + 1, degree) == 0)
        return 0;
    return k->split + 1 - degree * (k->eps_left / (k->eps_left + k->eps_right));
}

static double node_offset(const knot *k, int node, int degree)
{
    if (k->centred)
        return k->eps_left * (2 * node - degree) / degree;
    return (node * k->eps_right - (degree - node) * k->eps_left) / degree;
}

static void knot_make(knot *k, const berlu_smooth_spec *spec, size_t i)
{
    size_t e = spec->eps_count == 1 ? 0 : i;
    int n = spec->degree;
    k->x = spec->kinks[i];
    k->left = spec->slopes[i];
    k->right = spec->slopes[i + 1];
    k->jump = k->right - k->left;
    k->eps_left = spec->eps[e];
    k->eps_right = spec->eps_right ? spec->eps_right[e] : k->eps_left;
    k->centred = k->eps_left == k->eps_right;
    k->from = k->x - k->eps_left;
    k->to = k->x + k->eps_right;
    k->split = spec->form == BERLU_SMOOTH_COLLINEAR ? n / 2 : split_find(k, n);
    k->lambda = lambda_find(k, n);
    if (spec->form == BERLU_SMOOTH_BERNSTEIN) /* in [0, 1] but for a rounding */
        k->lambda = fmin(fmax(k->lambda, 0), 1);
}

static void control_make(knot *k, int degree)
{
    for (int node = 0; node <= degree; node++)
        k->control[node] = k->y + (node <= k->split ? k->left : k->right) * node_offset(k, node, degree);
}

/* The kinked function's values at the kinks, from the anchor to both sides. */
static void values_make(berlu_smooth *f)
{
    size_t right = 0; /* the first kink at or right of the anchor */
    while (right < f->count && f->knots[right].x < f->at_x)
        right++;
    double x = f->at_x, y = f->at_y;
    for (size_t i = right; i < f->count; i++) {
        y += f->knots[i].left * (f->knots[i].x - x);
        x = f->knots[i].x;
        f->knots[i].y = y;
    }
    x = f->at_x, y = f->at_y;
    for (size_t i = right; i-- > 0;) {
        y += f->knots[i].right * (f->knots[i].x - x);
        x = f->knots[i].x;
        f->knots[i].y = y;
    }
}

/* Checks products: factors that are finite each may still give an infinite one. */
static berlu_status check_size(const berlu_smooth *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        double steepest = fmax(fmax(fabs(k->left), fabs(k->right)), fabs(k->jump));
        if (!isfinite(steepest * (k->eps_left + k->eps_right)) || !isfinite(k->control[0]) ||
            !isfinite(k->control[f->piece_degree]))
            return berlu_fail(BERLU_ERR_ARG, "the values around the kink %.15g exceed the range of double", k->x);
    }
    return BERLU_OK;
}

berlu_status berlu_smooth_make(berlu_smooth **out, const berlu_smooth_spec *spec)
{
    if (out)
        *out = NULL;
    if (!out || !spec)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_make() was given NULL");
    berlu_status status = check_spec(spec);
    if (status != BERLU_OK)
        return status;
    size_t bytes = sizeof(berlu_smooth) + spec->kink_count * sizeof(knot);
    berlu_smooth *f = calloc(1, bytes);
    if (!f)
        return berlu_fail_memory(bytes, "a smoothed function");
    f->count = spec->kink_count;
    f->degree = f->piece_degree = spec->degree;
    f->at_x = spec->at_x;
    f->at_y = spec->at_y;
    f->first_slope = spec->slopes[0];
    bump_make(&f->bump, spec->degree / 2);
    for (size_t i = 0; i < f->count; i++)
        knot_make(&f->knots[i], spec, i);
    values_make(f);
    for (size_t i = 0; i < f->count; i++)
        control_make(&f->knots[i], spec->degree);

    if ((status = check_spacing(f->knots, f->count)) == BERLU_OK && (status = check_size(f)) == BERLU_OK) {
        knots_divide(f);
        *out = f;
        f = NULL;
    }
    free(f);
    return status;
}

static size_t smooth_bytes(const berlu_smooth *f)
{
    size_t curves = f->curved ? (f->count + 1) * sizeof(berlu_curve) : 0;
    return sizeof *f + f->count * sizeof(knot) + curves;
}

berlu_status berlu_smooth_clone(berlu_smooth **out, const berlu_smooth *f)
{
    if (out)
        *out = NULL;
    if (!out || !f)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_clone() was given NULL");
    *out = malloc(smooth_bytes(f));
    if (!*out)
        return berlu_fail_memory(smooth_bytes(f), "a smoothed function");
    memcpy(*out, f, smooth_bytes(f));
    return BERLU_OK;
}

void berlu_smooth_free(berlu_smooth *f)
{
    free(f);
}
