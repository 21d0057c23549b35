/* smooth_checks.c - see smooth_checks.h. SPDX-License-Identifier: MIT
 *
 * Each check computes the same number twice: by a closed form of docs/math.md, and from values of
 * the function at sampled points (or an integral over them). Bounds are rounding errors: a few
 * units in the last place of the largest operand. A guarantee that does not apply (curves, kinks
 * off the centre) is still computed and marked as not promised. */
#include "smooth_checks.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "smooth_args.h"

enum { SAMPLES = 256, NODES = 16 };

typedef smooth_checks checks;

static const double rounding = 64 * DBL_EPSILON; /* sixteen operations of four roundings */

static void row_add(checks *c, const char *name, const char *section, int promised, double expected, double found,
                    double bound)
{
    assert(c->count < SMOOTH_CHECKS);
    c->rows[c->count++] = (check_row){name, section, promised, fabs(found - expected) <= bound, expected, found};
}

/* The maximum of `measure` over sampled points of every transition, both joins included. */
typedef double measure(const checks *c, const knot *k, double x);
static double largest(const checks *c, measure *m)
{
    double most = 0;
    for (size_t i = 0; i < c->f->count; i++) {
        const knot *k = &c->f->knots[i];
        for (int s = 0; s <= SAMPLES; s++) {
            double x = s == SAMPLES / 2 ? k->x : k->from + (k->to - k->from) * s / SAMPLES;
            most = fmax(most, m(c, k, x));
        }
    }
    return most;
}

static double steepness(const checks *c, const knot *k, double x)
{
    return (void)k, fabs(berlu_smooth_slope(c->f, x));
}

static double bend(const checks *c, const knot *k, double x)
{
    return (void)k, fabs(berlu_smooth_curvature(c->f, x));
}

static double gap(const checks *c, const knot *k, double x)
{
    return (void)k, fabs(berlu_smooth_value(c->f, x) - berlu_smooth_kinked(c->f, x));
}

static double wrong_side(const checks *c, const knot *k, double x)
{
    double above = berlu_smooth_value(c->f, x) - berlu_smooth_kinked(c->f, x);
    return k->jump > 0 ? -above : k->jump < 0 ? above : fabs(above);
}

static double outside_neighbours(const checks *c, const knot *k, double x)
{
    double slope = berlu_smooth_slope(c->f, x);
    return fmax(fmin(k->left, k->right) - slope, slope - fmax(k->left, k->right));
}

static double two_forms(const checks *c, const knot *k, double x)
{
    return (void)k, fabs(berlu_smooth_value(c->f, x) - berlu_smooth_casteljau(c->f, x));
}

/* f(x) is the anchor's value plus a linear form in the slopes; its coefficients are the
 * derivatives. */
static double gradient_error(const checks *c, const knot *k, double x)
{
    (void)k;
    const berlu_smooth *f = c->f;
    double by_slope[BERLU_SMOOTH_MAX_KINKS + 1], sum = f->at_y;
    if (berlu_smooth_gradient(f, x, by_slope, NULL, NULL) != BERLU_OK)
        return INFINITY;
    for (size_t i = 0; i <= f->count; i++)
        sum += by_slope[i] * line_at(f, i).slope;
    return fabs(sum - berlu_smooth_value(f, x));
}

static double inverse_error(const checks *c, const knot *k, double x)
{
    double back;
    (void)k;
    double y = berlu_smooth_value(c->f, x);
    return berlu_smooth_inverse(c->f, y, &back) == BERLU_OK ? fabs(berlu_smooth_value(c->f, back) - y) : INFINITY;
}

/* ---- contact --------------------------------------------------------------------------------- */

