/* call.c - runs a call: checks it, cuts it into units, distributes them over threads, joins the
 * sums. SPDX-License-Identifier: MIT
 *
 * All checks come before anything is touched. The partition of sums depends on the call alone
 * (kernels.h): threads and instruction set never change a bit. Nothing is allocated, except
 * constants per channel for a caller without a workspace: constants of the activation's own
 * parameters were prepared when it was made, those of a call's live on the stack, and everything
 * per channel or per block lives in the caller's workspace, laid out by job_place(). A call of few
 * elements should cost little, so nothing is zeroed or copied without need. Read berlu_act_run()
 * first. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "base/arena.h"
#include "base/threads.h"

/* ---- The workspace --------------------------------------------------------------------------- */

/* Hands out the workspace piece by piece, each aligned to 64; without a base it only counts. */
typedef struct space {
    uintptr_t base;
    size_t used;
    int fits; /* the total fits in size_t */
} space;

static void *space_take(space *s, size_t count, size_t size)
{
    size_t bytes, at = s->used;
    if (!size_mul(count, size, &bytes) || bytes > SIZE_MAX / 2 - 64 || at > SIZE_MAX / 2 - 64 - bytes) {
        s->fits = 0;
        return NULL;
    }
    s->used += (bytes + 63) / 64 * 64;
    return s->base ? (void *)(s->base + at) : NULL;
}

/* Constants per channel: as much as the most demanding instruction set of this machine needs. */
static void *space_consts(space *s, const berlu_act *act, size_t channels)
{
    size_t most = 0;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const act_kernels *k = act->kernels[isa];
        size_t bytes;
        if (!k)
            continue;
        if (!size_mul(channels / k->lanes + 1, k->consts_bytes, &bytes))
            bytes = SIZE_MAX;
        most = bytes > most ? bytes : most;
    }
    return space_take(s, 1, most);
}

/* Sets sizes, parameters and the addresses of the partial sums. False when the sizes overflow.
 * Members are set one by one: zeroing the whole job first costs as much as all the rest of a small
 * call. */
static int job_place(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call, space *s)
{
    size_t columns, params = act->definition->param_count;
    if (!size_mul(call->rows, call->channels, &job->count) || job->count > SIZE_MAX / sizeof(double))
        return 0;
    job->blocks = job->count / ACT_BLOCK + (job->count % ACT_BLOCK != 0);
    job->row_blocks = call->rows / ACT_ROWS + (call->rows % ACT_ROWS != 0);
    if (!size_mul(job->row_blocks, call->channels, &columns))
        return 0;
    job->vector_consts = 0;
    for (size_t p = 0; p < params; p++) {
        const berlu_act_param_arg *arg = &call->param[p];
        int wanted = is_backward(op) && arg->grad;
        job->param[p] = arg->value ? arg->value : &act->params[p];
        job->per_channel[p] = arg->stride != 0;
        job->vector_consts |= job->per_channel[p];
        job->channel_sum[p] = wanted && arg->stride ? space_take(s, columns, sizeof(float)) : NULL;
        job->layer_sum[p] = wanted && !arg->stride ? space_take(s, job->blocks, sizeof(double)) : NULL;
    }
    job->bias_sum = is_backward(op) && call->dbias ? space_take(s, columns, sizeof(float)) : NULL;
    job->consts = job->vector_consts ? space_consts(s, act, call->channels) : NULL;
    if (s->used)
        s->used += 63; /* to align the first byte */
    return s->fits;
}

static berlu_status fail_overflow(const berlu_act *act, const berlu_act_call *call)
{
    return berlu_fail(BERLU_ERR_ARG, "%s: %zu rows of %zu channels overflow the size of memory", act->name, call->rows,
                      call->channels);
}

size_t berlu_act_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    act_job job;
    space s = {.fits = 1};
    if (!act || !call) {
        berlu_fail(BERLU_ERR_ARG, "berlu_act_workspace: the activation or the call is NULL");
        return 0;
    }
    if (call->inner > 1)
        return planes_workspace(act, op, call);
    if (!job_place(&job, act, op, call, &s)) {
        fail_overflow(act, call);
        return 0;
    }
    return s.used;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static berlu_status check_pointers(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    const char *missing = NULL;
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? !call->y : !call->x)
        missing = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? "y" : "x";
    else if (is_backward(op) && (!call->dy || !call->dx))
        missing = call->dy ? "dx" : "dy";
    else if (!is_backward(op) && !call->y)
        missing = "y";
    if (missing)
        return berlu_fail(BERLU_ERR_ARG, "%s: the call needs %s, which is NULL", act->name, missing);
    return BERLU_OK;
}

