/* mish.c - mish in double: x T, T = tanh(log(1 + e^x)), as a rational function of e^-|x|.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "act/formulas/definition.h"

/* T = E (E + 2) / D, T' = 4 E (E + 1) / D^2, T'' = 4 E (2 + 2 E - 3 E^2 - 2 E^3) / D^3 with E =
 * e^x, D = E^2 + 2 E + 2. On the left q = E is a common factor. On the right everything is divided
 * by powers of E, q = 1 / E. */
static void mish_left(berlu_act_point *out, double t, double q)
{
    double d = (q + 2) * q + 2;
    out->value = -t * q * (q + 2) / d;
    out->slope = q * ((q + 2) * d - 4 * t * (q + 1)) / (d * d);
    out->second = 4 * q * (2 * (q + 1) * d - t * (2 + q * (2 - q * (3 + 2 * q)))) / (d * d * d);
}

static void mish_right(berlu_act_point *out, double t, double q)
{
    double d = 1 + 2 * q + 2 * q * q, factor = (1 + 2 * q) / d;
    out->value = factor; /* times x, which may be infinite where t is not */
    out->slope = factor + 4 * t * q * q * (1 + q) / (d * d);
    out->second = 4 * q * q * (2 * (1 + q) * d - t * (2 + q * (3 - q * (2 + 2 * q)))) / (d * d * d);
}

static void mish_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double t = fmin(fabs(x), 800), q = exp(-t);
    if (isnan(x)) {
        *out = (berlu_act_point){.value = x, .slope = x, .second = x};
    } else if (signbit(x)) {
        mish_left(out, t, q);
    } else {
        mish_right(out, t, q);
        out->value *= x;
    }
}

static double mish_lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1.0884981612517278612; /* at 1.4905711794854285 */
}

const act_definition act_mish = {
    .name = "mish",
    .about = "x tanh(log(1 + exp(x)))",
    .ulp = 2,
    .slope_ulp = 4,
    .point = mish_point,
    .lipschitz = mish_lipschitz,
};
