/* test_micro_batches.c - what several processes rely on: the order of sums, and bits that no CPU
 * changes. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "cpu/simd_kernels.h"
#include "graph/cases.h"

#define assert_ok(call) assert_int_equal(call, BERLU_OK)

static graph_case named(const char *name)
{
    int i = 0;
    while (strcmp(graph_cases[i].name, name) != 0)
        assert_true(++i < graph_case_count);
    return graph_cases[i];
}

static size_t parameters_of(const graph *g)
{
    size_t count = 0;
    for (int i = 0; i < graph_param_count(g); i++)
        count += (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
    return count;
}

static float *array_all(const prepared *p, engine_array array)
{
    float *all = calloc(parameters_of(p->g), sizeof *all), *to = all;
    for (int i = 0; i < graph_param_count(p->g); i++) {
        assert_ok(engine_get(p->e, array, i, to));
        to += tensor_elements(graph_tensor(p->g, graph_param(p->g, i)));
    }
    return all;
}

static void batch_shift(const prepared *p, int number)
{
    engine_input(p->e)[0] = (float)number;
    engine_labels(p->e)[0] = number % 3;
}

static void micro_batch_run(prepared *p, int number, int of)
{
    batch_shift(p, number);
    p->step.micro_batch = of > 1 ? (uint32_t)number : 0;
    p->step.micro_batches = (uint32_t)of;
    assert_ok(engine_forward(p->e, &p->step));
    assert_ok(engine_backward(p->e));
}

/* Leaves [first, first + count): the sum of the aligned left half, a power of two, and the rest. */
static float tree(float *const *leaf, int first, int count, size_t i)
{
    int half = 1;
    if (count == 1)
        return leaf[first][i];
    while (half * 2 < count)
        half *= 2;
    return tree(leaf, first, half, i) + tree(leaf, first + half, count - half, i);
}

enum { MOST = 13 };

static void micro_batches_are_added_in_a_binary_tree(void **state)
{
    (void)state;
    graph_case c = named("attention");
    c.options.accumulate = MOST;
    float *leaf[MOST];
    prepared p = case_prepare(&c, cpu_backend(), 2);
    size_t count = parameters_of(p.g), other = 0;
    for (int m = 0; m < MOST; m++) {
        micro_batch_run(&p, m, 1);
        leaf[m] = array_all(&p, ARRAY_GRADIENT);
    }
    for (int of = 1; of <= MOST; of++) {
        for (int m = 0; m < of; m++)
            micro_batch_run(&p, m, of);
        float *sum = array_all(&p, ARRAY_GRADIENT);
        for (size_t i = 0; i < count; i++) {
            float want = tree(leaf, 0, of, i), in_order = leaf[0][i];
            for (int m = 1; m < of; m++)
                in_order += leaf[m][i];
            assert_memory_equal(&sum[i], &want, sizeof want);
            other += memcmp(&in_order, &want, sizeof want) != 0;
        }
        free(sum);
    }
    assert_true(other > count); /* the order matters, so the comparison above says something */
    for (int m = 0; m < MOST; m++)
        free(leaf[m]);
    case_free(&p);
}

static void a_micro_batch_outside_its_group_is_refused(void **state)
{
    (void)state;
    graph_case c = named("attention");
    c.options.accumulate = 3;
    prepared p = case_prepare(&c, cpu_backend(), 1);
    p.step.micro_batch = 2, p.step.micro_batches = 2;
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "micro-batch 2 of 2"));
    p.step.micro_batches = 4;
    assert_int_equal(engine_set_step(p.e, &p.step), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "made for 3"));
    case_free(&p);
}

/* A process whose share of a short group is empty updates with this step's rate, not with the last
 * one's. */
static void values_of_a_step_need_no_forward(void **state)
{
    (void)state;
    graph_case c = named("attention");
    prepared whole = case_prepare(&c, cpu_backend(), 1), part = case_prepare(&c, cpu_backend(), 1);
    micro_batch_run(&whole, 0, 1);
    assert_ok(engine_update(whole.e));
    engine_step step = part.step;
    part.step.lr = 0.5, part.step.weight_decay = 1;
    micro_batch_run(&part, 0, 1);
    assert_ok(engine_set_step(part.e, &step));
    assert_ok(engine_update(part.e));
    float *a = array_all(&whole, ARRAY_WEIGHT), *b = array_all(&part, ARRAY_WEIGHT);
    assert_memory_equal(a, b, parameters_of(whole.g) * sizeof *a);
    free(a);
    free(b);
    case_free(&whole);
    case_free(&part);
}

static int can_run(const backend *b)
{
    cpu_isa isa;
    return cpu_isa_parse(&isa, ((const simd_kernels *)b->data)->isa) == BERLU_OK && cpu_has(isa);
}

static float *trained(const graph_case *c, const backend *b)
{
    prepared p = case_prepare(c, b, 1);
    p.step.clip = 0.01; /* the norm of the gradients takes part */
    for (int i = 0; i < 3; i++) {
        p.step.count = (uint32_t)i + 1;
        assert_ok(engine_forward(p.e, &p.step));
        assert_ok(engine_backward(p.e));
        assert_ok(engine_update(p.e));
    }
    float *weights = array_all(&p, ARRAY_WEIGHT);
    case_free(&p);
    return weights;
}

static void every_instruction_set_trains_to_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        const graph_case *c = &graph_cases[i];
        if (c->options.mode != ENGINE_TRAIN)
            continue;
        prepared p = case_prepare(c, cpu_backend(), 1);
        size_t bytes = parameters_of(p.g) * sizeof(float);
        float *want = trained(c, cpu_backend());
        case_free(&p);
        for (int k = 0; cpu_backend_at(k); k++) {
            if (!can_run(cpu_backend_at(k)))
                continue;
            float *got = trained(c, cpu_backend_at(k));
            if (memcmp(got, want, bytes))
                fail_msg("%s: %s trains to other bits", c->name, ((const simd_kernels *)cpu_backend_at(k)->data)->isa);
            free(got);
        }
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_are_added_in_a_binary_tree),
        cmocka_unit_test(a_micro_batch_outside_its_group_is_refused),
        cmocka_unit_test(values_of_a_step_need_no_forward),
        cmocka_unit_test(every_instruction_set_trains_to_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
