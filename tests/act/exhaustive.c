/* exhaustive.c - value and derivative of every activation at all 2^32 floats against double.
 * SPDX-License-Identifier: MIT
 *
 *     exhaustive_act [--threads N] [--every K] [--what value|slope] [--list] [SPEC...]
 *
 * Without a SPEC: every built-in activation, and BerLU at twelve triples. Prints a line per
 * activation and op, and the progress meanwhile. --every K takes one random float of each K
 * neighbours: a sample with the same strata.
 *
 * The bounds are those of the activation (berlu_act_ulp); reference.h defines how errors are
 * measured. The reference is berlu_act_at, in double; where an error comes near its bound, multiple
 * precision decides. A few thousand points of every sweep compare the double reference itself with
 * multiple precision. Compiled with -DREFERENCE_NO_MPFR double alone decides, and the head line
 * says so. */
#include <berlu/berlu.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/reference.h"
#include "base/clock.h"

enum { CHUNK = 1 << 14, ORACLE_POINTS = 4096, SPECS = 64, PROGRESS_SECONDS = 10 };

/* BerLU at twelve triples: both sides of alpha = 1 and of 0, narrow and wide, three degrees. */
static const char *const knees[] = {
    "berlu:alpha=0.01,eps=0.01,degree=2", "berlu:alpha=0,eps=1,degree=2",    "berlu:alpha=0.25,eps=0.1,degree=2",
    "berlu:alpha=-0.5,eps=0.3,degree=2",  "berlu:alpha=3,eps=10,degree=2",   "berlu:alpha=0.999,eps=1e-6,degree=2",
    "berlu:alpha=0.01,eps=0.01,degree=4", "berlu:alpha=0.25,eps=1,degree=4", "berlu:alpha=2,eps=100,degree=4",
    "berlu:alpha=0.01,eps=0.01,degree=6", "berlu:alpha=0,eps=0.5,degree=6",  "berlu:alpha=-1,eps=1,degree=6",
};

typedef struct options {
    int threads, value, slope, list;
    uint64_t every;
    const char *specs[SPECS];
    size_t count;
} options;

/* A largest value and its position. */
typedef struct peak {
    double size;
    float x;
} peak;

/* Results of one op. Only normal exact results count for `ulps`; subnormal ones share a unit of
 * 2^-149. */
typedef struct tally {
    peak ulps, subnormal;
    peak absolute;     /* in 2^-24, near a zero of the derivative */
    peak double_error; /* the error of the double reference in ULP of f32, where it was compared */
    unsigned long bad;
    float bad_x;
} tally;

typedef struct sweep {
    const berlu_act *act;
    const options *set;
    const char *spec, *left;
    double alpha; /* of a knee */
    int knee;
    double absolute, reach, low; /* the bound near zeros of the derivative in 2^-24; near: |x| < reach and |f'| < low */
    double start, shown;
    size_t chunks, done;
    tally value, slope;
} sweep;

static void peak_raise(peak *p, double size, float x)
{
    if (size > p->size)
        *p = (peak){size, x};
}

static void tally_fail(tally *t, float x)
{
    if (!t->bad++)
        t->bad_x = x;
}

static void tally_join(tally *all, const tally *t)
{
    peak_raise(&all->ulps, t->ulps.size, t->ulps.x);
    peak_raise(&all->subnormal, t->subnormal.size, t->subnormal.x);
    peak_raise(&all->absolute, t->absolute.size, t->absolute.x);
    peak_raise(&all->double_error, t->double_error.size, t->double_error.x);
    if (!all->bad)
        all->bad_x = t->bad_x;
    all->bad += t->bad;
}

static void note(tally *t, float x, double ulps, double bound, double unit)
{
    int subnormal = fabs(unit) < 0x1p-126;
    peak_raise(subnormal ? &t->subnormal : &t->ulps, ulps, x);
    if (!(ulps <= (subnormal ? fmax(bound, 1) : bound)))
        tally_fail(t, x);
}

/* NaN gives NaN; an infinity gives the float nearest to the limit, which may be NaN too (0 times
 * infinity). */
static void check_special(tally *t, float x, float got, double want)
{
    if (isnan(want) ? !isnan(got) : got != (float)want)
        tally_fail(t, x);
}

/* The unit of a BerLU value is that of the larger of its two terms, line and bump. */
static double value_unit(const sweep *s, double x, double value)
{
    double line = x < 0 ? s->alpha * x : x, bump = value - line;
    return !s->knee ? value : fabs(line) > fabs(bump) ? line : bump;
}

/* So close to its bound that the error of the double reference might decide; it is a hundred
 * million times smaller. */
static int is_close(double ulps, double bound)
{
    return ulps > 0.999 * bound && ulps < 1.001 * bound;
}

