/* measure.c - properties of a smoothed function: contact, Lipschitz constant, gap, monotony.
 * SPDX-License-Identifier: MIT
 *
 * For lines every property has a closed form (docs/math.md, "Invariants"). For curves the slope
 * of a transition is a polynomial whose range is found by halving its control polygon, and the gap
 * by a search. */
#include <math.h>

#include "smooth/bernstein.h"
#include "smooth/smooth.h"

static int refuse_null(const char *call)
{
    berlu_fail(BERLU_ERR_ARG, "%s() was given NULL", call);
    return 0;
}

/* Whether both sides of the kink are one polynomial: then so is the transition. */
static int knot_is_flat(const berlu_smooth *f, const knot *k)
{
    if (!f->curved)
        return k->jump == 0;
    const berlu_curve *a = curve_at(f, (size_t)(k - f->knots)), *b = a + 1;
    return a->scale == 0 && b->scale == 0 && a->constant == b->constant && a->linear == b->linear &&
           a->square == b->square;
}

/* The j-th derivative at an end depends on the j + 1 nearest control values, so the order of
 * contact is the number of control values on that side's line, less one. A control value on the
 * kink itself counts for both. */
static void contact_find(const berlu_smooth *f, const knot *k, int *left, int *right)
{
    int n = f->piece_degree;
    if (knot_is_flat(f, k)) {
        *left = *right = BERLU_SMOOTH_ANALYTIC;
    } else if (f->curved) {
        *left = *right = n / 2;
    } else {
        *left = k->split + (node_side(k, k->split + 1, n) == 0);
        *right = n - k->split - 1 + (node_side(k, k->split, n) == 0);
    }
}

size_t berlu_smooth_kink_count(const berlu_smooth *f)
{
    return f ? f->count : (size_t)refuse_null("berlu_smooth_kink_count");
}

int berlu_smooth_degree(const berlu_smooth *f)
{
    return f ? f->degree : refuse_null("berlu_smooth_degree");
}

berlu_status berlu_smooth_transition(const berlu_smooth *f, size_t index, berlu_transition *out)
{
    if (!f || !out)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_transition() was given NULL");
    if (index >= f->count)
        return berlu_fail(BERLU_ERR_ARG, "there is no transition %zu; the function has %zu", index, f->count);
    const knot *k = &f->knots[index];
    *out = (berlu_transition){
        .from = k->from,
        .to = k->to,
        .x = k->x,
        .y = k->y,
        .left = k->left,
        .right = k->right,
        .eps_left = k->eps_left,
        .eps_right = k->eps_right,
        .degree = f->piece_degree,
    };
    for (int i = 0; i <= f->piece_degree; i++)
        out->control[i] = k->control[i];
    contact_find(f, k, &out->contact_left, &out->contact_right);
    return BERLU_OK;
}

int berlu_smooth_contact_order(const berlu_smooth *f)
{
    if (!f)
        return refuse_null("berlu_smooth_contact_order") - 1;
    int least = BERLU_SMOOTH_ANALYTIC;
    for (size_t i = 0; i < f->count; i++) {
        int left, right;
        contact_find(f, &f->knots[i], &left, &right);
        least = left < least ? left : least;
        least = right < least ? right : least;
    }
    return least;
}

static void widen(double slope, double *low, double *high)
{
    *low = fmin(*low, slope);
    *high = fmax(*high, slope);
}

/* The slope is a polynomial of degree n - 1 with control values left (split times), left + jump
 * lambda, right (the rest). For lambda in [0, 1] it is monotone and the ends decide; beyond, f'' =
 * 0 at t = lambda / (2 lambda - 1) (collinear form only). */
static void lines_slope_range(const berlu_smooth *f, const knot *k, double *low, double *high)
{
    int n = f->piece_degree;
    double middle = k->left + k->jump * k->lambda;
    widen(k->split > 0 ? k->left : middle, low, high);
    widen(k->split < n - 1 ? k->right : middle, low, high);
    if (k->lambda < 0 || k->lambda > 1) {
        double t = k->lambda / (2 * k->lambda - 1), b[BERLU_SMOOTH_MAX_DEGREE];
        for (int i = 0; i < n; i++)
            b[i] = i < k->split ? k->left : i == k->split ? middle : k->right;
        widen(bernstein_value(b, n - 1, t), low, high);
    }
}

