/* unfold.c - windows of an image as rows, where they lie within it. SPDX-License-Identifier: MIT
 *
 * ConvNeXt's downsampling: windows of [H, W, C] side by side, without padding. Pixels of a window
 * are read together, channel by channel, so that the row is written in order; the reference asks of
 * every element whether it is inside. Everything else is left to it (ref_linear.c). */
#include "cpu/kernels.h"
#include "cpu/real.h"

enum { SIDE = 2 }; /* of a window */

static void window_copy(float *restrict to, const float *restrict from, int64_t across, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++, to += SIDE * SIDE) {
        to[0] = from[c];
        to[1] = from[c + channels];
        to[2] = from[c + across];
        to[3] = from[c + across + channels];
    }
}

void cpu_unfold(const op_call *c)
{
    const unfold_spec *s = &c->attr->unfold;
    if (c->attr->planar || s->tile || s->padding || s->kernel != SIDE || s->stride != SIDE) {
        ref_f32_unfold(c);
        return;
    }
    const tensor_info *image = c->in[0].info, *rows = c->out[0].info;
    int64_t width = image->size[1], channels = image->size[2], size = image->size[0] * width * channels;
    int64_t down = rows->size[0], across = rows->size[1];
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t r = 0; r < c->batch * down; r++)
        for (int64_t i = 0; i < across; i++)
            window_copy((float *)c->out[0].data + (r * across + i) * SIDE * SIDE * channels,
                        (const float *)c->in[0].data + r / down * size + (r % down * width + i) * SIDE * channels,
                        width * channels, channels);
}
