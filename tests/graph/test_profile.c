/* test_profile.c - the columns of a profile by shape that do not depend on time.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/cases.h"

/* A line of the profile. Times vary; quotients of its rates do not. */
typedef struct shown {
    double rows, in, out, calls, ms, share, megabytes, gb_per_s, gflop_per_s, floor;
} shown;

static const graph_case *case_named(const char *name)
{
    for (int i = 0; i < graph_case_count; i++)
        if (strcmp(graph_cases[i].name, name) == 0)
            return &graph_cases[i];
    fail_msg("no case '%s'", name);
    return NULL;
}

/* The line of an op whose third size is `out`. */
static shown line_find(const char *profile, const char *op, double out)
{
    char name[32];
    for (const char *at = profile; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        shown s = {0};
        if (sscanf(at, "%31s %lf x %lf, %lf %lf %lf %lf%% %lf %lf %lf %lf", name, &s.rows, &s.in, &s.out, &s.calls,
                   &s.ms, &s.share, &s.megabytes, &s.gb_per_s, &s.gflop_per_s, &s.floor) == 11 &&
            strcmp(name, op) == 0 && s.out == out)
            return s;
    }
    fail_msg("no line of %s with %g outputs in:\n%s", op, out, profile);
    return (shown){0};
}

static void near_to(double got, double want) /* four digits are printed of each rate */
{
    assert_true(got > want * (1 - 2e-3) && got < want * (1 + 2e-3));
}

static void bytes_count_each_operand_once_and_operations_follow_the_shapes(void **state)
{
    (void)state;
    graph_case profiled = *case_named("attention");
    profiled.options.profile = 1;
    prepared p = case_prepare(&profiled, cpu_f64_backend(), 1); /* which fuses nothing */
    text out = {0};
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_backward(p.e), BERLU_OK);
    engine_profile how = {.by = PROFILE_BY_SHAPE, .bytes_per_s = 1e6, .flops_per_s = 1e30};
    assert_int_equal(engine_profile_text(p.e, &how, &out), BERLU_OK);

    shown head = line_find(out.data, "attention", 6);
    shown qkv = line_find(out.data, "linear", 3 * head.out);
    assert_true(head.in == 3 * head.out && qkv.in == head.out && qkv.rows == head.rows && qkv.calls == 1);
    double weights = qkv.in * qkv.out + qkv.out;
    near_to(qkv.megabytes, 8e-6 * (qkv.rows * (qkv.in + qkv.out) + weights));
    near_to(qkv.gflop_per_s / qkv.gb_per_s, 2 * qkv.rows * qkv.in * qkv.out / (1e6 * qkv.megabytes));
    near_to(qkv.floor, qkv.gb_per_s * 1e9 / how.bytes_per_s);

    shown grad = line_find(out.data, "attention_grad", head.in);
    near_to(grad.gflop_per_s / grad.gb_per_s * grad.megabytes, 2.5 * head.gflop_per_s / head.gb_per_s * head.megabytes);
    text_free(&out);
    case_free(&p);
}

static void without_peaks_there_is_no_share_of_the_floor(void **state)
{
    (void)state;
    graph_case profiled = *case_named("attention");
    profiled.options.profile = 1;
    prepared p = case_prepare(&profiled, cpu_backend(), 1);
    text shapes = {0}, ops = {0};
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    assert_int_equal(engine_profile_text(p.e, &(engine_profile){.by = PROFILE_BY_SHAPE}, &shapes), BERLU_OK);
    assert_int_equal(engine_profile_text(p.e, &(engine_profile){.by = PROFILE_BY_OP, .bytes_per_s = 1}, &ops),
                     BERLU_OK);
    assert_non_null(strstr(shapes.data, "GFLOP/s"));
    assert_null(strstr(shapes.data, "floor"));
    assert_null(strstr(ops.data, "floor"));
    text_free(&shapes);
    text_free(&ops);
    case_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_count_each_operand_once_and_operations_follow_the_shapes),
        cmocka_unit_test(without_peaks_there_is_no_share_of_the_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
