/* kernel_cuda.cu - the CUDA kernels around a formula, compiled once per activation. SPDX-License-Identifier: MIT
 *
 * The build passes the formula's header as ACT_FORMULA and the name of the table as ACT_TABLE, as for kernel.c: the same
 * text, so the same bits. Memory is the limit, so everything here is about keeping it busy: 16 bytes per access, several
 * accesses in flight per thread, and few instructions between them. Four ways to walk:
 *
 *   stream     flat arrays, aligned, the ops of training (value; dx with parameter sums). One tile per block.
 *   lookup     the same for costly formulas in 16-bit storage: each block tabulates the formula in shared memory over the
 *              inputs that matter and the rest of the kernel is a look-up. Other inputs are computed.
 *   columns    bias, column sums, per-channel parameters: a thread owns channels and walks down 64 rows.
 *   anything   every op, every alignment, element by element. Right first; nobody trains with it.
 *
 * Read cuda_launch() at the end first. */
#include "act/kernels_cuda.h"
#include "act/storage_cuda.cuh"
#include ACT_FORMULA

namespace
{

constexpr int PARAMS = ACT_PARAMS, THREADS = CUDA_TILE_THREADS;
#ifdef ACT_COSTLY
constexpr int DEPTH = 2; /* accesses in flight; long formulas: fewer copies of the text */
#else
constexpr int DEPTH = 4;
#endif

/* ---- Constants and the function with scale and center around it ------------------------------------------------------ */

struct consts {
    act_consts f;
    float scale, offset;
    float param_offset[PARAMS ? PARAMS : 1];
};

/* DEGREE makes the degree a constant that the compiler sees through; 0 leaves it open. */
template <int DEGREE> __device__ __forceinline__ consts consts_at(const cuda_job &job, size_t channel)
{
    const act_shape shape = {DEGREE ? DEGREE : job.degree, (size_t)job.shape_count, job.shape_numbers, nullptr};
    float params[PARAMS ? PARAMS : 1] = {};
#pragma unroll
    for (int p = 0; p < PARAMS; p++)
        params[p] = job.param[p] ? job.param[p][job.per_channel[p] ? channel : 0] : job.own[p];
    consts k;
    k.f = act_prepare(params, &shape);
    k.scale = job.scale;
    k.offset = 0;
    if (job.plain)
        return k;
    k.offset = job.center ? act_value(0.0f, &k.f) : 0.0f;
#if ACT_PARAMS
    act_param_slopes(0.0f, &k.f, k.param_offset);
    for (int p = 0; p < PARAMS; p++)
        k.param_offset[p] = job.center ? k.param_offset[p] : 0.0f;
#endif
    return k;
}

__device__ __forceinline__ float full_value(float x, const consts &k, int plain)
{
    if (plain)
        return act_value(x, &k.f);
    return v_div(v_sub(act_value(v_mul(x, k.scale), &k.f), k.offset), k.scale);
}

__device__ __forceinline__ float full_slope(float x, const consts &k, int plain)
{
    return act_slope(plain ? x : v_mul(x, k.scale), &k.f);
}

__device__ __forceinline__ float full_curve(float x, const consts &k, int plain)
{
    return plain ? act_curve(x, &k.f) : v_mul(k.scale, act_curve(v_mul(x, k.scale), &k.f));
}

__device__ __forceinline__ void full_param_slopes(float x, const consts &k, int plain, float *out)
{
#if ACT_PARAMS
    act_param_slopes(plain ? x : v_mul(x, k.scale), &k.f, out);
    if (!plain)
        for (int p = 0; p < PARAMS; p++)
            out[p] = v_div(v_sub(out[p], k.param_offset[p]), k.scale);
#endif
}

/* ---- Sums of a layer ------------------------------------------------------------------------------------------------- */

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

/* ---- stream ---------------------------------------------------------------------------------------------------------- */

int sums_wanted(const cuda_job *job);

template <int DTYPE> struct tile_of {
    static constexpr int WIDTH = storage<DTYPE>::WIDTH, SIZE = THREADS * WIDTH * DEPTH;
};

template <int DTYPE, int DEGREE>
__global__ void __launch_bounds__(THREADS) stream_value(const __grid_constant__ cuda_job job)
{
    constexpr int WIDTH = tile_of<DTYPE>::WIDTH;
    size_t at = (size_t)blockIdx.x * tile_of<DTYPE>::SIZE + threadIdx.x * WIDTH;
    uint4 x[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
        if (at + (size_t)d * THREADS * WIDTH < job.count)
            x[d] = load_some<DTYPE>(job.x, at + (size_t)d * THREADS * WIDTH, job.count);
    const consts k = consts_at<DEGREE>(job, 0);
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        size_t i = at + (size_t)d * THREADS * WIDTH;
        if (i >= job.count)
            return;
        float v[WIDTH];
        unpack<DTYPE>(x[d], v);
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            v[j] = act_value(v[j], &k.f);
        store_some<DTYPE>(job.y, i, job.count, pack<DTYPE>(v));
    }
}

/* dx, and the sums of the first SUMS parameters. OUTPUT: from y instead of x. */
template <int DTYPE, int DEGREE, int SUMS, int OUTPUT>
__global__ void __launch_bounds__(THREADS) stream_slope(const __grid_constant__ cuda_job job)
{
    constexpr int WIDTH = tile_of<DTYPE>::WIDTH;
    size_t at = (size_t)blockIdx.x * tile_of<DTYPE>::SIZE + threadIdx.x * WIDTH;
    const void *from = OUTPUT ? job.y_in : job.x;
    uint4 x[DEPTH] = {}, g[DEPTH] = {};
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        size_t i = at + (size_t)d * THREADS * WIDTH;
        if (i < job.count) {
            x[d] = load_some<DTYPE>(from, i, job.count);
            g[d] = load_some<DTYPE>(job.dy, i, job.count);
        }
    }
    const consts k = consts_at<DEGREE>(job, 0);
    float sum[SUMS ? SUMS : 1] = {};
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        size_t i = at + (size_t)d * THREADS * WIDTH;
        float v[WIDTH], dy[WIDTH], slopes[PARAMS ? PARAMS : 1];
        unpack<DTYPE>(x[d], v);
        unpack<DTYPE>(g[d], dy);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
#if ACT_PARAMS
            if (SUMS) {
#if ACT_FROM_OUTPUT
                if (OUTPUT)
                    act_param_slopes_from_output(v[j], &k.f, slopes);
                else
#endif
                    act_param_slopes(v[j], &k.f, slopes);
                for (int p = 0; p < SUMS; p++)
                    sum[p] = v_fma(dy[j], slopes[p], sum[p]);
            }
#else
            (void)slopes;
#endif
#if ACT_FROM_OUTPUT
            if (OUTPUT)
                v[j] = v_mul(dy[j], act_slope_from_output(v[j], &k.f));
            else
#endif
                v[j] = v_mul(dy[j], act_slope(v[j], &k.f));
        }
        if (i < job.count)
            store_some<DTYPE>(job.dx, i, job.count, pack<DTYPE>(v));
    }
