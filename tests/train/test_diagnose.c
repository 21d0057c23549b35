/* test_diagnose.c - site metrics compared with reference loops. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"
#include "train/diagnose_values.h"
#include "train/metrics.h"

enum { ROWS = 701, CHANNELS = 203 }; /* enough values for several threads, and no multiple of anything */

static float *values_make(void)
{
    float *x = malloc(ROWS * CHANNELS * sizeof *x);
    for (uint64_t i = 0; i < ROWS * CHANNELS; i++) {
        x[i] = 6 * philox_f32(philox_draw(1, PURPOSE_TEST, 0, i, 0).w[0]) - 3;
        if (i % CHANNELS == 7 || i % CHANNELS == 100) /* two units that are always far on the left */
            x[i] -= 100;
    }
    return x;
}

static void look(const site_values *v, int threads, double figures[SITE_METRICS])
{
    arena memory = {0};
    memset(figures, 0, SITE_METRICS * sizeof *figures);
    value_parts *parts = value_parts_make(&memory, CHANNELS, berlu_act_workspace(v->act, BERLU_ACT_SLOPE, &v->call));
    assert_non_null(parts);
    assert_int_equal(values_measure(parts, v, threads, figures), BERLU_OK);
    arena_free(&memory);
}

static void assert_near(double found, double want)
{
    if (!(fabs(found - want) <= 1e-12 * (1 + fabs(want)))) /* sums of 1e5 doubles */
        fail_msg("%.17g instead of %.17g", found, want);
}

/* Mean and variance in long double, two passes. */
static void moments_check(const float *x, double mean, double variance)
{
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < ROWS * CHANNELS; i++)
        sum += x[i];
    sum /= ROWS * CHANNELS;
    for (size_t i = 0; i < ROWS * CHANNELS; i++)
        squares += (x[i] - sum) * (x[i] - sum);
    assert_near(mean, (double)sum);
    assert_near(variance, (double)(squares / (ROWS * CHANNELS)));
}

/* 1 - cov(x, y)^2 / (var x var y) in long double, two passes. */
static double nonlinear_of(const float *x, const float *y)
{
    long double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < ROWS * CHANNELS; i++)
        mx += x[i], my += y[i];
    mx /= ROWS * CHANNELS, my /= ROWS * CHANNELS;
    for (size_t i = 0; i < ROWS * CHANNELS; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return (double)(1 - xy * xy / (xx * yy));
}

static void figures_are_those_of_plain_loops_on_any_number_of_threads(void **state)
{
    (void)state;
    float *x = values_make(), *y = malloc(ROWS * CHANNELS * sizeof *y), edges[CHANNELS], alphas[CHANNELS];
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.0001,eps=0.5"), BERLU_OK);
    for (int c = 0; c < CHANNELS; c++)
        edges[c] = 0.5f, alphas[c] = 0.0001f;
    site_values v = {.act = act, .x = x, .rows = ROWS, .edge = edges, .call = {.channels = CHANNELS}};
    double once[SITE_METRICS], again[SITE_METRICS], left = 0, right = 0;
    look(&v, 1, once);
    for (int threads = 2; threads < 5; threads++) {
        look(&v, threads, again);
        assert_memory_equal(once, again, sizeof once);
    }
    v.edge_stride = 1; /* the same edge, given per channel */
    v.call.param[0] = (berlu_act_param_arg){.value = alphas, .stride = 1};
    look(&v, 2, again);
    assert_memory_equal(once, again, sizeof once);
    for (size_t i = 0; i < ROWS * CHANNELS; i++)
        left += x[i]<-0.5f, right += x[i]> 0.5f;
    assert_near(once[SITE_LEFT], left / (ROWS * CHANNELS));
    assert_near(once[SITE_RIGHT], right / (ROWS * CHANNELS));
    assert_near(once[SITE_LEFT] + once[SITE_INSIDE] + once[SITE_RIGHT], 1);
    assert_near(once[SITE_DEAD], 2.0 / CHANNELS);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, y, x, ROWS * CHANNELS), BERLU_OK);
    moments_check(x, once[SITE_MEAN], once[SITE_VAR]);
    moments_check(y, once[SITE_Y_MEAN], once[SITE_Y_VAR]);
    assert_near(once[SITE_NONLINEAR], nonlinear_of(x, y));
    assert_true(once[SITE_NONLINEAR] > 0.01 && once[SITE_NONLINEAR] < 1);
    berlu_act_free(act);
    free(x);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures_are_those_of_plain_loops_on_any_number_of_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