static berlu_status check_params(const berlu_act *act, const berlu_act_call *call)
{
    for (size_t p = 0; p < act->definition->param_count; p++) {
        const char *name = act->definition->params[p].name;
        if (call->param[p].stride > 1)
            return berlu_fail(BERLU_ERR_ARG, "%s: the stride of %s is %zu; it can be 0 or 1", act->name, name,
                              call->param[p].stride);
        if (call->param[p].stride == 1 && !call->param[p].value)
            return berlu_fail(BERLU_ERR_ARG, "%s: %s has stride 1 but no values", act->name, name);
    }
    for (size_t p = act->definition->param_count; p < BERLU_ACT_PARAMS; p++)
        if (call->param[p].value || call->param[p].grad || call->param[p].stride)
            return berlu_fail(BERLU_ERR_ARG, "%s has no parameter number %zu", act->name, p);
    return BERLU_OK;
}

/* Tries parameters of 1: where they do not help either, the degree is the reason. */
static berlu_status check_from_output_at(const berlu_act *act, const double *v)
{
    static const double ones[BERLU_ACT_PARAMS] = {1, 1, 1, 1};
    if (act->definition->from_output(v, &act->shape))
        return BERLU_OK;
    int by_param = act->definition->from_output(ones, &act->shape);
    return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: with %s = %g its slope cannot be had from the output; keep the input",
                      act->spec, by_param ? act->definition->params[0].name : "degree",
                      by_param ? v[0] : act->shape.degree);
}

/* Checks without the call's parameters, which may be device memory: 1 stands for them. */
static berlu_status check_from_output(const berlu_act *act, const berlu_act_call *call)
{
    double v[BERLU_ACT_PARAMS] = {0};
    if (!act->definition->from_output || act->scale != 1.0f || act->center)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: its slope cannot be had from the output; keep the input",
                          act->spec);
    if (act->definition->from_output_f32 && call->dtype != BERLU_F32)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: its slope can be had from f32 outputs only, not from %s",
                          act->spec, berlu_dtype_name(call->dtype));
    for (size_t p = 0; p < act->definition->param_count; p++)
        v[p] = call->param[p].value ? 1.0 : (double)act->params[p];
    return check_from_output_at(act, v);
}

/* Checks the values of this call, channel by channel. */
berlu_status call_check_values(const berlu_act *act, const berlu_act_call *call)
{
    size_t channels = is_per_channel(act, call) ? call->channels : 1;
    for (size_t c = 0; c < channels; c++) {
        double v[BERLU_ACT_PARAMS] = {0};
        for (size_t p = 0; p < act->definition->param_count; p++)
            v[p] = (double)(call->param[p].value ? call->param[p].value[call->param[p].stride * c] : act->params[p]);
        TRY(check_from_output_at(act, v));
    }
    return BERLU_OK;
}

berlu_status berlu_act_check(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    if (!act || !call)
        return berlu_fail(BERLU_ERR_ARG, "berlu_act_run: the activation or the call is NULL");
    if ((unsigned)op > BERLU_ACT_PARAM_SLOPE)
        return berlu_fail(BERLU_ERR_ARG, "%s: there is no op number %d", act->name, (int)op);
    if (!berlu_dtype_size(call->dtype))
        return berlu_fail(BERLU_ERR_ARG, "%s: there is no dtype number %d", act->name, (int)call->dtype);
    if ((unsigned)call->hint > BERLU_HINT_STREAM)
        return berlu_fail(BERLU_ERR_ARG, "%s: there is no hint number %d", act->name, (int)call->hint);
    if (call->rows && !call->channels)
        return berlu_fail(BERLU_ERR_ARG, "%s: channels is 0 for %zu rows; set it, to 1 where there are none", act->name,
                          call->rows);
    if (call->inner > 1 && (call->bias || call->dbias))
        return berlu_fail(BERLU_ERR_ARG, "%s: bias and dbias need inner 1, and it is %zu", act->name, call->inner);
    berlu_status status = check_params(act, call);
    if (status != BERLU_OK)
        return status;
    if (op == BERLU_ACT_PARAM_SLOPE && (call->param_index < 0 || call->param_index >= (int)berlu_act_param_count(act)))
        return berlu_fail(BERLU_ERR_ARG, "%s has no parameter number %d", act->name, call->param_index);
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT && (status = check_from_output(act, call)) != BERLU_OK)
        return status;
    return call->rows && call->channels ? check_pointers(act, op, call) : BERLU_OK;
}