#pragma unroll
    for (int p = 0; p < SUMS; p++) {
        double total = block_sum(sum[p]);
        if (threadIdx.x == 0 && job.layer_sum[p])
            job.layer_sum[p][blockIdx.x] = total;
    }
}

/* ---- lookup ---------------------------------------------------------------------------------------------------------- */

#if defined(ACT_COSTLY)
/* A table has one entry per 16-bit input with a magnitude from that with the bits LOW up to 16, signs side by side: the
 * key of an input is its bits rotated left by one. Other inputs are computed: in a forward, whose table holds results of
 * 16 bits, eight at a time, so it starts low (bf16: 2^-17, f16: 0); in a backward, whose table holds slopes in f32, one at
 * a time, so it may start at 2^-10 (f16: 2^-9). Other arrangements were measured and are slower. */
template <int DTYPE, int SLOPE> struct lookup_range {
    static constexpr uint32_t LOW = DTYPE == BERLU_BF16 ? 2 * ((SLOPE ? 117 : 110) << 7) : 2 * ((SLOPE ? 6 : 0) << 10);
    static constexpr uint32_t HIGH = DTYPE == BERLU_BF16 ? 2 * (131 << 7) : 2 * (19 << 10);
    static constexpr uint32_t SPAN = HIGH - LOW;
};
constexpr int LOOKUP_THREADS = 1024, LOOKUP_DEPTH = 2;

template <int DTYPE> __device__ __forceinline__ float from_bits(uint32_t bits)
{
    uint16_t narrow = (uint16_t)bits;
    return load_one(&narrow, DTYPE, 0);
}

