/* relu6.c - ReLU6 in double. The formula is in relu6.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x < 0 ? 0 : x > 6 ? 6 : x;
    out->slope = x > 0 && x < 6;
    out->second = 0;
    if (isnan(x))
        out->value = out->slope = out->second = x;
}

const act_definition act_relu6 = {
    .name = "relu6",
    .about = "min(max(x, 0), 6)",
    .ulp = 1,
    .slope_ulp = 1,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
