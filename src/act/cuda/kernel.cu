/* act/cuda/kernel.cu - the CUDA kernels around a formula, compiled once per activation.
 * SPDX-License-Identifier: MIT
 *
 * The build passes the formula's header as ACT_FORMULA and the name of the table as ACT_TABLE, as
 * for act/cpu/kernel.c: the same text, so the same bits. Memory bandwidth is the limit, so
 * everything here keeps it busy: 16 bytes per access, several accesses in flight per thread, and
 * few instructions between them. Six kernels:
 *
 *     stream     flat arrays, aligned, the ops of training (value; dx with parameter sums).
 *                One tile per block. In 16-bit storage costly formulas run only where a quick
 *                estimate does not determine the result (quick.cuh).
 *     lookup     derivatives in f16 of the longest formulas, through a table in shared memory.
 *     sweep      the backward of an activation after a bias: dx, the bias gradient, y recomputed,
 *                from one read. A thread owns 16 bytes of channels and goes down the rows.
 *     columns    bias, column sums, per-channel parameters: a thread owns channels and iterates
 *                over 64 rows.
 *     planes     per-channel parameters of NCHW images (planes.cuh).
 *     anything   every op, every alignment, element by element. Simple and slow; training does
 *                not use it.
 *
 * Read cuda_launch() at the end first. */
#include "act/cuda/kernels.h"
#include "act/cuda/storage.cuh"
#include ACT_FORMULA

#include "act/cuda/quick.cuh"
#include "act/formulas/full.h"