/* The derivative of the given order of a piece at x, and the magnitude of the terms it sums. */
static double piece_derivative(const berlu_piece *p, double x, int order, double *size)
{
    double c = p->bounded ? x - (p->from / 2 + p->to / 2) : x, sum = 0, terms = 0;
    for (int j = p->degree; j >= order; j--) {
        double factor = p->monomial[j];
        for (int k = 0; k < order; k++)
            factor *= j - k;
        sum = sum * c + factor;
        terms = terms * fabs(c) + fabs(factor);
    }
    double tail = p->polynomial ? 0 : p->scale * pow(p->rate, order) * (order ? exp(p->rate * x) : expm1(p->rate * x));
    *size = terms + fabs(tail);
    return sum + tail;
}

/* The number of derivatives in which the pieces on the two sides of a join agree. */
static int contact_measured(const berlu_piece *a, const berlu_piece *b, double x)
{
    for (int order = 0; order <= BERLU_SMOOTH_MAX_DEGREE; order++) {
        double left_size, right_size, left = piece_derivative(a, x, order, &left_size);
        double right = piece_derivative(b, x, order, &right_size);
        if (fabs(left - right) > 16 * rounding * fmax(left_size, right_size))
            return order - 1;
    }
    return BERLU_SMOOTH_ANALYTIC;
}

static int contact_promised(const berlu_smooth *f, const knot *k)
{
    int n = f->piece_degree;
    if (f->curved || smooth_is_collinear(f))
        return (n - 1) / 2;
    double theta = k->eps_left / (k->eps_left + k->eps_right);
    return k->centred ? n / 2 : (int)fmin(floor(n * theta), floor(n * (1 - theta)));
}

static void contact_check(checks *c)
{
    const berlu_smooth *f = c->f;
    int promised = BERLU_SMOOTH_ANALYTIC, found = BERLU_SMOOTH_ANALYTIC;
    for (size_t i = 0; i < f->count; i++)
        if (f->curved || f->knots[i].jump != 0) {
            int order = contact_promised(f, &f->knots[i]);
            promised = order < promised ? order : promised;
        }
    for (size_t i = 0; i + 1 < berlu_smooth_piece_count(f); i++) {
        berlu_piece a, b;
        berlu_smooth_piece(f, i, &a);
        berlu_smooth_piece(f, i + 1, &b);
        int order = contact_measured(&a, &b, a.to);
        found = order < found ? order : found;
    }
    row_add(c, "continuous derivatives at every join", "1", 1, promised, found, 0);
}

/* ---- integrals ------------------------------------------------------------------------------- */

