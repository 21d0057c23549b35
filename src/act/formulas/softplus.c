/* softplus.c - softplus in double. The formula is in softplus.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double q = exp(-fmin(fabs(x), 800)), d = 1 + q;
    out->value = isnan(x) ? x : fmax(x, 0) + log1p(q);
    out->slope = isnan(x) ? x : (x < 0 ? q : 1) / d;
    out->second = isnan(x) ? x : q / (d * d);
}

const act_definition act_softplus = {
    .name = "softplus",
    .about = "log(1 + exp(x))",
    .ulp = 2,
    .slope_ulp = 2,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
};
