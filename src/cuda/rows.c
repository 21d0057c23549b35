/* rows.c - which fused layers run as one kernel, and their jobs. SPDX-License-Identifier: MIT
 *
 * A linear_act or linear_dx_act with 192 inputs can be one launch (rows.cu) instead of a product
 * and a pass over its result (linear_act.c). It is chosen where it was measured faster on an H200
 * (docs/performance.md, 9): bf16, many rows, a formula that is short or has an estimate. All else,
 * other GPUs included, runs as two launches. The choice depends on shapes, dtypes and the GPU
 * alone, so a plan knows it; only a pointer that is not aligned would overrule it, and the
 * workspace suffices for both.
 *
 * A linear_dx_act may have the layer's weight gradient as an output (rows_gradients.cuh). Two
 * launches cannot do that, so the engine asks before it makes such a node (op_entry.takes), and one
 * that was made is always taken. */
#include "cuda/rows.h"

#include <assert.h>

#include "act/cuda/fused_call.h"

#define ACT(name) extern const rows_kernels cuda_rows_##name;
#include "act/list.h"
#undef ACT

#define ACT(name) &cuda_rows_##name,
static const rows_kernels *const rows_list[] = {
#include "act/list.h"
};
#undef ACT

enum { LIST_COUNT = sizeof rows_list / sizeof *rows_list };

static int forward_of(const op_call *c)
{
    assert(c->op == OP_LINEAR_ACT || c->op == OP_LINEAR_DX_ACT);
    return c->op == OP_LINEAR_ACT;
}

/* The address of an operand; a plan calls this before there are any, and an aligned dummy stands
 * for it. */
static void *address_of(const op_operand *o)
{
    return !o->info ? NULL : o->data ? o->data : (void *)256;
}

/* fc2's, beside the slope of fc1. */
static const op_operand *weight_gradient(const op_call *c)
{
    return &c->out[5];
}

/* The activation's share of the call. */
static berlu_act_call call_of(const op_call *c)
{
    int forward = forward_of(c), first = forward ? 3 : 4;
    berlu_act_call call = {.dtype = BERLU_BF16,
                           .rows = (size_t)c->out[0].rows,
                           .channels = (size_t)c->out[0].channels,
                           .x = address_of(forward ? &c->out[1] : &c->in[2]),
                           .y = address_of(forward ? &c->out[0] : &c->out[1]),
                           .dx = forward ? NULL : address_of(&c->out[0]),
                           .dbias = forward ? NULL : address_of(&c->out[4])};
    for (int i = 0; i < c->attr->act_params; i++) {
        berlu_act_param_arg *arg = &call.param[c->attr->act_param[i]];
        arg->value = address_of(&c->in[first + i]);
        arg->stride = c->in[first + i].channels > 1;
        arg->grad = forward ? NULL : address_of(&c->out[2 + i]);
    }
    return call;
}

static rows_job job_of(const op_call *c, const berlu_act_call *call)
{
    int forward = forward_of(c);
    rows_job job = {.act = act_cuda_fused_job(c->attr->act, forward ? BERLU_ACT_FORWARD : BERLU_ACT_BACKWARD, call),
                    .a = address_of(&c->in[0]),
                    .w = address_of(&c->in[1]),
                    .bias = forward ? address_of(&c->in[2]) : NULL,
                    .u = forward ? address_of(&c->out[1]) : NULL,
                    .dw = forward ? NULL : address_of(weight_gradient(c))};
    return job;
}

/* Operands that the kernel reads and writes as vectors of bf16: missing ones are fine. */
static int vectors(const op_operand *o)
{
    return !o->info || (o->dtype == DTYPE_BF16 && (uintptr_t)o->data % 16 == 0);
}

static int weight_gradient_fits(const op_call *c)
{
    const op_operand *dw = weight_gradient(c);
    int64_t rows = c->out[0].rows, channels = c->out[0].channels;
    return forward_of(c) || !dw->info ||
           (dw->dtype == DTYPE_F32 && !c->out[1].info && rows >= GRADIENTS_FEWEST && channels % GRADIENTS_SLICE == 0 &&
            channels <= (int64_t)GRADIENTS_SLICE * ROWS_PROCESSORS);
}

