/* group.c - several calls for a thousand rows, then for the next thousand. SPDX-License-Identifier: MIT
 *
 * A thread takes its rows through all calls of a group before it takes the next; nobody waits for anybody between calls. What the
 * calls sum over rows they keep as partial sums, cut as without a group, and join in the end: the bits are the same.
 * Which calls are a group: engine/group.c. */
#include "base/clock.h"
#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "cpu/work.h"

typedef struct group_member {
    void (*rows)(const op_call *c, int64_t begin, int64_t rows); /* begin is a multiple of GROUP_ROWS */
    void (*finish)(const op_call *c);                            /* joins partial sums; NULL: there are none */
} group_member;

static const group_member members[OP_COUNT] = {
    [OP_LINEAR] = {cpu_linear_rows, NULL},
    [OP_LINEAR_ACT] = {cpu_linear_act_rows, NULL},
    [OP_LINEAR_DX] = {cpu_linear_rows, NULL},
    [OP_LINEAR_DW] = {cpu_linear_dw_rows, cpu_linear_dw_finish},
    [OP_LINEAR_DX_ACT] = {cpu_linear_dx_act_rows, cpu_linear_dx_act_finish},
    [OP_ATTENTION] = {cpu_attention_rows, NULL},
    [OP_ATTENTION_GRAD] = {cpu_attention_rows, NULL},
    [OP_NORM] = {cpu_norm_rows, NULL},
    [OP_NORM_GRAD] = {cpu_norm_grad_rows, cpu_norm_grad_finish},
};

int cpu_groupable(op_id op)
{
    return members[op].rows != NULL;
}

/* Times are those of the first thread, whose work_queue of the rows is about as large as anybody's. */
static void rows_run(const op_call *calls, int count, const blocks *b, int64_t i, double *seconds)
{
    int timed = seconds && omp_get_thread_num() == 0;
    for (int k = 0; k < count; k++) {
        double begin = timed ? clock_seconds() : 0;
        members[calls[k].op].rows(&calls[k], block_begin(b, i), block_rows(b, i));
        if (timed)
            seconds[k] += clock_seconds() - begin;
    }
}

void cpu_group_run(const op_call *calls, int count, double *seconds)
{
    blocks b = blocks_of(calls->in[0].rows, GROUP_ROWS);
    work_queue s;
    work_deal(&s, b.count, calls->threads);
#pragma omp parallel num_threads(calls->threads)
    for (int64_t i; (i = work_take(&s)) >= 0;)
        rows_run(calls, count, &b, i, seconds);
    for (int k = 0; k < count; k++) {
        double begin = seconds ? clock_seconds() : 0;
        if (members[calls[k].op].finish)
            members[calls[k].op].finish(&calls[k]);
        if (seconds)
            seconds[k] += clock_seconds() - begin;
    }
}
