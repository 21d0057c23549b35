/* smooth.h - the internal structure of a berlu_smooth. SPDX-License-Identifier: MIT
 *
 * One block of memory, never changed after it was made and without pointers into itself, so a copy
 * is a memcpy. A function is a list of knots: a kink, its transition, and the lines on both sides.
 * Off-centre transitions need two more numbers than centred ones: the last control value on the
 * left line (`split`), and the position of the one slope between the two groups (`lambda`, 0 = left
 * slope, 1 = right slope). With them both forms of <berlu/smooth.h> are one formula. */
#ifndef SMOOTH_SMOOTH_H
#define SMOOTH_SMOOTH_H

#include <math.h>

#include <berlu/smooth.h>

#include "base/status.h"
#include "smooth/bump.h"

typedef struct knot {
    double x, y;        /* the kink and the kinked function's value there */
    double left, right; /* the slopes on both sides */
    double jump;        /* right - left */
    double eps_left, eps_right;
    double from, to; /* the joins */
    double until;    /* for x < until this is the nearest knot */
    double lambda;
    int split;
    int centred;
    double control[BERLU_SMOOTH_MAX_DEGREE + 1];
} knot;

struct berlu_smooth {
    size_t count;     /* knots */
    int degree;       /* as requested */
    int piece_degree; /* of the transitions: `degree` for lines, 2m + 1 for curves */
    int curved;       /* the pieces are curves: count + 1 of them follow the knots */
    double at_x, at_y, first_slope;
    bump bump; /* of the centred transitions */
    knot knots[];
};

/* Curve i of a curved function: the piece left of knot i. */
static inline berlu_curve *curve_at(const berlu_smooth *f, size_t i)
{
    return (berlu_curve *)(f->knots + f->count) + i;
}

/* The knot whose transition is nearest to x (the last one for NaN). f->count > 0. */
const knot *knot_near(const berlu_smooth *f, double x);

/* The side of the kink on which a node of the transition lies: -1 left, 0 exactly on it, 1
 * right. */
int node_side(const knot *k, int node, int degree);

/* Differences between the smoothed function of jump 1 and the nearer line at distance c from the
 * kink. All are >= 0 unless the collinear form is used beyond its range. */
double bump_height(const berlu_smooth *f, const knot *k, double c); /* smoothed - kinked */
double bump_turn(const berlu_smooth *f, const knot *k, double c);   /* |slope - slope of the nearer line| */
double bump_bend(const berlu_smooth *f, const knot *k, double c);   /* second derivative */

/* A curve and its first two derivatives; at infinities the limits. */
double curve_value(const berlu_curve *c, double x);
double curve_slope(const berlu_curve *c, double x);
double curve_curvature(const berlu_curve *c, double x);
void curve_slope_range(const berlu_curve *c, double from, double to, double *low, double *high);

/* The ends of the given function's piece left of knot i (i = count: right of the last knot). The
 * piece may be empty. */
static inline double piece_from(const berlu_smooth *f, size_t i)
{
    return i > 0 ? f->knots[i - 1].to : -INFINITY;
}

static inline double piece_to(const berlu_smooth *f, size_t i)
{
    return i < f->count ? f->knots[i].from : INFINITY;
}

/* The line of that piece: a point on it and its slope. */
typedef struct line {
    double x, y, slope;
} line;

static inline line line_at(const berlu_smooth *f, size_t i)
{
    if (f->count == 0)
        return (line){f->at_x, f->at_y, f->first_slope};
    const knot *k = &f->knots[i < f->count ? i : i - 1];
    return (line){k->x, k->y, i < f->count ? k->left : k->right};
}

/* The smallest and the largest slope of the whole function (at infinity: its limit). */
void slope_range(const berlu_smooth *f, double *low, double *high);

/* berlu_smooth_source() with another prefix of all names, in float or double. */
berlu_status smooth_source_as(const berlu_smooth *f, const char *prefix, const char *name, int f32, char **out);

/* Checks shared by both makers; each names the value that is wrong. */
berlu_status check_kinks(const double *kinks, size_t count);
berlu_status check_eps(const double *eps, size_t eps_count, size_t kink_count, const char *name);
berlu_status check_spacing(const knot *knots, size_t count);
berlu_status check_finite(double value, const char *what, size_t index);
void knots_divide(berlu_smooth *f); /* sets `until`, and joins that touch to one number */

#endif
