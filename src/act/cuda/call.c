/* act/cuda/call.c - <berlu/act_cuda.h>: checks a call, fills a job, launches it, joins its sums.
 * SPDX-License-Identifier: MIT
 *
 * Plain C over CUDA's runtime interface; the kernels are in kernel.cu, one table per activation.
 * Nothing here allocates or waits. The partial sums of a call live in its workspace: doubles per
 * tile for sums of a layer, floats per block of rows and channel for column sums. */
#include <berlu/act_cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "act/act_internal.h"
#include "act/cuda/kernels.h"

#define ACT(name) extern const cuda_kernels act_cuda_##name;
#include "act/list.h"
#undef ACT

#define ACT(name) &act_cuda_##name,
static const cuda_kernels *const cuda_rows[] = {
#include "act/list.h"
};
#undef ACT

/* NULL when libberlu is newer and has more activations. */
static const cuda_kernels *kernels_of(const berlu_act *act)
{
    return act->place < COUNT(cuda_rows) ? cuda_rows[act->place] : NULL;
}

/* The remedy for errors that are not the fault of a call. */
static const char *advice(cudaError_t error)
{
    if (error == cudaErrorInitializationError)
        return "; a child forked after the GPU was used cannot use it: start it with spawn";
    if (error == cudaErrorNoKernelImageForDevice)
        return "; build libberlu_cuda with BERLU_CUDA_ARCHITECTURES for this GPU";
    return "";
}

static berlu_status fail_cuda(cudaError_t error, const char *what)
{
    cudaGetLastError(); /* clears the error for the next call */
    return berlu_fail(BERLU_ERR_DEVICE, "%s: %s (%s)%s", what, cudaGetErrorString(error), cudaGetErrorName(error),
                      advice(error));
}

int berlu_cuda_count(void)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0)
        return count;
    if (error == cudaSuccess)
        berlu_fail(BERLU_ERR_DEVICE, "CUDA: this machine has no GPU");
    else
        fail_cuda(error, "CUDA");
    return 0;
}

berlu_status berlu_cuda_describe(int device, char *out, size_t size)
{
    struct cudaDeviceProp properties;
    if (!out || size == 0)
        return berlu_fail(BERLU_ERR_ARG, "berlu_cuda_describe: no space for the text");
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return fail_cuda(error, "CUDA");
    snprintf(out, size, "%s, compute capability %d.%d, %.1f GiB", properties.name, properties.major, properties.minor,
             (double)properties.totalGlobalMem / 0x1p30);
    return BERLU_OK;
}

/* ---- The job --------------------------------------------------------------------------------- */

static size_t inner_of(const berlu_act_call *call)
{
    return call->inner ? call->inner : 1;
}

/* The size of a plane where the channel is not innermost and matters; 1 elsewhere. */
static size_t plane_of(const berlu_act *act, const berlu_act_call *call)
{
    return is_per_channel(act, call) ? inner_of(call) : 1;
}

static void job_fill(cuda_job *job, const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    int from_output = op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    size_t plane = plane_of(act, call);
    *job = (cuda_job){.op = op,
                      .dtype = call->dtype,
                      .plain = act->scale == 1.0f && !act->center,
                      .scale = act->scale,
                      .center = act->center,
                      .param_index = call->param_index,
                      .rows = call->rows,
                      .channels = call->channels * (inner_of(call) / plane), /* flat where no channel matters */
                      .count = call->rows * call->channels * inner_of(call),
                      .inner = plane,
                      .degree = act->shape.degree,
                      .shape_count = (int)act->shape.count,
                      .x = from_output ? NULL : call->x,
                      .dy = is_backward(op) ? call->dy : NULL,
                      .y_in = from_output ? call->y : NULL,
                      .y = from_output ? NULL : call->y,
                      .dx = is_backward(op) ? call->dx : NULL,
                      .bias = from_output ? NULL : call->bias};
    if (act->shape.count)
        memcpy(job->shape_numbers, act->shape.numbers, act->shape.count * sizeof(float));
    job->columns = job->bias || (is_backward(op) && call->dbias);
    for (size_t p = 0; p < act->definition->param_count; p++) {
        job->param[p] = call->param[p].value;
        job->own[p] = act->params[p];
        job->per_channel[p] = call->param[p].stride != 0;
        job->columns |= job->per_channel[p];
    }
}

