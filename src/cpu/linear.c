/* linear.c - products in blocks, and what belongs to a block while it is in the cache. SPDX-License-Identifier: MIT
 *
 * y = x W^T runs over blocks of rows: the product of a block, then its bias and residual. dW = dy^T x runs over blocks of dW's
 * rows, each summing over the whole batch. A residual that lies where the result goes is added by the product itself
 * (beta = 1). Read on: linear_act.c, the same with an activation. */
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

size_t cpu_linear_dw_workspace(const op_call *c)
{
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    return c->out[1].info ? (size_t)(b.count * c->in[0].channels) * sizeof(float) : 0;
}

/* Blocks of dW's rows: about 192, an even number of them. */
static blocks blocks_of_weight(int64_t outputs)
{
    int64_t count = (outputs + 191) / 192;
    count += count % 2;
    return blocks_of(outputs, (outputs + count - 1) / count);
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

void cpu_linear_dw(const op_call *c)
{
    const float *dy = c->in[0].data, *x = c->in[1].data;
    int64_t rows = c->in[0].rows, outputs = c->in[0].channels, inputs = c->in[1].channels;
    blocks b = blocks_of_weight(outputs);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t begin = block_begin(&b, i);
        gemm(block_rows(&b, i), inputs, rows, 1, (gemm_matrix){dy + begin, outputs, 1}, (gemm_matrix){x, inputs, 0}, 0,
             (float *)c->out[0].data + begin * inputs, inputs);
    }
    if (c->out[1].data)
        column_sums(c);
}
