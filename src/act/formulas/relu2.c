/* relu2.c - squared ReLU in double. The formula is in relu2.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    out->value = x < 0 ? 0 : x * x;
    out->slope = x < 0 ? 0 : 2 * x;
    out->second = isnan(x) ? x : x > 0 ? 2 : 0;
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return INFINITY;
}

const act_definition act_relu2 = {
    .name = "relu2",
    .about = "max(x, 0)^2",
    .ulp = 1,
    .slope_ulp = 1,
    .point = point,
    .lipschitz = lipschitz,
    .from_output = act_from_output_always,
};
