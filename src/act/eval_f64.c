/* eval_f64.c - arrays of doubles through the reference. SPDX-License-Identifier: MIT
 *
 * The reference computes everything about a point at once (berlu_act_at()); here one of its
 * numbers is kept per element. It is some fifty times slower than the f32 kernels, so a thread
 * pays much earlier than theirs (call.c). */
#include "act/act_internal.h"
#include "base/threads.h"

enum { EVAL_BLOCK = 1024 }; /* elements; some 50 us, which is what waking a thread costs */

typedef struct eval_job {
    const berlu_act *act;
    berlu_act_op op;
    int param_index;
    double *out;
    const double *x;
    size_t count;
} eval_job;

static double eval_pick(const eval_job *job, const berlu_act_point *at)
{
    switch (job->op) {
    case BERLU_ACT_SLOPE:
        return at->slope;
    case BERLU_ACT_SECOND:
        return at->second;
    case BERLU_ACT_PARAM_SLOPE:
        return at->param[job->param_index];
    default:
        return at->value;
    }
}

static void eval_block(void *context, size_t block)
{
    const eval_job *job = context;
    size_t end = job->count - block * EVAL_BLOCK < EVAL_BLOCK ? job->count : (block + 1) * EVAL_BLOCK;
    for (size_t i = block * EVAL_BLOCK; i < end; i++) {
        berlu_act_point at = berlu_act_at(job->act, job->x[i], NULL);
        job->out[i] = eval_pick(job, &at);
    }
}

berlu_status berlu_act_eval_f64(const berlu_act *act, berlu_act_op op, int param_index, double *out, const double *x,
                                size_t count, int threads)
{
    if (!act || (count && (!out || !x)))
        return berlu_fail(BERLU_ERR_ARG, "berlu_act_eval_f64: the activation or an array is NULL");
    if (op != BERLU_ACT_FORWARD && op != BERLU_ACT_SLOPE && op != BERLU_ACT_SECOND && op != BERLU_ACT_PARAM_SLOPE)
        return berlu_fail(BERLU_ERR_ARG, "%s: op number %d does not map one array to one", act->name, (int)op);
    if (op == BERLU_ACT_PARAM_SLOPE && (param_index < 0 || param_index >= (int)berlu_act_param_count(act)))
        return berlu_fail(BERLU_ERR_ARG, "%s has no parameter number %d", act->name, param_index);
    eval_job job = {act, op, param_index, out, x, count};
    size_t blocks = count / EVAL_BLOCK + (count % EVAL_BLOCK != 0);
    if (blocks == 1)
        eval_block(&job, 0);
    else
        threads_for(threads, blocks, eval_block, &job);
    return BERLU_OK;
}