/* ---- The job --------------------------------------------------------------------------------- */

/* Waking a thread costs as much as some ten thousand elements. A small call does not even query the
 * number of cores. */
int call_threads(int asked, size_t count)
{
    enum { WORTH = 32768 };
    size_t most = count / WORTH;
    if (most <= 1)
        return 1;
    int threads = asked > 0 ? asked : threads_default();
    return most < (size_t)threads ? (int)most : threads;
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Rows of a unit: whole blocks of column sums, whole blocks of layer sums too where there are any,
 * and enough work. Without sums no more than that: many threads share small units more evenly. */
static size_t rows_of_unit(const act_job *job, size_t params)
{
    size_t rows = is_backward(job->op) ? ACT_ROWS : 1;
    for (size_t p = 0; p < params; p++)
        if (job->layer_sum[p])
            rows = ACT_ROWS * (ACT_BLOCK / ACT_ROWS / common_divisor(job->channels, ACT_BLOCK / ACT_ROWS));
    while (rows < job->rows && rows * job->channels < ACT_BLOCK)
        rows *= 2;
    return rows;
}

/* Bytes read and written. */
static size_t bytes_moved(berlu_act_op op, const berlu_act_call *call)
{
    return call->rows * call->channels * berlu_dtype_size(call->dtype) * (is_backward(op) ? 3 : 2);
}

/* Non-temporal stores pay when the output would not stay in the cache anyway (stream.c). In place
 * the lines are in the cache already, so ordinary stores are always better. */
int call_streams(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, int threads)
{
    const void *out = is_backward(op) ? call->dx : call->y;
    const void *in = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? call->y : call->x;
    if ((uintptr_t)out % berlu_dtype_size(call->dtype) || out == in || (is_backward(op) && out == call->dy))
        return 0;
    if (call->hint != BERLU_HINT_AUTO)
        return call->hint == BERLU_HINT_STREAM;
    return bytes_moved(op, call) > stream_limit(&act->stream, is_backward(op), threads);
}

void job_streams(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    job->stream = call_streams(act, op, call, job->threads);
    job->interleave = act->stream.interleave;
    job->ahead = stream_ahead(&act->stream, bytes_moved(op, call), job->threads);
}

/* Sets the fields that job_place() has left. */
static void job_fill(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call, int threads)
{
    int from_output = op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    job->op = op;
    job->dtype = call->dtype;
    job->plain = act->scale == 1.0f && !act->center;
    job->scale = act->scale;
    job->center = act->center;
    job->param_index = call->param_index;
    job->rows = call->rows;
    job->channels = call->channels;
    job->shape = &act->shape;
    job->x = call->x;
    job->dy = call->dy;
    job->y_in = from_output ? call->y : NULL;
    job->y = from_output ? NULL : call->y;
    job->dx = call->dx;
    job->bias = from_output ? NULL : call->bias;
    job->threads = call_threads(threads, job->count);
    job_streams(job, act, op, call);
    int by_rows = job->bias || job->bias_sum || job->vector_consts;
    job->unit_rows = job->count && by_rows ? rows_of_unit(job, act->definition->param_count) : 0;
}

/* Makes the job of a call, after the checks that need the workspace and the parameters' values. */
berlu_status call_job(act_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call, int threads)
{
    space s = {.base = ((uintptr_t)call->workspace + 63) / 64 * 64, .fits = 1};
    if (!job_place(job, act, op, call, &s))
        return fail_overflow(act, call);
    if (s.used && (!call->workspace || call->workspace_bytes < s.used))
        return berlu_fail(BERLU_ERR_ARG, "%s: the call needs a workspace of %zu bytes and has %zu", act->name, s.used,
                          call->workspace ? call->workspace_bytes : (size_t)0);
    job_fill(job, act, op, call, threads);
    return op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? call_check_values(act, call) : BERLU_OK;
}

/* Whether the parameters of the call are those of the activation: then their constants are
 * ready. */
static int params_are_own(const act_job *job, const berlu_act *act)
{
    int same = !job->vector_consts;
    for (size_t p = 0; same && p < act->definition->param_count; p++)
        same = memcmp(job->param[p], &act->params[p], sizeof(float)) == 0;
    return same;
}

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct team {
    const act_job *job;
    const act_kernels *kernels;
    size_t units, shares;
} team;

static void team_share(void *context, size_t share)
{
    const team *c = context;
    c->kernels->units(c->job, c->units * share / c->shares, c->units * (share + 1) / c->shares);
}

/* Joins the requested sums, even without partial ones: the sums of an empty array are 0. */
static void join_sums(const act_job *job, const berlu_act_call *call, size_t params)
{
    if (!is_backward(job->op))
        return;
    for (size_t p = 0; p < params; p++) {
        float *grad = call->param[p].grad;
        if (grad && job->per_channel[p])
            tree_sum_columns(grad, job->channel_sum[p], job->row_blocks, job->channels, job->channels);
        else if (grad)
            *grad = (float)tree_sum(job->layer_sum[p], job->blocks);
    }
    if (call->dbias)
        tree_sum_columns(call->dbias, job->bias_sum, job->row_blocks, job->channels, job->channels);
}

static berlu_status checked_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call,
                                const berlu_exec *exec)
{
    if (call->inner > 1)
        return planes_run(act, op, call, exec);
    berlu_isa isa = exec ? exec->isa : BERLU_ISA_BEST;
    _Alignas(64) unsigned char consts[ACT_CONSTS_BYTES];
    act_job job;
    berlu_status status = call_job(&job, act, op, call, exec ? exec->threads : 0);
    if (status != BERLU_OK)
        return status;
    const act_kernels *kernels = act->kernels[isa];
    if (params_are_own(&job, act)) {
        job.consts = act->consts[isa];
    } else {
        job.consts = job.vector_consts ? job.consts : consts;
        kernels->prepare(&job);
    }
    size_t total = job.unit_rows ? job.rows : job.count, size = job.unit_rows ? job.unit_rows : ACT_UNIT;
    size_t units = job.count ? total / size + (total % size != 0) : 0;
    size_t shares = units < (size_t)job.threads ? units : (size_t)job.threads;
    if (shares == 1) /* a small call does not pay for the distribution */
        kernels->units(&job, 0, units);
    else
        threads_for(job.threads, shares, team_share, &(team){&job, kernels, units, shares});
    join_sums(&job, call, act->definition->param_count);
    return BERLU_OK;
}