namespace
{

#include "act/cuda/element.cuh"

constexpr int THREADS = 256; /* of the general kernels */

/* ---- Sums of a layer ------------------------------------------------------------------------- */

/* Joins one float per thread of the block by a fixed tree in double; thread 0 has the result. */
__device__ double block_sum(float mine)
{
    __shared__ double warp_sum[32];
    double sum = (double)mine;
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        warp_sum[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < warps ? warp_sum[lane] : 0.0;
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    __syncthreads();
    return sum;
}

/* ---- stream ---------------------------------------------------------------------------------- */

/* Threads of a block and accesses in flight of a thread, as measured (docs/performance.md). Small
 * blocks keep the addresses that the whole chip reads close together; long formulas want more
 * accesses per thread, to amortise the constants; sums want large blocks, because joining the
 * threads costs the same for any. */
enum walk { VALUES, SLOPES, SUMS_TOO };

template <int DTYPE, int DEGREE, walk WALK> struct tile_of {
    static constexpr bool LONG = DTYPE != BERLU_F32 && (ACT_COSTLY || DEGREE > 2);
    static constexpr int THREADS = WALK == SUMS_TOO ? (DEGREE > 2 ? 256 : 512) : LONG ? 64 : 128;
    static constexpr int LONG_DEPTH = QUICK_SLOPE && WALK == SLOPES ? QUICK_SLOPE_DEPTH : 4;
    static constexpr int DEPTH = WALK == SUMS_TOO ? 4 : LONG ? LONG_DEPTH : 2;
    static constexpr int WIDTH = storage<DTYPE>::WIDTH, STEP = THREADS * WIDTH, SIZE = STEP * DEPTH;
};

/* Always false, which the compiler cannot know: a branch on it needs every load, so none of them
 * moves past the arithmetic. Otherwise the compiler does that to save registers, and a thread
 * waits for one load after the other: up to 13 % slower. */
template <int DEPTH> __device__ __forceinline__ bool impossible(const cuda_job &job, const uint4 *x, const uint4 *g)
{
    uint32_t all = ~0u;
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        all &= x[d].x & g[d].x;
    return all & (uint32_t)(job.count >> 60);
}

[[maybe_unused]] __device__ __noinline__ float exact_value(float x, act_consts k)
{
    return act_value(x, &k);
}

[[maybe_unused]] __device__ __noinline__ float exact_slope(float x, act_consts k)
{
    return act_slope(x, &k);
}

[[maybe_unused]] __device__ __noinline__ float exact_slope_from_output(float y, act_consts k)
{
#if ACT_FROM_OUTPUT
    return act_slope_from_output(y, &k);
#else
    return 0;
#endif
}

enum guessed { VALUE, SLOPE, FROM_OUTPUT }; /* what of the eight: values, derivatives times dy, those from y */

/* One value, or one derivative times dy, of the eight in x, as 16 bits. */
template <int DTYPE, guessed WHAT>
__device__ __forceinline__ uint32_t exact_half(uint4 x, uint4 gradient, int j, const consts &k)
{
    float v = half_as_float(x, j, DTYPE);
    if (WHAT == VALUE)
        return pack2(exact_value(v, k.f), 0.0f, DTYPE);
    v = WHAT == SLOPE ? exact_slope(v, k.f) : exact_slope_from_output(v, k.f);
    return pack2(v_mul(half_as_float(gradient, j, DTYPE), v), 0.0f, DTYPE);
}

/* Eight values, or eight derivatives times dy, by estimates, and by the formula where the two ends
 * differ after rounding. Multiplying by dy is monotone as rounding is, whatever its sign. Mostly
 * one element of a whole warp differs: so pairs are tested first, and the operands of the formula
 * are unpacked again rather than kept in registers. ADD_EACH: adds dy times the estimate of the
 * derivative to the eight sums, which is as good as the rounding of the sum itself. ADD_ALPHA: adds
 * the terms of the first parameter to one sum. */
enum added { ADD_NONE, ADD_EACH, ADD_ALPHA };

template <int DTYPE, guessed WHAT, added ADD = ADD_NONE>
__device__ __forceinline__ uint4 quick_eight(uint4 x, uint4 gradient, const consts &k, float *sum = nullptr)
{
    float v[8], dy[8], low[8], high[8];
    unpack<DTYPE>(x, v);
    unpack<DTYPE>(gradient, dy);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        guess g = WHAT == VALUE   ? quick_value(v[j], k.f)
                  : WHAT == SLOPE ? quick_slope(v[j], k.f)
                                  : quick_slope_from_output(v[j], k.f);
        low[j] = g.near - g.within;
        high[j] = g.near + g.within;
        if (ADD == ADD_EACH)
            sum[j] = v_fma(dy[j], g.near, sum[j]);
        if (ADD == ADD_ALPHA)
            *sum = v_fma(dy[j], quick_alpha_from_output(v[j], g.near, k.f), *sum);
        if (WHAT != VALUE) {
            low[j] = v_mul(dy[j], low[j]);
            high[j] = v_mul(dy[j], high[j]);
        }
    }
    uint32_t pair[4], apart[4];
#pragma unroll
    for (int w = 0; w < 4; w++) {
        pair[w] = pack2(low[2 * w], low[2 * w + 1], DTYPE);
        apart[w] = pair[w] ^ pack2(high[2 * w], high[2 * w + 1], DTYPE);
    }
    if (apart[0] | apart[1] | apart[2] | apart[3])
#pragma unroll
        for (int w = 0; w < 4; w++)
            if (apart[w]) {
                if (apart[w] & 0xffff)
                    pair[w] = (pair[w] & 0xffff0000) | exact_half<DTYPE, WHAT>(x, gradient, 2 * w, k);
                if (apart[w] >> 16)
                    pair[w] = (pair[w] & 0xffff) | exact_half<DTYPE, WHAT>(x, gradient, 2 * w + 1, k) << 16;
            }
    return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* A full tile needs no bounds checks; the last one, where it is not full, goes element by
 * element. */
template <int DTYPE, int DEGREE>
__global__ void __launch_bounds__(tile_of<DTYPE, DEGREE, VALUES>::THREADS)
    stream_value(const __grid_constant__ cuda_job job)
{
    using T = tile_of<DTYPE, DEGREE, VALUES>;
    constexpr int WIDTH = T::WIDTH, DEPTH = T::DEPTH, STEP = T::STEP, SIZE = T::SIZE;
    size_t tile = (size_t)blockIdx.x * SIZE;
    if (tile + SIZE > job.count) {
        const consts k = consts_at<DEGREE>(job, 0);
        for (size_t i = tile + threadIdx.x; i < job.count; i += T::THREADS)
            store_one(job.y, DTYPE, i, act_value(load_one(job.x, DTYPE, i), &k.f));
        return;
    }
    size_t at = tile + threadIdx.x * WIDTH;
    uint4 x[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        x[d] = load_vector<DTYPE>(job.x, at + d * STEP);
    const consts k = consts_at<DEGREE>(job, 0); /* while the loads are in flight */
    if (impossible<DEPTH>(job, x, x))
        return;
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        if constexpr (QUICK_VALUE && DTYPE != BERLU_F32) {
            store_vector<DTYPE>(job.y, at + d * STEP, quick_eight<DTYPE, VALUE>(x[d], x[d], k));
        } else {
            float v[WIDTH];
            unpack<DTYPE>(x[d], v);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] = act_value(v[j], &k.f);
            store_vector<DTYPE>(job.y, at + d * STEP, pack<DTYPE>(v));
        }
    }
}

/* dx of one element; adds its terms to the sums of the first SUMS parameters. OUTPUT: v is y
 * instead of x. */
template <int SUMS, int OUTPUT>
__device__ __forceinline__ float slope_one(float v, float dy, const consts &k, float *sum)
{
#if ACT_PARAMS
    if (SUMS) {
        float slopes[PARAMS];
#if ACT_FROM_OUTPUT
        if (OUTPUT)
            act_param_slopes_from_output(v, &k.f, slopes);
        else
#endif
            act_param_slopes(v, &k.f, slopes);
        for (int p = 0; p < SUMS; p++)
            sum[p] = v_fma(dy, slopes[p], sum[p]);
    }
#endif
#if ACT_FROM_OUTPUT
    if (OUTPUT)
        return v_mul(dy, act_slope_from_output(v, &k.f));
#endif
    return v_mul(dy, act_slope(v, &k.f));
}

/* The same for sixteen bytes, by estimates where there are any. */
template <int DTYPE, int SUMS, int OUTPUT>
__device__ __forceinline__ uint4 slope_vector(uint4 x, uint4 gradient, const consts &k, float *sum)
{
    if constexpr (QUICK_SLOPE && DTYPE != BERLU_F32 && !SUMS && !OUTPUT)
        return quick_eight<DTYPE, SLOPE>(x, gradient, k);
    if constexpr (QUICK_FROM_OUTPUT && DTYPE != BERLU_F32 && SUMS < 2 && OUTPUT)
        if (QUICK_FITS(&k.f)) /* in all threads or in none */
            return quick_eight < DTYPE, FROM_OUTPUT, SUMS ? ADD_ALPHA : ADD_NONE > (x, gradient, k, sum);
    constexpr int WIDTH = storage<DTYPE>::WIDTH;
    float v[WIDTH], dy[WIDTH];
    unpack<DTYPE>(x, v);
    unpack<DTYPE>(gradient, dy);
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
        v[j] = slope_one<SUMS, OUTPUT>(v[j], dy[j], k, sum);
    return pack<DTYPE>(v);
}

/* Two blocks of 512 threads at a time, so that one loads while the other computes: a formula and
 * its estimate together would take 72 registers, and then only one block fits. */
template <int DTYPE, int DEGREE, int SUMS, int OUTPUT>
__global__ void __launch_bounds__(tile_of<DTYPE, DEGREE, SUMS ? SUMS_TOO : SLOPES>::THREADS,
                                  QUICK_FROM_OUTPUT &&OUTPUT ? 2 : 1) stream_slope(const __grid_constant__ cuda_job job)
{
    using T = tile_of<DTYPE, DEGREE, SUMS ? SUMS_TOO : SLOPES>;
    constexpr int WIDTH = T::WIDTH, DEPTH = T::DEPTH, STEP = T::STEP, SIZE = T::SIZE;
    const void *from = OUTPUT ? job.y_in : job.x;
    size_t tile = (size_t)blockIdx.x * SIZE;
    float sum[SUMS ? SUMS : 1] = {};
    if (tile + SIZE > job.count) {
        const consts k = consts_at<DEGREE>(job, 0);
        for (size_t i = tile + threadIdx.x; i < job.count; i += T::THREADS)
            store_one(job.dx, DTYPE, i,
                      slope_one<SUMS, OUTPUT>(load_one(from, DTYPE, i), load_one(job.dy, DTYPE, i), k, sum));
    } else {
        size_t at = tile + threadIdx.x * WIDTH;
        uint4 x[DEPTH], g[DEPTH];
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            x[d] = load_vector<DTYPE>(from, at + d * STEP);
            g[d] = load_vector<DTYPE>(job.dy, at + d * STEP);
        }
        const consts k = consts_at<DEGREE>(job, 0);
        if (impossible<DEPTH>(job, x, g))
            return;
#pragma unroll
        for (int d = 0; d < DEPTH; d++)
            store_vector<DTYPE>(job.dx, at + d * STEP, slope_vector<DTYPE, SUMS, OUTPUT>(x[d], g[d], k, sum));
    }
#pragma unroll
    for (int p = 0; p < SUMS; p++) {
        double total = block_sum(sum[p]);
        if (threadIdx.x == 0 && job.layer_sum[p])
            job.layer_sum[p][blockIdx.x] = total;
    }
}

