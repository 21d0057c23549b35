/* unfold.cu - windows of an image as rows for a product, and back. SPDX-License-Identifier: MIT
 *
 * The plain kernels have a thread per element: of the rows for unfold, of the image for fold
 * (windows lie side by side there, so every pixel has one source, and pixels that no window holds
 * get zero). They are bound by the arithmetic of indices, so the two shapes that models use most
 * have kernels bound by memory:
 *
 * 2 x 2 windows of [H, W, C] (ConvNeXt's downsampling): a thread has four channels of a window's
 * four pixels; it reads four vectors of 8 bytes of bf16 and writes 32 bytes in a row, or the
 * reverse. windows side by side in [C, H, W] whose side is a multiple of four (patches): a thread
 * has four pixels of a line.
 *
 * Meaning: graph/op_unfold.c and cpu/ref_linear.c. */
#include "cuda/prim.cuh"

namespace
{

struct window {
    int channels, height, width; /* of the image */
    int kernel, stride, padding, tile, leak, planar;
    int down, across;       /* windows, without tiles */
    int tiles_across, side; /* with tiles: of the image; windows of a tile */
    int rows, row;          /* per image; elements of a row */
};

window window_make(const tensor_info *image, const tensor_info *rows, const op_attr *a)
{
    window w = {};
    w.planar = a->planar;
    w.channels = (int)image->size[a->planar ? 0 : 2];
    w.height = (int)image->size[a->planar ? 1 : 0];
    w.width = (int)image->size[a->planar ? 2 : 1];
    w.kernel = a->unfold.kernel, w.stride = a->unfold.stride, w.padding = a->unfold.padding;
    w.tile = a->unfold.tile, w.leak = a->unfold.leak;
    w.down = (int)rows->size[0], w.across = (int)rows->size[1];
    w.row = (int)rows->size[rows->rank - 1];
    w.rows = w.down * w.across;
    if (w.tile) {
        w.tiles_across = w.width / w.tile;
        while (w.side * w.side < w.across)
            w.side++;
    }
    return w;
}

__device__ __forceinline__ int64_t pixel_at(const window &w, int channel, int y, int x)
{
    return w.planar ? ((int64_t)channel * w.height + y) * w.width + x
                    : ((int64_t)y * w.width + x) * w.channels + channel;
}

__global__ void __launch_bounds__(THREADS) unfold(window w, array image, array rows, int64_t count)
{
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t all = quotient(i, w.row), image_index = quotient(all, w.rows);
        int at = (int)(i - all * w.row), r = (int)(all - image_index * w.rows);
        int kx = at % w.kernel, ky = at / w.kernel % w.kernel, channel = at / (w.kernel * w.kernel);
        int top, left, y0 = 0, y1 = w.height, x0 = 0, x1 = w.width;
        if (!w.tile) {
            top = r / w.across * w.stride - w.padding;
            left = r % w.across * w.stride - w.padding;
        } else {
            int windows = w.side * w.side, tile = r / windows, place = r % windows;
            int y = tile / w.tiles_across * w.tile, x = tile % w.tiles_across * w.tile;
            top = y + place / w.side * w.stride - w.padding;
            left = x + place % w.side * w.stride - w.padding;
            if (!w.leak)
                y0 = y, y1 = y + w.tile, x0 = x, x1 = x + w.tile;
        }
        int y = top + ky, x = left + kx;
        bool inside = y >= y0 && y < y1 && x >= x0 && x < x1;
        int64_t size = (int64_t)w.channels * w.height * w.width;
        store(rows, i, inside ? load(image, image_index * size + pixel_at(w, channel, y, x)) : 0.0f);
    }
}

__global__ void __launch_bounds__(THREADS) fold(window w, array rows, array image, int64_t count)
{
    int64_t size = (int64_t)w.channels * w.height * w.width;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t image_index = quotient(i, size);
        int at = (int)(i - image_index * size), channel, y, x;
        if (w.planar)
            x = at % w.width, y = at / w.width % w.height, channel = at / (w.width * w.height);
        else
            channel = at % w.channels, x = at / w.channels % w.width, y = at / (w.channels * w.width);
        int k = w.kernel, down = y / k, right = x / k;
        bool inside = down < w.down && right < w.across;
        int64_t from = image_index * w.rows + down * w.across + right;
        store(image, i, inside ? load(rows, from * w.row + (channel * k + y % k) * k + x % k) : 0.0f);
    }
}

/* ---- 2 x 2 windows of [H, W, C], both sides even --------------------------------------------- */

constexpr int QUAD = 4; /* channels of a thread */

/* The first of a thread's channels in the map and in the rows. As sides are even, lines of windows
 * are pairs of lines of all maps together. */
struct pair_place {
    int64_t map, row;
};

DEVICE pair_place pair_at(const window &w, int i)
{
    int groups = w.channels / QUAD, at = i / groups, group = i - at * groups, line = at / w.across,
        x = at - line * w.across;
    return pair_place{((int64_t)line * 2 * w.width + 2 * x) * w.channels + group * QUAD,
                      ((int64_t)at * w.channels + group * QUAD) * 4};
}

