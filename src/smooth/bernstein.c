/* bernstein.c - de Casteljau's algorithm and its consequences. SPDX-License-Identifier: MIT
 *
 * Value, derivative and halves of a polynomial are averages and differences of control values. The
 * range follows from the hull: halve until the control values of a part lie inside the values
 * found so far. */
#include "smooth/bernstein.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "smooth/bump.h"

double bernstein_value(const double *b, int degree, double t)
{
    double v[BERNSTEIN_MAX + 1];
    memcpy(v, b, (size_t)(degree + 1) * sizeof *v);
    for (int level = degree; level > 0; level--)
        for (int k = 0; k < level; k++)
            v[k] = (1 - t) * v[k] + t * v[k + 1];
    return v[0];
}

void bernstein_derivative(double *out, const double *b, int degree)
{
    for (int k = 0; k < degree; k++)
        out[k] = degree * (b[k + 1] - b[k]);
}

double bernstein_weight(int degree, int k, double t, double s)
{
    double weight = (double)binomial(degree, k);
    for (int i = 0; i < k; i++)
        weight *= t;
    for (int i = k; i < degree; i++)
        weight *= s;
    return weight;
}

/* Splits at 1/2: `left` and `right` are the control values of the halves. */
static void bernstein_split(const double *b, int degree, double *left, double *right)
{
    double v[BERNSTEIN_MAX + 1];
    memcpy(v, b, (size_t)(degree + 1) * sizeof *v);
    for (int level = degree; level >= 0; level--) {
        left[degree - level] = v[0];
        right[level] = v[level];
        for (int k = 0; k < level; k++)
            v[k] = (v[k] + v[k + 1]) / 2;
    }
}

/* Widens [low, high] to hold the values of the polynomial. End values are values; a part whose
 * control values all lie inside [low, high] already cannot add anything. Near an extremum the hull
 * closes with the square of the width, so few parts survive each halving; the depth only guards
 * against rounding. */
static void range_widen(const double *b, int degree, int depth, double *low, double *high)
{
    *low = fmin(*low, fmin(b[0], b[degree]));
    *high = fmax(*high, fmax(b[0], b[degree]));
    double slack = 2 * DBL_EPSILON * fmax(fabs(*low), fabs(*high));
    int decided = 1;
    for (int k = 1; k < degree; k++)
        decided &= b[k] >= *low - slack && b[k] <= *high + slack;
    if (decided || depth == 0)
        return;
    double left[BERNSTEIN_MAX + 1], right[BERNSTEIN_MAX + 1];
    bernstein_split(b, degree, left, right);
    range_widen(left, degree, depth - 1, low, high);
    range_widen(right, degree, depth - 1, low, high);
}

void bernstein_range(const double *b, int degree, double *low, double *high)
{
    *low = *high = b[0];
    range_widen(b, degree, 40, low, high);
}

void bernstein_to_monomial(double *out, const double *b, int degree)
{
    double d[BERNSTEIN_MAX + 1], factorial = 1;
    memcpy(d, b, (size_t)(degree + 1) * sizeof *d);
    for (int j = 0; j <= degree; j++) { /* d holds the j-th derivative */
        out[j] = bernstein_value(d, degree - j, 0.5) / factorial;
        bernstein_derivative(d, d, degree - j);
        factorial *= j + 1;
    }
}