/* Nodes and weights of Gauss and Legendre on [-1, 1]: exact for polynomials of degree 31. */
static void legendre(double node[NODES], double weight[NODES])
{
    for (int i = 0; i < NODES; i++) {
        double x = cos(M_PI * (i + 0.75) / (NODES + 0.5)), slope = 1;
        for (int step = 0; step < 50; step++) {
            double p = 1, before = 0;
            for (int j = 0; j < NODES; j++) {
                double next = ((2 * j + 1) * x * p - j * before) / (j + 1);
                before = p;
                p = next;
            }
            slope = NODES * (x * p - before) / (x * x - 1);
            double move = p / slope;
            x -= move;
            if (fabs(move) < 1e-16)
                break;
        }
        node[i] = x;
        weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

typedef double integrand(const berlu_smooth *f, double x, const void *more);
static double integral(const berlu_smooth *f, integrand *g, double from, double to, const void *more)
{
    double node[NODES], weight[NODES], sum = 0;
    legendre(node, weight);
    for (int i = 0; i < NODES; i++)
        sum += weight[i] * g(f, (from + to) / 2 + (to - from) / 2 * node[i], more);
    return sum * (to - from) / 2;
}

static double gap_integrand(const berlu_smooth *f, double x, const void *more)
{
    return (void)more, berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x);
}

static void area_check(checks *c)
{
    double expected = 0, found = 0, size = 0;
    for (size_t i = 0; i < c->f->count; i++) {
        const knot *k = &c->f->knots[i];
        double eps = k->eps_left, m = c->f->piece_degree / 2;
        expected += fabs(k->jump) * eps * eps / (2 * (2 * m + 1));
        found +=
            fabs(integral(c->f, gap_integrand, k->from, k->x, NULL) + integral(c->f, gap_integrand, k->x, k->to, NULL));
        size += c->height * (k->to - k->from);
    }
    row_add(c, "area between the two: sum of |J| eps^2 / (2 (2m + 1))", "2", c->centred, expected, found,
            4 * rounding * (size + expected));
}

typedef struct averaging {
    double x, eps, factor;
    int m;
} averaging;

static double noise_integrand(const berlu_smooth *f, double u, const void *more)
{
    const averaging *a = more;
    return berlu_smooth_kinked(f, a->x + a->eps * u) * a->factor * pow(1 - u * u, a->m - 1);
}

/* E f(x + eps U) at x near one kink, where no other kink is within eps. */
static double average_error(const checks *c, const knot *k, double x)
{
    averaging a = {.x = x, .eps = k->eps_left, .factor = c->f->bump.peak / 2, .m = c->f->bump.m};
    for (const knot *other = c->f->knots; other < c->f->knots + c->f->count; other++)
        if (other != k && fabs(other->x - x) < a.eps)
            return 0;
    double middle = fmax(-1, fmin(1, (k->x - x) / a.eps));
    double mean = integral(c->f, noise_integrand, -1, middle, &a) + integral(c->f, noise_integrand, middle, 1, &a);
    return fabs(mean - berlu_smooth_value(c->f, x));
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void outside_check(checks *c)
{
    double most = 0;
    const berlu_smooth *f = c->f;
    for (size_t i = 0; i <= f->count; i++) {
        double from = piece_from(f, i), to = piece_to(f, i),
               reach = f->count ? 10 * (f->knots[0].to - f->knots[0].from) : 1;
        from = isfinite(from) ? from : isfinite(to) ? to - reach : -1;
        to = isfinite(to) ? to : from + reach;
        for (int s = 1; s < SAMPLES && from < to; s++) {
            double x = from + (to - from) * s / SAMPLES;
            most = fmax(most, fabs(berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x)));
        }
    }
    row_add(c, "unchanged outside the transitions", "1", 1, 0, most, 0);
}

static void variation_check(checks *c)
{
    double expected = 0, found = 0;
    for (size_t i = 0; i < c->f->count; i++) {
        const knot *k = &c->f->knots[i];
        double before = berlu_smooth_slope(c->f, k->from);
        found += fabs(before - (c->f->curved ? before : k->left));
        expected += fabs(k->jump);
        for (int s = 1; s <= SAMPLES; s++) {
            double slope = berlu_smooth_slope(c->f, k->from + (k->to - k->from) * s / SAMPLES);
            found += fabs(slope - before);
            before = slope;
        }
        found += fabs((c->f->curved ? before : k->right) - before);
    }
    row_add(c, "variation of the slope: sum of |J|", "2", c->monotone_slopes, expected, found,
            SAMPLES * rounding * (c->steep + expected));
}

/* No line is crossed more often than by the given function; tries chords of sampled points and
 * their shifts. */
static int crossings(const berlu_smooth *f, double low, double high, double y, double slope, int kinked)
{
    int count = 0;
    double last = 0;
    for (int s = 0; s <= 4 * SAMPLES; s++) {
        double x = low + (high - low) * s / (4 * SAMPLES);
        double above = (kinked ? berlu_smooth_kinked(f, x) : berlu_smooth_value(f, x)) - (y + slope * (x - low));
        count += above * last < 0;
        last = above != 0 ? above : last;
    }
    return count;
}

static void crossing_check(checks *c)
{
    const berlu_smooth *f = c->f;
    int more = 0;
    if (f->count == 0)
        return;
    double margin = f->knots[f->count - 1].to - f->knots[0].from, low = f->knots[0].from - margin,
           high = f->knots[f->count - 1].to + margin;
    for (int a = 0; a < 16; a++)
        for (int b = a + 1; b < 16; b++) {
            double xa = low + (high - low) * a / 16, xb = low + (high - low) * b / 16;
            double ya = berlu_smooth_kinked(f, xa) + 0.01 * margin * (b % 5 - 2), yb = berlu_smooth_kinked(f, xb);
            double slope = (yb - ya) / (xb - xa), y = ya + slope * (low - xa);
            more += crossings(f, low, high, y, slope, 0) > crossings(f, low, high, y, slope, 1);
        }
    row_add(c, "lines crossed more often than before (of 120)", "2", c->monotone_slopes, 0, more, 0);
}

static void slopes_check(checks *c)
{
    double given = 0, low, high, peak = 0, most = 0;
    const berlu_smooth *f = c->f;
    for (size_t i = 0; i <= f->count && !f->curved; i++)
        given = fmax(given, fabs(line_at(f, i).slope));
    slope_range(f, &low, &high);
    if (!f->curved)
        row_add(c, "Lipschitz constant: the largest |slope| given", "2", c->monotone_slopes, given,
                berlu_smooth_lipschitz(f), rounding * given);
    row_add(c, "largest |slope| sampled beyond the constant", "2", 1, 0,
            fmax(0, largest(c, steepness) - berlu_smooth_lipschitz(f)), rounding * c->steep);
    row_add(c, "slope outside those of its neighbours", "2", c->monotone_slopes, 0,
            fmax(0, largest(c, outside_neighbours)), rounding * c->steep);
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        peak = fmax(peak, fabs(k->jump) * f->bump.peak / (2 * k->eps_left));
        most = fmax(most, fabs(k->jump) * bump_height(f, k, 0));
    }
    if (c->centred) {
        row_add(c, "largest |f''|: |J| K_m / (2 eps), at the kink", "2", 1, peak, largest(c, bend), rounding * peak);
        row_add(c, "largest gap: |J| eps C(2m, m) / 2^(2m + 1), at the kink", "2", 1, most, largest(c, gap),
                rounding * (most + c->height));
    }
}

