/* reference.h - the activations in multiple precision, decisive where double is close to a bound.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_ACT_REFERENCE_H
#define TESTS_ACT_REFERENCE_H

#include <berlu/act.h>

/* The exact value and derivative at x, rounded once to double. 0 when this activation is not known
 * here, or when x is one of its kinks, where there is no derivative. x is finite. */
int reference_value(const berlu_act *act, double x, double *out);
int reference_slope(const berlu_act *act, double x, double *out);

int reference_exists(void); /* 0: compiled without MPFR (-DREFERENCE_NO_MPFR), and nothing is known */

/* The absolute bound of the derivative near its zeros, in units of 2^-24; 0 when it has no such
 * zeros. */
double reference_slope_absolute(const berlu_act *act);

/* The unit in the last place of f32 at `size` (subnormal numbers share one). |got - want| in units
 * at `unit`. */
double reference_unit(double size);
double reference_ulps(float got, double want, double unit);

#endif