/* Two inputs in a word, each rotated left by one. */
__device__ __forceinline__ uint32_t keys_of(uint32_t word)
{
    return (word << 1 & 0xfffefffeu) | (word >> 15 & 0x00010001u);
}

template <int DTYPE> __device__ __forceinline__ float from_key(uint32_t key)
{
    return from_bits<DTYPE>(key >> 1 | (key & 1) << 15);
}

template <int DTYPE> __device__ __noinline__ uint4 far_values(uint4 x, const consts &k)
{
    float v[8];
    unpack<DTYPE>(x, v);
#pragma unroll 1
    for (int j = 0; j < 8; j++)
        v[j] = act_value(v[j], &k.f);
    return pack<DTYPE>(v);
}

__device__ __noinline__ float far_slope(float x, const consts &k)
{
    return act_slope(x, &k.f);
}

template <int DTYPE> __device__ __forceinline__ uint4 find_values(uint4 x, const uint16_t *table, const consts &k)
{
    constexpr uint32_t LOW = lookup_range<DTYPE, 0>::LOW, SPAN = lookup_range<DTYPE, 0>::SPAN;
    const uint32_t word[4] = {x.x, x.y, x.z, x.w};
    uint32_t out[4], farthest = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t keys = keys_of(word[i]), first = (keys & 0xffff) - LOW, second = (keys >> 16) - LOW;
        farthest = max(farthest, max(first, second));
        out[i] = table[min(first, SPAN - 1)] | (uint32_t)table[min(second, SPAN - 1)] << 16;
    }
    return farthest < SPAN ? make_uint4(out[0], out[1], out[2], out[3]) : far_values<DTYPE>(x, k);
}

template <int DTYPE> __device__ __forceinline__ uint4 find_slopes(uint4 x, uint4 g, const float *table, const consts &k)
{
    constexpr uint32_t LOW = lookup_range<DTYPE, 1>::LOW, SPAN = lookup_range<DTYPE, 1>::SPAN;
    const uint32_t word[4] = {x.x, x.y, x.z, x.w};
    float dy[8];
    unpack<DTYPE>(g, dy);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint32_t key = j % 2 ? keys_of(word[j / 2]) >> 16 : keys_of(word[j / 2]) & 0xffff;
        dy[j] = v_mul(dy[j], key - LOW < SPAN ? table[key - LOW] : far_slope(from_key<DTYPE>(key), k));
    }
    return pack<DTYPE>(dy);
}

template <int DTYPE, int SLOPE>
__global__ void __launch_bounds__(LOOKUP_THREADS, 1) lookup(const __grid_constant__ cuda_job job)
{
    constexpr int WIDTH = 8;
    extern __shared__ float4 table[];
    const consts k = consts_at<0>(job, 0);
    for (uint32_t e = threadIdx.x; e < lookup_range<DTYPE, SLOPE>::SPAN; e += LOOKUP_THREADS) {
        float x = from_key<DTYPE>(lookup_range<DTYPE, SLOPE>::LOW + e);
        if (SLOPE)
            ((float *)table)[e] = act_slope(x, &k.f);
        else
            store_one(table, DTYPE, e, act_value(x, &k.f));
    }
    __syncthreads();
    size_t stride = (size_t)gridDim.x * LOOKUP_THREADS * WIDTH;
    size_t at = ((size_t)blockIdx.x * LOOKUP_THREADS + threadIdx.x) * WIDTH;
    for (; at < job.count; at += LOOKUP_DEPTH * stride) {
        uint4 x[LOOKUP_DEPTH] = {}, g[LOOKUP_DEPTH] = {};
#pragma unroll
        for (int d = 0; d < LOOKUP_DEPTH; d++)
            if (at + d * stride < job.count) {
                x[d] = load_some<DTYPE>(job.x, at + d * stride, job.count);
                if (SLOPE)
                    g[d] = load_some<DTYPE>(job.dy, at + d * stride, job.count);
            }
#pragma unroll
        for (int d = 0; d < LOOKUP_DEPTH; d++)
            if (at + d * stride < job.count)
                store_some<DTYPE>(SLOPE ? job.dx : job.y, at + d * stride, job.count,
                                  SLOPE ? find_slopes<DTYPE>(x[d], g[d], (const float *)table, k)
                                        : find_values<DTYPE>(x[d], (const uint16_t *)table, k));
    }
}