/* The partial sums of a channel. */
static size_t blocks_of(const cuda_job *job)
{
    return job->inner > 1 ? job->rows * cuda_runs(job) : (job->rows + CUDA_ROWS - 1) / CUDA_ROWS;
}

/* Assigns the sums their addresses from `base` on, which may be 0 for counting; returns the
 * bytes. */
static size_t job_place(cuda_job *job, const cuda_kernels *kernels, const berlu_act_call *call, uintptr_t base)
{
    size_t used = 0, tiles = kernels->tiles(job), columns = blocks_of(job) * job->channels;
    for (int p = 0; is_backward(job->op) && p < BERLU_ACT_PARAMS; p++) {
        if (!call->param[p].grad)
            continue;
        if (job->per_channel[p])
            job->channel_sum[p] = (float *)(base + used);
        else
            job->layer_sum[p] = (double *)(base + used);
        used +=
            job->per_channel[p] ? (columns * sizeof(float) + 63) / 64 * 64 : (tiles * sizeof(double) + 63) / 64 * 64;
    }
    if (is_backward(job->op) && call->dbias) {
        job->bias_sum = (float *)(base + used);
        used += (columns * sizeof(float) + 63) / 64 * 64;
    }
    return used;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Where the caller knows that the memory is the current device's, the driver is not asked: it takes
 * as long as a tenth of a launch for each pointer. */
static berlu_status check_memory(const void *p, const char *name, size_t size, int known)
{
    struct cudaPointerAttributes about;
    if (!p)
        return BERLU_OK;
    if ((uintptr_t)p % size)
        return berlu_fail(BERLU_ERR_ARG, "%s (%p) does not lie on a multiple of %zu bytes", name, p, size);
    if (known)
        return BERLU_OK;
    cudaError_t error = cudaPointerGetAttributes(&about, p);
    if (error != cudaSuccess)
        return fail_cuda(error, name);
    if (about.type == cudaMemoryTypeUnregistered)
        return berlu_fail(BERLU_ERR_ARG, "%s (%p) is host memory; berlu_act_cuda_run() needs device memory", name, p);
    int device = about.device;
    if (about.type == cudaMemoryTypeDevice && (error = cudaGetDevice(&device)) != cudaSuccess)
        return fail_cuda(error, name);
    if (about.device != device)
        return berlu_fail(BERLU_ERR_ARG, "%s (%p) lies on device %d, and the current one is %d", name, p, about.device,
                          device);
    return BERLU_OK;
}

static berlu_status check_pointers(const berlu_act *act, const cuda_job *job, const berlu_act_call *call, int known)
{
    size_t size = berlu_dtype_size(job->dtype);
    const struct {
        const void *p;
        const char *name;
        size_t size;
    } pointers[] = {{job->x, "x", size},
                    {job->y, "y", size},
                    {job->y_in, "y", size},
                    {job->dy, "dy", size},
                    {job->dx, "dx", size},
                    {job->bias, "bias", sizeof(float)},
                    {call->dbias, "dbias", sizeof(float)},
                    {call->workspace, "workspace", 1}};
    for (size_t i = 0; i < COUNT(pointers); i++)
        TRY(check_memory(pointers[i].p, pointers[i].name, pointers[i].size, known));
    for (size_t p = 0; p < act->definition->param_count; p++) {
        TRY(check_memory(call->param[p].value, act->definition->params[p].name, sizeof(float), known));
        TRY(check_memory(call->param[p].grad, "a parameter's gradient", sizeof(float), known));
    }
    return BERLU_OK;
}

static berlu_status check_sizes(const berlu_act *act, const berlu_act_call *call)
{
    size_t most = (size_t)1 << 40, inner = inner_of(call); /* elements: tiles then fit a grid */
    if (inner > most || call->channels > most / inner || (call->channels && call->rows > most / inner / call->channels))
        return berlu_fail(BERLU_ERR_ARG, "%s: %zu rows of %zu channels of %zu are more than 2^40 numbers", act->name,
                          call->rows, call->channels, inner);
    if (act->shape.count > CUDA_SHAPE_NUMBERS)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: %zu numbers of shape do not fit a kernel", act->name,
                          act->shape.count);
    return BERLU_OK;
}

