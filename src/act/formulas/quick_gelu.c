/* quick_gelu.c - quick_gelu in double: x / (1 + e^-1.702 x). The formula is in quick_gelu.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

/* With w = 1.702 x, t = |w|, q = e^-t, d = 1 + q: slope(-t) = q (d - t) / d^2 and slope(t) = 1 -
 * slope(-t), as for silu. What the product 1.702 x loses in double is put into q and t, since e^-w
 * multiplies it by w. */
static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    const double rate = 1.702, rate_low = 4.263256414560601e-17; /* 1.702 less the double */
    double size = fmin(fabs(x), 470), t = rate * size, low = fma(rate, size, -t) + rate_low * size;
    double q = exp(-t) * (1 - low), d = 1 + q;
    double left = q * (d - t - low) / (d * d);
    out->value = isnan(x) ? x : x > 0 ? x / d : copysign(size * q / d, x);
    out->slope = isnan(x) ? x : x < 0 ? left : 1 - left;
    out->second = isnan(x) ? x : rate * q * (2 * d - t * (1 - q)) / (d * d * d);
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1.0998393201288669170; /* that of silu, whose graph this is on another scale */
}

const act_definition act_quick_gelu = {
    .name = "quick_gelu",
    .about = "x / (1 + exp(-1.702 x))",
    .ulp = 2,
    .slope_ulp = 4,
    .point = point,
    .lipschitz = lipschitz,
};
