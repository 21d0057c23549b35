/* tanh.c - tanh in double. The formula is in tanh.h. SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

/* slope 4 q / (1 + q)^2 with q = e^-2|x|: 1 - tanh^2 would cancel */
static void point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double q = exp(-2 * fmin(fabs(x), 400)), d = 1 + q;
    out->value = tanh(x);
    out->slope = isnan(x) ? x : 4 * q / (d * d);
    out->second = -2 * out->value * out->slope;
}

const act_definition act_tanh = {
    .name = "tanh",
    .about = "(exp(x) - exp(-x)) / (exp(x) + exp(-x))",
    .ulp = 2,
    .slope_ulp = 2,
    .point = point,
    .lipschitz = act_lipschitz_one,
    .from_output = act_from_output_always,
    .from_output_f32 = 1,
};
