/* judge.h - the activations in multiple precision: the last word where double is close to a bound. SPDX-License-Identifier: MIT */
#ifndef TESTS_ACT_JUDGE_H
#define TESTS_ACT_JUDGE_H

#include <berlu/act.h>

/* The true value and slope at x, rounded once to double. 0 when this activation is not known here. x is finite and, for the
 * slope, not a kink. */
int judge_value(const berlu_act *act, double x, double *out);
int judge_slope(const berlu_act *act, double x, double *out);

/* |got - want| in units in the last place of f32 at `unit` (subnormal numbers share one unit). */
double judge_ulps(float got, double want, double unit);

#endif
