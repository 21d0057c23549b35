/* test_bench.c - `berlu bench act` asks for memory before it takes any. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench_act.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_that_the_free_memory_cannot_hold_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