/* Whether a call without a workspace may bring its own: it is for constants per channel alone, a
 * few bytes each. Sums of gradients stay with the caller, who runs them in a loop and should not
 * pay for memory there. */
static int constants_alone(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    if (call->workspace || (is_backward(op) && call->dbias))
        return 0;
    for (size_t p = 0; p < act->definition->param_count; p++)
        if (is_backward(op) && call->param[p].grad)
            return 0;
    return is_per_channel(act, call);
}

static berlu_status run_with_own_space(const berlu_act *act, berlu_act_op op, const berlu_act_call *call,
                                       const berlu_exec *exec)
{
    berlu_act_call with = *call;
    with.workspace_bytes = berlu_act_workspace(act, op, call);
    if (!with.workspace_bytes) /* too large, and checked_run() says so; or not needed after all */
        return checked_run(act, op, call, exec);
    with.workspace = malloc(with.workspace_bytes);
    if (!with.workspace)
        return berlu_fail_memory(with.workspace_bytes, act->name);
    berlu_status status = checked_run(act, op, &with, exec);
    free(with.workspace);
    return status;
}

berlu_status berlu_act_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, const berlu_exec *exec)
{
    berlu_status status = berlu_act_check(act, op, call);
    if (status != BERLU_OK)
        return status;
    berlu_isa isa = exec ? exec->isa : BERLU_ISA_BEST;
    if (!berlu_act_can_run(act, isa))
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: this machine or build has no %s kernels", act->name,
                          berlu_isa_name(isa) ? berlu_isa_name(isa) : "such");
    return constants_alone(act, op, call) ? run_with_own_space(act, op, call, exec) : checked_run(act, op, call, exec);
}
