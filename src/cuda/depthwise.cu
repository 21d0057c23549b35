/* depthwise.cu - depthwise convolution on [H, W, C] and its gradients. SPDX-License-Identifier: MIT
 *
 * Lanes of a warp are neighbouring channels, so every access is contiguous. Forward and dx are one kernel (dx reads the
 * window mirrored): a thread computes RUN outputs of one row and loads each input of that row once per line of the window.
 * dW: a thread owns one line of one channel's window, slides over the rows of its chunk and keeps K sums; chunks are added
 * by columns.cu. Windows of 3, 5 and 7 are compiled out; others take the plain loop. */
#include "cuda/storage.cuh"

namespace
{

constexpr int LANES = 32, ITEMS = THREADS / LANES, RUN = 8, DW_BLOCKS = 1056;

struct image {
    int height, width, channels, kernel, half;
    int64_t images;
};

image image_make(const op_call *c, const tensor_info *map, const tensor_info *weight)
{
    return image{(int)map->size[0],    (int)map->size[1],        (int)map->size[2],
                 (int)weight->size[2], (int)weight->size[2] / 2, (int64_t)c->batch};
}

struct operands {
    array x, weight, bias, residual, y;
    int mirror;
};

/* Outputs x0 .. x0 + RUN - 1 of row y for one channel. */
template <int K>
__device__ void window_sums(float sum[RUN], const image &m, const array &x, int64_t base, int y, int x0,
                            const float weight[][LANES], int lane)
{
#pragma unroll
    for (int ky = 0; ky < K; ky++) {
        int from = y + ky - K / 2;
        if (from < 0 || from >= m.height)
            continue;
        float in[RUN + K - 1];
#pragma unroll
        for (int j = 0; j < RUN + K - 1; j++) {
            int at = x0 + j - K / 2;
            in[j] = at >= 0 && at < m.width ? load(x, base + ((int64_t)from * m.width + at) * m.channels) : 0.0f;
        }
#pragma unroll
        for (int kx = 0; kx < K; kx++) {
            float w = weight[ky * K + kx][lane];
#pragma unroll
            for (int j = 0; j < RUN; j++)
                sum[j] = __fmaf_rn(in[j + kx], w, sum[j]);
        }
    }
}

template <int K> __global__ void __launch_bounds__(THREADS) convolve(image m, operands o)
{
    __shared__ float weight[K * K][LANES];
    int lane = threadIdx.x % LANES, channel = blockIdx.y * LANES + lane, strips = (m.width + RUN - 1) / RUN;
    for (int i = threadIdx.x / LANES; i < K * K; i += ITEMS)
        weight[i][lane] =
            channel < m.channels ? load(o.weight, (int64_t)channel * K * K + (o.mirror ? K * K - 1 - i : i)) : 0.0f;
    __syncthreads();
    int64_t item = (int64_t)blockIdx.x * ITEMS + threadIdx.x / LANES, row = item / strips;
    int x0 = (int)(item % strips) * RUN, y = (int)(row % m.height);
    if (row >= m.images * m.height || channel >= m.channels)
        return;
    int64_t base = row / m.height * m.height * m.width * m.channels + channel;
    float sum[RUN] = {}, bias = o.bias.data ? load(o.bias, channel) : 0.0f;
    window_sums<K>(sum, m, o.x, base, y, x0, weight, lane);
#pragma unroll
    for (int j = 0; j < RUN; j++)
        if (x0 + j < m.width) {
            int64_t at = base + ((int64_t)y * m.width + x0 + j) * m.channels;
            store(o.y, at, sum[j] + bias + (o.residual.data ? load(o.residual, at) : 0.0f));
        }
}

__global__ void __launch_bounds__(THREADS) convolve_any(image m, operands o, int64_t count)
{
    int k = m.kernel;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t pixel = quotient(i, m.channels), row = quotient(pixel, m.width), number = quotient(row, m.height);
        int channel = (int)(i - pixel * m.channels), x = (int)(pixel - row * m.width),
            y = (int)(row - number * m.height);
        float sum = 0;
        for (int t = 0; t < k * k; t++) {
            int sy = y + t / k - m.half, sx = x + t % k - m.half;
            if (sy >= 0 && sy < m.height && sx >= 0 && sx < m.width)
                sum = __fmaf_rn(load(o.x, ((number * m.height + sy) * m.width + sx) * m.channels + channel),
                                load(o.weight, (int64_t)channel * k * k + (o.mirror ? k * k - 1 - t : t)), sum);
        }
        sum += o.bias.data ? load(o.bias, channel) : 0.0f;
        store(o.y, i, sum + (o.residual.data ? load(o.residual, i) : 0.0f));
    }
}

