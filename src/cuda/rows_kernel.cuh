/* rows_kernel.cuh - rows stream past weights that stay in shared memory.
 * SPDX-License-Identifier: MIT
 *
 * With 192 inputs the weights of 192 columns are 72 KiB: a block keeps such a slice for its whole
 * life, and every processor has one block. Four warpgroups work in two pairs; a pair takes 64 rows
 * at a time, each warpgroup half of the columns in three parts of 32. The first part is finished
 * while tensor cores still compute the other two, and the next rows are copied meanwhile. So the
 * product costs little beside the memory traffic and the arithmetic of the epilogue. What an
 * epilogue reads of its own is copied to shared memory a whole tile ahead: in registers there would
 * be space for one part, too few bytes in flight for the memory's latency.
 *
 * The epilogue happens in registers. mma leaves a thread two columns of every eight; rows of W are
 * therefore permuted as they are copied (column_place), such that a thread has eight columns that
 * follow each other in memory. Results leave as vectors of 16 bytes, four threads side by side,
 * without a detour through shared memory, and warps need not wait for each other.
 *
 * FINISH is the epilogue:
 *     BY_DEPTH                       W is stored [depth][channels], not [channels][depth]
 *     FETCHES                        it reads a matrix like the result, through the thread's slots
 *     FINISH(job, channel)           for a thread whose columns are eight from `channel` on, and 32
 *                                    and 64 on
 *     fetch(slot, row, part)         starts the copies of a part: one to slot[0], one to
 *                                    slot[ROWS_THREADS]
 *     finish(acc, slot, row, part)   the elements of a part: eight columns of row and of row + 8
 *     end(shared, place)             after the last row; all threads of the block
 * Read on: wgmma.cuh for the product, rows.cu for the epilogues. */
#ifndef CUDA_ROWS_KERNEL_CUH
#define CUDA_ROWS_KERNEL_CUH

#include "cuda/rows.h"
#include "cuda/wgmma.cuh"

constexpr int ROWS_THREADS = 512, ROWS_PAIR = 256, ROWS_GROUP = 128; /* a block, a pair, a warpgroup */
constexpr int ROWS_HALF = ROWS_SLICE / 2;
constexpr int ROWS_BLOCKS = ROWS_DEPTH / BLOCK_CHANNELS;
constexpr int TILE_BLOCK = ROWS_TILE * BLOCK_ROW_BYTES, WEIGHT_BLOCK = ROWS_SLICE * BLOCK_ROW_BYTES;
constexpr int TILE_BYTES = ROWS_BLOCKS * TILE_BLOCK, WEIGHT_BYTES = ROWS_BLOCKS * WEIGHT_BLOCK;
constexpr int ROWS_ALIGN = 1024;
constexpr int ROWS_PART = 32, ROWS_PARTS = ROWS_HALF / ROWS_PART;
constexpr int SLOTS_AT = WEIGHT_BYTES + 4 * TILE_BYTES; /* two tiles a pair */
constexpr int SLOT_BYTES = ROWS_PARTS * 2 * ROWS_THREADS * (int)sizeof(uint4);
template <typename FINISH> constexpr int rows_shared = ROWS_ALIGN + SLOTS_AT + (FINISH::FETCHES ? SLOT_BYTES : 0);

/* Where thread and warp stand in the block. */
struct rows_place {
    int pair, half, row, column; /* row of the tile; column of the slice */
};

DEVICE rows_place place_of(int thread)
{
    int lane = thread % 32, group = warp_uniform(thread / ROWS_GROUP), half = group % 2;
    return {group / 2, half, thread / 32 % 4 * 16 + lane / 4, half * ROWS_HALF + lane % 4 * 8};
}

/* The row of the operand in which a column of the slice lies: among 32 columns 8 t + 2 j + e is at
 * 8 j + 2 t + e, and there thread t of four has it as number e of block j. */
DEVICE int column_place(int n)
{
    return (n & ~31) | (n & 6) << 2 | (n >> 3 & 3) << 1 | (n & 1);
}

/* Tiles are taken from the last to the first (prim.cuh, last_first), so what is copied ahead may
 * lie before row 0. */
DEVICE bool row_exists(const rows_job &job, int row)
{
    return (uint32_t)row < (uint32_t)job.act.rows;
}

/* Starts the copy of a tile of rows by the threads of a pair, four to a row; missing rows are
 * zero. */
