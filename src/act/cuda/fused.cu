/* act/cuda/fused.cu - an activation after or before a matrix product, in bf16.
 * SPDX-License-Identifier: MIT
 *
 * Compiled once per activation, as kernel.cu is, for fused layers of the engine
 * (src/cuda/linear_act.c). It differs from the library's own kernels in what it promises: elements
 * are estimates good to 2^-13 where a formula is long (estimate.cuh), so that arithmetic hides
 * behind the memory. Rounding in the product itself changes more bf16 results.
 *
 *     fused_value   y from x, flat
 *     fused_slope   dx from x or y and dy, and from the same read: the column sums of dx, which are
 *                   the bias gradient of the layer before; sums of a layer's parameters; y
 *                   recomputed, where the call requests it
 *
 * The threads of a fused_slope block form a grid of `across` 16-byte vectors by `deep` rows, so
 * that a thread always has the same channels and keeps their sums in registers. Blocks stride over
 * the rows, as many as one H200 holds at a time. The layout of threads and the distribution of rows
 * depend on rows and channels alone, and so do the bits of sums. */
#include "act/cuda/fused.cuh"
#include "act/cuda/fused.h"

namespace
{

/* ---- forward --------------------------------------------------------------------------------- */

constexpr int VALUE_THREADS = 128;
#ifndef VALUE_DEPTH
#define VALUE_DEPTH 2
#endif

template <bool SCALED>
__global__ void __launch_bounds__(VALUE_THREADS) fused_value(const __grid_constant__ fused_job job)
{
    size_t vectors = job.rows * job.channels / WIDTH;
    size_t at = (size_t)blockIdx.x * VALUE_THREADS * VALUE_DEPTH + threadIdx.x;
    uint4 x[VALUE_DEPTH] = {};
#pragma unroll
    for (int d = 0; d < VALUE_DEPTH; d++)
        if (at + d * VALUE_THREADS < vectors)
            x[d] = load_vector<BERLU_BF16>(job.x, (at + d * VALUE_THREADS) * WIDTH);
    const consts k = consts_at(job);
#pragma unroll
    for (int d = 0; d < VALUE_DEPTH; d++)
        if (at + d * VALUE_THREADS < vectors)
            store_vector<BERLU_BF16>(job.y, (at + d * VALUE_THREADS) * WIDTH, values_estimate<SCALED>(x[d], k));
}

/* ---- backward -------------------------------------------------------------------------------- */

#ifndef SLOPE_DEPTH
#define SLOPE_DEPTH 2 /* rows of a thread in flight */
#endif
#ifndef SLOPE_REGISTERS
#define SLOPE_REGISTERS 80
#endif
constexpr int SLOPE_THREADS = 256, SLOPE_ACROSS = 128; /* at most: two rows fit a block */
constexpr int SLOPE_PROCESSORS = 132;                  /* of an H200; the grid is the same on every GPU */
constexpr int SLOPE_RESIDENT = 65536 / (SLOPE_REGISTERS * SLOPE_THREADS);

struct slope_shape {
    dim3 grid; /* blocks of rows, blocks of channels */
    unsigned across, deep, threads;
};

/* Narrow rows are stacked until the block is full; wide ones are split into equal parts. */
slope_shape slope_shape_of(const fused_job *job)
{
    size_t vectors = job->channels / WIDTH, parts = (vectors + SLOPE_ACROSS - 1) / SLOPE_ACROSS;
    slope_shape s = {};
    s.across = (unsigned)((vectors + parts - 1) / parts);
    for (s.deep = 1; 2 * s.deep * s.across <= SLOPE_THREADS && s.deep < 64;)
        s.deep *= 2;
    s.threads = (s.across * s.deep + 31) / 32 * 32;
    size_t blocks = (SLOPE_PROCESSORS * (size_t)(65536 / (SLOPE_REGISTERS * s.threads)) + parts - 1) / parts;
    size_t most = (job->rows + s.deep - 1) / s.deep;
    s.grid = dim3((unsigned)(blocks < most ? blocks : most), (unsigned)parts);
    return s;
}

/* One float per thread joined by a fixed tree in double; thread 0 has the result. */
__device__ __forceinline__ double block_sum(float mine)
{
    __shared__ double warp_sum[SLOPE_THREADS / 32];
    double sum = (double)mine;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    __syncthreads();
    if (lane == 0)
        warp_sum[warp] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned w = 0; w < warps && threadIdx.x == 0; w++)
        sum += warp_sum[w];
    return sum;
}

