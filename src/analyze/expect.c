/* expect.c - Gauss-Legendre panels between the breaks of a function. SPDX-License-Identifier: MIT
 *
 * Panels are bisected until both halves together agree with the whole, for all averages at once.
 * The share of variance that a line leaves unexplained is integrated as a square, which preserves
 * its digits where it is tiny. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/expect.h"
#include "base/text.h"

void gauss_make(gauss_rule *out, int points)
{
    out->points = points;
    for (int i = 0; i < points; i++) {
        double x = cos(M_PI * (i + 0.75) / (points + 0.5)), slope = 1;
        for (int step = 0; step < 100; step++) { /* Newton on the Legendre polynomial by its recurrence */
            double before = 1, value = x;
            for (int k = 2; k <= points; k++) {
                double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
                before = value;
                value = next;
            }
            slope = points * (x * value - before) / (x * x - 1);
            double move = value / slope;
            x -= move;
            if (fabs(move) < 1e-16)
                break;
        }
        out->x[i] = x;
        out->w[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

subject subject_of(const berlu_act *act, subject_params kind)
{
    subject s = {.act = act};
    for (size_t i = 0; i < berlu_act_param_count(act); i++) {
        berlu_act_param_info info;
        char digits[NUMBER_TEXT];
        if (berlu_act_param(act, i, &info) == BERLU_OK)
            s.params[i] = kind == PARAMS_OWN ? info.value : strtod(number_text_f32(digits, (float)info.value), NULL);
    }
    return s;
}

berlu_act_point subject_at(const subject *s, double x)
{
    return berlu_act_at(s->act, x, s->params);
}

double normal_density(double z)
{
    return 0.39894228040143267794 * exp(-z * z / 2);
}

enum { PANEL = 3 }; /* the widest panel: 20 points hold a normal density there to rounding */
enum { SUMS = 6 };  /* f, f^2, f', f'^2, f''^2, (f - mean - line)^2 */

typedef struct job {
    const subject *subject;
    gauss_rule rule;
    double scale, mean, line; /* of the last sum: f is compared with mean + line Z */
    double floor[SUMS];       /* absolute tolerance: the rounding of the total */
} job;

static void panel(const job *j, double low, double high, double sums[SUMS])
{
    memset(sums, 0, SUMS * sizeof *sums);
    for (int i = 0; i < GAUSS_POINTS; i++) {
        double z = (low + high) / 2 + (high - low) / 2 * j->rule.x[i];
        double weight = (high - low) / 2 * j->rule.w[i] * normal_density(z);
        berlu_act_point at = subject_at(j->subject, j->scale * z);
        double off = at.value - j->mean - j->line * z;
        sums[0] += weight * at.value;
        sums[1] += weight * at.value * at.value;
        sums[2] += weight * at.slope;
        sums[3] += weight * at.slope * at.slope;
        sums[4] += weight * at.second * at.second;
        sums[5] += weight * off * off;
    }
}

/* Adds the integral over a panel whose unrefined sums are known. */
static void refine(const job *j, double low, double high, const double *whole, double *totals, int depth)
{
    double left[SUMS], right[SUMS], middle = low + (high - low) / 2;
    int done = 1;
    panel(j, low, middle, left);
    panel(j, middle, high, right);
    for (int k = 0; k < SUMS; k++)
        done &= fabs(left[k] + right[k] - whole[k]) <= 1e-14 * fabs(whole[k]) + j->floor[k];
    if (done || depth == 16) {
        for (int k = 0; k < SUMS; k++)
            totals[k] += left[k] + right[k];
        return;
    }
    refine(j, low, middle, left, totals, depth + 1);
    refine(j, middle, high, right, totals, depth + 1);
}

/* Calls `take` for each panel of at most `width` between -EXPECT_REACH, the breaks and
 * EXPECT_REACH, from left to right. */
static void panels_each(const breaks *b, double scale, double width, void (*take)(void *, double, double),
                        void *context)
{
    double low = -EXPECT_REACH;
    for (size_t i = 0; i <= b->count; i++) {
        double end = i < b->count ? b->at[i] / scale : EXPECT_REACH;
        end = fmin(end, EXPECT_REACH);
        if (!(end > low))
            continue;
        double count = ceil((end - low) / width), step = (end - low) / count, start = low;
        for (double k = 0; k < count; k++)
            take(context, start + k * step, k + 1 < count ? start + (k + 1) * step : end);
        low = end;
    }
}

typedef struct taking {
    const job *job;
    int adapt;
    double totals[SUMS];
} taking;

static void take_panel(void *context, double low, double high)
{
    taking *t = context;
    double whole[SUMS];
    panel(t->job, low, high, whole);
    if (t->adapt)
        refine(t->job, low, high, whole, t->totals, 0);
    for (int k = 0; k < SUMS && !t->adapt; k++)
        t->totals[k] += whole[k];
}

/* All sums, refined. An unrefined pass first estimates their size. */
static void integrate(job *j, const breaks *b, double totals[SUMS])
{
    taking plain = {.job = j}, fine = {.job = j, .adapt = 1};
    panels_each(b, j->scale, PANEL, take_panel, &plain);
    for (int k = 0; k < SUMS; k++)
        j->floor[k] = 1e-17 * fabs(plain.totals[k]) + (k == SUMS - 1 ? 1e-30 * plain.totals[1] : 0);
    panels_each(b, j->scale, PANEL, take_panel, &fine);
    memcpy(totals, fine.totals, sizeof fine.totals);
}

void moments_find(moments *out, const subject *s, const breaks *b, double scale)
{
    job j = {.subject = s, .scale = scale};
    gauss_make(&j.rule, GAUSS_POINTS);
    double totals[SUMS];
    integrate(&j, b, totals);
    *out = (moments){
        .value = totals[0], .square = totals[1], .slope = totals[2], .slope2 = totals[3], .second2 = totals[4]};
    for (size_t i = 0; i < b->count; i++)
        if (b->jump[i] != 0)
            out->second2 = INFINITY;
    /* Again around the mean, and around the best line, whose slope is s E f' (Stein). */
    j.mean = out->value;
    integrate(&j, b, totals);
    out->variance = totals[5];
    j.line = scale * out->slope;
    integrate(&j, b, totals);
    out->nonlinear = out->variance > 0 ? totals[5] / out->variance : 0;
}

double panels_width(const subject *s, const breaks *b, double scale)
{
    moments known;
    job j = {.subject = s, .scale = scale};
    gauss_make(&j.rule, GAUSS_POINTS);
    moments_find(&known, s, b, scale);
    for (double width = PANEL; width > 0.01; width /= 2) {
        taking t = {.job = &j};
        panels_each(b, scale, width, take_panel, &t);
        if (fabs(t.totals[1] - known.square) <= 1e-14 * known.square &&
            fabs(t.totals[3] - known.slope2) <= 1e-14 * known.slope2)
            return width;
    }
    return 0.01;
}
