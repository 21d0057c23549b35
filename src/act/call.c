/* call.c - runs a call: checks it, cuts it into units, deals them to threads, joins the sums. SPDX-License-Identifier: MIT
 *
 * All checks come before anything is touched. The cut depends on the call alone (kernels.h), so threads and instruction
 * set never change a bit. Nothing is allocated: prepared constants of one value per layer live on the stack, the rest in
 * the caller's workspace, laid out by layout_make(). Read berlu_act_run() first. */
#include <stdint.h>
#include <string.h>

#include "act/act_internal.h"
#include "act/sums.h"
#include "base/arena.h"
#include "base/threads.h"

static int is_backward(berlu_act_op op)
{
    return op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
}

/* ---- The workspace --------------------------------------------------------------------------------------------------- */

/* Offsets from its first byte aligned to 64. */
typedef struct layout {
    size_t consts, layer[BERLU_ACT_PARAMS], channel[BERLU_ACT_PARAMS], bias;
    size_t blocks, row_blocks;
    size_t total; /* with room for the alignment; 0: none is needed */
} layout;

/* Puts `count` things of `size` bytes behind what is there. */
static int layout_add(layout *l, size_t *at, size_t count, size_t size)
{
    size_t bytes;
    if (!size_mul(count, size, &bytes) || bytes > SIZE_MAX / 2 - 64 || l->total > SIZE_MAX / 2 - 64 - bytes)
        return 0;
    *at = l->total;
    l->total += (bytes + 63) / 64 * 64;
    return 1;
}

/* Constants per channel: as much as the most demanding instruction set of this machine needs. */
static int layout_consts(layout *l, const berlu_act *act, size_t channels)
{
    size_t most = 0;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        const act_kernels *k = act->kernels[isa];
        size_t bytes;
        if (!k)
            continue;
        if (!size_mul(channels / k->lanes + 1, k->consts_bytes, &bytes))
            return 0;
        most = bytes > most ? bytes : most;
    }
    return layout_add(l, &l->consts, 1, most);
}

static int layout_make(layout *l, const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    size_t count, columns;
    *l = (layout){0};
    if (!size_mul(call->rows, call->channels, &count) || count > SIZE_MAX / sizeof(double))
        return 0;
    l->blocks = count / ACT_BLOCK + (count % ACT_BLOCK != 0);
    l->row_blocks = call->rows / ACT_ROWS + (call->rows % ACT_ROWS != 0);
    if (!size_mul(l->row_blocks, call->channels, &columns))
        return 0;
    int fits = 1, any_per_channel = 0;
    for (size_t p = 0; p < act->definition->param_count; p++) {
        const berlu_act_param_arg *arg = &call->param[p];
        any_per_channel |= arg->stride != 0;
        if (!is_backward(op) || !arg->grad)
            continue;
        fits &= arg->stride ? layout_add(l, &l->channel[p], columns, sizeof(float))
                            : layout_add(l, &l->layer[p], l->blocks, sizeof(double));
    }
    if (is_backward(op) && call->dbias)
        fits &= layout_add(l, &l->bias, columns, sizeof(float));
    if (any_per_channel)
        fits &= layout_consts(l, act, call->channels);
    if (l->total)
        l->total += 63; /* to align the first byte */
    return fits;
}

size_t berlu_act_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    layout l;
    if (!act || !call) {
        berlu_fail(BERLU_ERR_ARG, "berlu_act_workspace: the activation or the call is NULL");
        return 0;
    }
    if (!layout_make(&l, act, op, call)) {
        berlu_fail(BERLU_ERR_ARG, "%s: %zu rows of %zu channels overflow the size of memory", act->name, call->rows,
                   call->channels);
        return 0;
    }
    return l.total;
}

/* ---- Checks ---------------------------------------------------------------------------------------------------------- */

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

static berlu_status check_from_output_at(const berlu_act *act, const double *v)
{
    if (act->definition->from_output(v, &act->shape))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: with %s = %g its slope cannot be had from the output; keep the input",
                      act->spec, act->definition->param_count ? act->definition->params[0].name : "degree", v[0]);
}

/* What can be said without looking at the call's parameters, which may be memory of a device: 1 stands for them. */
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

