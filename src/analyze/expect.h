/* expect.h - averages of an activation over normal inputs, exact at its kinks.
 * SPDX-License-Identifier: MIT
 *
 * The theory of deep networks needs E[f(sZ)^2], E[f'(sZ)^2] and the like. Gauss-Hermite rules fail
 * for functions with kinks or narrow transitions (no node falls inside a transition of width 0.02),
 * so integrals here are split where the function is not smooth and use Gauss-Legendre panels
 * between. The breaks are found for any activation, including a user's own (breaks.c). */
#ifndef ANALYZE_EXPECT_H
#define ANALYZE_EXPECT_H

#include <stddef.h>

#include <berlu/act.h>

enum { GAUSS_POINTS = 20, BREAKS_MAX = 64 };

/* An activation under analysis. Its parameters are f32 (0.01 is 0.0099999998); theory is about the
 * number as written, so the averages use the shortest decimal of each. */
typedef struct subject {
    const berlu_act *act;
    double params[BERLU_ACT_PARAMS];
} subject;
typedef enum subject_params { PARAMS_OWN, PARAMS_AS_WRITTEN } subject_params;
subject subject_of(const berlu_act *act, subject_params kind);
berlu_act_point subject_at(const subject *s, double x);

/* Nodes and weights of the Gauss-Legendre rule on [-1, 1]. */
typedef struct gauss_rule {
    int points;
    double x[GAUSS_POINTS], w[GAUSS_POINTS];
} gauss_rule;
void gauss_make(gauss_rule *out, int points); /* at most GAUSS_POINTS */

/* Where an activation is not smooth: kinks (the slope jumps) and joins (a higher derivative
 * jumps). */
typedef struct breaks {
    size_t count;
    double at[BREAKS_MAX];   /* increasing */
    double jump[BREAKS_MAX]; /* of the slope; 0 at a join */
} breaks;

/* Searches [-range, range]; stores at most BREAKS_MAX breaks. */
void breaks_find(breaks *out, const subject *s, double range);

/* Averages over x = scale Z, Z standard normal. */
typedef struct moments {
    double value, square; /* E f, E f^2 */
    double slope, slope2; /* E f', E f'^2 */
    double second2;       /* E f''^2; INFINITY where the slope jumps */
    double variance;      /* of f */
    double nonlinear;     /* share of the variance that no straight line explains, 1 - R^2 */
} moments;

void moments_find(moments *out, const subject *s, const breaks *b, double scale);

/* The width of panels, in units of Z, at which an unrefined rule gives E f^2 and E f'^2 to
 * rounding; for integrals over two inputs. */
double panels_width(const subject *s, const breaks *b, double scale);

enum { EXPECT_REACH = 9 }; /* integrals end at 9 deviations: the rest is below 1e-17 for functions that grow like x */
double normal_density(double z);

#endif
