/* test_bench.c - `berlu bench act` asks for memory before it takes any, and times the ops that an
 * activation has. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench_act.h"
#include "support/command_json.h"

/* The system would grant the memory and later kill the process that uses it. */
static void arrays_that_the_free_memory_cannot_hold_are_refused(void **state)
{
    (void)state;
    enum { N = 1000 };
    bench_row rows[] = {
        {.act = "relu", .isa = BERLU_ISA_SCALAR, .n = N, .threads = 1, .range = 3},
        {.act = "relu", .isa = BERLU_ISA_SCALAR, .n = N, .threads = 1, .range = 12},
        {.act = "relu", .isa = BERLU_ISA_SCALAR, .n = N, .threads = 1, .dtype = BERLU_BF16, .range = 3}};
    double taken = N * (4 + (4 + 4 + 2) + (4 + 2)); /* y, x of each row, dy by dtype */
    assert_int_equal(bench_act_run(rows, 3, 0.001, taken - 1), BERLU_ERR_MEMORY);
    assert_non_null(strstr(berlu_last_error(), "arrays of 1000 numbers"));
    assert_non_null(strstr(berlu_last_error(), "the largest that fits is 999"));
    assert_int_equal(bench_act_run(rows, 3, 0.001, taken), BERLU_OK);
    assert_int_equal(bench_act_run(rows, 3, 0.001, 0), BERLU_OK); /* not known */
}

/* The slope of tanh can be had from f32 outputs only, of relu from all. */
static void ops_that_a_dtype_does_not_have_are_left_out(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "bench", "act", "--act", "tanh", "--act", "relu", "--dtype", "all", "--n", "64", "--seconds",
                "0.01", "--json", NULL);
    json_t *root = json_of(&r);
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 2 * 3 * 3 - 2);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_that_the_free_memory_cannot_hold_are_refused),
                                       cmocka_unit_test(ops_that_a_dtype_does_not_have_are_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
