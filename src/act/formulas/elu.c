/* elu.c - elu in double: x for x > 0, else alpha (e^x - 1). SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

static void elu_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)shape;
    double alpha = p[0];
    if (isnan(alpha) || isnan(x)) {
        double nan = x + alpha;
        *out = (berlu_act_point){.value = nan, .slope = nan, .second = nan, .param = {nan}};
    } else if (x > 0) {
        *out = (berlu_act_point){.value = x, .slope = 1};
    } else {
        double growth = expm1(x), power = exp(x);
        double value = x == 0 ? x : alpha * growth; /* keeps the sign of zero */
        *out = (berlu_act_point){value, alpha * power, alpha * power, {growth}};
    }
}

static double elu_lipschitz(const double *p, const act_shape *shape)
{
    (void)shape;
    return fmax(1, fabs(p[0]));
}

static int elu_from_output(const double *p, const act_shape *shape)
{
    (void)shape;
    return p[0] > 0;
}

const act_definition act_elu = {
    .name = "elu",
    .about = "x for x > 0, else alpha (exp(x) - 1)",
    .param_count = 1,
    .params = {{.name = "alpha", .initial = 1, .low = -INFINITY, .high = INFINITY}},
    .ulp = 2,
    .slope_ulp = 4,
    .point = elu_point,
    .lipschitz = elu_lipschitz,
    .from_output = elu_from_output,
};
