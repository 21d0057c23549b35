/* linear.c - products in blocks, and what belongs to a block while it is in the cache. SPDX-License-Identifier: MIT
 *
 * y = x W^T runs over blocks of rows: the product of a block, then its bias and residual; a residual that lies where the result
 * goes is added by the product itself (beta = 1). dW = dy^T x runs over blocks of dW's rows, each summing over the whole batch,
 * or over blocks of the batch where it is long and thin. Read on: linear_act.c, the same with an activation. */
#include "cpu/blocks.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"

/* y = op(x) W' (+ bias + residual), W' being W^T or W. */
static void rows_times(const op_call *c, gemm_matrix w, const float *bias, const float *residual)
{
    const float *x = c->in[0].data;
    float *y = c->out[0].data;
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels;
    blocks b = blocks_for_product(c->out[0].rows);
    int onto = residual == y;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t begin = block_begin(&b, i), rows = block_rows(&b, i);
        float *to = y + begin * outputs;
        gemm(rows, outputs, inputs, 1, (gemm_matrix){x + begin * inputs, inputs, 0}, w, (float)onto, to, outputs);
        const float *more = residual && !onto ? residual + begin * outputs : NULL;
        if (bias || more)
            lanes_of(c)->finish_rows(to, bias, more, rows, outputs);
    }
}

void cpu_linear(const op_call *c)
{
    rows_times(c, (gemm_matrix){c->in[1].data, c->in[0].channels, 1}, c->in[2].data, c->in[3].data);
}

void cpu_linear_dx(const op_call *c)
{
    rows_times(c, (gemm_matrix){c->in[1].data, c->out[0].channels, 0}, NULL, c->in[2].data);
}

/* ---- weight gradients ---- */

/* Blocks of dW's rows: about 192, an even number of them. */
static blocks blocks_of_weight(int64_t outputs)
{
    int64_t count = (outputs + 191) / 192;
    count += count % 2;
    return blocks_of(outputs, (outputs + count - 1) / count);
}

/* A long thin product (TNT's pixels: 16384 rows, dW 24 x 96) is cut along the batch instead: then every number of dy and x is
 * read once, by one thread, and the partial sums are small: a weight larger than THIN_SIZE is never cut so. */
enum { THIN_ROWS = 1024, THIN = 16, THIN_SIZE = 1 << 16 };

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

static void column_sums(const op_call *c)
{
    const float *dy = c->in[0].data;
    int64_t n = c->in[0].channels;
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    float *part = c->workspace;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        for (int64_t j = 0; j < n; j++)
            part[i * n + j] = 0;
        lanes_of(c)->column_sums(part + i * n, dy + block_begin(&b, i) * n, block_rows(&b, i), n);
    }
    partials_join(c->out[1].data, part, b.count, n, n);
}

/* to (count x inputs) = rows [first, first + count) of dW, summed over some rows of the batch */
static void dw_block(const op_call *c, int64_t first, int64_t count, int64_t row, int64_t rows, float *to)
{
    int64_t outputs = c->in[0].channels, inputs = c->in[1].channels;
    gemm(count, inputs, rows, 1, (gemm_matrix){(const float *)c->in[0].data + row * outputs + first, outputs, 1},
         (gemm_matrix){(const float *)c->in[1].data + row * inputs, inputs, 0}, 0, to, inputs);
}

static void thin_dw(const op_call *c)
{
    int64_t size = c->in[0].channels * c->in[1].channels;
    blocks b = blocks_of(c->in[0].rows, THIN_ROWS);
    float *part = (float *)c->workspace + bias_partials(c);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++)
        dw_block(c, 0, c->in[0].channels, block_begin(&b, i), block_rows(&b, i), part + i * size);
    partials_join(c->out[0].data, part, b.count, size, size);
}

void cpu_linear_dw(const op_call *c)
{
    blocks b = blocks_of_weight(c->in[0].channels);
    if (c->out[1].data)
        column_sums(c);
    if (is_thin(c)) {
        thin_dw(c);
        return;
    }
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++)
        dw_block(c, block_begin(&b, i), block_rows(&b, i), 0, c->in[0].rows,
                 (float *)c->out[0].data + block_begin(&b, i) * c->in[1].channels);
}