template <int K> void convolve_launch(const op_call *c, const image &m, const operands &o)
{
    int64_t items = m.images * m.height * ((m.width + RUN - 1) / RUN);
    dim3 grid((unsigned)((items + ITEMS - 1) / ITEMS), (unsigned)((m.channels + LANES - 1) / LANES));
    convolve<K><<<grid, THREADS, 0, cuda_device_of(c)->stream>>>(m, o);
}

void convolve_run(const op_call *c, const op_operand *bias, const op_operand *residual, int mirror)
{
    image m = image_make(c, c->in[0].info, c->in[1].info);
    operands o = {array_of(&c->in[0]),
                  array_of(&c->in[1]),
                  bias ? array_of(bias) : array{},
                  residual ? array_of(residual) : array{},
                  array_of(&c->out[0]),
                  mirror};
    int64_t count = operand_count(&c->out[0]);
    if (m.kernel == 3)
        convolve_launch<3>(c, m, o);
    else if (m.kernel == 5)
        convolve_launch<5>(c, m, o);
    else if (m.kernel == 7)
        convolve_launch<7>(c, m, o);
    else
        convolve_any<<<blocks_for(count), THREADS, 0, cuda_device_of(c)->stream>>>(m, o, count);
    cuda_launched(c);
}

/* ---- the weights' gradient ---- */

/* Rows of all images are cut into chunks so that channels and chunks together make about DW_BLOCKS blocks. */
struct chunks {
    int64_t rows, count; /* of a chunk; how many */
};

chunks chunks_of(const image &m)
{
    int64_t rows = m.images * m.height, groups = (m.channels + LANES - 1) / LANES;
    int64_t wanted = DW_BLOCKS / groups > 0 ? DW_BLOCKS / groups : 1, each = (rows + wanted - 1) / wanted;
    return chunks{each, (rows + each - 1) / each};
}

/* Line `ky` of channel's window over the rows of a chunk: sum[kx] += dy(y, x) x(y + ky - half, x + kx - half). */
template <int K>
__device__ void line_sums(float sum[K], const image &m, const array &dy, const array &x, int64_t row, int64_t end,
                          int ky, int channel)
{
    for (; row < end; row++) {
        int from = (int)(row % m.height) + ky - K / 2;
        if (from < 0 || from >= m.height)
            continue;
        int64_t out = row * m.width * m.channels + channel, in = out + (int64_t)(ky - K / 2) * m.width * m.channels;
        float window[K];
#pragma unroll
        for (int j = 0; j < K - 1; j++) {
            int at = j - K / 2;
            window[j] = at >= 0 && at < m.width ? load(x, in + (int64_t)at * m.channels) : 0.0f;
        }
#pragma unroll 4
        for (int at = 0; at < m.width; at++) {
            window[K - 1] = at + K / 2 < m.width ? load(x, in + (int64_t)(at + K / 2) * m.channels) : 0.0f;
            float d = load(dy, out + (int64_t)at * m.channels);
#pragma unroll
            for (int j = 0; j < K; j++)
                sum[j] = __fmaf_rn(d, window[j], sum[j]);
#pragma unroll
            for (int j = 0; j < K - 1; j++)
                window[j] = window[j + 1];
        }
    }
}