#include "act/cuda/lookup.cuh"
#include "act/cuda/sweep.cuh"

/* ---- columns and anything: every op ---------------------------------------------------------- */

constexpr int ANY_EACH = 16, ANY_TILE = THREADS * ANY_EACH;

__global__ void __launch_bounds__(THREADS) anything(const __grid_constant__ cuda_job job)
{
    size_t at = (size_t)blockIdx.x * ANY_TILE + threadIdx.x;
    const consts k = consts_at<0>(job, 0);
    float terms[PARAMS ? PARAMS : 1] = {};
    for (int e = 0; e < ANY_EACH && at < job.count; e++, at += THREADS)
        element(job, k, at, 0, terms);
    for (int p = 0; p < PARAMS; p++)
        if (job.layer_sum[p]) {
            double total = block_sum(terms[p]);
            if (threadIdx.x == 0)
                job.layer_sum[p][blockIdx.x] = total;
        }
}

/* Blocks of 32 channels x 8 row blocks. A thread owns one channel and iterates over its rows, so
 * column sums are added in order. */
constexpr int COLUMN_X = 32, COLUMN_Y = THREADS / COLUMN_X;

__global__ void __launch_bounds__(THREADS) columns(const __grid_constant__ cuda_job job, size_t rows_each)
{
    size_t channel = (size_t)blockIdx.y * COLUMN_X + threadIdx.x % COLUMN_X;
    size_t part = (size_t)blockIdx.x * COLUMN_Y + threadIdx.x / COLUMN_X;
    size_t row = part * rows_each, end = row + rows_each < job.rows ? row + rows_each : job.rows;
    float terms[PARAMS ? PARAMS : 1] = {}, column = 0;
    if (channel < job.channels && row < job.rows) {
        const consts k = consts_at<0>(job, channel);
#pragma unroll 4
        for (; row < end; row++)
            column = v_add(column, element(job, k, row * job.channels + channel, channel, terms));
        if (job.bias_sum)
            job.bias_sum[part * job.channels + channel] = column;
        for (int p = 0; p < PARAMS; p++)
            if (job.channel_sum[p])
                job.channel_sum[p][part * job.channels + channel] = terms[p];
    }
    for (int p = 0; p < PARAMS; p++)
        if (job.layer_sum[p]) {
            double total = block_sum(terms[p]);
            if (threadIdx.x == 0)
                job.layer_sum[p][(size_t)blockIdx.x * gridDim.y + blockIdx.y] = total;
        }
}

