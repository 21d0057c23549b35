/* depthwise_tile.cuh - the kernels of depthwise convolution for windows of 3, 5 and 7.
 * SPDX-License-Identifier: MIT
 *
 * A 7 x 7 window takes 49 multiply-adds per element, so the arithmetic units are the limit, and a
 * kernel is good where nearly every instruction is one of them. Lanes of a warp are neighbouring
 * channels. A block stages a region of some maps in shared memory, zeros around it included, so
 * that nothing below checks for borders. A warp then takes tiles of TILE_DOWN x TX outputs: each
 * staged element is loaded once per tile and used for all outputs of the tile it reaches (11
 * multiply-adds a load at 7 x 7). A thread holds all weights of its channel, or all sums of its
 * channel's weight gradient, in registers. */
#ifndef CUDA_DEPTHWISE_TILE_CUH
#define CUDA_DEPTHWISE_TILE_CUH

#include "cuda/prim.cuh"

namespace
{

constexpr int LANES = 32, WARPS = 8, BLOCK = WARPS * LANES, TILE_DOWN = 4, REGION_MOST = 32;
constexpr size_t SHARED_MOST = 99 * 1024; /* what every GPU from 8.0 on gives a block; two blocks fit on 9.0 */

struct maps {
    int height, width, channels, kernel;
    int64_t images;
};

/* How maps are cut: regions of across x down outputs, `together` maps at a time. */
struct regions {
    int across, down, count_x, count_y, together, groups; /* groups of LANES channels */
    int64_t steps;                                        /* (maps / together) x count_y x count_x */
};

struct operands {
    array x, weight, bias, residual, y;
    int mirror;   /* dx: the window mirrored */
    bool vectors; /* of 16 bytes in x */
};

static size_t staged_bytes(int across, int down, int together, int kernel, size_t element)
{
    return (size_t)together * (down + kernel - 1) * (across + kernel - 1) * LANES * element;
}

/* tile: TX. extra: bytes of shared memory beside the staged region. Depends on the shape alone, and
 * so do the bits. */
static regions regions_make(const maps &m, int tile, size_t element, size_t extra)
{
    auto up = [](int n, int to) { return (n + to - 1) / to * to; };
    auto less = [](int a, int b) { return a < b ? a : b; };
    regions r = {less(up(m.width, tile), REGION_MOST), less(up(m.height, TILE_DOWN), REGION_MOST), 0, 0, 1, 0, 0};
    auto fits = [&](int together) {
        return staged_bytes(r.across, r.down, together, m.kernel, element) + extra <= SHARED_MOST;
    };
    while (!fits(1) && r.down > TILE_DOWN)
        r.down -= TILE_DOWN;
    int tiles = r.across / tile * (r.down / TILE_DOWN);
    while (tiles * r.together < 2 * WARPS && r.together < m.images && fits(2 * r.together))
        r.together *= 2;
    r.count_x = (m.width + r.across - 1) / r.across;
    r.count_y = (m.height + r.down - 1) / r.down;
    r.groups = (m.channels + LANES - 1) / LANES;
    r.steps = (m.images + r.together - 1) / r.together * r.count_x * r.count_y;
    return r;
}

struct position {
    int64_t image; /* the first of `together` */
    int y, x;      /* the region's first output */
};

DEVICE position step_position(const regions &r, int64_t step)
{
    int64_t rows = quotient(step, r.count_x), image = quotient(rows, r.count_y);
    return position{image * r.together, (int)(rows - image * r.count_y) * r.down,
                    (int)(step - rows * r.count_x) * r.across};
}

/* Stages a region with its borders: a warp takes a line, lanes take vectors of 16 bytes where x has
 * them. */
template <typename T, int K>
DEVICE void region_stage(T *to, const maps &m, const regions &r, const array &x, position p, int channel, bool vectors)
{
    constexpr int VECTOR = 16 / sizeof(T), PER = LANES / VECTOR;
    int pitch = r.across + K - 1, lines = r.down + K - 1, lane = threadIdx.x % LANES;
    for (int i = threadIdx.x / LANES; i < lines * r.together; i += WARPS) {
        int image = i / lines, y = p.y + i - image * lines - K / 2;
        bool line_there = p.image + image < m.images && y >= 0 && y < m.height;
        const T *line = (const T *)x.data + ((p.image + image) * m.height + y) * m.width * m.channels;
        T *row = to + (int64_t)i * pitch * LANES;
        if (vectors) {
            for (int j = lane; j < pitch * PER; j += LANES) {
                int at = p.x + j / PER - K / 2, from = channel + j % PER * VECTOR;
                bool there = line_there && at >= 0 && at < m.width && from < m.channels;
                copy_async<16>(row + j * VECTOR, there ? line + (int64_t)at * m.channels + from : x.data, there);
            }
        } else {
            for (int j = 0; j < pitch; j++) {
                int at = p.x + j - K / 2, from = channel + lane;
                bool there = line_there && at >= 0 && at < m.width && from < m.channels;
                row[j * LANES + lane] = there ? line[(int64_t)at * m.channels + from] : T(0.0f);
            }
        }
    }
    copy_commit();
}

DEVICE float element(float v)
{
    return v;
}

DEVICE float element(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}

/* One tile of a region. */
struct tile_place {
    int image, y, x;
};

template <int TX> DEVICE tile_place tile_at(const regions &r, int tile)
{
    int across = r.across / TX, down = r.down / TILE_DOWN, row = tile / across, image = row / down;
    return tile_place{image, (row - image * down) * TILE_DOWN, (tile - row * across) * TX};
}

/* ---- tiles in global memory; `at` is the first element of one -------------------------------- */

/* Elements of a tile as floats, zeros outside the map. */
template <typename T, int TX>
DEVICE void tile_load(float to[TILE_DOWN][TX], const maps &m, const void *map, int64_t at, int y, int x)
{
    const T *from = (const T *)map + at;
#pragma unroll
    for (int down = 0; down < TILE_DOWN; down++)
#pragma unroll
        for (int j = 0; j < TX; j++)
            to[down][j] =
                y + down < m.height && x + j < m.width ? element(from[(down * m.width + j) * m.channels]) : 0.0f;
}

template <typename T, int TX>
DEVICE void tile_store(const float from[TILE_DOWN][TX], const maps &m, void *map, int64_t at, int y, int x)
{
    T *to = (T *)map + at;
#pragma unroll
    for (int down = 0; down < TILE_DOWN; down++)
#pragma unroll
        for (int j = 0; j < TX; j++)
            if (y + down < m.height && x + j < m.width)
                to[(down * m.width + j) * m.channels] = T(from[down][j]);
}

/* The dtype is one branch around all accesses of a tile, so that they are in flight together. */
template <int TX>
DEVICE void tile_get(float to[TILE_DOWN][TX], const maps &m, const array &map, int64_t at, int y, int x)
{
    if (map.bf16)
        tile_load<__nv_bfloat16, TX>(to, m, map.data, at, y, x);
    else
        tile_load<float, TX>(to, m, map.data, at, y, x);
}

template <int TX>
DEVICE void tile_put(const float from[TILE_DOWN][TX], const maps &m, const array &map, int64_t at, int y, int x)
{
    if (map.bf16)
        tile_store<__nv_bfloat16, TX>(from, m, map.data, at, y, x);
    else
        tile_store<float, TX>(from, m, map.data, at, y, x);
}

/* Loads each staged row under a tile once and calls add(down, ky, row) for every line `down` of the
 * tile that it reaches, as row ky of that line's window. */
template <typename T, int K, int TX, class F> DEVICE void each_staged_row(const T *staged, int pitch, const F &add)
{
#pragma unroll
    for (int row = 0; row < TILE_DOWN + K - 1; row++) {
        float in[TX + K - 1];
#pragma unroll
        for (int j = 0; j < TX + K - 1; j++)
            in[j] = element(staged[(row * pitch + j) * LANES]);
#pragma unroll
        for (int down = 0; down < TILE_DOWN; down++)
            if (row >= down && row - down < K)
                add(down, row - down, in);
    }
}

/* ---- y = window * x + bias, dx = mirrored window * dy + residual ----------------------------- */

template <typename T, int K, int TX>
DEVICE void tile_sums(float sum[TILE_DOWN][TX], const T *staged, int pitch, const float weight[K * K])
{
    each_staged_row<T, K, TX>(staged, pitch, [&](int down, int ky, const float *in) {
#pragma unroll
        for (int kx = 0; kx < K; kx++)
#pragma unroll
            for (int j = 0; j < TX; j++)
                sum[down][j] = fmaf(in[j + kx], weight[ky * K + kx], sum[down][j]);
    });
}

template <typename T, int K, int TX> __global__ void __launch_bounds__(BLOCK, 2) convolve(maps m, regions r, operands o)
{
    SHARED_BYTES(shared);
    float *weights = (float *)shared; /* [LANES][K * K]: odd, so lanes meet different banks */
    T *staged = (T *)(shared + LANES * K * K * sizeof(float));
    int lane = threadIdx.x % LANES, group = (int)(blockIdx.x % r.groups), channel = group * LANES + lane;
    position p = step_position(r, blockIdx.x / r.groups);
    region_stage<T, K>(staged, m, r, o.x, p, group * LANES, o.vectors);
    for (int i = threadIdx.x; i < LANES * K * K; i += BLOCK)
        weights[i] =
            group * LANES + i / (K * K) < m.channels ? load(o.weight, (int64_t)group * LANES * K * K + i) : 0.0f;
    copy_wait<0>();
    __syncthreads();
    float weight[K * K], bias = o.bias.data && channel < m.channels ? load(o.bias, channel) : 0.0f;
#pragma unroll
    for (int i = 0; i < K * K; i++)
        weight[i] = weights[lane * K * K + (o.mirror ? K * K - 1 - i : i)];
    int pitch = r.across + K - 1, lines = r.down + K - 1;
    int tiles = r.across / TX * (r.down / TILE_DOWN) * r.together;
    for (int tile = threadIdx.x / LANES; tile < tiles; tile += WARPS) {
        tile_place t = tile_at<TX>(r, tile);
        int64_t image = p.image + t.image;
        int y = p.y + t.y, x = p.x + t.x;
        if (image >= m.images || channel >= m.channels || y >= m.height || x >= m.width)
            continue;
        float sum[TILE_DOWN][TX] = {};
        int64_t at = ((image * m.height + y) * m.width + x) * m.channels + channel;
        if (o.residual.data)
            tile_get<TX>(sum, m, o.residual, at, y, x);
        else
#pragma unroll
            for (int i = 0; i < TILE_DOWN * TX; i++)
                sum[i / TX][i % TX] = bias;
        tile_sums<T, K, TX>(sum, staged + ((t.image * lines + t.y) * pitch + t.x) * LANES + lane, pitch, weight);
        tile_put<TX>(sum, m, o.y, at, y, x);
    }
}

/* ---- the weights' gradient: sums of dy(y, x) x(y + ky - K / 2, x + kx - K / 2), and of dy ---- */

template <typename T, int K, int TX>
DEVICE void tile_gradient(float sum[K * K + 1], const float d[TILE_DOWN][TX], const T *staged, int pitch)
{
    each_staged_row<T, K, TX>(staged, pitch, [&](int down, int ky, const float *in) {
#pragma unroll
        for (int j = 0; j < TX; j++)
#pragma unroll
            for (int kx = 0; kx < K; kx++)
                sum[ky * K + kx] = fmaf(d[down][j], in[j + kx], sum[ky * K + kx]);
    });
#pragma unroll
    for (int down = 0; down < TILE_DOWN; down++)
#pragma unroll
        for (int j = 0; j < TX; j++)
            sum[K * K] += d[down][j];
}

struct gradient_args {
    array dy, x;
    float *weight_part, *bias_part; /* [chunks][channels * K * K], [chunks][channels] */
    int64_t chunk, chunks;          /* steps of a chunk; how many */
    bool vectors;
};

/* The sums of all warps of a block, in their order, as one row of the partial sums. */
template <int K>
DEVICE void sums_write(float *shared, const float sum[K * K + 1], const gradient_args &a, const maps &m, int group,
                       int64_t chunk)
{
    constexpr int COLUMNS = (K * K + 1) * LANES;
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    __syncthreads(); /* the staged region is done with */
#pragma unroll
    for (int i = 0; i <= K * K; i++)
        shared[warp * COLUMNS + i * LANES + lane] = sum[i];
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) {
        float all = 0;
        for (int w = 0; w < WARPS; w++)
            all += shared[w * COLUMNS + i];
        int64_t channel = group * LANES + i % LANES, k = i / LANES, row = chunk * m.channels + channel;
        if (channel < m.channels && k < K * K)
            a.weight_part[row * (K * K) + k] = all;
        else if (channel < m.channels)
            a.bias_part[row] = all;
    }
}