static void curves_slope_range(const berlu_smooth *f, const knot *k, double *low, double *high)
{
    double b[BERLU_SMOOTH_MAX_DEGREE + 1], least, most;
    bernstein_derivative(b, k->control, f->piece_degree);
    bernstein_range(b, f->piece_degree - 1, &least, &most);
    widen(least / (k->to - k->from), low, high);
    widen(most / (k->to - k->from), low, high);
}

static void transition_slope_range(const berlu_smooth *f, const knot *k, double *low, double *high)
{
    (f->curved ? curves_slope_range : lines_slope_range)(f, k, low, high);
}

void slope_range(const berlu_smooth *f, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i <= f->count; i++) {
        double from = piece_from(f, i), to = piece_to(f, i);
        if (from < to && f->curved) {
            double least, most;
            curve_slope_range(curve_at(f, i), from, to, &least, &most);
            widen(least, low, high);
            widen(most, low, high);
        } else if (from < to) {
            widen(line_at(f, i).slope, low, high);
        }
        if (i < f->count)
            transition_slope_range(f, &f->knots[i], low, high);
    }
}

double berlu_smooth_lipschitz(const berlu_smooth *f)
{
    if (!f)
        return refuse_null("berlu_smooth_lipschitz"), NAN;
    double low, high;
    slope_range(f, &low, &high);
    return fmax(fabs(low), fabs(high));
}

static double gap_at(const berlu_smooth *f, double x)
{
    return fabs(berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x));
}

/* The largest gap on [from, to], where the gap is smooth: the best of a grid, then golden section
 * around it. */
static double gap_search(const berlu_smooth *f, double from, double to)
{
    enum { GRID = 256, STEPS = 80 };
    const double golden = 0.6180339887498949;
    double best = 0, at = from, step = (to - from) / GRID;
    for (int i = 0; i <= GRID; i++) {
        double x = i < GRID ? from + i * step : to, gap = gap_at(f, x);
        if (gap > best) {
            best = gap;
            at = x;
        }
    }
    double low = fmax(from, at - step), high = fmin(to, at + step);
    for (int i = 0; i < STEPS; i++) {
        double a = high - golden * (high - low), b = low + golden * (high - low);
        double gap_a = gap_at(f, a), gap_b = gap_at(f, b);
        best = fmax(best, fmax(gap_a, gap_b));
        if (gap_a < gap_b)
            low = a;
        else
            high = b;
    }
    return best;
}

static double knot_gap(const berlu_smooth *f, const knot *k)
{
    if (!f->curved && k->lambda >= 0 && k->lambda <= 1) /* one-sided, rising to the kink and falling after it */
        return fabs(k->jump) * bump_height(f, k, 0);
    return fmax(gap_search(f, k->from, k->x), gap_search(f, k->x, k->to));
}

double berlu_smooth_max_gap(const berlu_smooth *f)
{
    if (!f)
        return refuse_null("berlu_smooth_max_gap"), NAN;
    double most = 0;
    for (size_t i = 0; i < f->count; i++)
        most = fmax(most, knot_gap(f, &f->knots[i]));
    return most;
}

static int piece_is_level(const berlu_smooth *f, size_t i)
{
    if (!(piece_from(f, i) < piece_to(f, i)))
        return 0;
    if (!f->curved)
        return line_at(f, i).slope == 0;
    const berlu_curve *c = curve_at(f, i);
    return c->linear == 0 && c->square == 0 && c->scale * c->rate == 0;
}

/* One whose kink does not bend, between level pieces; those may be empty, where transitions
 * touch. */
static int transition_is_level(const berlu_smooth *f, const knot *k)
{
    double low = INFINITY, high = -INFINITY;
    transition_slope_range(f, k, &low, &high);
    return low == 0 && high == 0;
}

/* Strictly monotone: the slope never has the wrong sign, and is 0 at single points only. */
int berlu_smooth_monotone(const berlu_smooth *f)
{
    if (!f)
        return refuse_null("berlu_smooth_monotone");
    double low, high;
    for (size_t i = 0; i <= f->count; i++)
        if (piece_is_level(f, i) || (i < f->count && transition_is_level(f, &f->knots[i])))
            return 0;
    slope_range(f, &low, &high);
    return low >= 0 ? 1 : high <= 0 ? -1 : 0;
}
