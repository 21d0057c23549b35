/* norm.c - layer norm over blocks of rows. SPDX-License-Identifier: MIT
 *
 * The rows are cut into blocks of SUM_ROWS whatever the number of threads; threads share them by
 * work stealing. A block of the gradient adds its dw and db into a part of the workspace of its
 * own, and a fixed tree adds the parts, so the bits do not depend on the threads. The formulas:
 * simd_norm.c. Row-blocked groups (group.c) call the functions for some rows. */
#include <assert.h>
#include <string.h>

#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "cpu/work.h"

static void norm_block(const op_call *c, const blocks *b, int64_t i)
{
    int64_t n = c->in[0].channels, begin = block_begin(b, i);
    int given = c->in[3].data != NULL;
    float *stat = given ? c->in[3].data : c->out[1].data;
    simd_of(c)->norm_rows((float *)c->out[0].data + begin * n, (const float *)c->in[0].data + begin * n, c->in[1].data,
                          c->in[2].data, stat + 2 * begin, given, block_rows(b, i), n, c->attr->eps);
}

static size_t grad_stride(const op_call *c) /* floats: dw and db of a block */
{
    return (size_t)(2 * c->in[0].channels);
}

size_t cpu_norm_grad_workspace(const op_call *c)
{
    return (size_t)blocks_of(c->in[0].rows, SUM_ROWS).count * grad_stride(c) * sizeof(float);
}

static void grad_block(const op_call *c, const blocks *b, int64_t i)
{
    int64_t n = c->in[0].channels, at = block_begin(b, i) * n;
    const float *residual = c->in[4].data;
    float *dw = (float *)c->workspace + (size_t)i * grad_stride(c);
    memset(dw, 0, grad_stride(c) * sizeof *dw);
    simd_of(c)->norm_grad_rows((float *)c->out[0].data + at, (const float *)c->in[0].data + at,
                               (const float *)c->in[1].data + at, c->in[2].data,
                               (const float *)c->in[3].data + 2 * block_begin(b, i), residual ? residual + at : NULL,
                               dw, dw + n, block_rows(b, i), n);
}

void cpu_norm_grad_finish(const op_call *c)
{
    int64_t n = c->in[0].channels, count = blocks_of(c->in[0].rows, SUM_ROWS).count;
    const float *part = c->workspace;
    tree_sum_columns(c->out[1].data, part, (size_t)count, 2 * n, n);
    tree_sum_columns(c->out[2].data, part + n, (size_t)count, 2 * n, n);
}

/* ---- some rows, and all ---------------------------------------------------------------------- */

void cpu_norm_rows(const op_call *c, int64_t begin, int64_t rows)
{
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    for (int64_t i = begin / SUM_ROWS; i < blocks_end(&b, begin, rows); i++)
        norm_block(c, &b, i);
}

void cpu_norm_grad_rows(const op_call *c, int64_t begin, int64_t rows)
{
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    for (int64_t i = begin / SUM_ROWS; i < blocks_end(&b, begin, rows); i++)
        grad_block(c, &b, i);
}

void cpu_norm(const op_call *c)
{
    assert(c->in[0].rows == c->out[0].rows && c->in[0].channels == c->out[0].channels);
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    for (int64_t i; (i = work_take(&s)) >= 0;)
        norm_block(c, &b, i);
}

void cpu_norm_grad(const op_call *c)
{
    assert(c->in[0].rows == c->in[1].rows && c->in[0].channels == c->in[1].channels);
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    for (int64_t i; (i = work_take(&s)) >= 0;)
        grad_block(c, &b, i);
    cpu_norm_grad_finish(c);
}
