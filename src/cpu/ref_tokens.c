/* ref_tokens.c - the reference of ops along the token dimension. SPDX-License-Identifier: MIT
 *
 * Class token and positions, positions of pixels and added tokens (TNT), selected tokens, with
 * their gradients. Parameters are shared by the images of a batch, so their gradients are sums over
 * images, in order. */
#include <string.h>

#include "cpu/real.h"

void REF(tokens)(const op_call *c)
{
    const real *x = c->in[0].data, *pos = c->in[1].data;
    int64_t n = c->out[0].channels, all = c->out[0].rows / c->batch, body = c->in[0].rows / c->batch,
            front = all - body;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->out[0].rows; r++) {
        int64_t token = r % all;
        const real *from = token >= front ? x + (r / all * body + token - front) * n
                                          : (const real *)c->in[token == 0 && c->in[2].data ? 2 : 3].data;
        real *y = (real *)c->out[0].data + r * n;
        for (int64_t i = 0; i < n; i++)
            y[i] = from[i] + pos[token * n + i];
    }
}

/* sum over the images of one row of dy. */
static void rows_sum(real *to, const real *dy, int64_t images, int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t image = 0; image < images; image++)
            sum += dy[image * step + i];
        to[i] = (real)sum;
    }
}

void REF(tokens_grad)(const op_call *c)
{
    const real *dy = c->in[0].data;
    real *dx = c->out[0].data, *dpos = c->out[1].data, *dcls = c->out[2].data, *ddist = c->out[3].data;
    int64_t n = c->in[0].channels, all = c->in[0].rows / c->batch, front = (dcls != NULL) + (ddist != NULL),
            body = all - front;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t token = 0; token < all; token++) {
        if (dpos)
            rows_sum(dpos + token * n, dy + token * n, c->batch, all * n, n);
        if (token < front)
            rows_sum(token == 0 && dcls ? dcls : ddist, dy + token * n, c->batch, all * n, n);
    }
    for (int64_t image = 0; dx && image < c->batch; image++)
        memcpy(dx + image * body * n, dy + (image * all + front) * n, (size_t)(body * n) * sizeof *dx);
}

/* pos is (1, d, q, q): channel first. */
void REF(pixel_pos)(const op_call *c)
{
    const real *pos = c->in[1].data;
    const tensor_info *info = c->in[0].info;
    int64_t n = c->in[0].channels, pixels = info->size[info->rank - 2];
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->in[0].rows; r++) {
        const real *x = (const real *)c->in[0].data + r * n;
        real *y = (real *)c->out[0].data + r * n;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] + pos[i * pixels + r % pixels];
    }
}

void REF(pixel_pos_grad)(const op_call *c)
{
    const tensor_info *info = c->in[0].info;
    int64_t n = c->in[0].channels, pixels = info->size[info->rank - 2], groups = c->in[0].rows / pixels;
    const real *dy = c->in[0].data;
    real *dpos = c->out[0].data;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < n * pixels; i++) {
        double sum = 0;
        for (int64_t g = 0; g < groups; g++)
            sum += dy[(g * pixels + i % pixels) * n + i / pixels];
        dpos[i] = (real)sum;
    }
}

void REF(add_tokens)(const op_call *c)
{
    const real *x = c->in[0].data, *branch = c->in[1].data;
    int64_t n = c->out[0].channels, all = c->out[0].rows / c->batch, skip = c->attr->skip;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->out[0].rows; r++) {
        real *y = (real *)c->out[0].data + r * n;
        const real *add = branch + (r / all * (all - skip) + r % all - skip) * n;
        for (int64_t i = 0; i < n; i++)
            y[i] = x[r * n + i] + (r % all < skip ? 0 : add[i]);
    }
}

void REF(take_tokens)(const op_call *c)
{
    const real *dy = c->in[0].data;
    real *dx = c->out[0].data;
    int64_t n = c->in[0].channels, all = c->in[0].rows / c->batch, skip = c->attr->skip, body = (all - skip) * n;
    for (int64_t image = 0; image < c->batch; image++)
        memcpy(dx + image * body, dy + (image * all + skip) * n, (size_t)body * sizeof *dx);
}

void REF(select)(const op_call *c)
{
    const real *x = c->in[0].data;
    real *y = c->out[0].data;
    int64_t n = c->in[0].channels, all = c->in[0].rows / c->batch;
    for (int64_t image = 0; image < c->batch; image++)
        memcpy(y + image * n, x + (image * all + c->attr->skip) * n, (size_t)n * sizeof *y);
}

void REF(select_grad)(const op_call *c)
{
    const real *dy = c->in[0].data;
    real *dx = c->out[0].data;
    int64_t n = c->in[0].channels, all = c->out[0].rows / c->batch;
    memset(dx, 0, (size_t)(c->out[0].rows * n) * sizeof *dx);
    for (int64_t image = 0; image < c->batch; image++)
        memcpy(dx + (image * all + c->attr->skip) * n, dy + image * n, (size_t)n * sizeof *dx);
}