DEVICE void rows_fetch(unsigned char *to, const rows_job &job, int tile)
{
    int thread = threadIdx.x % ROWS_PAIR, row = thread / 4, quarter = thread % 4, from = tile * ROWS_TILE + row;
    bool there = row_exists(job, from);
    const uint16_t *line = (const uint16_t *)job.a + (int64_t)(there ? from : 0) * ROWS_DEPTH;
#pragma unroll
    for (int i = 0; i < ROWS_DEPTH / 8; i += 4) {
        int chunk = i + quarter;
        copy_async<16>(to + i / 8 * TILE_BLOCK + block_chunk(row, chunk % 8), line + chunk * 8, there);
    }
}

/* The slice from column n0 on, of W as [channels][depth]. */
DEVICE void weights_fetch(unsigned char *to, const rows_job &job, int n0)
{
    const uint16_t *w = (const uint16_t *)job.w + (int64_t)n0 * ROWS_DEPTH;
#pragma unroll
    for (int i0 = 0; i0 < ROWS_SLICE * ROWS_DEPTH / 8; i0 += ROWS_THREADS) {
        int i = i0 + (int)threadIdx.x, n = i / (ROWS_DEPTH / 8), chunk = i % (ROWS_DEPTH / 8);
        copy_async<16>(to + chunk / 8 * WEIGHT_BLOCK + block_chunk(column_place(n), chunk % 8), w + i * 8, true);
    }
}

/* The same of W as [depth][channels]: a thread has two rows of eight columns and writes pairs, a
 * warp 64 rows, so that it writes whole rows of a block. */
DEVICE void weights_transpose(unsigned char *to, const rows_job &job, int n0)
{
    constexpr int WARPS = ROWS_THREADS / 32, PARTS = ROWS_BLOCKS * ROWS_SLICE / 8, TURNS = (PARTS + WARPS - 1) / WARPS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    packed<__nv_bfloat16, 8> even[TURNS], odd[TURNS];
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        int part = i * WARPS + warp, block = part % ROWS_BLOCKS, n = part / ROWS_BLOCKS * 8;
        const uint16_t *w =
            (const uint16_t *)job.w + (int64_t)(block * BLOCK_CHANNELS + 2 * lane) * job.act.channels + n0 + n;
        if (part < PARTS) {
            even[i] = packed_load<__nv_bfloat16, 8>(w);
            odd[i] = packed_load<__nv_bfloat16, 8>(w + job.act.channels);
        }
    }
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        int part = i * WARPS + warp, block = part % ROWS_BLOCKS, n = part / ROWS_BLOCKS * 8;
#pragma unroll
        for (int j = 0; j < 8 && part < PARTS; j++) {
            uint32_t a = even[i].word[j / 2], b = odd[i].word[j / 2];
            uint32_t pair = j % 2 ? a >> 16 | (b & 0xffff0000u) : (a & 0xffffu) | b << 16;
            unsigned char *row = to + block * WEIGHT_BLOCK + block_chunk(column_place(n + j), lane / 4);
            *(uint32_t *)(row + lane % 4 * 4) = pair;
        }
    }
}

/* Starts the product of a tile and N columns. */
template <int N> DEVICE void part_multiply(float (*acc)[4], const unsigned char *tile, const unsigned char *weights)
{
    uint32_t a = block_operand(tile), b = block_operand(weights);
    product_begin();
#pragma unroll
    for (int k = 0; k < ROWS_DEPTH / 16; k++) {
        int block = k / 4, within = k % 4 * 2;
        product<N>(acc, a + block * (TILE_BLOCK / 16) + within, b + block * (WEIGHT_BLOCK / 16) + within, k > 0);
    }
    product_end();
}

/* A group of copies for every part of a tile, where there is something to fetch. A slot is read by
 * the thread that copied to it, and copied to again when that read has been used. */
template <typename FINISH> DEVICE void part_fetch(FINISH &finish, uint4 *slots, int row, int part)
{
    if (!FINISH::FETCHES)
        return;
    finish.fetch(slots + part * 2 * ROWS_THREADS, row, part);
    copy_commit();
}

/* Groups are committed in the order: rows of a tile, its parts 0, 1, 2. So behind a part, when it
 * is needed, three groups may be in flight, and behind the next rows, before the last part is
 * finished, two. Rows are published there and not at the start of their tile, where everybody would
 * wait. */