/* And with them: the values of this call decide, channel by channel. */
static berlu_status check_from_output_values(const berlu_act *act, const berlu_act_call *call)
{
    size_t channels = 1;
    berlu_status status = BERLU_OK;
    for (size_t p = 0; p < act->definition->param_count; p++)
        if (call->param[p].stride)
            channels = call->channels;
    for (size_t c = 0; c < channels && status == BERLU_OK; c++) {
        double v[BERLU_ACT_PARAMS] = {0};
        for (size_t p = 0; p < act->definition->param_count; p++)
            v[p] = (double)(call->param[p].value ? call->param[p].value[call->param[p].stride * c] : act->params[p]);
        status = check_from_output_at(act, v);
    }
    return status;
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
    berlu_status status = check_params(act, call);
    if (status != BERLU_OK)
        return status;
    if (op == BERLU_ACT_PARAM_SLOPE && (call->param_index < 0 || call->param_index >= (int)berlu_act_param_count(act)))
        return berlu_fail(BERLU_ERR_ARG, "%s has no parameter number %d", act->name, call->param_index);
    if (op == BERLU_ACT_BACKWARD_FROM_OUTPUT && (status = check_from_output(act, call)) != BERLU_OK)
        return status;
    return call->rows && call->channels ? check_pointers(act, op, call) : BERLU_OK;
}

static berlu_status check_call(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, layout *l)
{
    berlu_status status = berlu_act_check(act, op, call);
    if (status != BERLU_OK)
        return status;
    if (!layout_make(l, act, op, call))
        return berlu_fail(BERLU_ERR_ARG, "%s: %zu rows of %zu channels overflow the size of memory", act->name,
                          call->rows, call->channels);
    if (l->total && (!call->workspace || call->workspace_bytes < l->total))
        return berlu_fail(BERLU_ERR_ARG, "%s: the call needs a workspace of %zu bytes and has %zu", act->name, l->total,
                          call->workspace ? call->workspace_bytes : (size_t)0);
    return op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? check_from_output_values(act, call) : BERLU_OK;
}

/* ---- The job --------------------------------------------------------------------------------------------------------- */

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Rows of a unit: whole blocks of column sums, with sums of the layer whole blocks of those too, and not too little. */
static size_t rows_of_unit(const act_job *job)
{
    size_t rows = ACT_ROWS;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        if (job->layer_sum[p])
            rows = ACT_ROWS * (ACT_BLOCK / ACT_ROWS / common_divisor(job->channels, ACT_BLOCK / ACT_ROWS));
    while (rows < job->rows && rows * job->channels < ACT_BLOCK)
        rows *= 2;
    return rows;
}

/* Non-temporal stores pay when the output does not stay in the cache anyway (dispatch.c). In place the lines are in the
 * cache already, so ordinary stores are always better. */
static int wants_stream(const berlu_act *act, const berlu_act_call *call, berlu_act_op op, size_t count, int threads)
{
    const void *out = is_backward(op) ? call->dx : call->y;
    const void *in = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? call->y : call->x;
    if ((uintptr_t)out % berlu_dtype_size(call->dtype) || out == in || (is_backward(op) && out == call->dy))
        return 0;
    if (call->hint != BERLU_HINT_AUTO)
        return call->hint == BERLU_HINT_STREAM;
    size_t bytes = count * berlu_dtype_size(call->dtype) * (is_backward(op) ? 3 : 2);
    return bytes > act->stream.bytes * (size_t)(act->stream.per_thread ? threads : 1);
}

static void job_sums(act_job *job, const berlu_act *act, const berlu_act_call *call, const layout *l, char *space)
{
    for (size_t p = 0; p < act->definition->param_count; p++) {
        const berlu_act_param_arg *arg = &call->param[p];
        job->param[p] = arg->value ? arg->value : &act->params[p];
        job->per_channel[p] = arg->stride != 0;
        job->vector_consts |= arg->stride != 0;
        if (!is_backward(job->op) || !arg->grad || job->count == 0)
            continue;
        if (arg->stride)
            job->channel_sum[p] = (float *)(void *)(space + l->channel[p]);
        else
            job->layer_sum[p] = (double *)(void *)(space + l->layer[p]);
    }
    if (is_backward(job->op) && call->dbias && job->count)
        job->bias_sum = (float *)(void *)(space + l->bias);
    if (job->vector_consts)
        job->consts = space + l->consts;
}

