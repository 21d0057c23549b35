/* mlp.cu - an MLP of 192 channels, the residual and the norm after it, in one pass over the rows.
 * SPDX-License-Identifier: MIT
 *
 *     u = a W1^T + bias1, rounded;  h = act(u), rounded;
 *     x = h W2^T + bias2 + residual, rounded;  y = norm of the rounded x, and its statistics
 *
 * The hidden activations are four times as wide as the stream, and writing and reading them is most
 * of an MLP's memory traffic. Here u and h stay in registers and never leave the chip: a kernel for
 * inference. (A training step needs u at least; with a kernel that wrote it, an H200 was no faster
 * than with three launches.) Compiled once per activation for sm_90a (CMakeLists.txt), with the
 * formula's header as ACT_FORMULA; elements are those of rows.cu, so h has its bits.
 *
 * One block a processor goes over tiles of 128 rows, 64 for each of two warpgroups. Hidden channels
 * come in slices of 64. A warpgroup multiplies its rows by the slice's part of W1 (64 x 64, 32
 * registers a thread), evaluates the activation, and multiplies the result by the slice's part of
 * W2 into the 64 x 192 numbers of the stream that it keeps for the whole tile (96 registers):
 *
 *     tensor cores      first(s + 1), second(s - 1)   first(s + 2), second(s)       ...
 *     other units       activation of slice s         activation of slice s + 1     ...
 *
 * So what an activation reads and what the second product reads exist twice, and the loop is
 * written out for two slices. At the top of a slice all products are complete, everybody meets at
 * a barrier, and the copies of the weights two slices ahead begin: they pass through three stages
 * of shared memory, and come from L2. A tile's rows are copied to the place of those before it
 * while its predecessor's last slice is evaluated, and its first product runs beside the epilogue.
 *
 * Who has which column. A thread's accumulators of block n of a slice are columns 8 n + 2 t and the
 * next, t = lane % 4. Rounded to pairs they are how wgmma takes its first operand from registers,
 * channel for channel: rows of W1 and channels of W2 lie in shared memory in the order they have in
 * memory, and h goes from one product to the next without a move. Rows of W2 are permuted as they
 * are copied, as stream_norm.cuh wants them: what a thread has of the stream are vectors of 16
 * bytes.
 *
 * A row's bits depend on that row alone. Read on: stream_norm.cuh for the end of a tile, mlp.c for
 * when this is used. */
#include "cuda/mlp.h"
#include "cuda/stream_norm.cuh"
#include "cuda/wgmma.cuh"

#include "act/cuda/fused.cuh"

#if FUSED_APART
extern "C" const mlp_kernels MLP_TABLE = {};
#else

static_assert((int)MLP_WIDTH == STREAM_WIDTH, "the epilogue is stream_norm.cuh's");

