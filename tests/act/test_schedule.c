/* test_schedule.c - how the units of a call are shared by 8 to 64 threads.
 * SPDX-License-Identifier: MIT
 *
 * Kernels that only record which units they are given replace those of an activation, so that the
 * schedule of call.c itself runs, with as many threads as asked for, over arrays that need not
 * exist. From the recorded ranges follow the time on a machine with that many equal cores and the
 * cache lines that two threads write. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "act/act_internal.h"

enum { LINE = 64, MOST = 256 };

typedef struct range {
    size_t from, to;
} range;

static range ranges[MOST];
static atomic_size_t count;
static act_job seen;

static void record(const act_job *job, size_t from, size_t to)
{
    size_t i = atomic_fetch_add(&count, 1);
    assert(i < MOST && from < to);
    ranges[i] = (range){from, to};
    if (from == 0)
        seen = *job;
}

static void prepare_nothing(act_job *job)
{
    (void)job;
}

static const act_kernels recorder = {.lanes = 16, .consts_bytes = 64, .prepare = prepare_nothing, .units = record};

static int by_start(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Runs the call and returns the number of units; ranges[] is in order. */
static size_t scheduled(berlu_act_op op, const berlu_act_call *call, int threads)
{
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    for (int isa = 0; isa < ISA_COUNT; isa++)
        act->kernels[isa] = act->kernels[isa] ? &recorder : NULL;
    atomic_store(&count, 0);
    assert_int_equal(berlu_act_run(act, op, call, &(berlu_exec){BERLU_ISA_BEST, threads}), BERLU_OK);
    berlu_act_free(act);
    qsort(ranges, count, sizeof *ranges, by_start);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ranges[i].from, i ? ranges[i - 1].to : 0); /* each unit once */
    assert_true(count <= (size_t)threads);
    return ranges[count - 1].to;
}

/* The slowest thread has at most one unit more than the fastest. */
static void check_balance(size_t units)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = ranges[i].to - ranges[i].from;
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    assert_true(most - least <= 1);
    assert_int_equal(most, (units + count - 1) / count);
}

static void *const memory = (void *)(uintptr_t)(1 << 20); /* never touched */

static void flat_calls_are_balanced_and_share_no_line_of_an_aligned_output(void **state)
{
    (void)state;
    static const size_t sizes[] = {1 << 20, 3 * 1000 * 1000 + 7, 1 << 24, (1 << 26) + 4096};
    for (int threads = 8; threads <= 64; threads *= 2)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int d = BERLU_F32; d <= BERLU_F16; d++) {
                berlu_act_call call = {.dtype = (berlu_dtype)d, .rows = sizes[s], .channels = 1, .x = memory};
                call.dy = memory;
                call.y = call.dx = (char *)memory + (1 << 10);
                for (int op = BERLU_ACT_FORWARD; op <= BERLU_ACT_BACKWARD; op++) {
                    size_t units = scheduled((berlu_act_op)op, &call, threads);
                    size_t useful = sizes[s] / 32768 < (size_t)threads ? sizes[s] / 32768 : (size_t)threads;
                    assert_int_equal(units, (sizes[s] + ACT_UNIT - 1) / ACT_UNIT);
                    assert_int_equal(count, useful);
                    check_balance(units);
                    for (size_t i = 0; i < count; i++)
                        assert_int_equal(ranges[i].from * ACT_UNIT * berlu_dtype_size(call.dtype) % LINE, 0);
                }
            }
}

/* From 64 units per thread on the last one costs less than two percent. */
static void large_arrays_keep_every_core_busy(void **state)
{
    (void)state;
    for (int threads = 8; threads <= 64; threads *= 2) {
        berlu_act_call call = {.rows = (size_t)ACT_UNIT * 64 * (size_t)threads + 1, .channels = 1, .x = memory};
        call.y = (char *)memory + (1 << 10);
        size_t units = scheduled(BERLU_ACT_FORWARD, &call, threads);
        double ideal = (double)units / threads, longest = 0;
        for (size_t i = 0; i < count; i++)
            if ((double)(ranges[i].to - ranges[i].from) > longest)
                longest = (double)(ranges[i].to - ranges[i].from);
        assert_true(longest / ideal < 1.02);
    }
}

/* Sums of a layer are one double per block: neighbours share at most the line between them. */
static void partial_sums_share_at_most_one_line_per_boundary(void **state)
{
    (void)state;
    const size_t n = 16 * 1000 * 1000 + 5;
    for (int threads = 8; threads <= 64; threads *= 2) {
        float grad;
        berlu_act_call call = {.rows = n, .channels = 1, .x = memory, .dy = memory};
        call.dx = (char *)memory + (1 << 10);
        call.param[0].grad = &grad;
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
        call.workspace_bytes = berlu_act_workspace(act, BERLU_ACT_BACKWARD, &call);
        call.workspace = calloc(1, call.workspace_bytes);
        assert_non_null(call.workspace);
        berlu_act_free(act);
        scheduled(BERLU_ACT_BACKWARD, &call, threads);
        assert_int_equal((uintptr_t)seen.layer_sum[0] % LINE, 0);
        size_t shared = 0, written = SIZE_MAX; /* the last line that the previous thread writes */
        for (size_t i = 0; i < count; i++) {
            size_t first = ranges[i].from * (ACT_UNIT / ACT_BLOCK) * sizeof(double) / LINE;
            shared += first == written;
            written = (ranges[i].to * (ACT_UNIT / ACT_BLOCK) * sizeof(double) - 1) / LINE;
            assert_true(i + 1 == count || written > first); /* no line has three writers */
        }
        assert_true(shared < count);
        free(call.workspace);
    }
}

/* A bias makes units of whole rows: without sums they are small enough for many threads, with
 * column sums they are blocks of 64 rows, whose order the sums depend on. */
static void calls_by_rows_are_balanced(void **state)
{
    (void)state;
    static float bias[768], dbias[768];
    for (int threads = 8; threads <= 64; threads *= 2) {
        berlu_act_call call = {.rows = 2080, .channels = 768, .x = memory, .bias = bias};
        call.y = (char *)memory + (1 << 10);
        size_t units = scheduled(BERLU_ACT_FORWARD, &call, threads);
        check_balance(units);
        assert_true(units >= 4 * count); /* so the slowest thread takes at most a quarter longer */
        call = (berlu_act_call){.rows = 2080, .channels = 768, .x = memory, .dy = memory, .dbias = dbias};
        call.dx = (char *)memory + (1 << 10);
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
        call.workspace_bytes = berlu_act_workspace(act, BERLU_ACT_BACKWARD, &call);
        call.workspace = calloc(1, call.workspace_bytes);
        assert_non_null(call.workspace);
        berlu_act_free(act);
        units = scheduled(BERLU_ACT_BACKWARD, &call, threads);
        check_balance(units);
        assert_int_equal(units * seen.unit_rows >= 2080, 1);
        assert_int_equal(seen.unit_rows % ACT_ROWS, 0);
        free(call.workspace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_calls_are_balanced_and_share_no_line_of_an_aligned_output),
        cmocka_unit_test(large_arrays_keep_every_core_busy),
        cmocka_unit_test(partial_sums_share_at_most_one_line_per_boundary),
        cmocka_unit_test(calls_by_rows_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
