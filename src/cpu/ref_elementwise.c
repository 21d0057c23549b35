/* ref_elementwise.c - the reference of ops on single elements: sums, factors, means, dropout.
 * SPDX-License-Identifier: MIT
 *
 * By definition, in the type `real` (float or double), without blocks or vectors. The fast kernels
 * are compared with them, and the backend uses their f32 versions where an op takes little time. */
#include "cpu/draw.h"
#include "cpu/real.h"

static int64_t count_of(const op_operand *o)
{
    return o->rows * o->channels;
}

void REF(add)(const op_call *c)
{
    const real *a = c->in[0].data, *b = c->in[1].data;
    real *y = c->out[0].data;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < count_of(&c->out[0]); i++)
        y[i] = a[i] + b[i];
}

void REF(average)(const op_call *c)
{
    const real *a = c->in[0].data, *b = c->in[1].data;
    real *y = c->out[0].data;
    for (int64_t i = 0; i < count_of(&c->out[0]); i++)
        y[i] = (a[i] + b[i]) / 2;
}

void REF(half)(const op_call *c)
{
    const real *x = c->in[0].data;
    real *y = c->out[0].data;
    for (int64_t i = 0; i < count_of(&c->out[0]); i++)
        y[i] = x[i] / 2;
}

void REF(scale)(const op_call *c)
{
    const real *x = c->in[0].data, *gamma = c->in[1].data, *residual = c->in[2].data;
    real *y = c->out[0].data;
    int64_t n = c->out[0].channels;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->out[0].rows; r++)
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = x[r * n + i] * gamma[i] + (residual ? residual[r * n + i] : 0);
}

void REF(scale_grad)(const op_call *c)
{
    const real *dy = c->in[0].data, *x = c->in[1].data, *gamma = c->in[2].data;
    real *dx = c->out[0].data, *dgamma = c->out[1].data;
    int64_t n = c->in[0].channels;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t r = 0; r < c->in[0].rows; r++) {
            sum += (double)dy[r * n + i] * x[r * n + i];
            dx[r * n + i] = dy[r * n + i] * gamma[i];
        }
        dgamma[i] = (real)sum;
    }
}

void REF(scale_weight)(const op_call *c)
{
    const real *w = c->in[0].data, *gamma = c->in[1].data, *b = c->in[2].data;
    real *to = c->out[0].data, *bias = c->out[1].data;
    int64_t outputs = count_of(&c->in[1]), each = count_of(&c->in[0]) / outputs;
    for (int64_t o = 0; o < outputs; o++) {
        for (int64_t k = 0; k < each; k++)
            to[o * each + k] = gamma[o] * w[o * each + k];
        if (b)
            bias[o] = gamma[o] * b[o];
    }
}

void REF(scale_weight_grad)(const op_call *c)
{
    const real *d = c->in[0].data, *w = c->in[1].data, *gamma = c->in[2].data, *dbias = c->in[3].data,
               *b = c->in[4].data;
    real *dw = c->out[0].data, *dgamma = c->out[1].data, *db = c->out[2].data;
    int64_t outputs = count_of(&c->in[2]), each = count_of(&c->in[1]) / outputs;
    for (int64_t o = 0; o < outputs; o++) {
        double sum = b ? (double)dbias[o] * b[o] : 0;
        for (int64_t k = o * each; k < (o + 1) * each; k++) {
            sum += (double)d[k] * w[k];
            dw[k] = gamma[o] * d[k];
        }
        dgamma[o] = (real)sum;
        if (b)
            db[o] = gamma[o] * dbias[o];
    }
}

void REF(join_weight)(const op_call *c)
{
    const real *a = c->in[0].data, *b = c->in[1].data;
    real *to = c->out[0].data;
    int64_t first = count_of(&c->in[0]);
    for (int64_t i = 0; i < count_of(&c->out[0]); i++)
        to[i] = i < first ? a[i] : b[i - first];
}

void REF(join_weight_grad)(const op_call *c)
{
    const real *d = c->in[0].data;
    real *a = c->out[0].data, *b = c->out[1].data;
    int64_t first = count_of(&c->out[0]);
    for (int64_t i = 0; i < count_of(&c->in[0]); i++)
        *(i < first ? a + i : b + i - first) = d[i];
}

void REF(mean)(const op_call *c)
{
    const real *x = c->in[0].data;
    real *y = c->out[0].data;
    int64_t n = c->in[0].channels, places = c->in[0].rows / c->batch;
    for (int64_t i = 0; i < c->batch * n; i++) {
        double sum = 0;
        for (int64_t r = 0; r < places; r++)
            sum += x[(i / n * places + r) * n + i % n];
        y[i] = (real)(sum / (double)places);
    }
}

void REF(mean_grad)(const op_call *c)
{
    const real *dy = c->in[0].data;
    real *dx = c->out[0].data;
    int64_t n = c->out[0].channels, places = c->out[0].rows / c->batch;
    for (int64_t r = 0; r < c->out[0].rows; r++)
        for (int64_t i = 0; i < n; i++)
            dx[r * n + i] = dy[r / places * n + i] / (real)places;
}

void REF(dropout)(const op_call *c)
{
    const real *x = c->in[0].data;
    real *y = c->out[0].data, factor = (real)(1 / (1 - (double)c->attr->rate));
    int64_t count = count_of(&c->in[0]), each = count / c->batch;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < count; i++)
        y[i] = draw_keeps(c->step, PURPOSE_DROPOUT, c->attr, c->step->first_sample * (uint64_t)each + (uint64_t)i)
                   ? x[i] * factor
                   : 0;
}

void REF(drop_path)(const op_call *c)
{
    int64_t groups = c->attr->groups, size = count_of(&c->in[0]) / (c->batch * groups);
    real factor = (real)(1 / (1 - (double)c->attr->rate));
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t g = 0; g < c->batch * groups; g++) {
        const real *x = (const real *)c->in[0].data + g * size, *residual = c->in[1].data;
        real *y = (real *)c->out[0].data + g * size;
        uint64_t index = c->step->first_sample * (uint64_t)groups + (uint64_t)g;
        real f = draw_keeps(c->step, PURPOSE_DROP_PATH, c->attr, index) ? factor : 0;
        for (int64_t i = 0; i < size; i++)
            y[i] = (f != 0 ? x[i] * f : 0) + (residual ? residual[g * size + i] : 0);
    }
}
