/* linear_norm.cu - a layer of 192 inputs and outputs, the residual and the norm after it, in one
 * pass over the rows. SPDX-License-Identifier: MIT
 *
 *     x = a W^T + bias + residual, rounded;  y = norm of the rounded x, and its statistics
 *
 * All is bound by memory, and a norm of its own would read x once more. One block a processor goes
 * over tiles of 128 rows; two warpgroups have 64 rows each, with all their columns in registers, so
 * that sums over a row need two shuffles. Rows of `a` and of W pass through three stages of shared
 * memory, 64 inputs each; W is found in L2. While a tile is finished the next one is on its way,
 * and its residual follows into every slot that was read. Measured beside it (docs/performance.md,
 * 9): warpgroups that do not wait for each other around weights that stay, and stages copied by
 * warps of their own; neither is faster.
 *
 * As in rows_kernel.cuh, rows of W are permuted as they are copied, such that a thread has vectors
 * of 16 bytes of the stream, and a vector of the residual passes through the slot of the thread
 * that uses it. The variance is taken about the mean, in registers, as norm_rows.cuh does. A row's
 * bits depend on that row alone. Compiled for sm_90a; read on: linear_norm.c for when this is
 * used. */
#include "cuda/linear_norm.h"
#include "cuda/rows_kernel.cuh"

static_assert((int)LINEAR_NORM_WIDTH == (int)ROWS_SLICE, "blocks of weights are those of rows_kernel.cuh");

namespace
{

constexpr int COLUMNS = LINEAR_NORM_WIDTH, SLICES = LINEAR_NORM_WIDTH / BLOCK_CHANNELS; /* a stage each */
constexpr int GROUPS = 2, THREADS = GROUPS * ROWS_GROUP, TILE = GROUPS * ROWS_TILE;
constexpr int STAGE_BYTES = GROUPS * TILE_BLOCK + WEIGHT_BLOCK, SLOTS_AT = SLICES * STAGE_BYTES;

/* For a stream of T. Four threads have a part of a row. */
template <typename T> struct shape {
    static constexpr int VEC = 16 / (int)sizeof(T), PART = 4 * VEC, PARTS = COLUMNS / PART;
    static constexpr int VECTORS_AT = SLOTS_AT + PARTS * 2 * THREADS * 16;
    static constexpr int SHARED = ROWS_ALIGN + VECTORS_AT + 3 * COLUMNS * 4;
};

/* The row of the operand in which column n lies: in a part, column VEC t + 2 j + e is at
 * 8 j + 2 t + e, and there thread t of four has it as number e of block j. */
template <int VEC> DEVICE int place_of_column(int n)
{
    int t = n / VEC % 4, j = n % VEC / 2;
    return n / (4 * VEC) * (4 * VEC) + 8 * j + 2 * t + n % 2;
}

/* Bias, and weight and shift of the norm, as floats. */
DEVICE void vectors_load(float *to, const linear_norm_job &job)
{
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        to[i] = job.bias ? __uint_as_float((uint32_t)((const uint16_t *)job.bias)[i] << 16) : 0;
        to[COLUMNS + i] = ((const float *)job.weight)[i];
        to[2 * COLUMNS + i] = ((const float *)job.shift)[i];
    }
}

/* ---- product --------------------------------------------------------------------------------- */

/* Starts the copies of a slice of a tile's rows and of the weights, as a group; missing rows are
 * zero, and after the last tile the group is empty. */
template <typename T> DEVICE void stage_fetch(unsigned char *base, const linear_norm_job &job, int tile, int slice)
{
    unsigned char *to = base + slice * STAGE_BYTES;
    int chunk = threadIdx.x % 8, first = threadIdx.x / 8;
    const uint16_t *a = (const uint16_t *)job.a + slice * BLOCK_CHANNELS + chunk * 8;
    const uint16_t *w = (const uint16_t *)job.w + slice * BLOCK_CHANNELS + chunk * 8;
    if (tile * TILE < job.rows) {
#pragma unroll
        for (int row = first; row < TILE; row += THREADS / 8) {
            int from = tile * TILE + row;
            bool there = from < job.rows;
            copy_async<16>(to + block_chunk(row, chunk), a + (int64_t)(there ? from : 0) * COLUMNS, there);
        }
#pragma unroll
        for (int n = first; n < COLUMNS; n += THREADS / 8)
            copy_async<16>(to + GROUPS * TILE_BLOCK + block_chunk(place_of_column<shape<T>::VEC>(n), chunk),
                           w + n * COLUMNS, true);
    }
    copy_commit();
}