#include "act/cuda/planes.cuh"

/* ---- Launching ------------------------------------------------------------------------------- */

bool backward(const cuda_job *job)
{
    return job->op == BERLU_ACT_BACKWARD || job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
}

int sums_wanted(const cuda_job *job)
{
    int sums = 0;
    for (int p = 0; p < PARAMS; p++)
        sums = job->layer_sum[p] ? p + 1 : sums;
    return sums;
}

/* The fast path: training's ops on flat arrays whose pointers are all aligned to 16 bytes. */
bool streams(const cuda_job *job)
{
    uintptr_t all =
        (uintptr_t)job->x | (uintptr_t)job->y | (uintptr_t)job->dy | (uintptr_t)job->dx | (uintptr_t)job->y_in;
    bool training = job->op == BERLU_ACT_FORWARD || (backward(job) && !job->y);
    return training && job->plain && !job->columns && job->degree <= 6 && all % 16 == 0;
}

size_t rows_each(const cuda_job *job)
{
    return backward(job) ? CUDA_ROWS : 4;
}

/* Rows on the grid's long axis; the other one, 65,535 blocks of channels, is checked by
 * cuda/call.c. */
dim3 column_grid(const cuda_job *job)
{
    size_t parts = (job->rows + rows_each(job) - 1) / rows_each(job);
    return dim3((unsigned)((parts + COLUMN_Y - 1) / COLUMN_Y), (unsigned)((job->channels + COLUMN_X - 1) / COLUMN_X));
}

