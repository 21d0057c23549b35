/* rows_gradients.cuh - the product before a slope, and the weight gradient beside it.
 * SPDX-License-Identifier: MIT
 *
 *     dh = dy W, du = dh act'(u), y = act(u)        dW = dy^T y, sums of du
 *
 * In two kernels y would travel through memory (204 MB of ViT-Tiny's layer at batch 1024) and dy be
 * read twice. Here a block keeps a slice of 128 columns of W and the gradient of that slice for its
 * whole life, while tiles of 64 rows stream past: W in shared memory, dW (192 x 128) in the
 * registers of two warpgroups. y exists in shared memory alone.
 *
 * Two roles, two warpgroups each:
 *     elements   dh of the next tile; slope, du and y of this one, the sums of du
 *     weights    dW += dy^T y of this tile, and all copies from memory
 * Each warpgroup has 64 columns of the slice: of dh and du in the first role, as rows of dW^T in
 * the second. The first role is bound by arithmetic; everything else happens beside it.
 *
 * For tile t of a block, in this order:
 *     elements   wait for dy t+1 (and u t); begin dh t+1; wait until y t-2 was used; du and y of
 *                tile t; tell that y t is there; wait for dh t+1
 *     weights    wait for y t; begin dW t; tell that dy t+2 (and u t+1) are there; wait for dW t;
 *                tell that y t was used; start the copies of dy t+4 and u t+3
 * so that dy has four buffers, u three, y two. In each named barrier the one side waits and the
 * other only arrives; there are two of each kind, for even and odd tiles, because the side that
 * arrives may be one tile ahead.
 *
 * A block has one sum of dW and of the columns over its tiles; ends.c adds those of the blocks that
 * share a slice. FINISH is slope_finish (rows.cu). Read on: rows_kernel.cuh for the words used
 * here, wgmma_rows.cuh for the product over rows. */
#ifndef CUDA_ROWS_GRADIENTS_CUH
#define CUDA_ROWS_GRADIENTS_CUH

#include "cuda/rows_kernel.cuh"
#include "cuda/wgmma_rows.cuh"

constexpr int GRADIENTS_ROLE = 2 * ROWS_GROUP, GRADIENTS_PARTS = 2; /* threads of a role; parts of 32 columns */
constexpr int GRADIENTS_DY = 4, GRADIENTS_U = 3, GRADIENTS_Y = 2;   /* buffers */
constexpr int GRADIENTS_WEIGHT_BLOCK = GRADIENTS_SLICE * BLOCK_ROW_BYTES;
constexpr int GRADIENTS_U_BYTES = GRADIENTS_PARTS * 2 * GRADIENTS_ROLE * (int)sizeof(uint4);
constexpr int GRADIENTS_Y_BYTES = GRADIENTS_SLICE / BLOCK_CHANNELS * TILE_BLOCK;
constexpr int GRADIENTS_DY_AT = ROWS_BLOCKS * GRADIENTS_WEIGHT_BLOCK;
constexpr int GRADIENTS_Y_AT = GRADIENTS_DY_AT + GRADIENTS_DY * TILE_BYTES;
constexpr int GRADIENTS_U_AT = GRADIENTS_Y_AT + GRADIENTS_Y * GRADIENTS_Y_BYTES;
constexpr int GRADIENTS_SHARED = ROWS_ALIGN + GRADIENTS_U_AT + GRADIENTS_U * GRADIENTS_U_BYTES;
static_assert(GRADIENTS_SHARED <= 227 * 1024, "what a block may have");

/* Barriers, each for even and odd tiles; the last two are within a role. */
enum { DY_HERE = 1, Y_HERE = 3, Y_USED = 5, WEIGHTS_MEET = 7, ELEMENTS_MEET = 8 };
constexpr int BOTH_ROLES = 2 * GRADIENTS_ROLE;

/* The tiles of a block, and where a thread of either role stands. */
struct gradients_place {
    int n0, group, step, count; /* first column; first tile; from tile to tile; tiles, an even
                                   number: the last may be one without rows */
    int thread, half, row, column;
};

