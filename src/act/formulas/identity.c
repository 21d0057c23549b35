/* identity.c - x in double. The formula is in identity.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x;
    out->slope = isnan(x) ? x : 1;
    out->second = isnan(x) ? x : 0;
}

const act_definition act_identity = {
    .name = "identity",
    .about = "x",
    .ulp = 0,
    .slope_ulp = 0,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