/* The rows of one thread, from `row` on, `step` apart. */
template <int SUMS, slope_of FROM>
__device__ __forceinline__ void rows_walk(const fused_job &job, const consts &k, size_t row, size_t step,
                                          size_t channel, float *column, float *sum)
{
#pragma unroll 1
    for (; row < job.rows; row += SLOPE_DEPTH * step) {
        uint4 x[SLOPE_DEPTH] = {}, g[SLOPE_DEPTH] = {};
#pragma unroll
        for (int d = 0; d < SLOPE_DEPTH; d++)
            if (row + d * step < job.rows) {
                x[d] = load_vector<BERLU_BF16>(job.x, (row + d * step) * job.channels + channel);
                g[d] = load_vector<BERLU_BF16>(job.dy, (row + d * step) * job.channels + channel);
            }
#pragma unroll
        for (int d = 0; d < SLOPE_DEPTH; d++)
            if (row + d * step < job.rows) {
                size_t at = (row + d * step) * job.channels + channel;
                float dy[WIDTH];
                unpack<BERLU_BF16>(g[d], dy);
                store_vector<BERLU_BF16>(job.dx, at, slopes_estimate<SUMS, FROM>(x[d], dy, k, column, sum));
                if (FROM != FROM_OUTPUT && job.y)
                    store_vector<BERLU_BF16>(job.y, at, values_estimate<FROM == FROM_SCALED_X>(x[d], k));
            }
    }
}

template <int SUMS, slope_of FROM>
__global__ void __launch_bounds__(SLOPE_THREADS, SLOPE_RESIDENT)
    fused_slope(const __grid_constant__ fused_job job, unsigned across, unsigned deep)
{
    __shared__ float below[SLOPE_THREADS * WIDTH];
    unsigned lane = threadIdx.x % across, down = threadIdx.x / across;
    size_t first = (size_t)blockIdx.y * across * WIDTH, channel = first + lane * WIDTH;
    size_t step = (size_t)gridDim.x * deep, row = (size_t)blockIdx.x * deep + down;
    float column[WIDTH] = {}, sum[SUMS ? SUMS : 1] = {};
    if (down < deep && channel < job.channels) {
        const consts k = consts_at(job);
        if (SHORT_FORM(FROM, k)) { /* a copy in which the compiler knows it */
            __builtin_assume(SHORT_FORM(FROM, k));
            rows_walk<SUMS, FROM>(job, k, row, step, channel, column, sum);
        } else {
            rows_walk<SUMS, FROM>(job, k, row, step, channel, column, sum);
        }
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
        below[threadIdx.x * WIDTH + j] = column[j];
    __syncthreads();
    for (unsigned c = threadIdx.x; job.bias_sum && c < across * WIDTH && first + c < job.channels; c += blockDim.x) {
        float total = below[c];
        for (unsigned d = 1; d < deep; d++)
            total += below[d * across * WIDTH + c];
        job.bias_sum[blockIdx.x * job.channels + first + c] = total;
    }
#pragma unroll
    for (int p = 0; p < SUMS; p++) {
        double total = block_sum(sum[p]);
        if (threadIdx.x == 0 && job.layer_sum[p])
            job.layer_sum[p][(size_t)blockIdx.x * gridDim.y + blockIdx.y] = total;
    }
}

/* ---- launching ------------------------------------------------------------------------------- */

void fused_partials(const fused_job *job, size_t *row_blocks, size_t *tiles)
{
    slope_shape s = slope_shape_of(job);
    *row_blocks = s.grid.x;
    *tiles = (size_t)s.grid.x * s.grid.y;
}

template <slope_of FROM> void slope_launch(const fused_job *job, cudaStream_t stream)
{
    slope_shape s = slope_shape_of(job);
    int sums = 0;
    for (int p = 0; p < PARAMS; p++)
        sums = job->layer_sum[p] ? p + 1 : sums;
    if (sums == 0)
        fused_slope<0, FROM><<<s.grid, s.threads, 0, stream>>>(*job, s.across, s.deep);
    else if (sums == 1)
        fused_slope<PARAMS ? 1 : 0, FROM><<<s.grid, s.threads, 0, stream>>>(*job, s.across, s.deep);
    else
        fused_slope<PARAMS, FROM><<<s.grid, s.threads, 0, stream>>>(*job, s.across, s.deep);
}

cudaError_t fused_launch(const fused_job *job, cudaStream_t stream)
{
    bool scaled = job->scale != 1.0f || job->center;
    if (job->dx) {
        if (job->from_output)
            slope_launch<ACT_FROM_OUTPUT ? FROM_OUTPUT : FROM_X>(job, stream);
        else if (scaled)
            slope_launch<FROM_SCALED_X>(job, stream);
        else
            slope_launch<FROM_X>(job, stream);
        return cudaGetLastError();
    }
    size_t tile = (size_t)VALUE_THREADS * VALUE_DEPTH * WIDTH, count = job->rows * job->channels;
    unsigned blocks = (unsigned)((count + tile - 1) / tile);
    if (scaled)
        fused_value<true><<<blocks, VALUE_THREADS, 0, stream>>>(*job);
    else
        fused_value<false><<<blocks, VALUE_THREADS, 0, stream>>>(*job);
    return cudaGetLastError();
}

} // namespace

extern "C" const fused_kernels FUSED_TABLE = {fused_partials, fused_launch};
