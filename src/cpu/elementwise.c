/* elementwise.c - sums and factors over blocks of rows. SPDX-License-Identifier: MIT */
#include <string.h>

#include "cpu/blocks.h"
#include "cpu/kernels.h"

enum { PIECE = 16384 }; /* elements of an elementwise block */

void cpu_add(const op_call *c)
{
    blocks b = blocks_of(c->out[0].rows * c->out[0].channels, PIECE);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t at = block_begin(&b, i);
        simd_of(c)->add((float *)c->out[0].data + at, (const float *)c->in[0].data + at,
                        (const float *)c->in[1].data + at, block_rows(&b, i));
    }
}

void cpu_scale(const op_call *c)
{
    int64_t n = c->out[0].channels;
    const float *residual = c->in[2].data;
    blocks b = blocks_of(c->out[0].rows, SUM_ROWS);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t at = block_begin(&b, i) * n;
        simd_of(c)->scale_rows((float *)c->out[0].data + at, (const float *)c->in[0].data + at, c->in[1].data,
                               residual ? residual + at : NULL, block_rows(&b, i), n);
    }
}

size_t cpu_scale_grad_workspace(const op_call *c)
{
    return (size_t)(blocks_of(c->in[0].rows, SUM_ROWS).count * c->in[0].channels) * sizeof(float);
}

void cpu_scale_grad(const op_call *c)
{
    int64_t n = c->in[0].channels;
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    float *part = c->workspace;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t at = block_begin(&b, i) * n;
        memset(part + i * n, 0, (size_t)n * sizeof *part);
        simd_of(c)->scale_grad_rows((float *)c->out[0].data + at, (const float *)c->in[0].data + at,
                                    (const float *)c->in[1].data + at, c->in[2].data, part + i * n, block_rows(&b, i),
                                    n);
    }
    tree_sum_columns(c->out[1].data, part, (size_t)b.count, n, n);
}