void smooth_checks_make(checks *c, const berlu_smooth *f)
{
    *c = (checks){.f = f, .centred = !f->curved, .monotone_slopes = !f->curved};
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        c->centred &= k->centred;
        c->monotone_slopes &= k->lambda >= 0 && k->lambda <= 1;
        for (int j = 0; j <= f->piece_degree; j++)
            c->height = fmax(c->height, fabs(k->control[j]));
        c->height = fmax(c->height, fmax(fabs(k->left), fabs(k->right)) * (fabs(k->x) + k->eps_left + fabs(f->at_x)));
        c->steep = fmax(c->steep, fmax(fabs(k->left), fabs(k->right)));
    }
    c->height += fabs(f->at_y);
    outside_check(c);
    contact_check(c);
    slopes_check(c);
    variation_check(c);
    row_add(c, "on the wrong side of the given function", "2", c->monotone_slopes, 0, fmax(0, largest(c, wrong_side)),
            rounding * c->height);
    crossing_check(c);
    if (c->centred) {
        area_check(c);
        row_add(c, "mean over noise of width eps less the value", "2", 1, 0, largest(c, average_error),
                16 * rounding * c->height);
    }
    row_add(c, "line plus bump less de Casteljau's value", "1", 1, 0, largest(c, two_forms), rounding * c->height);
    if (!f->curved)
        row_add(c, "value less its linear form in the slopes", "3", 1, 0, largest(c, gradient_error),
                (double)(f->count + 1) * rounding * c->height);
    if (berlu_smooth_monotone(f) != 0 && f->count)
        row_add(c, "value at the inverse less the value", "4", 1, 0, largest(c, inverse_error), rounding * c->height);
}
