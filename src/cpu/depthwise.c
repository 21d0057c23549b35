/* depthwise.c - depthwise convolution: one image and one vector of channels at a time.
 * SPDX-License-Identifier: MIT
 *
 * Weight gradients are computed per image and added over images by the fixed tree. Read on:
 * simd_depthwise.c. */
#include "cpu/blocks.h"
#include "cpu/kernels.h"

static simd_map map_of(const op_call *c)
{
    const tensor_info *x = c->in[0].info, *w = c->op == OP_DEPTHWISE_DW ? c->out[0].info : c->in[1].info;
    return (simd_map){x->size[0], x->size[1], x->size[2], w->size[2]};
}

static size_t scratch_bytes(const op_call *c, const simd_map *m)
{
    return align_64((size_t)simd_depthwise_work(m, simd_of(c)->width) * sizeof(float));
}

size_t cpu_depthwise_workspace(const op_call *c)
{
    simd_map m = map_of(c);
    size_t bytes = (size_t)c->threads * scratch_bytes(c, &m);
    if (c->op == OP_DEPTHWISE_DW)
        bytes += (size_t)(c->batch * m.channels * (m.kernel * m.kernel + 1)) * sizeof(float);
    return bytes;
}

static void convolve(const op_call *c, const float *bias, const float *residual, int mirror)
{
    simd_map m = map_of(c);
    size_t scratch = scratch_bytes(c, &m);
    int64_t size = m.height * m.width * m.channels, groups = (m.channels + simd_of(c)->width - 1) / simd_of(c)->width;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < c->batch * groups; i++) {
        int64_t at = i / groups * size;
        float *work = (float *)(void *)((char *)c->workspace + (size_t)omp_get_thread_num() * scratch);
        simd_of(c)->depthwise(&m, i % groups * simd_of(c)->width, (float *)c->out[0].data + at,
                              (const float *)c->in[0].data + at, c->in[1].data, bias, residual ? residual + at : NULL,
                              mirror, work);
    }
}

void cpu_depthwise(const op_call *c)
{
    convolve(c, c->in[2].data, NULL, 0);
}

void cpu_depthwise_dx(const op_call *c)
{
    convolve(c, NULL, c->in[2].data, 1);
}

void cpu_depthwise_dw(const op_call *c)
{
    simd_map m = map_of(c);
    size_t scratch = scratch_bytes(c, &m);
    int64_t size = m.height * m.width * m.channels, groups = (m.channels + simd_of(c)->width - 1) / simd_of(c)->width;
    int64_t taps = m.channels * m.kernel * m.kernel, stride = taps + m.channels;
    float *part = (float *)(void *)((char *)c->workspace + (size_t)c->threads * scratch);
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < c->batch * groups; i++) {
        int64_t image = i / groups;
        float *work = (float *)(void *)((char *)c->workspace + (size_t)omp_get_thread_num() * scratch);
        simd_of(c)->depthwise_dw(&m, i % groups * simd_of(c)->width, part + image * stride,
                                 part + image * stride + taps, (const float *)c->in[0].data + image * size,
                                 (const float *)c->in[1].data + image * size, work);
    }
    tree_sum_columns(c->out[0].data, part, (size_t)c->batch, stride, taps);
    tree_sum_columns(c->out[1].data, part + taps, (size_t)c->batch, stride, m.channels);
}
