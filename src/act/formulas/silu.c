/* silu.c - silu in double: x / (1 + e^-x), by q = e^-|x| so that nothing overflows.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

/* f'(-t) = q (d - t) / d^2 and f'(t) = 1 - f'(-t), with d = 1 + q; the second derivative is even */
static void silu_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double t = fmin(fabs(x), 800), q = exp(-t), d = 1 + q;
    double left = q * (d - t) / (d * d);
    out->value = isnan(x) ? x : x > 0 ? x / d : copysign(t * q / d, x);
    out->slope = isnan(x) ? x : x < 0 ? left : 1 - left;
    out->second = isnan(x) ? x : q * (2 * d - t * (1 - q)) / (d * d * d);
}

static double silu_lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1.0998393201288669170; /* where x tanh(x / 2) = 2 */
}

const act_definition act_silu = {
    .name = "silu",
    .about = "x / (1 + exp(-x))",
    .ulp = 2,
    .slope_ulp = 4,
    .point = silu_point,
    .lipschitz = silu_lipschitz,
};
