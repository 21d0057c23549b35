/* hard_tanh.c - hard tanh in double. The formula is in hard_tanh.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x < -1 ? -1 : x > 1 ? 1 : x;
    out->slope = x > -1 && x < 1;
    out->second = 0;
    if (isnan(x))
        out->value = out->slope = out->second = x;
}

const act_definition act_hard_tanh = {
    .name = "hard_tanh",
    .about = "min(max(x, -1), 1)",
    .ulp = 1,
    .slope_ulp = 1,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
