/* weights.cu - weights computed from weights, and their gradients. SPDX-License-Identifier: MIT
 *
 *     scale   W' = gamma W, b' = gamma b;  dW = gamma dW', dgamma = row sums of dW' W + db' b,
 *             db = gamma db'
 *     spread  W' (S N, C, p, p): W (N, C, k, k) at each of S places of a tile, cut off at its
 *             edges;  dW, db: sums over places
 *     join    W' = the rows of A, then those of B;  dA, dB: the rows of dW'
 *
 * scale: a block has one row of the weights, that is one output of the layer: gamma is one number
 * there, and the row's sum needs no second launch. Threads add in float along the row and the block
 * in double by a fixed tree. spread, join: a thread per element; there are some ten thousand.
 * Everything is as small as the weights. Meaning: graph/op_weights.c. */
#include "cuda/prim.cuh"

namespace
{

struct scaled {
    array to, bias;
    const float *w, *gamma, *b; /* b NULL: a layer without bias */
    int64_t each;               /* elements of a row */
};

template <int WIDE> __global__ void __launch_bounds__(THREADS) scale_rows(scaled s)
{
    int64_t row = blockIdx.x, begin = row * s.each;
    float gamma = s.gamma[row];
    array from = {(void *)s.w, 0};
    for (int64_t k = (int64_t)threadIdx.x * WIDE; k < s.each; k += THREADS * WIDE) {
        float v[WIDE];
        get<WIDE>(v, from, begin + k);
        for (int j = 0; j < WIDE; j++)
            v[j] *= gamma;
        put<WIDE>(s.to, begin + k, v);
    }
    if (threadIdx.x == 0 && s.b)
        store(s.bias, row, gamma * s.b[row]);
}

struct scaled_grad {
    const float *d, *w, *gamma, *dbias, *b; /* dbias and b NULL: a layer without bias */
    float *dw, *dgamma, *db;
    int64_t each;
};

template <int WIDE> __global__ void __launch_bounds__(THREADS) scale_rows_grad(scaled_grad s)
{
    int64_t row = blockIdx.x, begin = row * s.each;
    float gamma = s.gamma[row], sum = 0;
    array d = {(void *)s.d, 0}, w = {(void *)s.w, 0}, dw = {s.dw, 0};
#pragma unroll 2
    for (int64_t k = (int64_t)threadIdx.x * WIDE; k < s.each; k += THREADS * WIDE) {
        float a[WIDE], b[WIDE];
        get<WIDE>(a, d, begin + k);
        get<WIDE>(b, w, begin + k);
        for (int j = 0; j < WIDE; j++) {
            sum = fmaf(a[j], b[j], sum);
            a[j] *= gamma;
        }
        put<WIDE>(dw, begin + k, a);
    }
    double all = block_sum(sum);
    if (threadIdx.x != 0)
        return;
    s.dgamma[row] = (float)(all + (s.b ? (double)s.dbias[row] * s.b[row] : 0));
    if (s.b)
        s.db[row] = gamma * s.dbias[row];
}

struct spread {
    int outputs, channels, kernel, tile, side, stride, padding;
};

/* Element i of W' is the element of W that lies on its pixel, or zero. */
__global__ void __launch_bounds__(THREADS)
    spread_out(spread s, const float *w, const float *b, array to, array bias, int count)
{
    int i = (int)thread_index(), places = s.side * s.side;
    if (i < count) {
        int x = i % s.tile, y = i / s.tile % s.tile, c = i / (s.tile * s.tile) % s.channels;
        int row = i / (s.tile * s.tile * s.channels), n = row % s.outputs, place = row / s.outputs;
        int ky = y - place / s.side * s.stride + s.padding, kx = x - place % s.side * s.stride + s.padding;
        bool inside = ky >= 0 && ky < s.kernel && kx >= 0 && kx < s.kernel;
        store(to, i, inside ? w[((n * s.channels + c) * s.kernel + ky) * s.kernel + kx] : 0.0f);
    }
    if (b && i < places * s.outputs)
        store(bias, i, b[i % s.outputs]);
}

/* Element i of dW is the sum over the places at which it lies on a pixel, in their order. */
__global__ void __launch_bounds__(THREADS)
    spread_sum(spread s, const float *d, const float *dbias, float *dw, float *db, int count)
{
    int i = (int)thread_index(), places = s.side * s.side;
    if (i < count) {
        int kx = i % s.kernel, ky = i / s.kernel % s.kernel, c = i / (s.kernel * s.kernel) % s.channels;
        int n = i / (s.kernel * s.kernel * s.channels);
        double sum = 0;
        for (int place = 0; place < places; place++) {
            int y = place / s.side * s.stride - s.padding + ky, x = place % s.side * s.stride - s.padding + kx;
            if (y >= 0 && y < s.tile && x >= 0 && x < s.tile)
                sum += d[(((place * s.outputs + n) * s.channels + c) * s.tile + y) * s.tile + x];
        }
        dw[i] = (float)sum;
    }
    if (db && i < s.outputs) {
        double sum = 0;
        for (int place = 0; place < places; place++)
            sum += dbias[place * s.outputs + i];
        db[i] = (float)sum;
    }
}

__global__ void __launch_bounds__(THREADS)
    join_two(const float *a, const float *b, array to, int64_t first, int64_t count)
{
    for (int64_t i = thread_index(); i < count; i += thread_count())
        store(to, i, i < first ? a[i] : b[i - first]);
}

__global__ void __launch_bounds__(THREADS) part_two(const float *d, float *a, float *b, int64_t first, int64_t count)
{
    for (int64_t i = thread_index(); i < count; i += thread_count())
        *(i < first ? a + i : b + (i - first)) = d[i];
}

spread spread_of(const tensor_info *w, const op_attr *a)
{
    const unfold_spec *u = &a->unfold;
    return spread{
        (int)w->size[0], (int)w->size[1], u->kernel, u->tile, (u->tile + 2 * u->padding - u->kernel) / u->stride + 1,
        u->stride,       u->padding};
}

} // namespace

