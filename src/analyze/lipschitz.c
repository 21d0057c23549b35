/* lipschitz.c - searches the reference of an activation for its largest slope and curvature.
 * SPDX-License-Identifier: MIT
 *
 * lipschitz_find() looks at both sides of every break and samples the ranges between them
 * (see_between); a change of sign of the curvature is halved down to neighbouring floats, a largest
 * curvature is found by golden section. */
#include "analyze/lipschitz.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "analyze/expect.h"

enum { RANGE = 64, STEPS = 16 }; /* of x; points of one octave */

/* The paper's section on stability, and where the slope of each function is largest (zeros of
 * f'' in 20 digits). */
static const struct {
    const char *act;
    double paper, at;
} known[] = {
    {"berlu", 1.0, NAN},
    {"gelu", 1.084, 1.4142135623730950488},
    {"silu", 1.100, 2.3993572805154676678},
    {"mish", 1.089, 1.4905711794854284593},
    {"gelu_tanh", NAN, 1.4185040087908283555},
    {"quick_gelu", NAN, 1.4097281319127307097},
    {"tanh", NAN, 0},
    {"sigmoid", NAN, 0},
    {"softplus", NAN, INFINITY}, /* approached, not attained */
    {"relu2", NAN, INFINITY},
};

const char *lipschitz_paper_act(size_t index)
{
    return index < COUNT(known) && !isnan(known[index].paper) ? known[index].act : NULL;
}

static void see(lipschitz *out, const berlu_act *act, double x)
{
    berlu_act_point at = berlu_act_at(act, x, NULL);
    double steep = fabs(at.slope);
    if (steep > out->found) {
        out->found = steep;
        out->found_at = x;
    }
    if (fabs(at.second) > out->curvature)
        out->curvature = fabs(at.second);
}

/* A zero of the curvature in [a, b], where the slope is extreme: by halving, to neighbouring
 * numbers. */
static void see_extreme(lipschitz *out, const berlu_act *act, double a, double b)
{
    double left = berlu_act_at(act, a, NULL).second, right = berlu_act_at(act, b, NULL).second;
    if (!(left * right < 0))
        return;
    for (int step = 0; step < 1100; step++) {
        double middle = a + (b - a) / 2, there = berlu_act_at(act, middle, NULL).second;
        if (middle <= a || middle >= b)
            break;
        if ((there < 0) == (left < 0))
            a = middle;
        else
            b = middle;
    }
    see(out, act, a);
    see(out, act, b);
}

/* The largest |f''| near b of three points a < b < c whose middle one is the largest: by golden
 * section. */
static void see_bend(lipschitz *out, const berlu_act *act, double a, double b, double c)
{
    const double golden = 0.38196601125010515180;
    double best = fabs(berlu_act_at(act, b, NULL).second);
    if (!(best > fabs(berlu_act_at(act, a, NULL).second) && best >= fabs(berlu_act_at(act, c, NULL).second)))
        return;
    for (int step = 0; step < 200 && c - a > 1e-9 * fabs(b); step++) {
        double x = c - b > b - a ? b + golden * (c - b) : b - golden * (b - a);
        double there = fabs(berlu_act_at(act, x, NULL).second);
        if (there > best) {
            *(x > b ? &a : &c) = b;
            b = x;
            best = there;
        } else {
            *(x > b ? &c : &a) = x;
        }
    }
    see(out, act, b);
}

/* Samples the range between two breaks at points that are dense towards 0, where transitions
 * are. */
static void see_between(lipschitz *out, const berlu_act *act, double low, double high)
{
    double before = NAN, last = low;
    see(out, act, low);
    for (int i = -72 * STEPS; i <= 72 * STEPS; i++) {
        double x = i ? copysign(ldexp(1 + (abs(i) % STEPS) / (double)STEPS, abs(i) / STEPS - 66), i) : 0;
        if (x <= low)
            continue;
        x = fmin(x, high);
        see(out, act, x);
        see_extreme(out, act, last, x);
        if (!isnan(before))
            see_bend(out, act, before, last, x);
        before = last;
        last = x;
        if (x == high)
            break;
    }
}

/* The paper's figures are of the functions as it defines them, with their first parameters. */
static int has_defaults(const berlu_act *act)
{
    berlu_act_param_info info;
    for (size_t i = 0; i < berlu_act_param_count(act); i++)
        if (berlu_act_param(act, i, &info) != BERLU_OK || (float)info.value != (float)info.initial)
            return 0;
    return 1;
}

void lipschitz_find(lipschitz *out, const berlu_act *act)
{
    breaks b;
    subject own = subject_of(act, PARAMS_OWN);
    breaks_find(&b, &own, RANGE);
    *out = (lipschitz){.constant = berlu_act_lipschitz(act), .found = -1, .paper = NAN};
    static const double plain[] = {1, -1, 0.5, 0}; /* first, so that a slope attained on a whole line is shown there */
    for (size_t i = 0; i < COUNT(plain); i++)
        see(out, act, plain[i]);
    double low = -RANGE;
    for (size_t i = 0; i <= b.count; i++) {
        double beside = i < b.count ? 8 * DBL_EPSILON * fabs(b.at[i]) + 0x1p-72 : 0,
               end = i < b.count ? b.at[i] : RANGE;
        see_between(out, act, low, end - beside);
        low = end + beside;
    }
    out->at = out->found_at;
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].act, berlu_act_name(act)) == 0) {
            out->paper = has_defaults(act) ? known[i].paper : NAN;
            out->at = isnan(known[i].at) ? out->at : known[i].at / (double)act->scale; /* of f(k x) / k */
        }
    if (!isnan(out->paper))
        out->verdict = fabs(out->constant - out->paper) <= 0.001 ? "right" : "wrong";
}
