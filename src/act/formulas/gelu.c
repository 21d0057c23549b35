/* gelu.c - gelu in double: x Phi(x). SPDX-License-Identifier: MIT
 *
 * Arguments are carried in two parts: erfc and exp amplify the rounding error of their argument by
 * x^2, which is 200 where f32 results end and 1,444 where double ones do. */
#include <math.h>

#include "act/formulas/definition.h"

/* Phi(x) = erfc(-x / sqrt 2) / 2; the second part of the argument enters through the derivative */
static double normal_distribution(double x, double density)
{
    const double c = 0.70710678118654752440, c_low = -4.8336466567264567e-17;
    double u = -x * c, u_low = fma(-x, c, -u) - x * c_low;
    return 0.5 * erfc(u) - 1.41421356237309504880 * density * u_low;
}

static double normal_density(double x)
{
    double square = x * x, low = fma(x, x, -square);
    return 0.39894228040143267794 * exp(-0.5 * square) * (1 - 0.5 * low);
}

static void gelu_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    if (fabs(x) > 38) { /* beyond double's range of the tail: the limits */
        *out = (berlu_act_point){.value = x > 0 ? x : -0.0, .slope = x > 0 ? 1 : -0.0, .second = -0.0};
        return;
    }
    double density = normal_density(x), phi = normal_distribution(x, density);
    out->value = x * phi;
    out->slope = fma(x, density, phi);
    out->second = (2 - x * x) * density;
}

static double gelu_lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1.1289041451851547863; /* at sqrt 2 */
}

const act_definition act_gelu = {
    .name = "gelu",
    .about = "x Phi(x), Phi the normal distribution function",
    .ulp = 2,
    .slope_ulp = 4,
    .point = gelu_point,
    .lipschitz = gelu_lipschitz,
};
