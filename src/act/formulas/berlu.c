/* berlu.c - BerLU in double, the reference; the formula is in berlu.h. SPDX-License-Identifier: MIT
 *
 * The same line plus bump, but bump and step are sums of binomial probabilities of r = (eps - |x|)
 * / (2 eps), straight from the Bernstein form: no term is negative, so nothing cancels, and no
 * table of the kernel is used, so that its Q and W have an independent reference. */
#include <math.h>

#include "act/formulas/berlu_exact.h"
#include "act/formulas/definition.h"
#include "base/status.h"
#include "smooth/limits.h"

/* C(n, k) for the small n that occur; exact. */
static double choose(int n, int k)
{
    double c = 1;
    for (int i = 1; i <= k; i++)
        c = c * (n - k + i) / i;
    return c;
}

static double power(double t, int k)
{
    double p = 1;
    while (k-- > 0)
        p *= t;
    return p;
}

/* The transition of the slope from one line to the other: S_m(t) = P(Binomial(2m-1, t) >= m). Every
 * term is positive. */
static double step(int m, double t)
{
    double sum = 0, c = choose(2 * m - 1, m), up = power(t, m);
    for (int k = m; k <= 2 * m - 1; k++) {
        sum += c * up * power(1 - t, 2 * m - 1 - k);
        up *= t;
        c = c * (2 * m - 1 - k) / (k + 1);
    }
    return sum;
}

/* h = the integral of S_m from 0 to r, for r <= 1/2: P(Binomial(2m, r) > m) weighted, every term
 * positive. */
static double bump(int m, double r)
{
    double sum = 0, c = choose(2 * m, m + 1), up = power(r, m + 1);
    for (int k = m + 1; k <= 2 * m; k++) {
        sum += (k - m) * c * up * power(1 - r, 2 * m - k);
        up *= r;
        c = c * (2 * m - k) / (k + 1);
    }
    return sum / m;
}

void berlu_exact(berlu_act_point *out, double x, double alpha, double eps, int degree)
{
    int m = degree / 2;
    double jump = 1 - alpha, depth = eps - fabs(x);
    double r = depth > 0 ? depth / (2 * eps) : 0, w = 4 * r * (1 - r);
    double peak = choose(2 * m, m) / power(4, m) / 2; /* p_m(0) / 2 */
    double steepest = m * choose(2 * m, m) / power(4, m) * 2;
    double h = r > 0 ? bump(m, r) : 0, t = r > 0 ? step(m, r) : 0;
    int left = x < 0;
    out->value = (left ? alpha * x : x) + jump * (eps * h);
    out->slope = left ? alpha + jump * t : 1 - jump * t;
    out->second = depth >= 0 ? jump / (2 * eps) * steepest * power(w, m - 1) : 0;
    out->param[0] = (left ? x : 0) - eps * h;
    out->param[1] = jump * peak * power(w, m);
    if (isnan(x) || isnan(alpha) || isnan(eps))
        out->value = out->slope = out->second = out->param[0] = out->param[1] = NAN;
}

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    berlu_exact(out, x, p[0], p[1], shape->degree);
}

/* The slope takes every value between alpha and 1, and no other. */
static double lipschitz(const double *p, const act_shape *shape)
{
    (void)shape;
    return fmax(1, fabs(p[0]));
}

static int from_output(const double *p, const act_shape *shape)
{
    return shape->degree == 2 && p[0] > 0;
}

/* The kernels multiply by it (square, in berlu.h). */
static berlu_status check(const double *p)
{
    if (isfinite((float)((1 - p[0]) / p[1])))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG, "berlu: with alpha=%g and eps=%g (1 - alpha) / eps exceeds the range of f32", p[0],
                      p[1]);
}

const act_definition act_berlu = {
    .name = "berlu",
    .about = "leaky ReLU with its kink smoothed by a Bernstein polynomial on |x| < eps",
    .param_count = 2,
    .params = {{.name = "alpha", .initial = 0.01, .low = -INFINITY, .high = INFINITY, .learned = 1},
               {.name = "eps", .initial = 0.01, .low = EPS_MIN, .high = EPS_MAX}},
    .degree = 2,
    .ulp = 5,
    .slope_ulp = 5,
    .point = point,
    .lipschitz = lipschitz,
    .from_output = from_output,
    .check = check,
};
