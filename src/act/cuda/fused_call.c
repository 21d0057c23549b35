/* act/cuda/fused_call.c - from a call of the engine to a job of fused.cu.
 * SPDX-License-Identifier: MIT
 *
 * The counterpart of call.c for fused layers. The engine has checked its calls when it was built,
 * so nothing is checked again; what remains is whether a kernel takes the call, where its partial
 * sums lie, and joining them. */
#include "act/cuda/fused_call.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "act/act_internal.h"
#include "act/cuda/fused.h"
#include "act/cuda/kernels.h"

#define ACT(name) extern const fused_kernels act_fused_##name;
#include "act/list.h"
#undef ACT

#define ACT(name) &act_fused_##name,
static const fused_kernels *const fused_rows[] = {
#include "act/list.h"
};
#undef ACT

static berlu_status status_of(const berlu_act *act, cudaError_t error)
{
    if (error == cudaSuccess)
        return BERLU_OK;
    cudaGetLastError(); /* clears the error for the next call */
    return berlu_fail(BERLU_ERR_DEVICE, "%s: %s (%s)", act->name, cudaGetErrorString(error), cudaGetErrorName(error));
}

static int op_taken(const berlu_act *act, berlu_act_op op)
{
    return op == BERLU_ACT_FORWARD || op == BERLU_ACT_BACKWARD ||
           (op == BERLU_ACT_BACKWARD_FROM_OUTPUT && act->scale == 1.0f && !act->center);
}

int act_cuda_fused_takes(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    uintptr_t all = (uintptr_t)call->x | (uintptr_t)call->y | (uintptr_t)call->dy | (uintptr_t)call->dx;
    int takes = act->place < COUNT(fused_rows) && op_taken(act, op) && call->dtype == BERLU_BF16 &&
                call->channels % 8 == 0 && all % 16 == 0 && !call->bias && call->inner <= 1 &&
                act->shape.count <= FUSED_SHAPE_NUMBERS;
    for (size_t p = 0; p < act->definition->param_count; p++)
        takes = takes && !call->param[p].stride;
    return takes;
}

size_t act_cuda_fused_row(const berlu_act *act)
{
    return act->place;
}

fused_job act_cuda_fused_job(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    int from_output = op == BERLU_ACT_BACKWARD_FROM_OUTPUT, backward = from_output || op == BERLU_ACT_BACKWARD;
    fused_job job = {.rows = call->rows,
                     .channels = call->channels,
                     .scale = act->scale,
                     .center = act->center,
                     .degree = act->shape.degree,
                     .shape_count = (int)act->shape.count,
                     .from_output = from_output,
                     .x = from_output ? call->y : call->x,
                     .dy = backward ? call->dy : NULL,
                     .y = from_output ? NULL : call->y,
                     .dx = backward ? call->dx : NULL};
    if (act->shape.count)
        memcpy(job.shape_numbers, act->shape.numbers, act->shape.count * sizeof(float));
    for (size_t p = 0; p < act->definition->param_count; p++) {
        job.param[p] = call->param[p].value;
        job.own[p] = act->params[p];
    }
    return job;
}

size_t act_cuda_fused_place(fused_job *job, const berlu_act *act, const berlu_act_call *call, size_t row_blocks,
                            size_t tiles, uintptr_t base)
{
    size_t used = 0;
    if (!job->dx)
        return 0;
    for (size_t p = 0; p < act->definition->param_count; p++)
        if (call->param[p].grad) {
            job->layer_sum[p] = (double *)(base + used);
            used += (tiles * sizeof(double) + 63) / 64 * 64;
        }
    if (call->dbias) {
        job->bias_sum = (float *)(base + used);
        used += row_blocks * job->channels * sizeof(float);
    }
    return used;
}

berlu_status act_cuda_fused_join(const fused_job *job, const berlu_act *act, const berlu_act_call *call,
                                 size_t row_blocks, size_t tiles, void *stream)
{
    cudaError_t error = cudaSuccess;
    for (size_t p = 0; p < act->definition->param_count && error == cudaSuccess; p++)
        if (job->layer_sum[p])
            error = cuda_join_layer(call->param[p].grad, job->layer_sum[p], tiles, (cudaStream_t)stream);
    if (job->bias_sum && error == cudaSuccess)
        error = cuda_join_columns(call->dbias, job->bias_sum, row_blocks, job->channels, (cudaStream_t)stream);
    return status_of(act, error);
}

/* ---- a whole call ---------------------------------------------------------------------------- */

static void partials_of(const fused_job *job, const berlu_act *act, size_t *row_blocks, size_t *tiles)
{
    *row_blocks = *tiles = 0;
    if (job->dx)
        fused_rows[act->place]->partials(job, row_blocks, tiles);
}

size_t act_cuda_fused_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    fused_job job = act_cuda_fused_job(act, op, call);
    size_t row_blocks, tiles;
    partials_of(&job, act, &row_blocks, &tiles);
    size_t bytes = act_cuda_fused_place(&job, act, call, row_blocks, tiles, 0);
    return bytes ? bytes + 63 : 0; /* to align the first byte */
}

berlu_status act_cuda_fused(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream)
{
    fused_job job = act_cuda_fused_job(act, op, call);
    size_t row_blocks, tiles;
    partials_of(&job, act, &row_blocks, &tiles);
    size_t bytes =
        act_cuda_fused_place(&job, act, call, row_blocks, tiles, ((uintptr_t)call->workspace + 63) / 64 * 64);
    assert(!bytes || call->workspace_bytes >= bytes + 63);
    (void)bytes;
    if (job.rows && job.channels) {
        berlu_status status = status_of(act, fused_rows[act->place]->launch(&job, (cudaStream_t)stream));
        if (status != BERLU_OK)
            return status;
    }
    return act_cuda_fused_join(&job, act, call, row_blocks, tiles, stream);
}