static void check_value(const sweep *s, tally *t, float x, float got, double want)
{
    double bound = berlu_act_ulp(s->act), unit = value_unit(s, (double)x, want), ulps = reference_ulps(got, want, unit);
    double exact;
    if (is_close(ulps, bound) && reference_value(s->act, (double)x, &exact))
        ulps = reference_ulps(got, exact, unit);
    note(t, x, ulps, bound, unit);
}

/* Close to a zero of the derivative no relative bound can hold. */
static int near_zero(const sweep *s, float x, double slope)
{
    return s->absolute > 0 && fabs((double)x) < s->reach && fabs(slope) < s->low;
}

static void check_slope(const sweep *s, tally *t, float x, float got, double want)
{
    double bound = berlu_act_slope_ulp(s->act), ulps = reference_ulps(got, want, want), exact;
    if (near_zero(s, x, want)) {
        double distance = fabs((double)got - want) * 0x1p24;
        peak_raise(&t->absolute, distance, x);
        if (!(ulps <= bound || distance <= s->absolute))
            tally_fail(t, x);
        return;
    }
    if (is_close(ulps, bound) && reference_slope(s->act, (double)x, &exact))
        ulps = reference_ulps(got, exact, exact);
    note(t, x, ulps, bound, want);
}

static void check_double(const sweep *s, tally *value, tally *slope, float x, const berlu_act_point *at)
{
    double exact;
    if (isfinite(at->value) && reference_value(s->act, (double)x, &exact))
        peak_raise(&value->double_error, fabs(at->value - exact) / reference_unit(value_unit(s, (double)x, exact)), x);
    if (reference_slope(s->act, (double)x, &exact))
        peak_raise(&slope->double_error,
                   fabs(at->slope - exact) / reference_unit(near_zero(s, x, exact) ? s->low : exact), x);
}

