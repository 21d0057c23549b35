/* sigmoid.c - sigmoid in double, by q = e^-|x| so that nothing overflows. The formula is in
 * sigmoid.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double t = fmin(fabs(x), 800), q = exp(-t), d = 1 + q;
    out->value = isnan(x) ? x : (x < 0 ? q : 1) / d;
    out->slope = isnan(x) ? x : q / (d * d);
    out->second = isnan(x) ? x : (x < 0 ? -1 : 1) * q * expm1(-t) / (d * d * d); /* odd; negative on the right */
}

static double lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 0.25;
}

const act_definition act_sigmoid = {
    .name = "sigmoid",
    .about = "1 / (1 + exp(-x))",
    .ulp = 2,
    .slope_ulp = 2,
    .point = point,
    .lipschitz = lipschitz,
    .from_output = act_from_output_always,
    .from_output_f32 = 1,
};
