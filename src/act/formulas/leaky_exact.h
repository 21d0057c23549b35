/* leaky_exact.h - x > 0 ? x : alpha x in double, for leaky_relu and prelu.
 * SPDX-License-Identifier: MIT
 *
 * The two differ in their defaults alone: prelu's alpha is learned. */
#ifndef ACT_FORMULAS_LEAKY_EXACT_H
#define ACT_FORMULAS_LEAKY_EXACT_H

#include "act/formulas/definition.h"

void leaky_point(berlu_act_point *out, double x, const double *p, const act_shape *shape);
double leaky_lipschitz(const double *p, const act_shape *shape);
int leaky_from_output(const double *p, const act_shape *shape);

#endif