static int operands_fit(const op_call *c)
{
    const op_operand *third = &c->in[2]; /* bias or u */
    int64_t rows = c->out[0].rows, channels = c->out[0].channels;
    return vectors(&c->in[0]) && vectors(&c->in[1]) && vectors(third) && vectors(&c->out[0]) && vectors(&c->out[1]) &&
           weight_gradient_fits(c) && c->in[0].channels == ROWS_DEPTH && channels % ROWS_SLICE == 0 &&
           channels <= (int64_t)ROWS_SLICE * ROWS_PROCESSORS && rows >= ROWS_FEWEST && rows <= INT32_MAX / 2 &&
           rows * (channels / 8) <= UINT32_MAX; /* the kernel counts rows and vectors in 32 bits */
}

int cuda_rows_takes(const op_call *c)
{
    const gpu_properties *gpu = &cuda_device_of(c)->gpu;
    const op_attr *attr = c->attr;
    int forward = forward_of(c);
    if (gpu->major != 9 || gpu->minor != 0 || gpu->processors < ROWS_PROCESSORS || attr->raw || attr->from_output ||
        !operands_fit(c))
        return 0;
    berlu_act_call call = call_of(c);
    size_t row = act_cuda_fused_row(attr->act);
    if (row >= LIST_COUNT || !(forward ? rows_list[row]->forward : rows_list[row]->backward) ||
        !act_cuda_fused_takes(attr->act, forward ? BERLU_ACT_FORWARD : BERLU_ACT_BACKWARD, &call))
        return 0;
    fused_job job = act_cuda_fused_job(attr->act, forward ? BERLU_ACT_FORWARD : BERLU_ACT_BACKWARD, &call);
    return job.scale == 1.0f && !job.center && !job.shape_count;
}

typedef struct partials {
    size_t groups, blocks; /* that share a column; in all */
    size_t bytes;
} partials;

/* Partial sums lie from `base` on: those of the weight gradient, then of columns and parameters. */
static partials sums_place(rows_job *job, const op_call *c, const berlu_act_call *call, char *base)
{
    partials p = {rows_groups(&job->act), rows_blocks(&job->act), 0};
    if (job->dw) {
        p.groups = gradients_groups(&job->act);
        p.blocks = gradients_blocks(&job->act);
        p.bytes = p.groups * ROWS_DEPTH * job->act.channels * sizeof *job->dw;
        job->dw = (float *)base;
    }
    p.bytes += act_cuda_fused_place(&job->act, c->attr->act, call, p.groups, p.blocks, (uintptr_t)base + p.bytes);
    return p;
}

size_t cuda_rows_workspace(const op_call *c)
{
    berlu_act_call call = call_of(c);
    rows_job job = job_of(c, &call);
    return sums_place(&job, c, &call, NULL).bytes;
}

void cuda_rows(const op_call *c)
{
    berlu_act_call call = call_of(c);
    rows_job job = job_of(c, &call);
    const rows_kernels *kernels = rows_list[act_cuda_fused_row(c->attr->act)];
    cuda_stream stream = cuda_device_of(c)->stream;
    partials p = sums_place(&job, c, &call, c->workspace);
    berlu_status status = (job.act.dx ? kernels->backward : kernels->forward)(&job, stream);
    cuda_end columns = {.part = job.act.bias_sum,
                        .to = call.dbias,
                        .parts = (int64_t)p.groups,
                        .columns = c->out[0].channels,
                        .stride = c->out[0].channels};
    cuda_end weights = {.part = job.dw,
                        .to = job.dw ? weight_gradient(c)->data : NULL,
                        .parts = (int64_t)p.groups,
                        .columns = ROWS_DEPTH * c->out[0].channels,
                        .stride = ROWS_DEPTH * c->out[0].channels};
    job.act.bias_sum = NULL; /* the device has its copy of the job; what is left are sums of parameters */
    if (status == BERLU_OK && job.act.dx) {
        cuda_end_add(c, &columns);
        cuda_end_add(c, &weights);
        status = act_cuda_fused_join(&job.act, c->attr->act, &call, p.groups, p.blocks, stream);
    }
    if (status != BERLU_OK)
        cuda_device_fail(cuda_device_of(c), status, "%s: %s", op_rules[c->op].name, berlu_last_error());
}
