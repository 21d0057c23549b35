/* unfold.cu - windows of an image as rows for a product, and back. SPDX-License-Identifier: MIT
 *
 * A thread per element: of the rows for unfold, of the image for fold (windows lie side by side there, so every pixel has
 * one source, and pixels that no window holds get zero). Meaning: graph/op_unfold.c and cpu/ref_linear.c. */
#include "cuda/storage.cuh"

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

} // namespace

extern "C" {

void cuda_unfold(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    unfold<<<blocks_for(count), THREADS, 0, cuda_device_of(c)->stream>>>(
        window_make(c->in[0].info, c->out[0].info, c->attr), array_of(&c->in[0]), array_of(&c->out[0]), count);
    cuda_launched(c);
}

void cuda_fold(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    fold<<<blocks_for(count), THREADS, 0, cuda_device_of(c)->stream>>>(
        window_make(c->out[0].info, c->in[0].info, c->attr), array_of(&c->in[0]), array_of(&c->out[0]), count);
    cuda_launched(c);
}
}
