/* gradient.c - derivatives of the value by slopes, kinks and eps. SPDX-License-Identifier: MIT
 *
 * With R_i the smoothed relu of kink i, the function is
 *
 *     at_y + s_0 (x - at_x) + sum of jump_i [R_i(x) - relu(at_x - x_i)]
 *
 * so every derivative is R or its slope (docs/math.md, "Parameter derivatives"). */
#include <math.h>

#include "smooth/smooth.h"

static double relu_value(const berlu_smooth *f, const knot *k, double x)
{
    double c = x - k->x;
    return (c < 0 ? 0 : c) + bump_height(f, k, c);
}

/* The factor of the slope between kinks a and b, R_a - R_b. Past both transitions that is the
 * distance of the kinks, whatever x is. */
static double relu_difference(const berlu_smooth *f, const knot *a, const knot *b, double x)
{
    if (x >= b->to)
        return b->x - a->x;
    return relu_value(f, a, x) - relu_value(f, b, x);
}

/* The same with the kinked relu, at the anchor. */
static double kinked_difference(const knot *a, const knot *b, double x)
{
    return x >= b->x ? b->x - a->x : fmax(x - a->x, 0);
}

static double slope_part(const berlu_smooth *f, double x, size_t i)
{
    const knot *left = i > 0 ? &f->knots[i - 1] : NULL, *right = i < f->count ? &f->knots[i] : NULL;
    double a = f->at_x;
    if (left && right)
        return relu_difference(f, left, right, x) - kinked_difference(left, right, a);
    if (left)
        return relu_value(f, left, x) - fmax(a - left->x, 0);
    if (!right)
        return x - a;
    double here = x >= right->to ? right->x : x - relu_value(f, right, x);
    return here - fmin(a, right->x);
}

berlu_status berlu_smooth_gradient(const berlu_smooth *f, double x, double *slopes, double *kinks, double *eps)
{
    if (!f)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_gradient() was given NULL");
    if (f->curved)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "a function made of curves has no slopes to differentiate by");
    for (size_t i = 0; slopes && i <= f->count; i++)
        slopes[i] = isnan(x) ? x : slope_part(f, x, i);
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        double c = x - k->x, turn = bump_turn(f, k, c);
        if (kinks) /* minus the slope of R, less the anchor's share of the move */
            kinks[i] = isnan(x) ? x : -k->jump * ((c < 0 ? turn : 1 - turn) - (f->at_x > k->x));
        if (eps) /* R is homogeneous: eps R_eps = R - c R'. Written with positive terms only. */
            eps[i] = isnan(x) ? x : isinf(x) ? 0 : k->jump * (bump_height(f, k, c) + fabs(c) * turn) / k->eps_left;
    }
    return BERLU_OK;
}
