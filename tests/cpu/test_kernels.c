/* test_kernels.c - the fast engine against the reference, and against itself.
 * SPDX-License-Identifier: MIT
 *
 * Bound: a network of these sizes adds at most a few hundred f32 products per number, so a result
 * is off by some 1e-6 of the sizes involved; 2e-5 of a gradient's own norm, plus 2e-7 of the
 * largest norm in the network (for gradients that cancel, such as those of key biases), is ten
 * times that and a hundred times below any mistake. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "cpu/simd_kernels.h"
#include "graph/cases.h"

static void step_run(prepared *p)
{
    assert_int_equal(engine_forward(p->e, &p->step), BERLU_OK);
    assert_int_equal(engine_backward(p->e), BERLU_OK);
}

static double *array_get(prepared *p, engine_array array, int parameter, int64_t *count)
{
    *count = tensor_elements(graph_tensor(p->g, graph_param(p->g, parameter)));
    double *values = malloc((size_t)*count * sizeof *values);
    assert_int_equal(engine_get_f64(p->e, array, parameter, values), BERLU_OK);
    return values;
}

static double norm_of(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (a[i] - (b ? b[i] : 0)) * (a[i] - (b ? b[i] : 0));
    return sqrt(sum);
}

static void gradients_compare(const graph_case *c, prepared *fast, prepared *reference, double own,
                              double largest_share)
{
    double largest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < graph_param_count(fast->g); i++) {
            int64_t count;
            double *got = array_get(fast, ARRAY_GRADIENT, i, &count),
                   *want = array_get(reference, ARRAY_GRADIENT, i, &count);
            double size = norm_of(want, NULL, count), off = norm_of(got, want, count);
            largest = size > largest ? size : largest;
            if (pass == 1 && !(off <= own * size + largest_share * largest))
                fail_msg("%s: gradient of %s is off by %g of %g", c->name,
                         graph_tensor(fast->g, graph_param(fast->g, i))->name, off, size);
            free(got);
            free(want);
        }
}

/* Every instruction set this machine can run. */
static int can_run(const backend *machine)
{
    cpu_isa isa;
    return cpu_isa_parse(&isa, ((const simd_kernels *)machine->data)->isa) == BERLU_OK && cpu_has(isa);
}

static void every_case_equals_the_reference_on_every_instruction_set(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared reference = case_prepare(&graph_cases[i], cpu_f64_backend(), 1);
        step_run(&reference);
        for (int k = 0; cpu_backend_at(k); k++) {
            if (!can_run(cpu_backend_at(k)))
                continue;
            prepared fast = case_prepare(&graph_cases[i], cpu_backend_at(k), 2);
            step_run(&fast);
            if (!(fabs(engine_loss(fast.e) - engine_loss(reference.e)) <= 2e-6 * (1 + fabs(engine_loss(reference.e)))))
                fail_msg("%s: loss %.9g, reference %.9g", graph_cases[i].name, engine_loss(fast.e),
                         engine_loss(reference.e));
            gradients_compare(&graph_cases[i], &fast, &reference, 2e-5, 2e-7);
            case_free(&fast);
        }
        case_free(&reference);
    }
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared one = case_prepare(&graph_cases[i], cpu_backend(), 1);
        step_run(&one);
        assert_int_equal(engine_update(one.e), BERLU_OK);
        for (int threads = 2; threads <= 3; threads++) {
            prepared many = case_prepare(&graph_cases[i], cpu_backend(), threads);
            step_run(&many);
            assert_int_equal(engine_update(many.e), BERLU_OK);
            gradients_compare(&graph_cases[i], &many, &one, 0, 0);
            for (int k = 0; k < graph_param_count(one.g); k++) {
                int64_t count;
                double *a = array_get(&one, ARRAY_WEIGHT, k, &count), *b = array_get(&many, ARRAY_WEIGHT, k, &count);
                assert_memory_equal(a, b, (size_t)count * sizeof *a);
                free(a);
                free(b);
            }
            case_free(&many);
        }
        case_free(&one);
    }
}

static void keeping_both_gives_the_bits_of_keeping_the_input(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        graph_case other = graph_cases[i];
        if (!other.act || other.options.keep != KEEP_INPUT)
            continue;
        other.options.keep = KEEP_BOTH;
        prepared a = case_prepare(&graph_cases[i], cpu_backend(), 2), b = case_prepare(&other, cpu_backend(), 2);
        step_run(&a);
        step_run(&b);
        gradients_compare(&other, &b, &a, 0, 0);
        assert_true(engine_memory_use(a.e).kept < engine_memory_use(b.e).kept);
        case_free(&a);
        case_free(&b);
    }
}

static void a_second_run_gives_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < graph_case_count; i++) {
        prepared p = case_prepare(&graph_cases[i], cpu_backend(), 2),
                 q = case_prepare(&graph_cases[i], cpu_backend(), 2);
        step_run(&p);
        step_run(&q);
        step_run(&q); /* and leftovers of a step do not matter */
        gradients_compare(&graph_cases[i], &q, &p, 0, 0);
        case_free(&p);
        case_free(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_equals_the_reference_on_every_instruction_set),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(keeping_both_gives_the_bits_of_keeping_the_input),
        cmocka_unit_test(a_second_run_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
