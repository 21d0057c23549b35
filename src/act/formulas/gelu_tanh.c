/* gelu_tanh.c - gelu_tanh in double: x s(w), s the sigmoid, w = 2 sqrt(2/pi) (x + 0.044715 x^3).
 * SPDX-License-Identifier: MIT
 *
 * w is carried in two parts: e^-w multiplies its rounding by w, up to 106 in the tail of f32. */
#include <math.h>

#include "act/formulas/definition.h"

static const double tanh_a = 1.595769121605730711759784, tanh_b = 0.07135481627260024877633875;

/* e^-w(t) for t >= 0. A + B t^2 = sum + low, and t times that = w + w_low. */
static double exp_minus_w(double t)
{
    const double a_low = -9.9693088091109202e-17, b_low = -6.175149918155315e-19;
    double square = t * t, square_low = fma(t, t, -square);
    double b = tanh_b * square, b_rest = fma(tanh_b, square, -b) + tanh_b * square_low + b_low * square;
    double sum = tanh_a + b, kept = sum - tanh_a, lost = (tanh_a - (sum - kept)) + (b - kept);
    double low = lost + b_rest + a_low, w = t * sum, w_low = fma(t, sum, -w) + t * low;
    return exp(-w) * (1 - w_low);
}

/* f'(-t) = q / d - t w' q / d^2 with q = e^-w, d = 1 + q; f'(t) = 1 - f'(-t); the second derivative
 * is even */
static void gelu_tanh_point(berlu_act_point *out, double x, const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    double t = fmin(fabs(x), 30), q = exp_minus_w(t), d = 1 + q;
    double w1 = tanh_a + 3 * tanh_b * t * t, w2 = 6 * tanh_b * t;
    double left = q * (d - t * w1) / (d * d);
    out->value = isnan(x) ? x : x > 0 ? x / d : copysign(t * q / d, x);
    out->slope = isnan(x) ? x : x < 0 ? left : 1 - left;
    out->second = isnan(x) ? x : q / (d * d) * (2 * w1 + t * w2 - t * w1 * w1 * (1 - q) / d);
}

static double gelu_tanh_lipschitz(const double *p, const act_shape *shape)
{
    (void)p, (void)shape;
    return 1.1289930686587717655; /* at 1.4185040087908284 */
}

const act_definition act_gelu_tanh = {
    .name = "gelu_tanh",
    .about = "x s(2 sqrt(2/pi) (x + 0.044715 x^3)), s the sigmoid",
    .ulp = 2.5,
    .slope_ulp = 4,
    .point = gelu_tanh_point,
    .lipschitz = gelu_tanh_lipschitz,
};
