/* linearity.h - how far from a straight line an activation is at a scale of its inputs.
 * SPDX-License-Identifier: MIT
 *
 * For x = s Z the best line explains R^2 = s^2 (E f')^2 / Var f of the variance (Stein's
 * identity). 1 - R^2 is the nonlinearity that a layer can use at that scale: a smooth function
 * at small s, or BerLU with eps far above s, is nearly a line. */
#ifndef ANALYZE_LINEARITY_H
#define ANALYZE_LINEARITY_H

#include <berlu/act.h>

typedef struct linearity {
    double scale;
    double mean, deviation; /* of f(s Z) */
    double slope;           /* of the best line, E f' */
    double nonlinear;       /* 1 - R^2 */
} linearity;

void linearity_find(linearity *out, const berlu_act *act, const double *scales, size_t count);

#endif
