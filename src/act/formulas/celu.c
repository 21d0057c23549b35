/* celu.c - celu in double: x for x > 0, else alpha (e^(x/alpha) - 1).
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

/* e^z - 1 - z e^z; near 0 by its series -sum (k - 1) z^k / k!, where the two terms cancel */
static double alpha_slope(double z, double growth, double power)
{
    if (fabs(z) > 0.5)
        return z < -800 ? -1 : z > 600 ? (1 - z) * power : growth - z * power;
    double term = z, sum = 0;
    for (int k = 2; k < 24; k++) {
        term *= z / k;
        sum -= (k - 1) * term;
    }
    return sum;
}

/* z = x / alpha in two parts: the rounding of z would be multiplied by z in e^z */
static void celu_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)shape;
    double alpha = p[0];
    if (isnan(alpha) || isnan(x)) {
        double nan = x + alpha;
        *out = (berlu_act_point){.value = nan, .slope = nan, .second = nan, .param = {nan}};
    } else if (x > 0) {
        *out = (berlu_act_point){.value = x, .slope = 1};
    } else {
        double z = x / alpha, low = fabs(z) < 700 ? fma(-z, alpha, x) / alpha : 0;
        double power = exp(z) * (1 + low), growth = low != 0 ? expm1(z) + low * power : expm1(z);
        double value = x == 0 ? x : alpha * growth; /* keeps the sign of zero */
        *out = (berlu_act_point){value, power, power / alpha, {alpha_slope(z, growth, power)}};
    }
}

static double celu_lipschitz(const double *p, const act_shape *shape)
{
    (void)shape;
    return p[0] > 0 ? 1 : INFINITY;
}

static int celu_from_output(const double *p, const act_shape *shape)
{
    (void)shape;
    return p[0] > 0;
}

const act_definition act_celu = {
    .name = "celu",
    .about = "x for x > 0, else alpha (exp(x / alpha) - 1)",
    .param_count = 1,
    .params = {{.name = "alpha", .initial = 1, .low = -0x1p100, .high = 0x1p100, .least = 0x1p-100}},
    .ulp = 2,
    .slope_ulp = 4,
    .point = celu_point,
    .lipschitz = celu_lipschitz,
    .from_output = celu_from_output,
};
