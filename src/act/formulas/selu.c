/* selu.c - selu in double: lambda x for x > 0, else lambda alpha (e^x - 1).
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

#define SELU_LAMBDA 1.0507009873554804934193349852946
#define SELU_ALPHA  1.6732632423543772848170429916717

static void selu_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    const double left = SELU_LAMBDA * SELU_ALPHA;
    if (x > 0) {
        *out = (berlu_act_point){.value = SELU_LAMBDA * x, .slope = SELU_LAMBDA};
    } else { /* NaN too */
        double power = left * exp(x);
        *out = (berlu_act_point){.value = left * expm1(x), .slope = power, .second = power};
    }
}

static double selu_lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return SELU_LAMBDA * SELU_ALPHA;
}

static int selu_from_output(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1;
}

const act_definition act_selu = {
    .name = "selu",
    .about = "lambda x for x > 0, else lambda alpha (exp(x) - 1); lambda = 1.0507, alpha = 1.6733",
    .ulp = 2,
    .slope_ulp = 4,
    .point = selu_point,
    .lipschitz = selu_lipschitz,
    .from_output = selu_from_output,
};
