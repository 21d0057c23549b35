/* linear.c - products in blocks, each with its epilogue while it is in the cache.
 * SPDX-License-Identifier: MIT
 *
 * y = x W^T runs over blocks of rows: the product of a block, then its bias and residual; a
 * residual in the memory of the output is added by the product itself (beta = 1). dW = dy^T x runs
 * over blocks of dW's rows, each summing over the whole batch, or over blocks of the batch where it
 * is long and thin. Read on: linear_act.c, the same with an activation. */
#include <assert.h>

#include "cpu/blocks.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/weight.h"
#include "cpu/work.h"

/* A block of y = x W^T + bias + residual, or of dx = dy W + residual. */
static void block_times(const op_call *c, const blocks *b, int64_t i)
{
    int forward = c->op == OP_LINEAR;
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels, begin = block_begin(b, i),
            rows = block_rows(b, i);
    const float *bias = forward ? c->in[2].data : NULL, *residual = c->in[forward ? 3 : 2].data;
    float *y = (float *)c->out[0].data + begin * outputs;
    int onto = residual == c->out[0].data;
    gemm(rows, outputs, inputs, 1, (gemm_matrix){(const float *)c->in[0].data + begin * inputs, inputs, 0},
         weight_matrix(c), (float)onto, y, outputs);
    const float *more = residual && !onto ? residual + begin * outputs : NULL;
    if (bias || more)
        simd_of(c)->finish_rows(y, bias, more, rows, outputs);
}

void cpu_linear_rows(const op_call *c, int64_t begin, int64_t rows)
{
    blocks b = blocks_of_call(c);
    for (int64_t i = begin / b.size; i < blocks_end(&b, begin, rows); i++)
        block_times(c, &b, i);
}

void cpu_linear(const op_call *c)
{
    blocks b = blocks_of_call(c);
    assert(c->in[0].rows == c->out[0].rows);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    {
        weight_copy(c);
        for (int64_t i; (i = work_take(&s)) >= 0;)
            block_times(c, &b, i);
    }
}

size_t cpu_linear_workspace(const op_call *c)
{
    return weight_bytes(c);
}

void cpu_linear_dx(const op_call *c)
{
    cpu_linear(c);
}

/* ---- weight gradients ------------------------------------------------------------------------ */

/* Blocks of dW's rows: about 192, an even number of them. Each packs all of x again. */
static blocks blocks_of_weight(int64_t outputs)
{
    int64_t count = (outputs + 191) / 192;
    count += count % 2;
    return blocks_of(outputs, (outputs + count - 1) / count);
}

/* A long thin product (TNT's pixels: 16384 rows, dW 24 x 96) is divided along the batch instead:
 * then every element of dy and x is read once, by one thread, and the partial sums are small: a
 * weight larger than THIN_SIZE is never divided so. */
enum { THIN_ROWS = GROUP_ROWS, THIN = 16, THIN_SIZE = 1 << 16 };

static int is_thin(const op_call *c)
{
    int64_t wide = c->in[0].channels > c->in[1].channels ? c->in[0].channels : c->in[1].channels;
    return c->in[0].rows >= THIN * wide && c->in[0].rows > THIN_ROWS &&
           c->in[0].channels * c->in[1].channels <= THIN_SIZE;
}

/* Floats: partial sums of bias gradients, then partial dW of long thin products. */
static int64_t bias_partials(const op_call *c)
{
    return c->out[1].info ? blocks_of(c->in[0].rows, SUM_ROWS).count * c->in[0].channels : 0;
}

size_t cpu_linear_dw_workspace(const op_call *c)
{
    int64_t size = c->in[0].channels * c->in[1].channels;
    int64_t thin = is_thin(c) ? blocks_of(c->in[0].rows, THIN_ROWS).count * size : 0;
    return (size_t)(bias_partials(c) + thin) * sizeof(float);
}

/* Partial sums of the bias gradient, block by block of SUM_ROWS. */
static void column_sums(const op_call *c, const blocks *b, int64_t i)
{
    int64_t n = c->in[0].channels;
    float *part = (float *)c->workspace + i * n;
    for (int64_t j = 0; j < n; j++)
        part[j] = 0;
    simd_of(c)->column_sums(part, (const float *)c->in[0].data + block_begin(b, i) * n, block_rows(b, i), n);
}