extern "C" {

void cuda_scale_weight(const op_call *c)
{
    int64_t rows = operand_count(&c->in[1]);
    scaled s = {array_of(&c->out[0]),         array_of(&c->out[1]),         (const float *)c->in[0].data,
                (const float *)c->in[1].data, (const float *)c->in[2].data, operand_count(&c->in[0]) / rows};
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, s.each % 4 ? scale_rows<1> : scale_rows<4>, rows, THREADS, 0,
                  s);
    cuda_launched(c);
}

void cuda_scale_weight_grad(const op_call *c)
{
    int64_t rows = operand_count(&c->in[2]);
    scaled_grad s = {(const float *)c->in[0].data, (const float *)c->in[1].data, (const float *)c->in[2].data,
                     (const float *)c->in[3].data, (const float *)c->in[4].data, (float *)c->out[0].data,
                     (float *)c->out[1].data,      (float *)c->out[2].data,      operand_count(&c->in[1]) / rows};
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, s.each % 4 ? scale_rows_grad<1> : scale_rows_grad<4>, rows,
                  THREADS, 0, s);
    cuda_launched(c);
}

void cuda_spread_weight(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]); /* no fewer than the biases */
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, spread_out, blocks_for(count), THREADS, 0,
                  spread_of(c->in[0].info, c->attr), (const float *)c->in[0].data, (const float *)c->in[1].data,
                  array_of(&c->out[0]), array_of(&c->out[1]), (int)count);
    cuda_launched(c);
}

void cuda_spread_weight_grad(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, spread_sum, blocks_for(count), THREADS, 0,
                  spread_of(c->out[0].info, c->attr), (const float *)c->in[0].data, (const float *)c->in[1].data,
                  (float *)c->out[0].data, (float *)c->out[1].data, (int)count);
    cuda_launched(c);
}

void cuda_join_weight(const op_call *c)
{
    int64_t count = operand_count(&c->out[0]);
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, join_two, blocks_for(count), THREADS, 0,
                  (const float *)c->in[0].data, (const float *)c->in[1].data, array_of(&c->out[0]),
                  operand_count(&c->in[0]), count);
    cuda_launched(c);
}

void cuda_join_weight_grad(const op_call *c)
{
    int64_t count = operand_count(&c->in[0]);
    kernel_launch((cudaStream_t)cuda_device_of(c)->stream, part_two, blocks_for(count), THREADS, 0,
                  (const float *)c->in[0].data, (float *)c->out[0].data, (float *)c->out[1].data,
                  operand_count(&c->out[0]), count);
    cuda_launched(c);
}
}
