/* rows.c - which fused layers run as one kernel, and their jobs. SPDX-License-Identifier: MIT
 *
 * A linear_act or linear_dx_act with 192 inputs can be one launch (rows.cu) instead of a product
 * and a pass over its result (linear_act.c). It is chosen where it was measured faster on an H200
 * (docs/performance.md, 9): bf16, many rows, a formula that is short or has an estimate. All else,
 * other GPUs included, runs as two launches. The choice depends on shapes, dtypes and the GPU
 * alone, so a plan knows it; only a pointer that is not aligned would overrule it, and the
 * workspace suffices for both. */
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

static berlu_act_op act_op_of(const op_call *c)
{
    return forward_of(c)          ? BERLU_ACT_FORWARD
           : c->attr->from_output ? BERLU_ACT_BACKWARD_FROM_OUTPUT
                                  : BERLU_ACT_BACKWARD;
}

/* The activation's share of the call. */
static berlu_act_call call_of(const op_call *c)
{
    int forward = forward_of(c), first = forward ? 3 : 4, from_output = act_op_of(c) == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    const op_operand *x = forward ? &c->out[1] : &c->in[2], *y = forward ? &c->out[0] : &c->out[1];
    berlu_act_call call = {.dtype = BERLU_BF16,
                           .rows = (size_t)c->out[0].rows,
                           .channels = (size_t)c->out[0].channels,
                           .x = from_output ? NULL : address_of(x),
                           .y = address_of(from_output ? x : y),
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
    rows_job job = {.act = act_cuda_fused_job(c->attr->act, act_op_of(c), call),
                    .a = address_of(&c->in[0]),
                    .w = address_of(&c->in[1]),
                    .bias = forward ? address_of(&c->in[2]) : NULL,
                    .u = forward ? address_of(&c->out[1]) : NULL};
    return job;
}

/* Operands that the kernel reads and writes as vectors of bf16: missing ones are fine. */
static int vectors(const op_operand *o)
{
    return !o->info || (o->dtype == DTYPE_BF16 && (uintptr_t)o->data % 16 == 0);
}

static int operands_fit(const op_call *c)
{
    const op_operand *third = &c->in[2]; /* bias or u */
    int64_t rows = c->out[0].rows, channels = c->out[0].channels;
    return vectors(&c->in[0]) && vectors(&c->in[1]) && vectors(third) && vectors(&c->out[0]) && vectors(&c->out[1]) &&
           c->in[0].channels == ROWS_DEPTH && channels % ROWS_SLICE == 0 &&
           channels <= (int64_t)ROWS_SLICE * ROWS_PROCESSORS && rows >= ROWS_FEWEST && rows <= INT32_MAX / 2 &&
           rows * (channels / 8) <= UINT32_MAX; /* the kernel counts rows and vectors in 32 bits */
}

int cuda_rows_takes(const op_call *c)
{
    const gpu_properties *gpu = &cuda_device_of(c)->gpu;
    const op_attr *attr = c->attr;
    int forward = forward_of(c);
    if (gpu->major != 9 || gpu->minor != 0 || gpu->processors < ROWS_PROCESSORS || attr->raw || !operands_fit(c))
        return 0;
    berlu_act_call call = call_of(c);
    size_t row = act_cuda_fused_row(attr->act);
    if (row >= LIST_COUNT || !(forward ? rows_list[row]->forward : rows_list[row]->backward) ||
        !act_cuda_fused_takes(attr->act, act_op_of(c), &call))
        return 0;
    fused_job job = act_cuda_fused_job(attr->act, act_op_of(c), &call);
    return job.scale == 1.0f && !job.center && !job.shape_count;
}

size_t cuda_rows_workspace(const op_call *c)
{
    berlu_act_call call = call_of(c);
    rows_job job = job_of(c, &call);
    return act_cuda_fused_place(&job.act, c->attr->act, &call, rows_groups(&job.act), rows_blocks(&job.act), 0);
}

void cuda_rows(const op_call *c)
{
    berlu_act_call call = call_of(c);
    rows_job job = job_of(c, &call);
    const rows_kernels *kernels = rows_list[act_cuda_fused_row(c->attr->act)];
    cuda_stream stream = cuda_device_of(c)->stream;
    size_t groups = rows_groups(&job.act), blocks = rows_blocks(&job.act);
    act_cuda_fused_place(&job.act, c->attr->act, &call, groups, blocks, (uintptr_t)c->workspace);
    berlu_status status = (job.act.dx ? kernels->backward : kernels->forward)(&job, stream);
    cuda_end columns = {.part = job.act.bias_sum,
                        .to = call.dbias,
                        .parts = (int64_t)groups,
                        .columns = c->out[0].channels,
                        .stride = c->out[0].channels};
    job.act.bias_sum = NULL; /* the device has its copy of the job; what is left are sums of parameters */
    if (status == BERLU_OK && job.act.dx)
        cuda_end_add(c, &columns);
    if (status == BERLU_OK && job.act.dx)
        status = act_cuda_fused_join(&job.act, c->attr->act, &call, groups, blocks, stream);
    if (status != BERLU_OK)
        cuda_device_fail(cuda_device_of(c), status, "%s: %s", op_rules[c->op].name, berlu_last_error());
}