static void column_sums_join(const op_call *c)
{
    int64_t n = c->in[0].channels;
    tree_sum_columns(c->out[1].data, c->workspace, (size_t)blocks_of(c->in[0].rows, SUM_ROWS).count, n, n);
}

/* to (count x inputs) = rows [first, first + count) of dW, summed over some rows of the batch */
static void dw_block(const op_call *c, int64_t first, int64_t count, int64_t row, int64_t rows, float *to)
{
    int64_t outputs = c->in[0].channels, inputs = c->in[1].channels;
    gemm(count, inputs, rows, 1, (gemm_matrix){(const float *)c->in[0].data + row * outputs + first, outputs, 1},
         (gemm_matrix){(const float *)c->in[1].data + row * inputs, inputs, 0}, 0, to, inputs);
}

/* A block of THIN_ROWS of a long thin product; all rows of a group are one. */
void cpu_linear_dw_rows(const op_call *c, int64_t begin, int64_t rows)
{
    int64_t size = c->in[0].channels * c->in[1].channels;
    blocks sums = blocks_of(c->in[0].rows, SUM_ROWS);
    for (int64_t i = begin / SUM_ROWS; c->out[1].data && i < blocks_end(&sums, begin, rows); i++)
        column_sums(c, &sums, i);
    dw_block(c, 0, c->in[0].channels, begin, rows, (float *)c->workspace + bias_partials(c) + begin / THIN_ROWS * size);
}

void cpu_linear_dw_finish(const op_call *c)
{
    int64_t size = c->in[0].channels * c->in[1].channels;
    if (c->out[1].data)
        column_sums_join(c);
    tree_sum_columns(c->out[0].data, (float *)c->workspace + bias_partials(c),
                     (size_t)blocks_of(c->in[0].rows, THIN_ROWS).count, size, size);
}

static void thin_dw(const op_call *c)
{
    blocks b = blocks_of(c->in[0].rows, THIN_ROWS);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    for (int64_t i; (i = work_take(&s)) >= 0;)
        cpu_linear_dw_rows(c, block_begin(&b, i), block_rows(&b, i));
    cpu_linear_dw_finish(c);
}

static void wide_dw(const op_call *c)
{
    blocks b = blocks_of_weight(c->in[0].channels), sums = blocks_of(c->in[0].rows, SUM_ROWS);
    work_queue sum, product;
    work_deal(&sum, c->out[1].data ? sums.count : 0, c->threads);
    work_deal(&product, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    {
        for (int64_t i; (i = work_take(&sum)) >= 0;)
            column_sums(c, &sums, i);
        for (int64_t i; (i = work_take(&product)) >= 0;)
            dw_block(c, block_begin(&b, i), block_rows(&b, i), 0, c->in[0].rows,
                     (float *)c->out[0].data + block_begin(&b, i) * c->in[1].channels);
    }
    if (c->out[1].data)
        column_sums_join(c);
}

void cpu_linear_dw(const op_call *c)
{
    assert(c->in[0].rows == c->in[1].rows);
    assert(c->out[0].rows * c->out[0].channels == c->in[0].channels * c->in[1].channels);
    if (is_thin(c))
        thin_dw(c);
    else
        wide_dw(c);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The library's buffers for the products of this call: one set for each thread that has a block. */
size_t cpu_library(const op_call *c)
{
    int forward = c->op == OP_LINEAR || c->op == OP_LINEAR_ACT;
    if (!forward && c->op != OP_LINEAR_DX && c->op != OP_LINEAR_DX_ACT && c->op != OP_LINEAR_DW)
        return 0;
    int dw = c->op == OP_LINEAR_DW;
    blocks b = dw ? blocks_of_weight(c->in[0].channels) : blocks_of_call(c);
    int64_t parts = dw && is_thin(c) ? blocks_of(c->in[0].rows, THIN_ROWS).count : b.count;
    int64_t busy = parts < c->threads ? parts : c->threads;
    return (size_t)busy * gemm_scratch(block_rows(&b, 0), c->out[0].channels, c->in[0].channels, dw, weight_matrix(c));
}