template <typename FINISH>
__global__ void __launch_bounds__(ROWS_THREADS, 1) rows_product(const __grid_constant__ rows_job job)
{
    constexpr int PARTS_LEFT = FINISH::FETCHES ? ROWS_PARTS : 0;
    SHARED_BYTES(raw);
    unsigned char *weights = raw + (-shared_address(raw) & (ROWS_ALIGN - 1));
    const rows_place at = place_of(threadIdx.x);
    unsigned char *now = weights + WEIGHT_BYTES + at.pair * 2 * TILE_BYTES, *next = now + TILE_BYTES;
    uint4 *slots = (uint4 *)(weights + SLOTS_AT) + threadIdx.x;
    const unsigned char *half = weights + at.half * ROWS_HALF * BLOCK_ROW_BYTES;
    int slices = (int)(job.act.channels / ROWS_SLICE), n0 = blockIdx.x % slices * ROWS_SLICE;
    int tiles = ((int)job.act.rows + ROWS_TILE - 1) / ROWS_TILE, step = (int)gridDim.x / slices * 2;
    int tile = (int)last_first(blockIdx.x / slices * 2 + at.pair, tiles);
    FINISH finish(job, n0 + at.column);
    rows_fetch(now, job, tile);
    if (!FINISH::BY_DEPTH)
        weights_fetch(weights, job, n0);
    copy_commit();
#pragma unroll
    for (int part = 0; part < ROWS_PARTS; part++)
        part_fetch(finish, slots, tile * ROWS_TILE + at.row, part);
    if (FINISH::BY_DEPTH)
        weights_transpose(weights, job, n0);
    copy_wait<PARTS_LEFT>();
    shared_publish();
    __syncthreads();
    for (; tile >= 0; tile -= step) {
        int row = tile * ROWS_TILE + at.row;
        barrier_wait(1 + at.pair, ROWS_PAIR); /* this tile is here, and nobody reads the one before */
        float acc[ROWS_HALF / 8][4];
        part_multiply<ROWS_PART>(acc, now, half);
        part_multiply<2 * ROWS_PART>(acc + ROWS_PART / 8, now, half + ROWS_PART * BLOCK_ROW_BYTES);
        rows_fetch(next, job, tile - step);
        copy_commit();
#pragma unroll
        for (int part = 0; part < ROWS_PARTS; part++) {
            if (part == 0)
                product_wait<ROWS_PART, 1>(acc);
            else if (part == 1)
                product_wait<2 * ROWS_PART, 0>(acc + ROWS_PART / 8);
            if (part < ROWS_PARTS - 1) {
                copy_wait<ROWS_PARTS>();
            } else {
                copy_wait<PARTS_LEFT ? PARTS_LEFT - 1 : 0>();
                shared_publish();
            }
            finish.finish(acc + part * ROWS_PART / 8, slots + part * 2 * ROWS_THREADS, row, part);
            part_fetch(finish, slots, row - step * ROWS_TILE, part);
        }
        unsigned char *swap = now;
        now = next;
        next = swap;
    }
    copy_wait<0>();
    __syncthreads();
    finish.end((float *)weights, at);
}

/* The vector of a part of a row: its place in a matrix like the result, counted in vectors (32 bits
 * suffice, rows.c), and its accumulators, of row (below 0) or row + 8 (1). */
DEVICE uint32_t vector_index(const rows_job &job, int row, int channel, int part)
{
    return (uint32_t)row * (uint32_t)(job.act.channels / 8) + (uint32_t)(channel + part * ROWS_PART) / 8;
}

DEVICE void vector_of(float *v, const float (*acc)[4], int below)
{
#pragma unroll
    for (int j = 0; j < 8; j++)
        v[j] = acc[j / 2][below * 2 + j % 2];
}

/* Sums over the rows of a block: 24 columns a thread, column[8 i + j] being column + 32 i + j. `to`
 * has one number per column of the slice; the order of additions is fixed. */
DEVICE void columns_end(float *to, float *shared, const float *column, const rows_place &at)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    float *mine = shared + (at.pair * 4 + warp) * ROWS_SLICE + at.column;
#pragma unroll
    for (int i = 0; i < ROWS_HALF / 4; i++) {
        float sum = column[i];
        for (int mask = 4; mask < 32; mask *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        if (lane < 4)
            mine[i / 8 * 32 + i % 8] = sum;
    }
    __syncthreads();
    if (threadIdx.x < ROWS_SLICE) {
        float sum = shared[threadIdx.x];
        for (int i = 1; i < 8; i++)
            sum += shared[i * ROWS_SLICE + threadIdx.x];
        to[threadIdx.x] = sum;
    }
}

#endif
