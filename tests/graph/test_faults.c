/* test_faults.c - a device that fails, results that arrive late, values that are not finite.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/cases.h"
#include "graph/guarded.h"

static graph_case case_named(const char *name)
{
    for (int i = 0; i < graph_case_count; i++)
        if (strcmp(graph_cases[i].name, name) == 0)
            return graph_cases[i];
    fail_msg("no case '%s'", name);
    return graph_cases[0];
}

static float *weights_of(const engine *e, size_t *count)
{
    const graph *g = engine_graph(e);
    *count = 0;
    for (int i = 0; i < graph_param_count(g); i++)
        *count += (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
    float *all = malloc(*count * sizeof *all), *at = all;
    for (int i = 0; i < graph_param_count(g); i++) {
        assert_int_equal(engine_get(e, ARRAY_WEIGHT, i, at), BERLU_OK);
        at += tensor_elements(graph_tensor(g, graph_param(g, i)));
    }
    return all;
}

static berlu_status step_run(prepared *p)
{
    berlu_status status = engine_forward(p->e, &p->step);
    if (status == BERLU_OK)
        status = engine_backward(p->e);
    if (status == BERLU_OK)
        status = engine_update(p->e);
    return status == BERLU_OK ? engine_step_end(p->e) : status;
}

/* Whichever call fails, the step says so in the device's words, and nothing is leaked or
 * touched. */
static void every_failing_call_of_a_device_is_reported(void **state)
{
    (void)state;
    graph_case c = case_named("attention");
    prepared p = case_prepare(&c, guarded_backend(), 1);
    guarded_fail_at(0);
    assert_int_equal(step_run(&p), BERLU_OK);
    int calls = guarded_calls();
    case_free(&p);
    assert_true(calls >= 6);
    for (int n = 1; n <= calls; n++) {
        p = case_prepare(&c, guarded_backend(), 1);
        guarded_fail_at(n);
        assert_int_equal(step_run(&p), BERLU_ERR_DEVICE);
        assert_non_null(strstr(berlu_last_error(), "guarded device"));
        guarded_fail_at(0);
        case_free(&p);
    }
}

/* Losses polled three steps late are those that a caller who waits reads, in the same order. */
static void late_results_are_the_same_in_the_same_order(void **state)
{
    (void)state;
    enum { STEPS = 9 };
    graph_case c = case_named("attention");
    prepared now = case_prepare(&c, cpu_backend(), 1), late = case_prepare(&c, guarded_backend(), 1);
    double expected[STEPS];
    int got = 0;
    for (int i = 0; i < STEPS; i++) {
        step_result r;
        int there;
        assert_int_equal(step_run(&now), BERLU_OK);
        assert_int_equal(engine_poll(now.e, &r, &there, 0), BERLU_OK);
        assert_true(there);
        expected[i] = step_loss(now.e, &r);
        assert_true(expected[i] == engine_loss(now.e));
        assert_int_equal(step_run(&late), BERLU_OK);
        assert_int_equal(engine_poll(late.e, &r, &there, 0), BERLU_OK);
        assert_int_equal(there, i >= 3);
        if (there)
            assert_true(step_loss(late.e, &r) == expected[got++]);
    }
    for (step_result r; got < STEPS;) {
        int there;
        assert_int_equal(engine_poll(late.e, &r, &there, 1), BERLU_OK);
        assert_true(there);
        assert_true(step_loss(late.e, &r) == expected[got++]);
    }
    case_free(&now);
    case_free(&late);
}

/* A NaN among the images makes the loss NaN: weights, moments and average stay, and so they do in
 * later, healthy steps. */
static void a_loss_that_is_not_finite_stops_all_updates(void **state)
{
    (void)state;
    graph_case c = case_named("attention");
    c.options.ema = 1;
    const backend *const backends[] = {cpu_backend(), cpu_f64_backend(), cpu_ref_backend()};
    for (size_t b = 0; b < COUNT(backends); b++) {
        prepared p = case_prepare(&c, backends[b], 1);
        size_t count;
        float *before = weights_of(p.e, &count), healthy = engine_input(p.e)[0];
        engine_input(p.e)[0] = NAN;
        assert_int_equal(step_run(&p), BERLU_OK);
        engine_input(p.e)[0] = healthy;
        assert_int_equal(step_run(&p), BERLU_OK);
        step_result r;
        int there;
        assert_int_equal(engine_poll(p.e, &r, &there, 1), BERLU_OK);
        assert_true(there && r.fault);
        float *after = weights_of(p.e, &count);
        assert_memory_equal(before, after, count * sizeof *before);
        free(before);
        free(after);
        case_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_of_a_device_is_reported),
        cmocka_unit_test(late_results_are_the_same_in_the_same_order),
        cmocka_unit_test(a_loss_that_is_not_finite_stops_all_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
