/* ref_depthwise.c - depthwise convolution on [H, W, C], by its definition.
 * SPDX-License-Identifier: MIT */
#include "cpu/real.h"

typedef struct map {
    int64_t height, width, channels, kernel, half;
} map;

static map map_make(const tensor_info *image, const tensor_info *weight)
{
    return (map){image->size[0], image->size[1], image->size[2], weight->size[2], weight->size[2] / 2};
}

/* sum over the window at (y, x) of from[...] w[ky][kx]; mirrored for the gradient. */
static double window_sum(const map *m, const real *from, const real *w, int64_t y, int64_t x, int64_t channel,
                         int mirror)
{
    double sum = 0;
    for (int64_t ky = 0; ky < m->kernel; ky++)
        for (int64_t kx = 0; kx < m->kernel; kx++) {
            int64_t sy = y + (mirror ? m->half - ky : ky - m->half), sx = x + (mirror ? m->half - kx : kx - m->half);
            if (sy >= 0 && sy < m->height && sx >= 0 && sx < m->width)
                sum += (double)from[(sy * m->width + sx) * m->channels + channel] *
                       w[(channel * m->kernel + ky) * m->kernel + kx];
        }
    return sum;
}

static void convolve(const op_call *c, const real *bias, const real *residual, int mirror)
{
    map m = map_make(c->in[0].info, c->in[1].info);
    int64_t size = m.height * m.width * m.channels;
    for (int64_t i = 0; i < c->batch * size; i++) {
        int64_t at = i % size, channel = at % m.channels;
        const real *from = (const real *)c->in[0].data + i / size * size;
        double sum =
            window_sum(&m, from, c->in[1].data, at / m.channels / m.width, at / m.channels % m.width, channel, mirror);
        ((real *)c->out[0].data)[i] = (real)(sum + (bias ? bias[channel] : 0) + (residual ? residual[i] : 0));
    }
}

void REF(depthwise)(const op_call *c)
{
    convolve(c, c->in[2].data, NULL, 0);
}

void REF(depthwise_dx)(const op_call *c)
{
    convolve(c, NULL, c->in[2].data, 1);
}

void REF(depthwise_dw)(const op_call *c)
{
    map m = map_make(c->in[0].info, c->out[0].info);
    const real *dy = c->in[0].data, *x = c->in[1].data;
    real *dw = c->out[0].data, *db = c->out[1].data;
    int64_t size = m.height * m.width;
    for (int64_t i = 0; i < m.channels * m.kernel * m.kernel; i++) {
        int64_t channel = i / (m.kernel * m.kernel), down = i / m.kernel % m.kernel - m.half,
                right = i % m.kernel - m.half;
        double sum = 0;
        for (int64_t at = 0; at < c->batch * size; at++) {
            int64_t y = at % size / m.width + down, x0 = at % m.width + right;
            if (y >= 0 && y < m.height && x0 >= 0 && x0 < m.width)
                sum += (double)dy[at * m.channels + channel] * x[(at + down * m.width + right) * m.channels + channel];
        }
        dw[i] = (real)sum;
    }
    for (int64_t channel = 0; channel < m.channels; channel++) {
        double sum = 0;
        for (int64_t at = 0; at < c->batch * size; at++)
            sum += dy[at * m.channels + channel];
        db[channel] = (real)sum;
    }
}
