/* hard_sigmoid.c - hard sigmoid in double. The formula is in hard_sigmoid.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    out->value = x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
    out->slope = x > -3 && x < 3 ? 1.0 / 6 : 0;
    out->second = 0;
    if (isnan(x))
        out->value = out->slope = out->second = x;
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p;
    (void)shape;
    return 1.0 / 6;
}

const act_definition act_hard_sigmoid = {
    .name = "hard_sigmoid",
    .about = "min(max(x + 3, 0), 6) / 6",
    .ulp = 1,
    .slope_ulp = 1,
    .point = point,
    .lipschitz = lipschitz,
    .from_output = act_from_output_always,
    .from_output_f32 = 1,
};