/* acc = the product of a slice, or added to it. */
DEVICE void slice_multiply(float (*acc)[4], const unsigned char *rows, const unsigned char *weights, int add)
{
    uint32_t a = block_operand(rows), b = block_operand(weights);
    product_begin();
#pragma unroll
    for (int k = 0; k < BLOCK_CHANNELS / 16; k++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 64)
            product<64>(acc + n / 8, a + k * 2, b + n * (BLOCK_ROW_BYTES / 16) + k * 2, add || k > 0);
    product_end();
    product_wait<COLUMNS, 0>(acc);
}

/* ---- epilogue -------------------------------------------------------------------------------- */

/* Starts the copy of a part of two rows of the residual, `row` and row + 8, to the thread's
 * slots. */
template <typename T> DEVICE void slots_fetch(uint4 *slots, const linear_norm_job &job, int row, int part)
{
#pragma unroll
    for (int below = 0; below < 2; below++, row += 8) {
        bool there = row < job.rows;
        int64_t at = (int64_t)(there ? row : 0) * COLUMNS + part * shape<T>::PART + threadIdx.x % 4 * shape<T>::VEC;
        copy_async<16>(slots + (part * 2 + below) * ROWS_GROUP, (const T *)job.residual + at, there);
    }
}

/* v as memory will have it. */
template <typename T, int COUNT> DEVICE packed<T, COUNT> packed_of(const float *v)
{
    packed<T, COUNT> p;
#pragma unroll
    for (int i = 0; i < COUNT * (int)sizeof(T) / 4; i++) {
        if constexpr (sizeof(T) == 4)
            p.word[i] = __float_as_uint(v[i]);
        else
            p.word[i] = bf16_pair(v[2 * i], v[2 * i + 1]);
    }
    return p;
}

/* x into the accumulators and to memory; the sums of two rows. The next residual follows into every
 * slot that was read. */
template <typename T>
DEVICE void stream_finish(float *sum, float (*acc)[4], uint4 *slots, const float *vectors, const linear_norm_job &job,
                          int row, int next)
{
    constexpr int VEC = shape<T>::VEC;
#pragma unroll
    for (int part = 0; part < shape<T>::PARTS; part++) {
        int column = part * shape<T>::PART + threadIdx.x % 4 * VEC;
        float bias[VEC];
        elements_load<float, VEC>(bias, vectors + column);
#pragma unroll
        for (int below = 0; below < 2; below++) {
            float v[VEC];
            packed_floats(v, packed_load<T, VEC>(slots + (part * 2 + below) * ROWS_GROUP));
#pragma unroll
            for (int i = 0; i < VEC; i++)
                v[i] += acc[part * VEC / 2 + i / 2][below * 2 + i % 2] + bias[i];
            packed<T, VEC> x = packed_of<T, VEC>(v);
            int at = row + below * 8;
            if (at < job.rows)
                *(uint4 *)((T *)job.x + (int64_t)at * COLUMNS + column) =
                    make_uint4(x.word[0], x.word[1], x.word[2], x.word[3]);
            packed_floats(v, x);
#pragma unroll
            for (int i = 0; i < VEC; i++) {
                acc[part * VEC / 2 + i / 2][below * 2 + i % 2] = v[i];
                sum[below] += v[i];
            }
        }
        slots_fetch<T>(slots, job, next, part);
    }
}

