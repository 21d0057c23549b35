/* test_threads.c - the number of threads never changes a bit. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/status.h"
#include "base/threads.h"

static const int thread_counts[] = {1, 2, 3, 7, 16, 0};

static void count_visit(void *context, size_t block)
{
    atomic_fetch_add(&((atomic_int *)context)[block], 1);
}

static void every_block_is_visited_exactly_once(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(thread_counts); t++)
        for (size_t blocks = 0; blocks < 40; blocks++) {
            atomic_int visits[41] = {0};
            threads_for(thread_counts[t], blocks, count_visit, visits);
            for (size_t b = 0; b < COUNT(visits); b++)
                assert_int_equal(visits[b], b < blocks);
        }
}

enum { BLOCK = 4096, BLOCKS = 37 };
typedef struct sums {
    double of_block[BLOCKS];
} sums;

static void sum_block(void *context, size_t block)
{
    float sum = 0;
    for (uint32_t i = 0; i < BLOCK; i++)
        sum += philox_f32(philox_draw(9, PURPOSE_TEST, 0, block * BLOCK + i, 0).w[0]) - 0.5f;
    ((sums *)context)->of_block[block] = (double)sum;
}

static void a_sum_has_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    double first = NAN;
    for (size_t t = 0; t < COUNT(thread_counts); t++) {
        sums s;
        threads_for(thread_counts[t], BLOCKS, sum_block, &s);
        double total = tree_sum(s.of_block, BLOCKS);
        if (t == 0)
            first = total;
        assert_memory_equal(&total, &first, sizeof total);
    }
}

static void column_sums_are_those_of_the_tree_over_each_column(void **state)
{
    (void)state;
    enum { ROWS = 37, COLUMNS = 131, STRIDE = 140 };
    static float values[ROWS * STRIDE], joined[COLUMNS + 1];
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        values[i] = philox_f32(philox_draw(3, PURPOSE_TEST, 0, i, 0).w[0]) - 0.5f;
    for (size_t rows = 0; rows <= ROWS; rows++) {
        joined[COLUMNS] = 7;
        tree_sum_columns(joined, values, rows, STRIDE, COLUMNS);
        assert_true(joined[COLUMNS] == 7);
        for (size_t c = 0; c < COLUMNS; c++) {
            double column[ROWS];
            for (size_t r = 0; r < rows; r++)
                column[r] = (double)values[r * STRIDE + c];
            assert_true(joined[c] == (float)tree_sum(column, rows));
        }
    }
}

/* At 2^53 the floats are 2 apart: a lone 0.9 vanishes, two of them joined first do not. */
static void the_tree_splits_at_the_largest_power_of_two(void **state)
{
    (void)state;
    const double big = 0x1p53, x[] = {big, 0.9, 0.9, 0.9, 0.9, 0.9};
    assert_true(tree_sum(NULL, 0) == 0);
    assert_true(tree_sum(x, 1) == big);
    assert_true(tree_sum(x, 2) == big);     /* big + x */
    assert_true(tree_sum(x, 3) == big);     /* (big + x) + x */
    assert_true(tree_sum(x, 4) == big + 2); /* (big + x) + (x + x) */
    assert_true(tree_sum(x, 5) == big + 2); /* ((big + x) + (x + x)) + x */
    assert_true(tree_sum(x, 6) == big + 4); /* ((big + x) + (x + x)) + (x + x) */
}

static void there_is_at_least_one_thread(void **state)
{
    (void)state;
    assert_true(threads_default() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_visited_exactly_once),
        cmocka_unit_test(a_sum_has_the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(the_tree_splits_at_the_largest_power_of_two),
        cmocka_unit_test(column_sums_are_those_of_the_tree_over_each_column),
        cmocka_unit_test(there_is_at_least_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