/* Elements per block of the launch, which matters for sums only: each block writes one. */
template <int DTYPE> size_t sums_tile(const cuda_job *job)
{
    return job->degree > 2 ? tile_of<DTYPE, 4, SUMS_TOO>::SIZE : tile_of<DTYPE, 2, SUMS_TOO>::SIZE;
}

/* The backward with the bias gradient or y, on whole vectors of channels. Called before the sums
 * have addresses: with no bias and no parameter per channel `columns` means that dbias is
 * wanted. */
bool sweeps(const cuda_job *job)
{
    uintptr_t all =
        (uintptr_t)job->x | (uintptr_t)job->y | (uintptr_t)job->dy | (uintptr_t)job->dx | (uintptr_t)job->y_in;
    bool more = job->columns || job->y, plain = job->plain && !job->bias;
    for (int p = 0; p < PARAMS; p++)
        plain = plain && !job->per_channel[p];
    size_t width = job->dtype == BERLU_F32 ? 4 : 8;
    return backward(job) && more && plain && job->dtype != BERLU_F16 && job->degree <= 6 && all % 16 == 0 &&
           job->channels > 0 && job->channels % width == 0 && job->channels <= (size_t)65535 * SWEEP_ACROSS;
}

size_t tile_size(const cuda_job *job)
{
    if (!streams(job))
        return ANY_TILE;
    return job->dtype == BERLU_F32 ? sums_tile<BERLU_F32>(job) : sums_tile<BERLU_BF16>(job);
}

size_t cuda_tiles(const cuda_job *job)
{
    if (job->inner > 1)
        return plane_items(job);
    if (sweeps(job)) {
        sweep_shape s = sweep_shape_of(job);
        return (size_t)s.grid.x * s.grid.y;
    }
    if (job->columns) {
        dim3 grid = column_grid(job);
        return (size_t)grid.x * grid.y;
    }
    return (job->count + tile_size(job) - 1) / tile_size(job);
}

template <class TILE> unsigned blocks_for(const cuda_job *job)
{
    return (unsigned)((job->count + TILE::SIZE - 1) / TILE::SIZE);
}

template <int DTYPE, int DEGREE, int SUMS, int OUTPUT> void launch_slope(const cuda_job *job, cudaStream_t stream)
{
    using T = tile_of<DTYPE, DEGREE, SUMS ? SUMS_TOO : SLOPES>;
    stream_slope<DTYPE, DEGREE, SUMS, OUTPUT><<<blocks_for<T>(job), T::THREADS, 0, stream>>>(*job);
}

