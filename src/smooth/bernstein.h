/* bernstein.h - polynomials in Bernstein form on [0, 1]. SPDX-License-Identifier: MIT
 *
 * A polynomial of degree n is its n + 1 control values b: sum over k of b[k] C(n,k) t^k
 * (1-t)^(n-k). All operations are averages of control values (de Casteljau), which is stable and
 * keeps the value inside the hull of the values. */
#ifndef SMOOTH_BERNSTEIN_H
#define SMOOTH_BERNSTEIN_H

enum { BERNSTEIN_MAX = 16 };

double bernstein_value(const double *b, int degree, double t);

/* Control values of the derivative by t: degree - 1, one value fewer. `out` may be b. */
void bernstein_derivative(double *out, const double *b, int degree);

/* C(degree, k) t^k s^(degree-k); 0 outside 0 <= k <= degree. s is 1 - t, which the caller may know
 * more exactly. */
double bernstein_weight(int degree, int k, double t, double s);

/* The smallest and the largest value on [0, 1], to a few roundings. */
void bernstein_range(const double *b, int degree, double *low, double *high);

/* Coefficients of (t - 1/2)^j, ascending, degree + 1 of them. */
void bernstein_to_monomial(double *out, const double *b, int degree);

#endif
