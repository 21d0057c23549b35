/* exhaustive.c - value and slope of every activation at all 2^32 floats against double. SPDX-License-Identifier: MIT
 *
 *     exhaustive [ACTIVATION...]
 *
 * Takes minutes per activation (`make test-exhaustive` runs all), so it prints what is done and what is left. The bounds are
 * those of the header. Where double says that a bound is nearly reached, multiple precision decides. */
#include <berlu/berlu.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/judge.h"
#include "base/clock.h"
#include "base/threads.h"

enum { CHUNK = 1 << 16, CHUNKS = 1 << 16, STRIPE = 64 };

/* BerLU at twelve triples: both sides of alpha = 1 and of 0, narrow and wide, three degrees. */
static const char *const knees[] = {
    "berlu:alpha=0.01,eps=0.01,degree=2", "berlu:alpha=0,eps=1,degree=2",    "berlu:alpha=0.25,eps=0.1,degree=2",
    "berlu:alpha=-0.5,eps=0.3,degree=2",  "berlu:alpha=3,eps=10,degree=2",   "berlu:alpha=0.999,eps=1e-6,degree=2",
    "berlu:alpha=0.01,eps=0.01,degree=4", "berlu:alpha=0.25,eps=1,degree=4", "berlu:alpha=2,eps=100,degree=4",
    "berlu:alpha=0.01,eps=0.01,degree=6", "berlu:alpha=0,eps=0.5,degree=6",  "berlu:alpha=-1,eps=1,degree=6",
};

typedef struct worst {
    double ulps;
    float x;
    unsigned long bad;
} worst;

typedef struct sweep {
    const berlu_act *act;
    double alpha; /* of a knee */
    int knee;
    double absolute; /* near zeros of the slope */
    size_t first;    /* chunk */
    worst value[STRIPE], slope[STRIPE];
} sweep;

static double unit_of(const sweep *s, double x, double value)
{
    double line = x < 0 ? s->alpha * x : x;
    return s->knee ? fmax(fabs(line), fabs(value - line)) : value;
}

static void note(worst *w, float x, double ulps, double bound, double size)
{
    if (ulps > w->ulps) {
        w->ulps = ulps;
        w->x = x;
    }
    w->bad += ulps > (fabs(size) < 0x1p-126 ? fmax(bound, 1) : bound);
}

static void check_value(sweep *s, size_t slot, float x, float y, double want)
{
    double bound = berlu_act_ulp(s->act), unit = unit_of(s, (double)x, want), ulps = judge_ulps(y, want, unit);
    if (fabs(want) > 0x1.fffffefp127)
        return; /* overflows: infinity is right */
    if (ulps > 0.95 * bound && judge_value(s->act, (double)x, &want))
        ulps = judge_ulps(y, want, unit);
    note(&s->value[slot], x, ulps, bound, unit);
}

static void check_slope(sweep *s, size_t slot, float x, float y, double want)
{
    double bound = berlu_act_slope_ulp(s->act), ulps = judge_ulps(y, want, want), exact;
    if (ulps > bound && fabsf(x) < 2.5f * (s->knee ? 1e3f : 1) && fabs((double)y - want) <= s->absolute * 0x1p-24)
        return; /* near a zero of the slope: the absolute bound holds */
    if (ulps > 0.95 * bound && judge_slope(s->act, (double)x, &exact))
        ulps = judge_ulps(y, exact, exact);
    note(&s->slope[slot], x, ulps, bound, want);
}

static void chunk_run(void *context, size_t index)
{
    sweep *s = context;
    float x[CHUNK], y[CHUNK], d[CHUNK];
    berlu_act_call call = {.rows = CHUNK, .channels = 1, .x = x, .y = y};
    for (uint32_t i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)(s->first + index) << 16 | i;
        memcpy(&x[i], &bits, sizeof bits);
    }
    berlu_act_run(s->act, BERLU_ACT_FORWARD, &call, &(berlu_exec){BERLU_ISA_BEST, 1});
    call.y = d;
    berlu_act_run(s->act, BERLU_ACT_SLOPE, &call, &(berlu_exec){BERLU_ISA_BEST, 1});
    for (size_t i = 0; i < CHUNK; i++) {
        if (!isfinite(x[i]))
            continue;
        berlu_act_point at = berlu_act_at(s->act, (double)x[i], NULL);
        check_value(s, index, x[i], y[i], at.value);
        check_slope(s, index, x[i], d[i], at.slope);
    }
}

static worst joined(const worst *w)
{
    worst all = {0};
    for (size_t i = 0; i < STRIPE; i++) {
        if (w[i].ulps > all.ulps) {
            all.ulps = w[i].ulps;
            all.x = w[i].x;
        }
        all.bad += w[i].bad;
    }
    return all;
}

static int sweep_all(const char *spec, const char *left)
{
    berlu_act *act;
    if (berlu_act_make(&act, spec) != BERLU_OK)
        return fprintf(stderr, "%s\n", berlu_last_error()), 1;
    static sweep s;
    s = (sweep){.act = act, .knee = !strncmp(spec, "berlu", 5) || !strncmp(spec, "smelu", 5)};
    s.absolute = judge_slope_absolute(act);
    berlu_act_param_info info;
    if (!strncmp(spec, "berlu", 5) && berlu_act_param(act, 0, &info) == BERLU_OK)
        s.alpha = info.value;
    double start = clock_seconds(), shown = start;
    for (s.first = 0; s.first < CHUNKS; s.first += STRIPE) {
        threads_for(0, STRIPE, chunk_run, &s);
        if (clock_seconds() - shown > 10) {
            shown = clock_seconds();
            fprintf(stderr, "%s: %.0f %% of all floats, %.0f s left; then %s\n", spec, 100.0 * (double)s.first / CHUNKS,
                    (shown - start) * (double)(CHUNKS - s.first) / (double)s.first, left);
        }
    }
    worst v = joined(s.value), d = joined(s.slope);
    printf("%-38s value %.4f of %g ULP at %.9g (%a), %lu beyond; slope %.4f of %g ULP at %.9g, %lu beyond\n", spec,
           v.ulps, berlu_act_ulp(act), (double)v.x, (double)v.x, v.bad, d.ulps, berlu_act_slope_ulp(act), (double)d.x,
           d.bad);
    fflush(stdout);
    berlu_act_free(act);
    return v.bad || d.bad;
}

int main(int argc, char **argv)
{
    const char *specs[64];
    size_t count = 0;
    int bad = 0;
    for (int i = 1; i < argc && count < 64; i++)
        specs[count++] = argv[i];
    for (size_t i = 0; argc == 1 && berlu_act_builtin(i); i++)
        if (strcmp(berlu_act_builtin(i), "berlu") != 0)
            specs[count++] = berlu_act_builtin(i);
    for (size_t i = 0; argc == 1 && i < sizeof knees / sizeof *knees; i++)
        specs[count++] = knees[i];
    for (size_t i = 0; i < count; i++) {
        char left[80];
        snprintf(left, sizeof left, "%zu more of %zu", count - i - 1, count);
        bad |= sweep_all(specs[i], left);
    }
    return bad;
}