/* y from x in the accumulators, and the statistics; those of row and of row + 8. */
template <typename T>
DEVICE void norm_finish(float *sum, float (*acc)[4], const float *vectors, const linear_norm_job &job, int row)
{
    constexpr int VEC = shape<T>::VEC;
    float square[2] = {};
#pragma unroll
    for (int below = 0; below < 2; below++) {
        sum[below] = lane_sum<4>(sum[below]) * (1.0f / COLUMNS);
#pragma unroll
        for (int i = 0; i < COLUMNS / 4; i++) {
            float d = acc[i / 2][below * 2 + i % 2] - sum[below];
            acc[i / 2][below * 2 + i % 2] = d;
            square[below] = fmaf(d, d, square[below]);
        }
        square[below] = 1.0f / sqrtf(fmaf(lane_sum<4>(square[below]), 1.0f / COLUMNS, job.eps));
        if (row + below * 8 < job.rows && threadIdx.x % 4 == 0 && job.statistics)
            ((float2 *)job.statistics)[row + below * 8] = make_float2(sum[below], square[below]);
    }
#pragma unroll
    for (int part = 0; part < shape<T>::PARTS; part++) {
        int column = part * shape<T>::PART + threadIdx.x % 4 * VEC;
        float weight[VEC], shift[VEC], v[VEC];
        elements_load<float, VEC>(weight, vectors + COLUMNS + column);
        elements_load<float, VEC>(shift, vectors + 2 * COLUMNS + column);
#pragma unroll
        for (int below = 0; below < 2; below++) {
#pragma unroll
            for (int i = 0; i < VEC; i++)
                v[i] = fmaf(acc[part * VEC / 2 + i / 2][below * 2 + i % 2] * square[below], weight[i], shift[i]);
            if (row + below * 8 < job.rows)
                elements_store<__nv_bfloat16, VEC>(
                    (__nv_bfloat16 *)job.y + (int64_t)(row + below * 8) * COLUMNS + column, v);
        }
    }
}

/* ---- kernel ---------------------------------------------------------------------------------- */

/* Two slices are on their way. A tile's residual belongs to the group that is committed first
 * after the last epilogue, which two later waits leave complete. */
template <typename T>
__global__ void __launch_bounds__(THREADS, 1) linear_norm_kernel(const __grid_constant__ linear_norm_job job)
{
    SHARED_BYTES(raw);
    unsigned char *base = raw + (-shared_address(raw) & (ROWS_ALIGN - 1));
    float *vectors = (float *)(base + shape<T>::VECTORS_AT);
    int thread = threadIdx.x % ROWS_GROUP, group = warp_uniform(threadIdx.x / ROWS_GROUP), step = (int)gridDim.x;
    uint4 *slots = (uint4 *)(base + SLOTS_AT + group * shape<T>::PARTS * 2 * ROWS_GROUP * 16) + thread;
    int row = (int)blockIdx.x * TILE + group * ROWS_TILE + thread / 32 * 16 + thread % 32 / 4;
    vectors_load(vectors, job);
#pragma unroll
    for (int part = 0; part < shape<T>::PARTS; part++)
        slots_fetch<T>(slots, job, row, part);
    stage_fetch<T>(base, job, (int)blockIdx.x, 0);
    stage_fetch<T>(base, job, (int)blockIdx.x, 1);
    for (int tile = (int)blockIdx.x; tile * TILE < job.rows; tile += step, row += step * TILE) {
        float acc[COLUMNS / 8][4], sum[2] = {};
#pragma unroll 1
        for (int slice = 0; slice < SLICES; slice++) {
            copy_wait<1>();
            shared_publish();
            __syncthreads(); /* the slice is here, and nobody reads the one before */
            stage_fetch<T>(base, job, slice ? tile + step : tile, (slice + 2) % SLICES);
            const unsigned char *stage = base + slice * STAGE_BYTES;
            slice_multiply(acc, stage + group * TILE_BLOCK, stage + GROUPS * TILE_BLOCK, slice > 0);
        }
        stream_finish<T>(sum, acc, slots, vectors, job, row, row + step * TILE);
        norm_finish<T>(sum, acc, vectors, job, row);
    }
    copy_commit();
    copy_wait<0>();
}

template <typename T> void launch(const linear_norm_job *job, cudaStream_t stream)
{
    int64_t tiles = (job->rows + TILE - 1) / TILE;
    kernel_launch(stream, linear_norm_kernel<T>, tiles < job->blocks ? tiles : job->blocks, THREADS, shape<T>::SHARED,
                  *job);
}

} // namespace

extern "C" void cuda_linear_norm_rows(const linear_norm_job *job, cuda_stream stream)
{
    if (job->f32)
        launch<float>(job, (cudaStream_t)stream);
    else
        launch<__nv_bfloat16>(job, (cudaStream_t)stream);
}