static act_job job_make(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, const layout *l, int threads)
{
    int from_output = op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    act_job job = {
        .op = op,
        .dtype = call->dtype,
        .plain = act->scale == 1.0f && !act->center,
        .scale = act->scale,
        .center = act->center,
        .param_index = call->param_index,
        .rows = call->rows,
        .channels = call->channels,
        .count = call->rows * call->channels,
        .shape = &act->shape,
        .x = call->x,
        .dy = call->dy,
        .y_in = from_output ? call->y : NULL,
        .y = from_output ? NULL : call->y,
        .dx = call->dx,
        .bias = from_output ? NULL : call->bias,
    };
    job.stream = wants_stream(act, call, op, job.count, threads);
    char *space = call->workspace; /* only looked at where the layout has room, so NULL is never moved */
    if (l->total)
        space += (64 - (uintptr_t)space % 64) % 64;
    job_sums(&job, act, call, l, space);
    if (job.bias || job.bias_sum || job.vector_consts)
        job.unit_rows = rows_of_unit(&job);
    return job;
}

/* ---- Running --------------------------------------------------------------------------------------------------------- */

typedef struct crew {
    const act_job *job;
    const act_kernels *kernels;
} crew;

static void crew_unit(void *context, size_t unit)
{
    const crew *c = context;
    c->kernels->unit(c->job, unit);
}

/* What was asked for decides, not the partial sums: an empty array has none, and its sums are 0. */
static void join_sums(const act_job *job, const berlu_act_call *call, const layout *l)
{
    if (!is_backward(job->op))
        return;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++) {
        float *grad = call->param[p].grad;
        if (grad && job->per_channel[p])
            columns_join(grad, job->channel_sum[p], l->row_blocks, job->channels);
        else if (grad)
            *grad = (float)tree_sum(job->layer_sum[p], l->blocks);
    }
    if (call->dbias)
        columns_join(call->dbias, job->bias_sum, l->row_blocks, job->channels);
}

/* Waking a thread costs as much as some ten thousand elements. */
int call_threads(int asked, size_t count)
{
    enum { WORTH = 32768 };
    int threads = asked > 0 ? asked : threads_default();
    size_t most = count / WORTH;
    return most < 1 ? 1 : most < (size_t)threads ? (int)most : threads;
}

berlu_status berlu_act_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, const berlu_exec *exec)
{
    layout l;
    berlu_status status = check_call(act, op, call, &l);
    if (status != BERLU_OK)
        return status;
    berlu_isa isa = exec ? exec->isa : BERLU_ISA_BEST;
    if (!berlu_act_can_run(act, isa))
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: this machine or build has no %s kernels", act->name,
                          berlu_isa_name(isa) ? berlu_isa_name(isa) : "such");

    int threads = call_threads(exec ? exec->threads : 0, call->rows * call->channels);
    _Alignas(64) unsigned char consts[ACT_CONSTS_BYTES];
    act_job job = job_make(act, op, call, &l, threads);
    if (!job.vector_consts)
        job.consts = consts;
    const act_kernels *kernels = act->kernels[isa];
    kernels->prepare(&job);
    size_t total = job.unit_rows ? job.rows : job.count, size = job.unit_rows ? job.unit_rows : ACT_UNIT;
    crew c = {&job, kernels};
    threads_for(threads, job.count ? total / size + (total % size != 0) : 0, crew_unit, &c);
    join_sums(&job, call, &l);
    return BERLU_OK;
}

/* ---- Simple calls ---------------------------------------------------------------------------------------------------- */

berlu_status berlu_act_forward(const berlu_act *act, berlu_dtype dtype, void *y, const void *x, size_t count)
{
    return berlu_act_run(act, BERLU_ACT_FORWARD,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .y = y}, NULL);
}

berlu_status berlu_act_backward(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy, const void *x,
                                size_t count)
{
    return berlu_act_run(act, BERLU_ACT_BACKWARD,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .dy = dy, .dx = dx},
                         NULL);
}

berlu_status berlu_act_backward_from_output(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                            const void *y, size_t count)
{
    berlu_act_call call = {.dtype = dtype, .rows = count, .channels = 1, .dy = dy, .dx = dx};
    call.y = (void *)(uintptr_t)y; /* only read by this op */
    return berlu_act_run(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, &call, NULL);
}

berlu_status berlu_act_second(const berlu_act *act, berlu_dtype dtype, void *d2y, const void *x, size_t count)
{
    return berlu_act_run(act, BERLU_ACT_SECOND,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .y = d2y}, NULL);
}