template <typename T>
__global__ void __launch_bounds__(THREADS) unfold_pairs(window w, const T *map, T *rows, int count)
{
    int i = (int)thread_index();
    if (i >= count)
        return;
    pair_place p = pair_at(w, i);
    float v[4][QUAD], out[4 * QUAD];
#pragma unroll
    for (int k = 0; k < 4; k++)
        elements_load<T, QUAD>(v[k], map + p.map + ((int64_t)(k / 2) * w.width + k % 2) * w.channels);
#pragma unroll
    for (int k = 0; k < 4 * QUAD; k++)
        out[k] = v[k % 4][k / 4];
    elements_store<T, 8>(rows + p.row, out);
    elements_store<T, 8>(rows + p.row + 8, out + 8);
}

template <typename T> __global__ void __launch_bounds__(THREADS) fold_pairs(window w, const T *rows, T *map, int count)
{
    int i = (int)thread_index();
    if (i >= count)
        return;
    pair_place p = pair_at(w, i);
    float v[4 * QUAD];
    elements_load<T, 8>(v, rows + p.row);
    elements_load<T, 8>(v + 8, rows + p.row + 8);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float out[QUAD] = {v[k], v[4 + k], v[8 + k], v[12 + k]};
        elements_store<T, QUAD>(map + p.map + ((int64_t)(k / 2) * w.width + k % 2) * w.channels, out);
    }
}

/* Threads for such a map; 0: another kernel has to do. */
int pairs_count(const window &w, const array &map, const array &rows, int64_t elements)
{
    bool fits =
        !w.planar && !w.tile && w.kernel == 2 && w.height % 2 == 0 && w.width % 2 == 0 && w.channels % QUAD == 0;
    fits = fits && map.bf16 == rows.bf16 && array_aligned(map) && array_aligned(rows);
    return fits && elements / 16 < INT32_MAX ? (int)(elements / 16) : 0;
}

/* ---- windows side by side in [C, H, W] ------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) unfold_lines(window w, array image, array rows, int count)
{
    int i = (int)thread_index();
    if (i >= count)
        return;
    int fours = w.row / 4, at = i / fours, four = i - at * fours, across = w.kernel / 4; /* fours of a line */
    int image_index = at / w.rows, r = at - image_index * w.rows, top = r / w.across, left = r - top * w.across;
    int line = four / across, channel = line / w.kernel;
    int y = top * w.kernel + line - channel * w.kernel, x = left * w.kernel + (four - line * across) * 4;
    int64_t from = (((int64_t)image_index * w.channels + channel) * w.height + y) * w.width + x;
    store4(rows, (int64_t)i * 4, load4(image, from));
}

int lines_count(const window &w, const array &image, const array &rows, int64_t elements)
{
    bool fits = w.planar && !w.tile && !w.padding && w.kernel == w.stride && w.kernel % 4 == 0 && w.width % 4 == 0;
    fits = fits && array_aligned(image) && array_aligned(rows);
    return fits && elements / 4 < INT32_MAX ? (int)(elements / 4) : 0;
}

} // namespace

extern "C" {

void cuda_unfold(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    cudaStream_t stream = (cudaStream_t)cuda_device_of(c)->stream;
    window w = window_make(c->in[0].info, c->out[0].info, c->attr);
    array image = array_of(&c->in[0]), rows = array_of(&c->out[0]);
    int pairs = pairs_count(w, image, rows, count), lines = lines_count(w, image, rows, count);
    if (pairs && rows.bf16)
        kernel_launch(stream, unfold_pairs<__nv_bfloat16>, blocks_for(pairs), THREADS, 0, w,
                      (const __nv_bfloat16 *)image.data, (__nv_bfloat16 *)rows.data, pairs);
    else if (pairs)
        kernel_launch(stream, unfold_pairs<float>, blocks_for(pairs), THREADS, 0, w, (const float *)image.data,
                      (float *)rows.data, pairs);
    else if (lines)
        kernel_launch(stream, unfold_lines, blocks_for(lines), THREADS, 0, w, image, rows, lines);
    else
        kernel_launch(stream, unfold, blocks_for(count), THREADS, 0, w, image, rows, count);
    cuda_launched(c);
}

void cuda_fold(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    cudaStream_t stream = (cudaStream_t)cuda_device_of(c)->stream;
    window w = window_make(c->out[0].info, c->in[0].info, c->attr);
    array rows = array_of(&c->in[0]), image = array_of(&c->out[0]);
    int pairs = pairs_count(w, image, rows, count);
    if (pairs && rows.bf16)
        kernel_launch(stream, fold_pairs<__nv_bfloat16>, blocks_for(pairs), THREADS, 0, w,
                      (const __nv_bfloat16 *)rows.data, (__nv_bfloat16 *)image.data, pairs);
    else if (pairs)
        kernel_launch(stream, fold_pairs<float>, blocks_for(pairs), THREADS, 0, w, (const float *)rows.data,
                      (float *)image.data, pairs);
    else
        kernel_launch(stream, fold, blocks_for(count), THREADS, 0, w, rows, image, count);
    cuda_launched(c);
}
}
