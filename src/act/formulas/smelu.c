/* smelu.c - SmeLU in double: BerLU with alpha = 0. The formula is in smelu.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/berlu_exact.h"
#include "act/formulas/definition.h"
#include "smooth/limits.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)shape;
    berlu_exact(out, x, 0, p[0], 2);
    if (x == -INFINITY)
        out->value = 0; /* here the left side is a constant, not a product */
    out->param[0] = out->param[1];
    out->param[1] = 0;
}

const act_definition act_smelu = {
    .name = "smelu",
    .about = "ReLU with its kink smoothed by a parabola on |x| < beta",
    .param_count = 1,
    .params = {{.name = "beta", .initial = 1, .low = EPS_MIN, .high = EPS_MAX}},
    .ulp = 5,
    .slope_ulp = 5,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
