/* images.cu - the batch of a step from draws over a data set in device memory.
 * SPDX-License-Identifier: MIT
 *
 * A block has one row of the batch, whose draw and partner's draw it copies to shared memory with
 * the table of levels. A thread writes FOUR pixels of a line, three vectors of 16 bytes; most of
 * them are stored pixels as they are, without noise or a partner, and take a short path. A side
 * that four does not divide ends in single pixels. Then a thread per target. The formulas are those
 * of the CPU (engine/image_draw.h), every operation rounded as there: --fmad=false, division and
 * root as IEEE has them. */
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

constexpr int FOUR = 4, PART = 4 * THREADS; /* PART: of a row's fours to a block */

/* One row and its partner, as a batch of two. */
struct row_tables {
    image_draw draws[2];
    float levels[IMAGE_LEVELS];
};

DEVICE void tables_load(row_tables *to, const batch &b, int64_t row)
{
    int partner = b.draws[row].partner;
    for (int i = threadIdx.x; i < IMAGE_LEVELS; i += THREADS)
        to->levels[i] = b.pixels.levels[i];
    if (threadIdx.x < 2)
        to->draws[threadIdx.x] = b.draws[threadIdx.x ? partner : row];
    __syncthreads();
    if (threadIdx.x == 0)
        to->draws[0].partner = 1;
    __syncthreads();
}

/* Pixels x to x + 3 of line y are those of the stored image. */
DEVICE bool stored_four(const image_draw &d, int y, int x)
{
    bool erased = y >= d.erased.top && y < d.erased.bottom && x + FOUR > d.erased.left && x < d.erased.right;
    return d.index >= 0 && d.mix == IMAGE_ALONE && !erased;
}

/* Grid: parts blocks for every row of the batch. */
__global__ void __launch_bounds__(THREADS) images(batch b, int parts)
{
    __shared__ row_tables tables;
    int64_t row = blockIdx.x / parts;
    int side = b.pixels.side, plane = side * side, across = (side + FOUR - 1) / FOUR;
    tables_load(&tables, b, row);
    image_pixels pixels = {b.pixels.bytes, tables.levels, side};
    const image_draw &own = tables.draws[0];
    for (int i = (int)(blockIdx.x % parts) * THREADS + threadIdx.x; i < across * side; i += parts * THREADS) {
        int y = i / across, x = (i - y * across) * FOUR;
        float *to = b.images + (row * 3 * side + y) * side + x;
        bool stored = side % FOUR == 0 && stored_four(own, y, x);
#pragma unroll 1
        for (int channel = 0; channel < 3 && stored; channel++)
            *(float4 *)(to + channel * plane) = make_float4(
                image_stored(&pixels, &own, channel, y, x), image_stored(&pixels, &own, channel, y, x + 1),
                image_stored(&pixels, &own, channel, y, x + 2), image_stored(&pixels, &own, channel, y, x + 3));
#pragma unroll 1
        for (int k = 0; k < 3 * FOUR && !stored; k++)
            if (x + k % FOUR < side)
                to[k / FOUR * plane + k % FOUR] = image_value(&pixels, tables.draws, 0, k / FOUR, y, x + k % FOUR);
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
    int side = b.pixels.side, fours = (side + FOUR - 1) / FOUR * side, parts = (fours + PART - 1) / PART;
    kernel_launch(s, images, b.rows * parts, THREADS, 0, b, parts);
    if (b.labels || b.targets)
        kernel_launch(s, targets, blocks_for(b.rows * b.classes), THREADS, 0, b);
    cuda_launched(c);
}
