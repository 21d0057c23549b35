/* images.cu - the batch of a step from draws over a data set in device memory. SPDX-License-Identifier: MIT
 *
 * A thread per pixel writes its three channels, so that a warp writes whole lines of each plane; the bytes of a row of the
 * image lie side by side, too. Then a thread per target. The formulas are those of the CPU (engine/image_draw.h), every
 * operation rounded as there: --fmad=false, division and root as IEEE has them. */
#include "cuda/prim.cuh"
#include "engine/image_draw.h"

namespace
{

struct batch {
    image_pixels pixels;
    const image_draw *draws;
    float *images, *targets;
    int32_t *labels; /* both may be missing */
    int64_t rows, classes;
};

__global__ void __launch_bounds__(THREADS) images(batch b)
{
    int side = b.pixels.side, plane = side * side;
    for (int64_t i = thread_index(); i < b.rows * plane; i += thread_count()) {
        int64_t row = quotient(i, plane);
        int at = (int)(i - row * plane), y = at / side, x = at - y * side;
        float *to = b.images + row * 3 * plane + at;
        for (int channel = 0; channel < 3; channel++)
            to[channel * plane] = image_value(&b.pixels, b.draws, row, channel, y, x);
    }
}

__global__ void __launch_bounds__(THREADS) targets(batch b)
{
    for (int64_t i = thread_index(); i < b.rows * b.classes; i += thread_count()) {
        int64_t row = quotient(i, b.classes), k = i - row * b.classes;
        if (b.labels && k == 0)
            b.labels[row] = b.draws[row].label;
        if (b.targets)
            b.targets[i] = image_target(b.draws, row, k);
    }
}

} // namespace

void cuda_images(const op_call *c)
{
    batch b = {};
    b.pixels.bytes = (const uint8_t *)c->in[0].data;
    b.pixels.levels = (const float *)c->in[2].data;
    b.pixels.side = (int)c->out[0].info->size[1];
    b.draws = (const image_draw *)c->in[1].data;
    b.images = (float *)c->out[0].data;
    b.labels = (int32_t *)c->out[1].data;
    b.targets = (float *)c->out[2].data;
    b.rows = c->batch;
    b.classes = b.targets ? c->out[2].channels : 1;
    cuda_stream s = cuda_device_of(c)->stream;
    kernel_launch(s, images, blocks_for(b.rows * b.pixels.side * b.pixels.side), THREADS, 0, b);
    if (b.labels || b.targets)
        kernel_launch(s, targets, blocks_for(b.rows * b.classes), THREADS, 0, b);
    cuda_launched(c);
}
