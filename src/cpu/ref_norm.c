/* ref_norm.c - layer norm, by its definition. SPDX-License-Identifier: MIT
 *
 * With xh = (x - mean) / sigma and g = dy * weight:  dx = (g - mean(g) - xh mean(g xh)) / sigma. */
#include <math.h>

#include "cpu/real.h"

static void statistics(const real *x, int64_t n, float eps, real *out)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean);
    out[0] = (real)mean;
    out[1] = (real)(1 / sqrt(square / (double)n + (double)eps));
}

void REF(norm)(const op_call *c)
{
    const real *w = c->in[1].data, *b = c->in[2].data, *given = c->in[3].data;
    int64_t n = c->in[0].channels;
    for (int64_t r = 0; r < c->in[0].rows; r++) {
        const real *x = (const real *)c->in[0].data + r * n;
        real *y = (real *)c->out[0].data + r * n, s[2];
        if (given)
            s[0] = given[2 * r], s[1] = given[2 * r + 1];
        else
            statistics(x, n, c->attr->eps, s);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - s[0]) * s[1] * w[i] + b[i];
        if (c->out[1].data)
            ((real *)c->out[1].data)[2 * r] = s[0], ((real *)c->out[1].data)[2 * r + 1] = s[1];
    }
}

void REF(norm_grad)(const op_call *c)
{
    const real *w = c->in[2].data, *s = c->in[3].data, *residual = c->in[4].data;
    real *dw = c->out[1].data, *db = c->out[2].data;
    int64_t n = c->in[0].channels, rows = c->in[0].rows;
    const real *all_dy = c->in[0].data, *all_x = c->in[1].data;
    for (int64_t i = 0; i < n; i++) { /* before dx, which may overwrite dy */
        double sum_w = 0, sum_b = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum_w += (double)all_dy[r * n + i] * ((all_x[r * n + i] - s[2 * r]) * s[2 * r + 1]);
            sum_b += all_dy[r * n + i];
        }
        dw[i] = (real)sum_w;
        db[i] = (real)sum_b;
    }
    for (int64_t r = 0; r < rows; r++) {
        const real *dy = all_dy + r * n, *x = all_x + r * n;
        real *dx = (real *)c->out[0].data + r * n;
        double mean = s[2 * r], scale = s[2 * r + 1], sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += (double)dy[i] * w[i];
            dot += (double)dy[i] * w[i] * (x[i] - mean) * scale;
        }
        for (int64_t i = 0; i < n; i++) {
            double d = scale * ((double)dy[i] * w[i] - sum / (double)n - (x[i] - mean) * scale * dot / (double)n);
            dx[i] = (real)(d + (residual ? residual[r * n + i] : 0));
        }
    }
}