template <int DTYPE, int DEGREE, int SUMS, int OUTPUT> void launch_sweep(const cuda_job *job, cudaStream_t stream)
{
    sweep_shape s = sweep_shape_of(job);
    sweep<DTYPE, DEGREE, SUMS, OUTPUT><<<s.grid, s.threads, 0, stream>>>(*job, s.across, s.deep);
}

template <int DTYPE, int DEGREE> void launch_sweeps(const cuda_job *job, cudaStream_t stream)
{
    int sums = sums_wanted(job);
#if ACT_FROM_OUTPUT
    if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && sums)
        launch_sweep<DTYPE, DEGREE, PARAMS, 1>(job, stream);
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        launch_sweep<DTYPE, DEGREE, 0, 1>(job, stream);
    else
#endif
#if ACT_PARAMS
        if (sums)
        launch_sweep<DTYPE, DEGREE, PARAMS, 0>(job, stream);
    else
#endif
        launch_sweep<DTYPE, DEGREE, 0, 0>(job, stream);
    (void)sums;
}

template <int DTYPE, int DEGREE> void launch_stream(const cuda_job *job, cudaStream_t stream)
{
    if constexpr (DTYPE != BERLU_F16)
        if (sweeps(job)) {
            launch_sweeps<DTYPE, DEGREE>(job, stream);
            return;
        }
    using T = tile_of<DTYPE, DEGREE, VALUES>;
    int sums = sums_wanted(job);
    if (job->op == BERLU_ACT_FORWARD)
        stream_value<DTYPE, DEGREE><<<blocks_for<T>(job), T::THREADS, 0, stream>>>(*job);
#if ACT_FROM_OUTPUT
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && sums == 0)
        launch_slope<DTYPE, DEGREE, 0, 1>(job, stream);
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && sums == 1)
        launch_slope<DTYPE, DEGREE, PARAMS ? 1 : 0, 1>(job, stream);
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        launch_slope<DTYPE, DEGREE, PARAMS, 1>(job, stream);
#endif
    else if (sums == 0)
        launch_slope<DTYPE, DEGREE, 0, 0>(job, stream);
#if ACT_PARAMS
    else if (sums == 1)
        launch_slope<DTYPE, DEGREE, 1, 0>(job, stream);
    else
        launch_slope<DTYPE, DEGREE, PARAMS, 0>(job, stream);
#endif
}

template <int DTYPE> void launch_degree(const cuda_job *job, cudaStream_t stream)
{
#ifdef ACT_DEGREES
    if (job->degree == 2)
        launch_stream<DTYPE, 2>(job, stream);
    else if (job->degree == 4)
        launch_stream<DTYPE, 4>(job, stream);
    else
        launch_stream<DTYPE, 6>(job, stream);
#else
    launch_stream<DTYPE, 0>(job, stream);
#endif
}

cudaError_t cuda_launch(const cuda_job *job, cudaStream_t stream)
{
    if (job->inner > 1) {
        planes<<<plane_grid(job), THREADS, 0, stream>>>(*job);
        return cudaGetLastError();
    }
    if (job->columns && !sweeps(job)) {
        columns<<<column_grid(job), THREADS, 0, stream>>>(*job, rows_each(job));
        return cudaGetLastError();
    }
    if (!streams(job) && !sweeps(job)) {
        anything<<<(unsigned)cuda_tiles(job), THREADS, 0, stream>>>(*job);
        return cudaGetLastError();
    }
#ifdef QUICK_LOOKUP
    cudaError_t error;
    if (looks_up(job, stream, &error))
        return error;
#endif
    if (job->dtype == BERLU_F32)
        launch_degree<BERLU_F32>(job, stream);
    else if (job->dtype == BERLU_BF16)
        launch_degree<BERLU_BF16>(job, stream);
    else
        launch_degree<BERLU_F16>(job, stream);
    return cudaGetLastError();
}

} // namespace

extern "C" const cuda_kernels ACT_TABLE = {cuda_tiles, cuda_launch};