/* The checks that need no GPU. */
static berlu_status check_call(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    TRY(berlu_act_check(act, op, call));
    TRY(check_sizes(act, call));
    if (!kernels_of(act))
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "%s: there is no CUDA kernel", act->name);
    return BERLU_OK;
}

/* Flat work fits any grid. Where channels matter a block has 32 of them and 8 parts of at least 4
 * rows, and a grid at most 65,535 blocks of the one and 2^31 - 1 of the other. */
static berlu_status check_grid(const berlu_act *act, const cuda_job *job)
{
    if (job->inner > 1)
        return BERLU_OK;
    if (job->columns && job->channels > (size_t)65535 * 32)
        return berlu_fail(BERLU_ERR_UNSUPPORTED,
                          "%s: %zu channels with a bias, its gradient or parameters of their own "
                          "are more than 2,097,120",
                          act->name, job->channels);
    if (job->columns && job->rows > (size_t)1 << 35)
        return berlu_fail(BERLU_ERR_UNSUPPORTED,
                          "%s: %zu rows with a bias, its gradient or parameters per channel are more "
                          "than 2^35",
                          act->name, job->rows);
    return BERLU_OK;
}

/* ---- The calls ------------------------------------------------------------------------------- */

size_t berlu_act_cuda_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    cuda_job job;
    if (check_call(act, op, call) != BERLU_OK)
        return 0;
    job_fill(&job, act, op, call);
    if (check_grid(act, &job) != BERLU_OK)
        return 0;
    size_t bytes = job_place(&job, kernels_of(act), call, 0);
    return bytes ? bytes + 63 : 0; /* to align the first byte */
}

/* Joins the requested sums, even without partial ones: the sums of an empty array are 0. */
static cudaError_t join_sums(const cuda_job *job, const cuda_kernels *kernels, const berlu_act_call *call,
                             cudaStream_t stream)
{
    size_t blocks = blocks_of(job);
    cudaError_t error = cudaSuccess;
    if (!is_backward(job->op))
        return error;
    for (int p = 0; p < BERLU_ACT_PARAMS && error == cudaSuccess; p++) {
        float *grad = call->param[p].grad;
        if (grad && job->per_channel[p])
            error = cuda_join_columns(grad, job->channel_sum[p], blocks, job->channels, stream);
        else if (grad)
            error = cuda_join_layer(grad, job->layer_sum[p], kernels->tiles(job), stream);
    }
    if (call->dbias && error == cudaSuccess)
        error = cuda_join_columns(call->dbias, job->bias_sum, blocks, job->channels, stream);
    return error;
}

static berlu_status run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream, int known)
{
    cuda_job job;
    berlu_status status = check_call(act, op, call);
    if (status != BERLU_OK)
        return status;
    const cuda_kernels *kernels = kernels_of(act);
    job_fill(&job, act, op, call);
    if ((status = check_grid(act, &job)) != BERLU_OK || (status = check_pointers(act, &job, call, known)) != BERLU_OK)
        return status;
    uintptr_t base = ((uintptr_t)call->workspace + 63) / 64 * 64;
    size_t bytes = job_place(&job, kernels, call, base);
    if (bytes && (!call->workspace || call->workspace_bytes < bytes + 63))
        return berlu_fail(BERLU_ERR_ARG, "%s: the call needs a workspace of %zu bytes and has %zu", act->name,
                          bytes + 63, call->workspace ? call->workspace_bytes : (size_t)0);
    cudaError_t error = job.count ? kernels->launch(&job, (cudaStream_t)stream) : cudaSuccess;
    if (error == cudaSuccess)
        error = join_sums(&job, kernels, call, (cudaStream_t)stream);
    return error == cudaSuccess ? BERLU_OK : fail_cuda(error, act->name);
}

berlu_status berlu_act_cuda_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream)
{
    return run(act, op, call, stream, 0);
}

berlu_status berlu_act_cuda_run_here(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream)
{
    return run(act, op, call, stream, 1);
}
