/* norm.c - layer norm over blocks of rows. SPDX-License-Identifier: MIT */
#include <string.h>

#include "cpu/blocks.h"
#include "cpu/kernels.h"

void cpu_norm(const op_call *c)
{
    int64_t n = c->in[0].channels;
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    int given = c->in[3].data != NULL;
    float *stat = given ? c->in[3].data : c->out[1].data;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t begin = block_begin(&b, i);
        lanes_of(c)->norm_rows((float *)c->out[0].data + begin * n, (const float *)c->in[0].data + begin * n,
                               c->in[1].data, c->in[2].data, stat + 2 * begin, given, block_rows(&b, i), n,
                               c->attr->eps);
    }
}

size_t cpu_norm_grad_workspace(const op_call *c)
{
    return (size_t)(blocks_of(c->in[0].rows, SUM_ROWS).count * 2 * c->in[0].channels) * sizeof(float);
}

void cpu_norm_grad(const op_call *c)
{
    int64_t n = c->in[0].channels;
    blocks b = blocks_of(c->in[0].rows, SUM_ROWS);
    const float *residual = c->in[4].data;
    float *part = c->workspace;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < b.count; i++) {
        int64_t at = block_begin(&b, i) * n;
        float *dw = part + i * 2 * n;
        memset(dw, 0, (size_t)(2 * n) * sizeof *dw);
        lanes_of(c)->norm_grad_rows((float *)c->out[0].data + at, (const float *)c->in[0].data + at,
                                    (const float *)c->in[1].data + at, c->in[2].data,
                                    (const float *)c->in[3].data + 2 * block_begin(&b, i),
                                    residual ? residual + at : NULL, dw, dw + n, block_rows(&b, i), n);
    }
    partials_join(c->out[1].data, part, b.count, 2 * n, n);
    partials_join(c->out[2].data, part + n, b.count, 2 * n, n);
}
