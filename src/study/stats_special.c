/* stats_special.c - Student's t, Fisher's F and the noncentral t, from the incomplete beta
 * function. SPDX-License-Identifier: MIT
 *
 * The degrees of freedom of a study run from 2 to some thousands, and p values far below 1e-10
 * occur, so everything is computed as a tail, with relative accuracy: no 1 - p before the end.
 * The beta function's power term is written around its peak (the formula of the binomial saddle
 * point), which needs only the error of Stirling's series instead of differences of large
 * logarithms of gamma. A tail p holds to some (10 + |log p|) units of its last place. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "study/stats.h"

/* log Gamma(z) = (z - 1/2) log z - z + log(2 pi) / 2 + stirling_error(z). The asymptotic series
 * from 16 on; below, the recurrence error(z) = error(z + 1) + (z + 1/2) log(1 + 1/z) - 1 climbs
 * there. */
static double stirling_error(double z)
{
    double sum = 0;
    for (; z < 16; z++)
        sum += (z + 0.5) * log1p(1 / z) - 1;
    double r = 1 / (z * z);
    double series =
        1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * 691.0 / 360360))));
    return sum + series / z;
}

/* a log(x (a + b) / a), from the distance to the peak x = a / (a + b): part of the exponent of
 * beta_power(). */
static double beta_exponent(double x, double y, double a, double b)
{
    double off = (b * x - a * y) / a;
    return fabs(off) < 0.5 ? a * log1p(off) : a * log(x * (a + b) / a);
}

/* x^a y^b / B(a, b) */
static double beta_power(double x, double y, double a, double b)
{
    double exponent = beta_exponent(x, y, a, b) + beta_exponent(y, x, b, a);
    double error = stirling_error(a + b) - stirling_error(a) - stirling_error(b);
    return sqrt(a / (a + b) * b / (2 * M_PI)) * exp(exponent + error);
}

/* I_x(a, b) = beta_power() / this, a continued fraction by Lentz's method: the even part of the
 * classical one, which needs half the steps and takes x and y = 1 - x both, so that nothing
 * cancels where x is near 1 (many degrees of freedom). At most some dozen steps for x below (a +
 * 1) / (a + b + 2). */
static double beta_fraction(double x, double y, double a, double b)
{
    const double tiny = 1e-300;
    double value = a / (a + 1) * (a * y - b * x + 1), c, d = 0;
    value = c = fabs(value) < tiny ? tiny : value;
    for (double m = 1; m < 100000; m++) {
        double odd = a + 2 * m - 1, even = m * (b - m) * x / odd;
        double over = (a + m - 1) * (a + b + m - 1) / odd * even * x;
        double under = m + even + (a + m) / (odd + 2) * (a * y - b * x + 1 + m * (1 + y));
        d = under + over * d;
        c = under + over / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= c * d;
        if (fabs(c * d - 1) < DBL_EPSILON)
            break;
    }
    return value;
}

double stats_beta(double x, double y, double a, double b)
{
    assert(a > 0 && b > 0);
    if (isnan(x) || isnan(y))
        return NAN;
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    if (x < (a + 1) / (a + b + 2))
        return beta_power(x, y, a, b) / beta_fraction(x, y, a, b);
    return 1 - beta_power(x, y, a, b) / beta_fraction(y, x, b, a);
}

double stats_t_sides(double t, double df)
{
    if (!(df > 0) || isnan(t))
        return NAN;
    if (isinf(t))
        return 0;
    double square = t * t, x = 1 / (1 + square / df);
    return stats_beta(x, square / df * x, df / 2, 0.5);
}

/* P(|T| <= |t|), small where t is */
static double t_inside(double t, double df)
{
    double square = t * t, y = 1 / (1 + square / df);
    return stats_beta(square / df * y, y, 0.5, df / 2);
}