DEVICE gradients_place gradients_place_of(const rows_job &job)
{
    int slices = (int)(job.act.channels / GRADIENTS_SLICE), step = (int)gridDim.x / slices;
    int group = (int)blockIdx.x / slices, tiles = ((int)job.act.rows + ROWS_TILE - 1) / ROWS_TILE;
    int thread = (int)threadIdx.x % GRADIENTS_ROLE, lane = thread % 32;
    int half = warp_uniform(thread / ROWS_GROUP);
    return {(int)blockIdx.x % slices * GRADIENTS_SLICE,
            group,
            step,
            (tiles - group + 2 * step - 1) / (2 * step) * 2,
            thread,
            half,
            thread / 32 % 4 * 16 + lane / 4,
            half * BLOCK_CHANNELS + lane % 4 * 8};
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Starts the copies of dy of tile i of the block, and of u; past the last tile all are zero. */
DEVICE void gradients_fetch_dy(unsigned char *shared, const rows_job &job, const gradients_place &at, int i)
{
    rows_fetch(shared + GRADIENTS_DY_AT + i % GRADIENTS_DY * TILE_BYTES, job, at.group + i * at.step);
}

/* A thread copies what the thread of the same number in the other role reads. */
template <typename FINISH>
DEVICE void gradients_fetch_u(unsigned char *shared, FINISH &finish, const gradients_place &at, int i)
{
    uint4 *slots = (uint4 *)(shared + GRADIENTS_U_AT + i % GRADIENTS_U * GRADIENTS_U_BYTES) + at.thread;
#pragma unroll
    for (int part = 0; part < GRADIENTS_PARTS; part++)
        finish.template fetch<GRADIENTS_ROLE>(slots + part * 2 * GRADIENTS_ROLE,
                                              (at.group + i * at.step) * ROWS_TILE + at.row, part);
}

/* The block's share of dW, of which a thread has two rows of dW^T, as [depth][channels]. */
DEVICE void gradients_store(const rows_job &job, const gradients_place &at, const float (*dw)[4])
{
    int lane = (int)threadIdx.x % 32, channels = (int)job.act.channels;
    float *to =
        job.dw + ((int64_t)at.group * ROWS_DEPTH + lane % 4 * 2) * channels + at.n0 + at.half * BLOCK_CHANNELS + at.row;
#pragma unroll
    for (int n = 0; n < ROWS_DEPTH / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[(int64_t)(n * 8 + i % 2) * channels + i / 2 * 8] = dw[n][i];
}

template <typename FINISH>
DEVICE void gradients_weights(unsigned char *shared, const rows_job &job, FINISH &finish, const gradients_place &at)
{
    uint32_t dy = block_operand(shared + GRADIENTS_DY_AT), y = block_operand(shared + GRADIENTS_Y_AT);
    float dw[ROWS_DEPTH / 8][4] = {};
    for (int i = 0; i < at.count; i++) {
        uint32_t a = y + (uint32_t)(i % GRADIENTS_Y * GRADIENTS_Y_BYTES + at.half * TILE_BLOCK) / 16;
        uint32_t b = (dy + (uint32_t)(i % GRADIENTS_DY * TILE_BYTES) / 16) + operand_apart<TILE_BLOCK>;
        barrier_wait(Y_HERE + i % 2, BOTH_ROLES);
        product_begin();
#pragma unroll
        for (int k = 0; k < ROWS_TILE / 16; k++)
            product_across_192(dw, a + k * ROWS_STEP, b + k * ROWS_STEP, i + k > 0);
        product_end();
        copy_wait<1>();
        shared_publish();
        if (i + 1 < at.count) /* else nobody waits */
            barrier_arrive(DY_HERE + i % 2, BOTH_ROLES);
        product_wait<ROWS_DEPTH, 0>(dw);
        if (i + GRADIENTS_Y < at.count)
            barrier_arrive(Y_USED + i % 2, BOTH_ROLES);
        barrier_wait(WEIGHTS_MEET, GRADIENTS_ROLE); /* nobody reads this dy any more */
        gradients_fetch_dy(shared, job, at, i + GRADIENTS_DY);
        gradients_fetch_u(shared, finish, at, i + GRADIENTS_U);
        copy_commit();
    }
    copy_wait<0>();
    gradients_store(job, at, dw);
}

/* ---- elements -------------------------------------------------------------------------------- */

DEVICE void gradients_begin(float (*acc)[4], uint32_t dy, uint32_t weights)
{
    product_begin();
    product_first<BLOCK_CHANNELS>(acc, dy, weights);
#pragma unroll
    for (int k = 1; k < ROWS_DEPTH / 16; k++) {
        int block = k / 4, within = k % 4 * 2;
        product<BLOCK_CHANNELS>(acc, dy + block * (TILE_BLOCK / 16) + within,
                                weights + block * (GRADIENTS_WEIGHT_BLOCK / 16) + within, 1);
    }
    product_end();
}

/* Tile i, whose product is in `now`; that of the next one is computed meanwhile. */
template <typename FINISH>
DEVICE void gradients_tile(unsigned char *shared, FINISH &finish, const gradients_place &at, int i, float (*now)[4],
                           float (*next)[4], uint32_t weights)
{
    barrier_wait(DY_HERE + (i + 1) % 2, BOTH_ROLES);
    gradients_begin(next, block_operand(shared + GRADIENTS_DY_AT + (i + 1) % GRADIENTS_DY * TILE_BYTES), weights);
    if (i >= GRADIENTS_Y)
        barrier_wait(Y_USED + i % 2, BOTH_ROLES);
    const uint4 *slots = (const uint4 *)(shared + GRADIENTS_U_AT + i % GRADIENTS_U * GRADIENTS_U_BYTES) + at.thread;
    unsigned char *y = shared + GRADIENTS_Y_AT + i % GRADIENTS_Y * GRADIENTS_Y_BYTES + at.half * TILE_BLOCK;
    int row = (at.group + i * at.step) * ROWS_TILE + at.row;
#pragma unroll
    for (int part = 0; part < GRADIENTS_PARTS; part++)
#pragma unroll
        for (int below = 0; below < 2; below++) {
            float dh[8];
            vector_of(dh, now + part * (ROWS_PART / 8), below);
            uint4 out = finish.row_finish(slots[(part * 2 + below) * GRADIENTS_ROLE], dh, row + below * 8, part);
            *(uint4 *)(y + block_chunk(at.row + below * 8, part * 4 + at.thread % 4)) = out;
        }
    shared_publish();
    barrier_arrive(Y_HERE + i % 2, BOTH_ROLES);
    product_wait<BLOCK_CHANNELS, 0>(next); /* here: none may be in flight where a loop repeats */
}

/* Sums over the rows of a block, as columns_end() has them: 16 columns a thread. */
DEVICE void gradients_columns(float *to, float *scratch, const float *column, const gradients_place &at)
{
    int lane = at.thread % 32, warp = at.thread / 32 % 4;
    float *mine = scratch + warp * GRADIENTS_SLICE + at.column;
#pragma unroll
    for (int i = 0; i < GRADIENTS_PARTS * 8; i++) {
        float sum = column[i];
        for (int mask = 4; mask < 32; mask *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        if (lane < 4)
            mine[i / 8 * 32 + i % 8] = sum;
    }
    barrier_wait(ELEMENTS_MEET, GRADIENTS_ROLE);
    if (at.thread < GRADIENTS_SLICE)
        to[at.thread] = scratch[at.thread] + scratch[GRADIENTS_SLICE + at.thread] +
                        scratch[2 * GRADIENTS_SLICE + at.thread] + scratch[3 * GRADIENTS_SLICE + at.thread];
    barrier_wait(ELEMENTS_MEET, GRADIENTS_ROLE);
}

/* The sum over the threads of the role, for its first thread. */
DEVICE double gradients_sum(float *scratch, double v, const gradients_place &at)
{
    double *warps = (double *)scratch;
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_down_sync(0xffffffffu, v, step);
    if (at.thread % 32 == 0)
        warps[at.thread / 32] = v;
    barrier_wait(ELEMENTS_MEET, GRADIENTS_ROLE);
    for (int i = 1; i < GRADIENTS_ROLE / 32 && at.thread == 0; i++)
        v += warps[i];
    barrier_wait(ELEMENTS_MEET, GRADIENTS_ROLE);
    return v;
}

template <typename FINISH>
DEVICE void gradients_elements(unsigned char *shared, const rows_job &job, FINISH &finish, const gradients_place &at)
{
    float even[BLOCK_CHANNELS / 8][4], odd[BLOCK_CHANNELS / 8][4];
    uint32_t weights = block_operand(shared + at.half * BLOCK_CHANNELS * BLOCK_ROW_BYTES);
    barrier_wait(DY_HERE, BOTH_ROLES);
    gradients_begin(even, block_operand(shared + GRADIENTS_DY_AT), weights);
    product_wait<BLOCK_CHANNELS, 0>(even);
    for (int i = 0; i < at.count; i += 2) {
        gradients_tile(shared, finish, at, i, even, odd, weights);
        gradients_tile(shared, finish, at, i + 1, odd, even, weights);
    }
    barrier_wait(ELEMENTS_MEET, GRADIENTS_ROLE);
    float *scratch = (float *)shared; /* where the weights were */
    if (job.act.bias_sum)
        gradients_columns(job.act.bias_sum + (int64_t)at.group * job.act.channels + at.n0, scratch, finish.column, at);
    finish.sums_end([&](double v) { return gradients_sum(scratch, v, at); });
}

/* ---- the kernel ------------------------------------------------------------------------------ */

template <typename FINISH>
__global__ void __launch_bounds__(ROWS_THREADS, 1) rows_gradients(const __grid_constant__ rows_job job)
{
    SHARED_BYTES(raw);
    unsigned char *shared = raw + (-shared_address(raw) & (ROWS_ALIGN - 1));
    const gradients_place at = gradients_place_of(job);
    FINISH finish(job, at.n0 + at.column);
    if (warp_uniform((int)threadIdx.x / GRADIENTS_ROLE)) {
        gradients_fetch_dy(shared, job, at, 0);
        gradients_fetch_u(shared, finish, at, 0);
        gradients_fetch_dy(shared, job, at, 1);
        copy_commit();
        for (int i = 1; i < GRADIENTS_U; i++) {
            gradients_fetch_dy(shared, job, at, i + 1);
            gradients_fetch_u(shared, finish, at, i);
            copy_commit();
        }
    }
    weights_transpose<GRADIENTS_SLICE>(shared, job, at.n0);
    shared_publish();
    __syncthreads();
    if (warp_uniform((int)threadIdx.x / GRADIENTS_ROLE)) {
        copy_wait<GRADIENTS_U - 1>();
        shared_publish();
        barrier_arrive(DY_HERE, BOTH_ROLES);
        barrier_arrive(DY_HERE + 1, BOTH_ROLES);
        gradients_weights(shared, job, finish, at);
    } else {
        gradients_elements(shared, job, finish, at);
    }
}

#endif
