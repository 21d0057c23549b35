/* judge.h - the activations in multiple precision: the last word where double is close to a bound. SPDX-License-Identifier: MIT */
#ifndef TESTS_ACT_JUDGE_H
#define TESTS_ACT_JUDGE_H

#include <berlu/act.h>

/* The true value and slope at x, rounded once to double. 0 when this activation is not known here, or when x is one of its
 * kinks, where there is no slope. x is finite. */
int judge_value(const berlu_act *act, double x, double *out);
int judge_slope(const berlu_act *act, double x, double *out);

/* Where the slope crosses zero its bound is absolute: in units of 2^-24; 0 when this slope has no such zeros. */
double judge_slope_absolute(const berlu_act *act);

/* |got - want| in units in the last place of f32 at `unit` (subnormal numbers share one unit). */
double judge_ulps(float got, double want, double unit);

#endif
