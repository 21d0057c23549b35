/* hard_swish.c - hard swish in double. The formula is in hard_swish.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x <= -3 ? -0.0 : x >= 3 ? x : x * (x + 3) / 6;
    out->slope = x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    out->second = x > -3 && x < 3 ? 1.0 / 3 : 0;
    if (isnan(x))
        out->value = out->slope = out->second = x;
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    return 1.5;
}

const act_definition act_hard_swish = {
    .name = "hard_swish",
    .about = "x min(max(x + 3, 0), 6) / 6",
    .ulp = 3,
    .slope_ulp = 2,
    .point = point,
    .lipschitz = lipschitz,
};