/* One block per multiprocessor: a second one would make the table twice, and was measured slower. Says false, with nothing
 * launched, where this device has too little shared memory for the table. */
template <int DTYPE, int SLOPE> bool launch_lookup(const cuda_job *job, cudaStream_t stream, cudaError_t *error)
{
    size_t bytes = (size_t)lookup_range<DTYPE, SLOPE>::SPAN * (SLOPE ? sizeof(float) : sizeof(uint16_t));
    int device = 0, processors = 0, room = 0;
    *error = cudaGetDevice(&device);
    if (*error == cudaSuccess)
        *error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (*error == cudaSuccess)
        *error = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (*error == cudaSuccess && (size_t)room < bytes)
        return false;
    if (*error == cudaSuccess)
        *error = cudaFuncSetAttribute(lookup<DTYPE, SLOPE>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (*error == cudaSuccess) {
        lookup<DTYPE, SLOPE><<<(unsigned)processors, LOOKUP_THREADS, bytes, stream>>>(*job);
        *error = cudaGetLastError();
    }
    return true;
}

/* Below some size, making the table costs more than it saves. */
bool looks_up(const cuda_job *job, cudaStream_t stream, cudaError_t *error)
{
    if (job->count < 1 << 20 || sums_wanted(job) || job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        return false;
    int slope = job->op == BERLU_ACT_BACKWARD;
    if (job->dtype == BERLU_BF16)
        return slope ? launch_lookup<BERLU_BF16, 1>(job, stream, error)
                     : launch_lookup<BERLU_BF16, 0>(job, stream, error);
    if (job->dtype == BERLU_F16)
        return slope ? launch_lookup<BERLU_F16, 1>(job, stream, error)
                     : launch_lookup<BERLU_F16, 0>(job, stream, error);
    return false;
}
#endif

/* ---- columns and anything: every op ---------------------------------------------------------------------------------- */

/* One element, any op. Returns what the column sums of dx add; fills the terms of the parameters' sums. */
__device__ __forceinline__ float element(const cuda_job &job, const consts &k, size_t i, size_t channel, float *terms)
{
    float slopes[PARAMS ? PARAMS : 1] = {}, slope;
    if (job.op == BERLU_ACT_BACKWARD_FROM_OUTPUT) {
        slope = 0;
#if ACT_FROM_OUTPUT
        float y = load_one(job.y_in, job.dtype, i);
        slope = act_slope_from_output(y, &k.f);
#if ACT_PARAMS
        act_param_slopes_from_output(y, &k.f, slopes);
#endif
#endif
    } else {
        float x = load_one(job.x, job.dtype, i);
        if (job.bias)
            x = v_add(x, job.bias[channel]);
        if (job.op == BERLU_ACT_SECOND) {
            store_one(job.y, job.dtype, i, full_curve(x, k, job.plain));
            return 0;
        }
        if (job.op == BERLU_ACT_PARAM_SLOPE) {
            full_param_slopes(x, k, job.plain, slopes);
            float chosen = slopes[0];
            for (int p = 1; p < PARAMS; p++)
                chosen = p == job.param_index ? slopes[p] : chosen;
            store_one(job.y, job.dtype, i, chosen);
            return 0;
        }
        float g = job.op == BERLU_ACT_BACKWARD ? load_one(job.dy, job.dtype, i) : 0.0f;
        if (job.op != BERLU_ACT_SLOPE && job.y)
            store_one(job.y, job.dtype, i, full_value(x, k, job.plain));
        if (job.op == BERLU_ACT_FORWARD)
            return 0;
        slope = full_slope(x, k, job.plain);
        if (job.op == BERLU_ACT_SLOPE) {
            store_one(job.y, job.dtype, i, slope);
            return 0;
        }
        full_param_slopes(x, k, job.plain, slopes);
        float dx = v_mul(g, slope);
        store_one(job.dx, job.dtype, i, dx);
        for (int p = 0; p < PARAMS; p++)
            terms[p] = v_fma(g, slopes[p], terms[p]);
        return dx;
    }
    float g = load_one(job.dy, job.dtype, i), dx = v_mul(g, slope);
    store_one(job.dx, job.dtype, i, dx);
    for (int p = 0; p < PARAMS; p++)
        terms[p] = v_fma(g, slopes[p], terms[p]);
    return dx;
}

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

/* Blocks of 32 channels x 8 row blocks. A thread owns one channel and walks down its rows, so column sums come in order. */
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

/* ---- Launching ------------------------------------------------------------------------------------------------------- */

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

/* The fast walks: training's ops on flat arrays whose pointers all lie on 16 bytes. */
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

/* Rows on the axis that may be long; the other one, 65,535 blocks of channels, is checked by act_cuda.c. */
dim3 column_grid(const cuda_job *job)
{
    size_t parts = (job->rows + rows_each(job) - 1) / rows_each(job);
    return dim3((unsigned)((parts + COLUMN_Y - 1) / COLUMN_Y), (unsigned)((job->channels + COLUMN_X - 1) / COLUMN_X));
}

size_t tile_size(const cuda_job *job)
{
    if (!streams(job))
        return ANY_TILE;
    return job->dtype == BERLU_F32 ? tile_of<BERLU_F32>::SIZE : tile_of<BERLU_BF16>::SIZE;
}

size_t cuda_tiles(const cuda_job *job)
{
    if (job->columns) {
        dim3 grid = column_grid(job);
        return (size_t)grid.x * grid.y;
    }
    return (job->count + tile_size(job) - 1) / tile_size(job);
}

template <int DTYPE, int DEGREE> void launch_stream(const cuda_job *job, unsigned tiles, cudaStream_t stream)
{
    int sums = sums_wanted(job);
    if (job->op == BERLU_ACT_FORWARD)
        stream_value<DTYPE, DEGREE><<<tiles, THREADS, 0, stream>>>(*job);
#if ACT_FROM_OUTPUT
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && sums == 0)
        stream_slope<DTYPE, DEGREE, 0, 1><<<tiles, THREADS, 0, stream>>>(*job);
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT && sums == 1)
        stream_slope<DTYPE, DEGREE, PARAMS ? 1 : 0, 1><<<tiles, THREADS, 0, stream>>>(*job);
    else if (job->op == BERLU_ACT_BACKWARD_FROM_OUTPUT)
        stream_slope<DTYPE, DEGREE, PARAMS, 1><<<tiles, THREADS, 0, stream>>>(*job);
#endif
    else if (sums == 0)
        stream_slope<DTYPE, DEGREE, 0, 0><<<tiles, THREADS, 0, stream>>>(*job);
#if ACT_PARAMS
    else if (sums == 1)
        stream_slope<DTYPE, DEGREE, 1, 0><<<tiles, THREADS, 0, stream>>>(*job);
    else
        stream_slope<DTYPE, DEGREE, PARAMS, 0><<<tiles, THREADS, 0, stream>>>(*job);
#endif
}

