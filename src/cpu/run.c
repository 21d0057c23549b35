/* run.c - runs lists of calls: one after the other, row-blocked groups some rows at a time.
 * SPDX-License-Identifier: MIT
 *
 * A program is a loop over the engine's calls. In a row-blocked group a thread runs all calls on
 * its rows before it takes the next ones; there is no barrier between calls. Sums over rows are the
 * same partial sums as without a group, added at the end: the bits are the same. group.c decides
 * which calls form a group. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "cpu/work.h"

typedef struct group_member {
    void (*rows)(const op_call *c, int64_t begin, int64_t rows); /* begin is a multiple of GROUP_ROWS */
    void (*finish)(const op_call *c);                            /* adds the partial sums; NULL: there are none */
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

/* Times are those of the first thread, whose share of the rows is about as large as any other's. */
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

static void group_run(const op_call *calls, int count, double *seconds)
{
    blocks b = blocks_of(calls->in[0].rows, GROUP_ROWS);
    work_queue s;
    for (int k = 0; k < count; k++)
        assert(members[calls[k].op].rows && calls[k].in[0].rows == calls->in[0].rows);
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

/* ---- programs -------------------------------------------------------------------------------- */

struct program {
    const op_call *calls; /* owned by the engine, which may redirect an operand between two runs */
    int count;
    double *seconds; /* per call, when profiling */
};

berlu_status cpu_prepare(device *d, program **out, const op_call *calls, int count, const program_options *o)
{
    (void)d;
    program *p = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, "a list of calls");
    *p = (program){.calls = calls, .count = count};
    for (int i = 0; i < count; i++)
        assert(calls[i].group <= count - i &&
               (calls[i].group > 1 || calls[i].device->base.backend->ops[calls[i].op].run));
    if (o->profile && !(p->seconds = calloc((size_t)count + 1, sizeof *p->seconds))) {
        free(p);
        return berlu_fail_memory((size_t)count * sizeof *p->seconds, "a profile");
    }
    *out = p;
    return BERLU_OK;
}

berlu_status cpu_run(program *p)
{
    for (int i = 0; i < p->count; i++) {
        const op_call *call = &p->calls[i];
        if (call->group > 1) {
            group_run(call, call->group, p->seconds ? p->seconds + i : NULL);
            i += call->group - 1;
            continue;
        }
        double begin = p->seconds ? clock_seconds() : 0;
        call->device->base.backend->ops[call->op].run(call);
        if (p->seconds)
            p->seconds[i] += clock_seconds() - begin;
    }
    return BERLU_OK;
}

void cpu_program_free(program *p)
{
    if (p)
        free(p->seconds);
    free(p);
}

void cpu_seconds(program *p, double *per_call, int reset)
{
    for (int i = 0; i < p->count && p->seconds; i++)
        per_call[i] += p->seconds[i];
    if (reset && p->seconds)
        memset(p->seconds, 0, (size_t)p->count * sizeof *p->seconds);
}