/* LANES x K threads. */
template <int K> __global__ void weight_sums(image m, array dy, array x, float *part, int64_t rows_each)
{
    int channel = blockIdx.y * LANES + threadIdx.x, ky = threadIdx.y;
    int64_t row = blockIdx.x * rows_each, all = m.images * m.height,
            end = row + rows_each < all ? row + rows_each : all;
    if (channel >= m.channels)
        return;
    float sum[K] = {};
    line_sums<K>(sum, m, dy, x, row, end, ky, channel);
    float *to = part + (blockIdx.x * (int64_t)m.channels + channel) * K * K + ky * K;
    for (int j = 0; j < K; j++)
        to[j] = sum[j];
}

/* One thread per element of the window, any size: the whole chunk. */
__global__ void __launch_bounds__(THREADS)
    weight_sums_any(image m, array dy, array x, float *part, int64_t rows_each, int64_t columns)
{
    int64_t column = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    int64_t row = blockIdx.x * rows_each, all = m.images * m.height,
            end = row + rows_each < all ? row + rows_each : all;
    if (column >= columns)
        return;
    int k = m.kernel, channel = (int)(column / (k * k)), down = (int)(column / k % k) - m.half,
        right = (int)(column % k) - m.half;
    float sum = 0;
    for (; row < end; row++) {
        int from = (int)(row % m.height) + down;
        for (int at = 0; at < m.width && from >= 0 && from < m.height; at++)
            if (at + right >= 0 && at + right < m.width)
                sum = __fmaf_rn(load(dy, (row * m.width + at) * m.channels + channel),
                                load(x, ((row + down) * m.width + at + right) * m.channels + channel), sum);
    }
    part[blockIdx.x * columns + column] = sum;
}

template <int K> void weight_launch(const op_call *c, const image &m, const chunks &k, float *part)
{
    dim3 grid((unsigned)k.count, (unsigned)((m.channels + LANES - 1) / LANES)), block(LANES, K);
    weight_sums<K>
        <<<grid, block, 0, cuda_device_of(c)->stream>>>(m, array_of(&c->in[0]), array_of(&c->in[1]), part, k.rows);
}

} // namespace

extern "C" {

void cuda_depthwise(const op_call *c)
{
    convolve_run(c, &c->in[2], nullptr, 0);
}

void cuda_depthwise_dx(const op_call *c)
{
    convolve_run(c, nullptr, &c->in[2], 1);
}

void cuda_depthwise_dw(const op_call *c)
{
    image m = image_make(c, c->in[0].info, c->out[0].info);
    chunks k = chunks_of(m);
    float *part = (float *)c->workspace;
    int64_t columns = (int64_t)m.channels * m.kernel * m.kernel;
    if (m.kernel == 3)
        weight_launch<3>(c, m, k, part);
    else if (m.kernel == 5)
        weight_launch<5>(c, m, k, part);
    else if (m.kernel == 7)
        weight_launch<7>(c, m, k, part);
    else
        weight_sums_any<<<dim3((unsigned)k.count, (unsigned)((columns + THREADS - 1) / THREADS)), THREADS, 0,
                          cuda_device_of(c)->stream>>>(m, array_of(&c->in[0]), array_of(&c->in[1]), part, k.rows,
                                                       columns);
    cuda_launched(c);
    cuda_columns_join(c, (float *)c->out[0].data, part, k.count, columns, 0);
    if (!c->out[1].data)
        return;
    column_sums s = {};
    s.a = &c->in[0];
    s.rows = c->in[0].rows;
    s.columns = s.stride = c->in[0].channels;
    s.to = (float *)c->out[1].data;
    cuda_columns(c, &s, c->workspace); /* the partial sums of the weights are done with */
}

size_t cuda_depthwise_dw_workspace(const op_call *c)
{
    image m = image_make(c, c->in[0].info, c->out[0].info);
    size_t weights = (size_t)chunks_of(m).count * (size_t)m.channels * (size_t)(m.kernel * m.kernel) * sizeof(float);
    size_t bias = cuda_columns_workspace(c->in[0].rows, c->in[0].channels);
    return weights > bias ? weights : bias;
}
}
