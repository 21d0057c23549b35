/* linear_norm.c - a layer with its residual, and the norm after it. SPDX-License-Identifier: MIT
 *
 * One launch (linear_norm.cu) where that was measured faster on an H200 (docs/performance.md, 9): a
 * layer of 192 inputs and outputs in bf16 with many rows, proj of ViT-Tiny. Two otherwise, as
 * linear.c and norm.cu run them. Shapes, dtypes and the GPU decide, so a plan knows the choice;
 * only a pointer that is not aligned would overrule it, and the workspace suffices for both. */
#include "cuda/linear_norm.h"

#include <assert.h>

static op_call product_of(const op_call *c)
{
    op_call product = *c;
    product.op = OP_LINEAR;
    product.in[4] = product.in[5] = product.out[1] = product.out[2] = (op_operand){0};
    return product;
}

static op_call norm_of(const op_call *c)
{
    op_call norm = *c;
    norm.op = OP_NORM;
    norm.in[0] = c->out[0];
    norm.in[1] = c->in[4];
    norm.in[2] = c->in[5];
    norm.in[3] = norm.in[4] = norm.in[5] = (op_operand){0};
    norm.out[0] = c->out[1];
    norm.out[1] = c->out[2];
    norm.out[2] = (op_operand){0};
    return norm;
}

/* An operand that the kernel reads or writes as vectors of 16 bytes. */
static int vectors(const op_operand *o, tensor_dtype dtype)
{
    return o->dtype == dtype && (uintptr_t)o->data % 16 == 0;
}

int cuda_linear_norm_takes(const op_call *c)
{
    const gpu_properties *gpu = &cuda_device_of(c)->gpu;
    tensor_dtype stream = c->out[0].dtype;
    int64_t rows = c->out[0].rows;
    int operands = vectors(&c->in[0], DTYPE_BF16) && vectors(&c->in[1], DTYPE_BF16) &&
                   (!c->in[2].info || vectors(&c->in[2], DTYPE_BF16)) && vectors(&c->in[3], stream) &&
                   vectors(&c->in[4], DTYPE_F32) && vectors(&c->in[5], DTYPE_F32) && vectors(&c->out[0], stream) &&
                   vectors(&c->out[1], DTYPE_BF16);
    int shapes = c->in[0].channels == LINEAR_NORM_WIDTH && c->out[0].channels == LINEAR_NORM_WIDTH &&
                 rows >= LINEAR_NORM_FEWEST && rows <= INT32_MAX / 2;
    return gpu->major == 9 && gpu->minor == 0 && operands && shapes;
}

size_t cuda_linear_norm_workspace(const op_call *c)
{
    op_call product = product_of(c);
    return cuda_linear_workspace(&product);
}

void cuda_linear_norm(const op_call *c)
{
    assert(c->in[3].info && c->in[4].info && c->in[5].info);
    if (!cuda_linear_norm_takes(c)) {
        op_call product = product_of(c), norm = norm_of(c);
        cuda_linear(&product);
        cuda_norm(&norm);
        return;
    }
    linear_norm_job job = {.a = c->in[0].data,
                           .w = c->in[1].data,
                           .bias = c->in[2].data,
                           .residual = c->in[3].data,
                           .weight = c->in[4].data,
                           .shift = c->in[5].data,
                           .x = c->out[0].data,
                           .y = c->out[1].data,
                           .statistics = c->out[2].data,
                           .rows = (int)c->out[0].rows,
                           .f32 = c->out[0].dtype == DTYPE_F32,
                           .blocks = cuda_device_of(c)->gpu.processors,
                           .eps = c->attr->eps};
    cuda_linear_norm_rows(&job, cuda_device_of(c)->stream);
    cuda_launched(c);
}