/* The float of a sample index: a random one of every K (splitmix64), all of them for K = 1. */
static float place_float(uint64_t place, uint64_t every)
{
    uint64_t mix = place + 0x9e3779b97f4a7c15u;
    mix = (mix ^ mix >> 30) * 0xbf58476d1ce4e5b9u;
    mix = (mix ^ mix >> 27) * 0x94d049bb133111ebu;
    uint32_t bits = (uint32_t)(place * every + (mix ^ mix >> 31) % every);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double param_of(const berlu_act *act, size_t index)
{
    berlu_act_param_info info;
    return berlu_act_param(act, index, &info) == BERLU_OK ? (double)(float)info.value : 0;
}

static void chunk_check(const sweep *s, size_t chunk, tally *value, tally *slope)
{
    float x[CHUNK], y[CHUNK], d[CHUNK];
    const options *set = s->set;
    berlu_act_call call = {.rows = CHUNK, .channels = 1, .x = x, .y = y};
    berlu_exec one = {BERLU_ISA_BEST, 1};
    for (size_t i = 0; i < CHUNK; i++)
        x[i] = place_float(chunk * CHUNK + i, set->every);
    if (set->value)
        berlu_act_run(s->act, BERLU_ACT_FORWARD, &call, &one);
    call.y = d;
    if (set->slope)
        berlu_act_run(s->act, BERLU_ACT_SLOPE, &call, &one);
    double params[BERLU_ACT_PARAMS] = {0}; /* as the kernels have them */
    for (size_t p = 0; p < berlu_act_param_count(s->act); p++)
        params[p] = param_of(s->act, p);
    size_t step = s->chunks / ORACLE_POINTS + 1;
    for (size_t i = 0; i < CHUNK; i++) {
        berlu_act_point at = berlu_act_at(s->act, (double)x[i], params);
        int finite = isfinite(x[i]);
        if (set->value)
            (finite ? check_value(s, value, x[i], y[i], at.value) : check_special(value, x[i], y[i], at.value));
        if (set->slope)
            (finite ? check_slope(s, slope, x[i], d[i], at.slope) : check_special(slope, x[i], d[i], at.slope));
        if (finite && i == chunk % CHUNK && chunk % step == 0)
            check_double(s, value, slope, x[i], &at);
    }
}

/* Called by one thread at a time. */
static void progress(sweep *s)
{
    double now = clock_seconds();
    if (++s->done == s->chunks || now - s->shown < PROGRESS_SECONDS)
        return;
    s->shown = now;
    fprintf(stderr, "%s: %.0f %% done, %.0f s left; then %s\n", s->spec, 100.0 * (double)s->done / (double)s->chunks,
            (now - s->start) * (double)(s->chunks - s->done) / (double)s->done, s->left);
}

static void sweep_run(sweep *s)
{
    s->chunks = (((uint64_t)1 << 32) / s->set->every + CHUNK - 1) / CHUNK;
    s->start = s->shown = clock_seconds();
#pragma omp parallel num_threads(s->set->threads)
    {
        tally value = {0}, slope = {0};
#pragma omp for schedule(dynamic)
        for (size_t chunk = 0; chunk < s->chunks; chunk++) {
            chunk_check(s, chunk, &value, &slope);
#pragma omp critical
            progress(s);
        }
#pragma omp critical
        {
            tally_join(&s->value, &value);
            tally_join(&s->slope, &slope);
        }
    }
}

static void line_print(const sweep *s, const char *op, const tally *t, double bound)
{
    printf("%-36s %s  %.4f of %g ULP at %.9g (%a)", s->spec, op, t->ulps.size, bound, (double)t->ulps.x,
           (double)t->ulps.x);
    if (t->subnormal.size > 0)
        printf("; subnormal %.3f at %.9g", t->subnormal.size, (double)t->subnormal.x);
    if (t->absolute.size > 0)
        printf("; near zero %.3f * 2^-24 at %.9g", t->absolute.size, (double)t->absolute.x);
    if (t->double_error.size > 0)
        printf("; double %.1e", t->double_error.size);
    if (t->bad)
        printf("; %lu BEYOND, one at %.9g (%a)", t->bad, (double)t->bad_x, (double)t->bad_x);
    printf("; %s; %.1f s\n", t->bad ? "FAIL" : "pass", clock_seconds() - s->start);
    fflush(stdout);
}

static int spec_check(const char *spec, const options *set, const char *left)
{
    berlu_act *act;
    if (berlu_act_make(&act, spec) != BERLU_OK)
        return fprintf(stderr, "%s\n", berlu_last_error()), 1;
    sweep s = {.act = act,
               .set = set,
               .spec = spec,
               .left = left,
               .absolute = reference_slope_absolute(act),
               .reach = 2,
               .low = 0x1p-4};
    int berlu = !strcmp(berlu_act_name(act), "berlu");
    s.knee = berlu || !strcmp(berlu_act_name(act), "smelu");
    if (berlu) {
        s.alpha = param_of(act, 0);
        s.reach = param_of(act, 1);
        s.low = 0.25 * berlu_act_lipschitz(act);
    }
    sweep_run(&s);
    if (set->value)
        line_print(&s, "value", &s.value, berlu_act_ulp(act));
    if (set->slope)
        line_print(&s, "slope", &s.slope, berlu_act_slope_ulp(act));
    berlu_act_free(act);
    return s.value.bad || s.slope.bad;
}

static void default_specs(options *o)
{
    for (size_t i = 0; berlu_act_builtin(i) && o->count < SPECS; i++)
        if (strcmp(berlu_act_builtin(i), "berlu") != 0)
            o->specs[o->count++] = berlu_act_builtin(i);
    for (size_t i = 0; i < sizeof knees / sizeof *knees && o->count < SPECS; i++)
        o->specs[o->count++] = knees[i];
}

static int options_read(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--list")) {
            o->list = 1;
        } else if (!strcmp(argv[i], "--threads") && atoi(next) > 0) {
            o->threads = atoi(next), i++;
        } else if (!strcmp(argv[i], "--every") && atol(next) > 0) {
            o->every = (uint64_t)atol(next), i++;
        } else if (!strcmp(argv[i], "--what") && (!strcmp(next, "value") || !strcmp(next, "slope"))) {
            o->value = !strcmp(next, "value"), o->slope = !o->value, i++;
        } else if (argv[i][0] != '-' && o->count < SPECS) {
            o->specs[o->count++] = argv[i];
        } else {
            fprintf(stderr,
                    "exhaustive_act: '%s %s' is not understood\nusage: exhaustive_act [--threads N] [--every K] "
                    "[--what value|slope] [--list] [SPEC...]\n",
                    argv[i], next);
            return 0;
        }
    }
    if (!o->count)
        default_specs(o);
    return 1;
}

int main(int argc, char **argv)
{
    options set = {.threads = omp_get_num_procs(), .value = 1, .slope = 1, .every = 1};
    int bad = 0;
    if (!options_read(&set, argc, argv))
        return 2;
    for (size_t i = 0; set.list && i < set.count; i++)
        puts(set.specs[i]);
    if (set.list)
        return 0;
    printf("%s of 2^32 floats, %zu activations, %d threads; reference in double%s\n",
           set.every == 1 ? "all" : "a sample", set.count, set.threads,
           reference_exists() ? ", multiple precision near a bound" : " ALONE: built without MPFR");
    double start = clock_seconds();
    for (size_t i = 0; i < set.count; i++) {
        char left[80];
        snprintf(left, sizeof left, "%zu more of %zu", set.count - i - 1, set.count);
        bad += spec_check(set.specs[i], &set, left);
    }
    double seconds = clock_seconds() - start;
    printf("%d of %zu beyond a bound; %.1f s, %.1f core-minutes", bad, set.count, seconds, seconds * set.threads / 60);
    printf(set.every == 1 ? "\n" : " (all floats: about %.0f)\n", seconds * set.threads / 60 * (double)set.every);
    return bad != 0;
}