double stats_t_cdf(double t, double df)
{
    double sides = stats_t_sides(t, df);
    if (t <= 0)
        return sides / 2;
    return fabs(t) < 1 && df > 0 ? 0.5 + t_inside(t, df) / 2 : 1 - sides / 2;
}

static double t_density(double t, double df)
{
    double square = t * t, x = 1 / (1 + square / df);
    return beta_power(x, square / df * x, df / 2, 0.5) / t; /* d/dt of stats_beta() */
}

/* t > 0 with P(|T| >= t) = tail, or with P(|T| <= t) = inside where that is the smaller one.
 * Newton's method on the logarithms of both sides: the tail is nearly a power of t and the
 * centre nearly a line, so a few steps do; bisection keeps it in a bracket. */
static double t_solve(double target, double df, int tail)
{
    double low = 0, high = INFINITY, t = 1;
    for (int step = 0; step < 400; step++) {
        double value = tail ? stats_t_sides(t, df) : t_inside(t, df);
        int below = tail ? value > target : value < target; /* t is below the root */
        if (below)
            low = t;
        else
            high = t;
        double slope = 2 * t_density(t, df) * t / value; /* of log value over log t, without its sign */
        double next = value > 0 && slope > 0 ? t * exp((tail ? -1 : 1) * log(target / value) / slope) : NAN;
        if (!(next > low && next < high))
            next = isinf(high) ? 2 * t : low > 0 ? sqrt(low) * sqrt(high) : high / 2;
        if (fabs(next - t) <= DBL_EPSILON * t || high <= nextafter(low, INFINITY))
            return next;
        t = next;
    }
    return t;
}

double stats_t_quantile(double p, double df)
{
    if (!(df > 0) || !(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    if (p == 0.5)
        return 0;
    double half = p < 0.5 ? p : 1 - p; /* exact above 1/2 */
    double t = half < 0.25 ? t_solve(2 * half, df, 1) : t_solve(fabs(2 * p - 1), df, 0);
    return p < 0.5 ? -t : t;
}

double stats_f_upper(double f, double df1, double df2)
{
    if (!(df1 > 0 && df2 > 0) || isnan(f))
        return NAN;
    if (f <= 0 || isinf(f))
        return f <= 0 ? 1 : 0;
    double ratio = df1 / df2 * f, x = 1 / (1 + ratio); /* x = df2 / (df2 + df1 f) */
    return stats_beta(x, ratio * x, df2 / 2, df1 / 2);
}

/* P(|Z + shift| > critical * s) */
static double outside(double shift, double bound)
{
    return (erfc((bound - shift) * M_SQRT1_2) + erfc((bound + shift) * M_SQRT1_2)) / 2;
}

/* T' = (Z + shift) / S, S = sqrt(chi^2 / df) independent of Z: the average of outside() over S. In
 * u = log S the density is proportional to exp(df (u - (e^2u - 1) / 2)), a single smooth peak at 0
 * that falls at least exponentially on both sides: the trapezoidal rule converges faster than any
 * power of its step there. The step follows the narrower of the peak, 1 / sqrt(2 df), and the
 * change of outside() over u, about 1 / shift; below 0.1 because e^u doubles back at Im u = pi / 4,
 * which leaves an error of exp(-2 pi (pi / 4) / 0.1). */
double stats_t_power(double shift, double df, double alpha)
{
    double critical = -stats_t_quantile(alpha / 2, df);
    if (isnan(critical) || isnan(shift))
        return NAN;
    double step = fmin(0.1, fmin(0.4 / sqrt(2 * df), 0.4 / (fabs(shift) + 2))), sum = 0, weights = 0;
    for (int side = -1; side <= 1; side += 2)
        for (int k = side > 0 ? 0 : 1; k < 1000000; k++) {
            double u = side * k * step, weight = exp(df * (u - expm1(2 * u) / 2));
            if (weight < 1e-19)
                break;
            sum += weight * outside(shift, critical * exp(u));
            weights += weight;
        }
    return sum / weights; /* the weights alone integrate the density, by the same rule */
}
