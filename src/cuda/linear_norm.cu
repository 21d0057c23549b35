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
 * A vector of the residual passes through the slot of the thread that uses it, as in
 * rows_kernel.cuh. A row's bits depend on that row alone. Compiled for sm_90a; read on:
 * stream_norm.cuh for the epilogue, linear_norm.c for when this is used. */
#include "cuda/linear_norm.h"
#include "cuda/rows_kernel.cuh"
#include "cuda/stream_norm.cuh"

static_assert((int)LINEAR_NORM_WIDTH == (int)ROWS_SLICE, "blocks of weights are those of rows_kernel.cuh");
static_assert((int)LINEAR_NORM_WIDTH == STREAM_WIDTH, "the epilogue is stream_norm.cuh's");

namespace
{

constexpr int COLUMNS = LINEAR_NORM_WIDTH, SLICES = LINEAR_NORM_WIDTH / BLOCK_CHANNELS; /* a stage each */
constexpr int GROUPS = 2, THREADS = GROUPS * ROWS_GROUP, TILE = GROUPS * ROWS_TILE;
constexpr int STAGE_BYTES = GROUPS * TILE_BLOCK + WEIGHT_BLOCK, SLOTS_AT = SLICES * STAGE_BYTES;

/* For a stream of T. */
template <typename T> struct shape : stream_shape<T> {
    static constexpr int VECTORS_AT = SLOTS_AT + shape::PARTS * 2 * THREADS * 16;
    static constexpr int SHARED = ROWS_ALIGN + VECTORS_AT + 3 * COLUMNS * 4;
};

/* ---- product --------------------------------------------------------------------------------- */

/* Starts the copies of a slice of a tile's rows and of the weights, as a group; missing rows are
 * zero, and after tile 0, which comes last, the group is empty. */
template <typename T> DEVICE void stage_fetch(unsigned char *base, const linear_norm_job &job, int tile, int slice)
{
    unsigned char *to = base + slice * STAGE_BYTES;
    int chunk = threadIdx.x % 8, first = threadIdx.x / 8;
    const uint16_t *a = (const uint16_t *)job.a + slice * BLOCK_CHANNELS + chunk * 8;
    const uint16_t *w = (const uint16_t *)job.w + slice * BLOCK_CHANNELS + chunk * 8;
    if (tile >= 0) {
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

/* ---- residual -------------------------------------------------------------------------------- */

/* Starts the copy of a part of two rows of the residual, `row` and row + 8, to the thread's
 * slots. */
template <typename T> DEVICE void slots_fetch(uint4 *slots, const linear_norm_job &job, int row, int part)
{
#pragma unroll
    for (int below = 0; below < 2; below++, row += 8) {
        bool there = row >= 0 && row < job.rows;
        copy_async<16>(slots + (part * 2 + below) * ROWS_GROUP,
                       (const T *)job.residual + stream_index<T>(there ? row : 0, part), there);
    }
}

/* The residual for stream_finish(); that of row `next` follows into every slot that was read. */
template <typename T> struct slots_residual {
    uint4 *slots;
    const linear_norm_job &job;
    int next;

    __device__ __forceinline__ packed<T, shape<T>::VEC> get(int part, int below) const
    {
        return packed_load<T, shape<T>::VEC>(slots + (part * 2 + below) * ROWS_GROUP);
    }
    __device__ __forceinline__ void done(int part) const
    {
        slots_fetch<T>(slots, job, next, part);
    }
};

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
    int first = (int)last_first(blockIdx.x, (job.rows + TILE - 1) / TILE);
    int row = first * TILE + group * ROWS_TILE + thread / 32 * 16 + thread % 32 / 4;
    stream_vectors(vectors, job.bias, job.weight, job.shift);
#pragma unroll
    for (int part = 0; part < shape<T>::PARTS; part++)
        slots_fetch<T>(slots, job, row, part);
    stage_fetch<T>(base, job, first, 0);
    stage_fetch<T>(base, job, first, 1);
    for (int tile = first; tile >= 0; tile -= step, row -= step * TILE) {
        float acc[COLUMNS / 8][4], sum[2] = {};
#pragma unroll 1
        for (int slice = 0; slice < SLICES; slice++) {
            copy_wait<1>();
            shared_publish();
            __syncthreads(); /* the slice is here, and nobody reads the one before */
            stage_fetch<T>(base, job, slice ? tile - step : tile, (slice + 2) % SLICES);
            const unsigned char *stage = base + slice * STAGE_BYTES;
            slice_multiply(acc, stage + group * TILE_BLOCK, stage + GROUPS * TILE_BLOCK, slice > 0);
        }
        slots_residual<T> residual = {slots, job, row - step * TILE};
        stream_finish<T>(sum, acc, residual, vectors, job, row);
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