template <int DTYPE> void launch_degree(const cuda_job *job, unsigned tiles, cudaStream_t stream)
{
#ifdef ACT_DEGREES
    if (job->degree == 2)
        launch_stream<DTYPE, 2>(job, tiles, stream);
    else if (job->degree == 4)
        launch_stream<DTYPE, 4>(job, tiles, stream);
    else
        launch_stream<DTYPE, 6>(job, tiles, stream);
#else
    launch_stream<DTYPE, 0>(job, tiles, stream);
#endif
}

cudaError_t cuda_launch(const cuda_job *job, cudaStream_t stream)
{
    if (job->columns) {
        columns<<<column_grid(job), THREADS, 0, stream>>>(*job, rows_each(job));
        return cudaGetLastError();
    }
    unsigned tiles = (unsigned)cuda_tiles(job);
    if (!streams(job)) {
        anything<<<tiles, THREADS, 0, stream>>>(*job);
        return cudaGetLastError();
    }
#if defined(ACT_COSTLY)
    cudaError_t error;
    if (looks_up(job, stream, &error))
        return error;
#endif
    if (job->dtype == BERLU_F32)
        launch_degree<BERLU_F32>(job, tiles, stream);
    else if (job->dtype == BERLU_BF16)
        launch_degree<BERLU_BF16>(job, tiles, stream);
    else
        launch_degree<BERLU_F16>(job, tiles, stream);
    return cudaGetLastError();
}

} // namespace

extern "C" const cuda_kernels ACT_TABLE = {cuda_tiles, cuda_launch};
