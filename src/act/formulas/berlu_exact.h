/* berlu_exact.h - BerLU in double, for berlu and for smelu, which is BerLU with alpha = 0.
 * SPDX-License-Identifier: MIT */
#ifndef ACT_FORMULAS_BERLU_EXACT_H
#define ACT_FORMULAS_BERLU_EXACT_H

#include <berlu/act.h>

/* Fills value, slope, second, and param[] = d/dalpha, d/deps. */
void berlu_exact(berlu_act_point *out, double x, double alpha, double eps, int degree);

#endif