namespace
{

constexpr int GROUP = 128, GROUPS = 2, THREADS = GROUPS * GROUP, TILE_ROWS = 64, TILE = GROUPS * TILE_ROWS;
constexpr int SLICE = BLOCK_CHANNELS, DEPTH_BLOCKS = MLP_WIDTH / BLOCK_CHANNELS, STAGES = 3, ALIGN = 1024;
constexpr int BLOCK_BYTES = 64 * BLOCK_ROW_BYTES;                                                   /* of 64 rows */
constexpr int ROWS_BYTES = DEPTH_BLOCKS * BLOCK_BYTES;                                              /* of a warpgroup */
constexpr int FIRST_BYTES = DEPTH_BLOCKS * BLOCK_BYTES, SECOND_BYTES = MLP_WIDTH * BLOCK_ROW_BYTES; /* of a slice */
constexpr int STAGE_BYTES = FIRST_BYTES + SECOND_BYTES;
constexpr int STAGES_AT = GROUPS * ROWS_BYTES, VECTORS_AT = STAGES_AT + STAGES * STAGE_BYTES;
constexpr int BIAS_AT = VECTORS_AT + 3 * MLP_WIDTH * 4;
constexpr int COPY_ROWS = THREADS / 8; /* rows of 128 bytes that the block copies at a time */

static_assert(ALIGN + BIAS_AT + MLP_HIDDEN_MOST * 4 <= 227 * 1024, "what a block can have");
static_assert((int)MLP_SLICES == 2 * SLICE, "the loop takes two slices at a time");

/* ---- copies ---------------------------------------------------------------------------------- */

/* A tile's rows, a block of 64 channels after the other; missing rows are zero. */
DEVICE void rows_fetch(unsigned char *base, const mlp_job &job, int tile)
{
    int chunk = threadIdx.x % 8, first = threadIdx.x / 8;
#pragma unroll
    for (int i = 0; i < TILE / COPY_ROWS; i++) {
        int row = first + i * COPY_ROWS, from = tile * TILE + row;
        bool there = from < job.rows;
        const uint16_t *a = (const uint16_t *)job.a + (int64_t)(there ? from : 0) * MLP_WIDTH + chunk * 8;
        unsigned char *to = base + row / TILE_ROWS * ROWS_BYTES + block_chunk(row % TILE_ROWS, chunk);
#pragma unroll
        for (int block = 0; block < DEPTH_BLOCKS; block++)
            copy_async<16>(to + block * BLOCK_BYTES, a + block * BLOCK_CHANNELS, there);
    }
}

/* A slice's rows of W1. */
DEVICE void first_fetch(unsigned char *stage, const mlp_job &job, int slice)
{
    int chunk = threadIdx.x % 8, row = threadIdx.x / 8;
    const uint16_t *w = (const uint16_t *)job.w1 + (int64_t)(slice * SLICE + row) * MLP_WIDTH + chunk * 8;
    unsigned char *to = stage + block_chunk(row, chunk);
#pragma unroll
    for (int i = 0; i < SLICE / COPY_ROWS; i++)
#pragma unroll
        for (int block = 0; block < DEPTH_BLOCKS; block++)
            copy_async<16>(to + block * BLOCK_BYTES + i * COPY_ROWS * BLOCK_ROW_BYTES,
                           w + i * COPY_ROWS * MLP_WIDTH + block * BLOCK_CHANNELS, true);
}

/* A slice's channels of W2, row n to place_of_column(n): places of rows 32 apart are 32 apart. */
DEVICE void second_fetch(unsigned char *stage, const mlp_job &job, int slice)
{
    int chunk = threadIdx.x % 8, row = threadIdx.x / 8,
        place = job.f32 ? place_of_column<4>(row) : place_of_column<8>(row);
    const uint16_t *w = (const uint16_t *)job.w2 + (int64_t)row * job.hidden + slice * SLICE + chunk * 8;
    unsigned char *to = stage + FIRST_BYTES + block_chunk(place, chunk);
    static_assert(COPY_ROWS == 32, "as far apart as places repeat");
#pragma unroll
    for (int i = 0; i < MLP_WIDTH / COPY_ROWS; i++)
        copy_async<16>(to + i * COPY_ROWS * BLOCK_ROW_BYTES, w + (int64_t)i * COPY_ROWS * job.hidden, true);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Starts the product of 64 rows and a slice of W1. */
DEVICE void first_multiply(float (*acc)[4], const unsigned char *rows, const unsigned char *stage)
{
    uint32_t a = block_operand(rows), b = block_operand(stage);
    product_begin();
#pragma unroll
    for (int k = 0; k < MLP_WIDTH / 16; k++) {
        int at = k / 4 * (BLOCK_BYTES / 16) + k % 4 * 2;
        product<SLICE>(acc, a + at, b + at, k > 0);
    }
    product_end();
}

/* Starts that of h and a slice of W2, added to acc unless it is the first. */
DEVICE void second_multiply(float (*acc)[4], const uint32_t *h, const unsigned char *stage, int add)
{
    uint32_t b = block_operand(stage + FIRST_BYTES);
    product_begin();
#pragma unroll
    for (int k = 0; k < SLICE / 16; k++)
        product_held(acc, h + k * 4, b + k * 2, add || k > 0);
    product_end();
}

/* ---- the activation of a slice --------------------------------------------------------------- */

/* h from the first product, as the second takes it. */
DEVICE void slice_finish(uint32_t *h, const float (*acc)[4], const consts &k, const float *biases, int slice)
{
    const float *bias = biases + slice * SLICE + threadIdx.x % 4 * 2;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        float b[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 pair = *(const float2 *)(bias + part * 32 + i * 8);
            b[2 * i] = pair.x, b[2 * i + 1] = pair.y;
        }
#pragma unroll
        for (int below = 0; below < 2; below++) {
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = acc[part * 4 + i / 2][below * 2 + i % 2] + b[i];
            uint4 y = values_beside(pack<BERLU_BF16>(v), k);
            const uint32_t words[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
                h[held_word(part * 4 + i, below)] = words[i];
        }
    }
}

/* ---- the end of a tile ----------------------------------------------------------------------- */

/* The residual for stream_finish(), read into registers up to AHEAD vectors before they are used:
 * while the last product runs. */
template <typename T> struct ahead_residual {
    static constexpr int VEC = stream_shape<T>::VEC, ALL = 2 * stream_shape<T>::PARTS, AHEAD = 12;
    const mlp_job &job;
    int row;
    packed<T, VEC> ahead[AHEAD];

    __device__ __forceinline__ ahead_residual(const mlp_job &job_, int row_) : job(job_), row(row_)
    {
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            load(i);
    }
    __device__ __forceinline__ void load(int i)
    {
        int at = row + i % 2 * 8;
        if (at < job.rows)
            ahead[i % AHEAD] = packed_load<T, VEC>((const T *)job.residual + stream_index<T>(at, i / 2));
        else
            ahead[i % AHEAD] = {};
    }
    __device__ __forceinline__ packed<T, VEC> get(int part, int below) const
    {
        return ahead[(part * 2 + below) % AHEAD];
    }
    __device__ __forceinline__ void done(int part)
    {
        if (part * 2 + AHEAD < ALL)
            load(part * 2 + AHEAD), load(part * 2 + AHEAD + 1);
    }
};

/* Behind the last product of a tile, that of h; one more may be running. */
template <typename T>
DEVICE void tile_finish(float (*acc)[4], uint32_t *h, const float *vectors, const mlp_job &job, int row)
{
    float sum[2] = {};
    ahead_residual<T> residual(job, row);
    product_wait<MLP_WIDTH, 1>(acc);
    product_hold<SLICE / 4>(h);
    stream_finish<T>(sum, acc, residual, vectors, job, row);
    if (job.y)
        norm_finish<T>(sum, acc, vectors, job, row);
}

/* ---- kernel ---------------------------------------------------------------------------------- */

/* Where a block stands in the three stages. Slice s of a tile finds both its weights in one stage;
 * W1's are read a slice before it and W2's a slice behind it. */
struct ring {
    unsigned char *stages;
    int slices, slice, at; /* `at` is the stage of `slice` */

    __device__ __forceinline__ unsigned char *stage(int offset) const
    {
        int i = at + offset;
        return stages + (i < STAGES ? i : i - STAGES) * STAGE_BYTES;
    }
    __device__ __forceinline__ int ahead(int offset) const
    {
        int s = slice + offset;
        return s < slices ? s : s - slices;
    }
    __device__ __forceinline__ void step()
    {
        slice++;
        at = at + 1 < STAGES ? at + 1 : 0;
    }
};

/* Starts the copies that are possible at the top of a slice, when first(slice) and
 * second(slice - 2) are complete. They are needed two slices later. */
DEVICE void stage_fetch(const ring &r, const mlp_job &job)
{
    first_fetch(r.stage(0), job, r.ahead(3));
    second_fetch(r.stage(1), job, r.ahead(1));
}

/* At the top of a slice: what was copied before the last group is there for everybody, and nobody
 * reads what the finished products read. */
template <int LEFT> DEVICE void top_wait()
{
    copy_wait<LEFT>();
    shared_publish();
    __syncthreads();
}

/* At slice 0 there is no slice before it, and what its second product adds is discarded by the next
 * one: with a branch around it ptxas (CUDA 13.0) would serialize all products (C7515). A twelfth of
 * the second products of ViT-Tiny, beside an activation that takes as long. */
__global__ void __launch_bounds__(THREADS, 1) mlp_kernel(const __grid_constant__ mlp_job job)
{
    SHARED_BYTES(raw);
    unsigned char *base = raw + (-shared_address(raw) & (ALIGN - 1));
    int thread = threadIdx.x % GROUP, group = warp_uniform(threadIdx.x / GROUP), step = (int)gridDim.x;
    const unsigned char *rows = base + group * ROWS_BYTES;
    float *vectors = (float *)(base + VECTORS_AT), *biases = (float *)(base + BIAS_AT);
    int tile = (int)blockIdx.x, row = tile * TILE + group * TILE_ROWS + thread / 32 * 16 + thread % 32 / 4;
    ring r = {base + STAGES_AT, job.hidden / SLICE, 0, 0};
    const consts k = consts_at(job.act);
    stream_vectors(vectors, job.bias2, job.weight, job.shift);
    for (int i = threadIdx.x; i < job.hidden; i += THREADS)
        biases[i] = job.bias1 ? __uint_as_float((uint32_t)((const uint16_t *)job.bias1)[i] << 16) : 0;
    rows_fetch(base, job, tile);
    first_fetch(r.stage(0), job, 0);
    first_fetch(r.stage(1), job, r.ahead(1));
    copy_commit();
    first_fetch(r.stage(2), job, r.ahead(2));
    second_fetch(r.stage(0), job, 0);
    copy_commit();
    top_wait<1>();
    float first[2][SLICE / 8][4];
    uint32_t h[2][SLICE / 4] = {};
    first_multiply(first[0], rows, r.stage(0));
    for (; tile * TILE < job.rows; tile += step, row += step * TILE) {
        float acc[MLP_WIDTH / 8][4];
        r.slice = 0;
#pragma unroll 1
        while (r.slice < r.slices) {
            product_wait<SLICE, 0>(first[0]);
            top_wait<1>();
            stage_fetch(r, job);
            copy_commit();
            first_multiply(first[1], rows, r.stage(1));
            second_multiply(acc, h[1], r.stage(2), 1);
            slice_finish(h[0], first[0], k, biases, r.slice);
            product_wait<SLICE, 0>(first[1]);
            product_wait<MLP_WIDTH, 0>(acc);
            product_hold<SLICE / 4>(h[1]);
            r.step();

            top_wait<1>();
            stage_fetch(r, job);
            if (r.slice + 1 == r.slices)
                rows_fetch(base, job, tile + step);
            copy_commit();
            if (r.slice + 1 < r.slices)
                first_multiply(first[0], rows, r.stage(1));
            second_multiply(acc, h[0], r.stage(2), r.slice > 1);
            slice_finish(h[1], first[1], k, biases, r.slice);
            product_wait<MLP_WIDTH, 0>(acc);
            product_hold<SLICE / 4>(h[0]);
            r.step();
        }
        top_wait<0>();
        second_multiply(acc, h[1], r.stage(2), 1);
        first_multiply(first[0], rows, r.stage(0)); /* of the next tile */
        if (job.f32)
            tile_finish<float>(acc, h[1], vectors, job, row);
        else
            tile_finish<__nv_bfloat16>(acc, h[1], vectors, job, row);
    }
    product_wait<SLICE, 0>(first[0]);
    copy_wait<0>();
}

berlu_status forward(const mlp_job *job, cuda_stream stream)
{
    int64_t tiles = (job->rows + TILE - 1) / TILE;
    kernel_launch((cudaStream_t)stream, mlp_kernel, tiles < job->blocks ? tiles : job->blocks, THREADS,
                  (size_t)(ALIGN + BIAS_AT + job->hidden * 4), *job);
    return gpu_launch_status();
}

} // namespace

extern "C" const mlp_kernels MLP_TABLE = {forward};

#endif
