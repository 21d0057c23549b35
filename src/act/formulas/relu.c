/* relu.c - ReLU in double. The formula is in relu.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x < 0 ? 0 : x;
    out->slope = isnan(x) ? x : x > 0;
    out->second = isnan(x) ? x : 0;
}

const act_definition act_relu = {
    .name = "relu",
    .about = "max(x, 0)",
    .ulp = 1,
    .slope_ulp = 1,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
