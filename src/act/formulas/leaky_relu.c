/* leaky_relu.c - leaky ReLU in double. The formula is in leaky.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/leaky_exact.h"

void leaky_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)shape;
    out->value = x > 0 ? x : p[0] * x;
    out->slope = x > 0 ? 1 : p[0];
    out->second = 0;
    out->param[0] = x > 0 ? 0 : x;
    if (isnan(p[0]))
        out->value = out->slope = out->second = out->param[0] = NAN;
    if (isnan(x))
        out->slope = out->second = x;
}

double leaky_lipschitz(const double *p, const act_shape *shape)
{
    (void)shape;
    return fmax(1, fabs(p[0]));
}

int leaky_from_output(const double *p, const act_shape *shape)
{
    (void)shape;
    return p[0] > 0;
}

const act_definition act_leaky_relu = {
    .name = "leaky_relu",
    .about = "x for x > 0, else alpha x",
    .param_count = 1,
    .params = {{.name = "alpha", .initial = 0.01, .low = -INFINITY, .high = INFINITY}},
    .ulp = 1,
    .slope_ulp = 1,
    .point = leaky_point,
    .lipschitz = leaky_lipschitz,
    .from_output = leaky_from_output,
};
