/* linear.c - linear layers: operands for a product, and what the product's epilogue does not take.
 * SPDX-License-Identifier: MIT
 *
 *     linear      y = x W^T + bias + residual        linear_dx   dx = dy W + residual
 *     linear_dw   dW = dy^T x, db = column sums of dy
 *
 * The library multiplies operands of one dtype. Where roles mix (f32 stream, bf16 weights) the f32
 * operand is rounded to bf16 into the workspace first; the weights' gradient is f32 in any case.
 * Bias and residual go into the epilogue where their dtype is the result's: a bias of another dtype
 * is converted first (it is short), a residual is added behind. Bias gradients are column sums by
 * columns.cu. */
#include <assert.h>

#include "cuda/gemm.h"
#include "cuda/kernels.h"
#include "graph/dtype.h"

static size_t align_256(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The dtype a product runs in: bf16 as soon as one operand is. */
static tensor_dtype product_dtype(const op_call *c)
{
    return c->in[0].dtype == DTYPE_BF16 || c->in[1].dtype == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

/* ---- workspace: converted operands first, then column sums ----------------------------------- */

static size_t converted_bytes(const op_operand *o, tensor_dtype dtype)
{
    return o->info && o->dtype != dtype ? align_256((size_t)operand_count(o) * dtype_bytes(dtype)) : 0;
}

static size_t operands_bytes(const op_call *c)
{
    tensor_dtype dtype = product_dtype(c);
    size_t bytes = converted_bytes(&c->in[0], dtype) + converted_bytes(&c->in[1], dtype);
    return bytes + (c->op == OP_LINEAR ? converted_bytes(&c->in[2], c->out[0].dtype) : 0);
}

size_t cuda_linear_workspace(const op_call *c)
{
    size_t sums =
        c->op == OP_LINEAR_DW && c->out[1].info ? cuda_columns_workspace(c->in[0].rows, c->in[0].channels) : 0;
    return operands_bytes(c) + sums;
}

/* The operand in a dtype: itself, or a copy at *at, which moves on. */
static op_operand converted(const op_call *c, const op_operand *o, tensor_dtype dtype, char **at)
{
    op_operand copy = *o;
    if (!o->data || o->dtype == dtype)
        return copy;
    copy.data = *at;
    copy.dtype = dtype;
    *at += converted_bytes(o, dtype);
    cuda_convert(c, copy.data, dtype, o->data, o->dtype, operand_count(o));
    return copy;
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct product {
    op_operand a, b, bias, residual, y;
    int64_t rows, columns, depth;
    int a_by_depth, b_by_depth;
} product;

static int library_takes(const op_call *c, const product *p, int bias, int residual)
{
    return cuda_gemm(c, &(gemm_call){.rows = p->rows,
                                     .columns = p->columns,
                                     .depth = p->depth,
                                     .a = p->a.data,
                                     .b = p->b.data,
                                     .bias = bias ? p->bias.data : NULL,
                                     .residual = residual ? p->residual.data : NULL,
                                     .y = p->y.data,
                                     .a_by_depth = p->a_by_depth,
                                     .b_by_depth = p->b_by_depth,
                                     .in_bf16 = p->a.dtype == DTYPE_BF16,
                                     .out_bf16 = p->y.dtype == DTYPE_BF16});
}

/* The library with the whole epilogue; without the bias, which a kernel of ours adds; or the
 * product by a kernel of ours. */
static void product_run(const op_call *c, const product *p)
{
    int apart = p->residual.data && p->residual.dtype != p->y.dtype; /* never in place then: sizes differ */
    int bias_apart = 0;
    assert(p->a.dtype == p->b.dtype);
    if (!library_takes(c, p, 1, !apart)) {
        bias_apart = p->bias.data != NULL;
        if (!bias_apart || !library_takes(c, p, 0, !apart)) {
            plain_product plain = {.a = p->a,
                                   .b = p->b,
                                   .bias = p->bias,
                                   .residual = p->residual,
                                   .y = p->y,
                                   .rows = p->rows,
                                   .columns = p->columns,
                                   .depth = p->depth,
                                   .a_row = p->a_by_depth ? 1 : p->depth,
                                   .a_depth = p->a_by_depth ? p->rows : 1,
                                   .b_row = p->b_by_depth ? 1 : p->depth,
                                   .b_depth = p->b_by_depth ? p->columns : 1};
            cuda_product_plain(c, &plain);
            return;
        }
    }
    if (apart || bias_apart)
        cuda_rows_finish(c, &p->y, bias_apart ? &p->bias : NULL, apart ? &p->residual : NULL, p->rows, p->columns);
}

void cuda_linear(const op_call *c)
{
    char *at = c->workspace;
    product p = {.a = converted(c, &c->in[0], product_dtype(c), &at),
                 .residual = c->in[3],
                 .y = c->out[0],
                 .rows = c->out[0].rows,
                 .columns = c->out[0].channels,
                 .depth = c->in[0].channels};
    p.b = converted(c, &c->in[1], product_dtype(c), &at);
    p.bias = converted(c, &c->in[2], c->out[0].dtype, &at);
    product_run(c, &p);
}

void cuda_linear_dx(const op_call *c)
{
    char *at = c->workspace;
    product p = {.a = converted(c, &c->in[0], product_dtype(c), &at),
                 .residual = c->in[2],
                 .y = c->out[0],
                 .rows = c->out[0].rows,
                 .columns = c->out[0].channels,
                 .depth = c->in[0].channels,
                 .b_by_depth = 1};
    p.b = converted(c, &c->in[1], product_dtype(c), &at);
    product_run(c, &p);
}

void cuda_linear_dw(const op_call *c)
{
    char *at = c->workspace;
    product p = {.a = converted(c, &c->in[0], product_dtype(c), &at),
                 .y = c->out[0],
                 .rows = c->in[0].channels,
                 .columns = c->in[1].channels,
                 .depth = c->in[0].rows,
                 .a_by_depth = 1,
                 .b_by_depth = 1};
    p.b = converted(c, &c->in[1], product_dtype(c), &at);
    product_run(c, &p);
    if (!c->out[1].data)
        return;
    column_sums sums = {.a = &c->in[0],
                        .rows = c->in[0].rows,
                        .columns = c->in[0].channels,
                        .stride = c->in[0].channels,
                        .to = c->out[1].data};
    cuda_columns(c, &sums, (char *)c->workspace + operands_bytes(c));
}
