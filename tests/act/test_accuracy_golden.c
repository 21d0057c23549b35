/* test_accuracy_golden.c - the transcendental activations at chosen points, against golden values.
 * SPDX-License-Identifier: MIT
 *
 * tests/golden/activations.tsv comes from the definitions in 200 digits
 * (tools/make_activation_golden.py). The double version must be right to a few units of 2^-53, the
 * kernels must hold the bounds of the header, second derivatives and derivatives by alpha 4 ULP;
 * near a zero of a derivative 2 * 2^-24 absolute, and for double 2^-50. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/act.h>

#include "act/inputs.h"
#include "act/reference.h"

typedef struct row {
    char name[16], alpha[32];
    double x, value, slope, second, by_alpha;
} row;

/* 1 while there are rows */
static int row_read(FILE *file, row *r)
{
    char line[512], x[40], by_alpha[40];
    do
        if (!fgets(line, sizeof line, file))
            return 0;
    while (line[0] == '#');
    assert_int_equal(sscanf(line, "%15s %31s %39s %lf %lf %lf %39s", r->name, r->alpha, x, &r->value, &r->slope,
                            &r->second, by_alpha),
                     7);
    r->x = strtod(x, NULL);
    r->by_alpha = by_alpha[0] == '-' && !by_alpha[1] ? NAN : strtod(by_alpha, NULL);
    return 1;
}

static FILE *golden_open(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/activations.tsv", getenv("BERLU_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static berlu_act *row_act(const row *r)
{
    char spec[64];
    berlu_act *act;
    if (strcmp(r->alpha, "-") == 0)
        snprintf(spec, sizeof spec, "%s", r->name);
    else
        snprintf(spec, sizeof spec, "%s:alpha=%.17g", r->name, strtod(r->alpha, NULL));
    assert_int_equal(berlu_act_make(&act, spec), BERLU_OK);
    return act;
}

static void expect_double(const row *r, const char *what, double got, double want)
{
    double error = fabs(got - want);
    if (!(error <= 40 * 0x1p-53 * fabs(want) || (fabs(r->x) < 3 && error <= 0x1p-50)))
        fail_msg("%s(%s) %s at %a: %.17g instead of %.17g", r->name, r->alpha, what, r->x, got, want);
}

static void the_double_version_agrees_with_the_definition(void **state)
{
    (void)state;
    FILE *file = golden_open();
    for (row r; row_read(file, &r);) {
        berlu_act *act = row_act(&r);
        berlu_act_point at = berlu_act_at(act, r.x, NULL);
        expect_double(&r, "f", at.value, r.value);
        expect_double(&r, "f'", at.slope, r.slope);
        expect_double(&r, "f''", at.second, r.second);
        if (!isnan(r.by_alpha))
            expect_double(&r, "df/dalpha", at.param[0], r.by_alpha);
        berlu_act_free(act);
    }
    fclose(file);
}

static float kernel_at(const berlu_act *act, berlu_act_op op, double x)
{
    float in = (float)x, out = NAN;
    berlu_act_call call = {.rows = 1, .channels = 1, .x = &in, .y = &out};
    assert_int_equal(berlu_act_run(act, op, &call, NULL), BERLU_OK);
    return out;
}

static void expect_kernel(const row *r, const char *what, float got, double want, double bound, int has_zeros)
{
    double ulps = reference_ulps(got, want, want);
    if (fabs(want) < 0x1p-126) /* one unit of the subnormals more, as everywhere */
        bound += 1;
    if (!(ulps <= bound || (has_zeros && fabs(r->x) < 3 && fabs((double)got - want) <= 2 * 0x1p-24)))
        fail_msg("%s(%s) %s at %a: %.9g instead of %.17g, %.3f ULP", r->name, r->alpha, what, r->x, (double)got, want,
                 ulps);
}

static void the_kernels_hold_their_bounds(void **state)
{
    (void)state;
    FILE *file = golden_open();
    for (row r; row_read(file, &r);) {
        berlu_act *act = row_act(&r);
        expect_kernel(&r, "f", kernel_at(act, BERLU_ACT_FORWARD, r.x), r.value, berlu_act_ulp(act), 0);
        expect_kernel(&r, "f'", kernel_at(act, BERLU_ACT_SLOPE, r.x), r.slope, berlu_act_slope_ulp(act),
                      reference_slope_absolute(act) > 0);
        expect_kernel(&r, "f''", kernel_at(act, BERLU_ACT_SECOND, r.x), r.second, 4, 1);
        if (!isnan(r.by_alpha))
            expect_kernel(&r, "df/dalpha", kernel_at(act, BERLU_ACT_PARAM_SLOPE, r.x), r.by_alpha, 4, 0);
        berlu_act_free(act);
    }
    fclose(file);
}

/* Around every join of tables and paths: 64 floats on each side, against double. */
static void nothing_jumps_at_the_joins(void **state)
{
    (void)state;
    const char *const specs[] = {"gelu", "gelu_tanh", "silu", "mish", "elu", "celu:alpha=0.3", "selu"};
    const float paths[] = {4, 8, 11.5f, 13, 15, 16, 20, 30, 80, 87, 110};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, specs[s]), BERLU_OK);
        for (int j = 0; j < 64 + 11; j++) {
            float join = j < 64 ? ((float)(j % 16) + 0.5f) / (float[]){3.875f, 1.9375f, 1.875f, 1.44269504f}[j / 16]
                                : paths[j - 64];
            float x = join;
            for (int i = 0; i < 64; i++)
                x = nextafterf(x, 0);
            for (int i = 0; i < 128; i++, x = nextafterf(x, INFINITY))
                for (int sign = -1; sign <= 1; sign += 2) {
                    row r = {.x = (double)x * sign};
                    snprintf(r.name, sizeof r.name, "%s", specs[s]);
                    berlu_act_point at = inputs_at(act, r.x);
                    expect_kernel(&r, "f", kernel_at(act, BERLU_ACT_FORWARD, r.x), at.value, berlu_act_ulp(act), 0);
                    expect_kernel(&r, "f'", kernel_at(act, BERLU_ACT_SLOPE, r.x), at.slope, berlu_act_slope_ulp(act),
                                  reference_slope_absolute(act) > 0);
                    expect_kernel(&r, "f''", kernel_at(act, BERLU_ACT_SECOND, r.x), at.second, 4, 1);
                }
        }
        berlu_act_free(act);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_double_version_agrees_with_the_definition),
        cmocka_unit_test(the_kernels_hold_their_bounds),
        cmocka_unit_test(nothing_jumps_at_the_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