template <typename T, int K, int TX>
__global__ void __launch_bounds__(BLOCK, 2) weight_gradient(maps m, regions r, gradient_args a)
{
    SHARED_BYTES(shared);
    T *staged = (T *)shared;
    int lane = threadIdx.x % LANES, group = (int)(blockIdx.x % r.groups), channel = group * LANES + lane;
    int pitch = r.across + K - 1, lines = r.down + K - 1;
    int tiles = r.across / TX * (r.down / TILE_DOWN) * r.together;
    int64_t chunk = blockIdx.x / r.groups, end = (chunk + 1) * a.chunk < r.steps ? (chunk + 1) * a.chunk : r.steps;
    float sum[K * K + 1] = {};
    for (int64_t step = chunk * a.chunk; step < end; step++) {
        position p = step_position(r, step);
        region_stage<T, K>(staged, m, r, a.x, p, group * LANES, a.vectors);
        copy_wait<0>();
        __syncthreads();
        for (int tile = threadIdx.x / LANES; tile < tiles; tile += WARPS) {
            tile_place t = tile_at<TX>(r, tile);
            int64_t image = p.image + t.image;
            int y = p.y + t.y, x = p.x + t.x;
            if (image >= m.images || channel >= m.channels || y >= m.height || x >= m.width)
                continue;
            float d[TILE_DOWN][TX];
            tile_get<TX>(d, m, a.dy, ((image * m.height + y) * m.width + x) * m.channels + channel, y, x);
            tile_gradient<T, K, TX>(sum, d, staged + ((t.image * lines + t.y) * pitch + t.x) * LANES + lane, pitch);
        }
        __syncthreads();
    }
    sums_write<K>((float *)shared, sum, a, m, group, chunk);
}

} // namespace

#endif
