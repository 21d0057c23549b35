/* norm_ahead.cuh - the gradient of layer norm for widths of 24 times a power of two.
 * SPDX-License-Identifier: MIT
 *
 * A kernel that waits for a row's operands, computes, stores, and only then asks for the next row
 * leaves memory idle: 66,560 rows of 192 channels in bf16 took 37.4 us on an H200. Here a warp
 * copies the rows that it needs next into shared memory, asynchronously and STAGES deep, and
 * computes from there: 34.2 us, 0.94 of the floor. Each warp does so for itself; the warps of a
 * block meet only for the column sums in the end.
 *
 * L lanes share a row, and a lane has 12 of its channels, 24 in rows of 768. So a lane's 36 column
 * sums, its weights and a row fit into 128 registers, and 16 warps into a multiprocessor. With 24
 * channels they do not: the weights then stay in shared memory, and a row is read twice. A tile is
 * what a warp computes at a time, 32 / L rows, a contiguous piece of each operand.
 *
 * Sums over rows: a lane adds the rows of its tiles in order, then the lanes with the same channels
 * are added, then the warps of a block, then the blocks (ends.c). The grid depends on the shape
 * alone, so the bits do too. */
#ifndef CUDA_NORM_AHEAD_CUH
#define CUDA_NORM_AHEAD_CUH

#include <type_traits>

#include "cuda/norm_rows.cuh"

/* How a kernel fills a multiprocessor: warps of a block, blocks at a time, tiles in shared memory
 * for each warp, of which it computes one, and rows of a tile for each L lanes. */
template <int WARPS_, int RESIDENT_, int STAGES_, int DEEP_> struct norm_fill {
    static constexpr int WARPS = WARPS_, RESIDENT = RESIDENT_, STAGES = STAGES_, DEEP = DEEP_;
    static constexpr int BLOCKS = RESIDENT * NORM_PROCESSORS;
    static_assert(BLOCKS <= NORM_BLOCKS, "the workspace suffices");
};

/* The choice, measured on an H200 (bench/cuda_kernels.cu, "grad"): more stages, shallower ones or
 * blocks of four warps take as long, or up to 6 % longer. The blocks of a multiprocessor have 227
 * KiB together, and each at most 99: GPUs of compute capability 8.6 and 8.9 have no more. */
template <typename TX, typename TD, int WIDTH> struct norm_fill_best {
    static constexpr int BYTES = sizeof(TX) + sizeof(TD); /* 4: all bf16, 8: all f32 */
    using narrow = norm_fill<8, 2, 2, BYTES == 4 ? 2 : 1>;
    using wide = norm_fill<4, BYTES == 8 ? 2 : 3, BYTES == 4 ? 3 : 2, 1>;
    using type = std::conditional_t<WIDTH <= 384, narrow, wide>;
};

/* A stage: a tile of dy, of x and of the residual, and the statistics of its rows. */
template <typename TX, typename TD, int WIDTH, int DEEP> struct norm_tile {
    static constexpr int CHANNELS = WIDTH > 384 ? 24 : 12, L = WIDTH / CHANNELS, ROWS = 32 / L * DEEP, VEC = 4;
    static constexpr int SLICES = CHANNELS / VEC, ELEMENTS = ROWS * WIDTH;
    static constexpr bool HELD = CHANNELS == 12; /* weights and the row, as floats in registers */
    static constexpr int X = ELEMENTS * (int)sizeof(TD), RESIDUAL = X + ELEMENTS * (int)sizeof(TX);
    static constexpr int STATISTICS = RESIDUAL + ELEMENTS * (int)sizeof(TX);
    static constexpr int BYTES = STATISTICS + (ROWS * (int)sizeof(float2) + 15) / 16 * 16;
    static_assert(L <= 32 && 32 % L == 0 && L * CHANNELS == WIDTH, "lanes share rows evenly");
    static_assert(ROWS <= 32, "a lane copies the statistics of a row");
};

/* The elements from `from` on, those of the first `left`; zeros for the others of the tile. */
template <typename T, int ELEMENTS> DEVICE void tile_copy(unsigned char *to, const T *from, int left)
{
    constexpr int EACH = 16 / (int)sizeof(T), CHUNKS = ELEMENTS / EACH;
#pragma unroll
    for (int c = threadIdx.x % 32; c < CHUNKS; c += 32)
        copy_async<16>(to + c * 16, from + c * EACH, c * EACH < left);
}

template <typename TX, typename TD, int WIDTH, int DEEP>
DEVICE void norm_tile_copy(const norm_grad_args &a, unsigned char *stage, int64_t tile)
{
    using shape = norm_tile<TX, TD, WIDTH, DEEP>;
    int64_t at = tile * shape::ELEMENTS, row = tile * shape::ROWS;
    if (tile >= 0) {
        int rows = a.rows - row < shape::ROWS ? (int)(a.rows - row) : shape::ROWS, left = rows * WIDTH;
        tile_copy<TD, shape::ELEMENTS>(stage, (const TD *)a.dy.data + at, left);
        tile_copy<TX, shape::ELEMENTS>(stage + shape::X, (const TX *)a.x.data + at, left);
        if (a.residual.data)
            tile_copy<TX, shape::ELEMENTS>(stage + shape::RESIDUAL, (const TX *)a.residual.data + at, left);
        int lane = threadIdx.x % 32;
        if (lane < shape::ROWS)
            copy_async<8>(stage + shape::STATISTICS + lane * 8, a.statistics + row + lane, lane < rows);
    }
    copy_commit();
}

/* A row of a tile, as a lane sees it: channels in slices of VEC neighbours, slice s L VEC elements
 * behind slice 0. */
template <typename TX, typename TD> struct norm_place {
    const TD *dy;
    const TX *x, *residual;
    float2 stat;
    int64_t at; /* of slice 0 in memory */
    bool there;
};

/* Weights or biases of slice s: among those of the lane, or of the row. */
template <typename SHAPE> DEVICE void vector_load(float *to, const float *from, int s)
{
    constexpr int VEC = SHAPE::VEC;
    if constexpr (SHAPE::HELD) {
#pragma unroll
        for (int i = 0; i < VEC; i++)
            to[i] = from[s * VEC + i];
    } else
        elements_load<float, VEC>(to, from + (s * SHAPE::L + threadIdx.x % SHAPE::L) * VEC);
}

/* A slice in one instruction, by name (see vector_store). */
template <typename T> DEVICE void slice_store(void *to, const float *v)
{
    if constexpr (sizeof(T) == 4)
        vector_store(
            to, make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])));
    else
        vector_store(to, make_uint2(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3])));
}

/* dx of a row, y and the copy of dx where wanted, and what the row adds to the column sums of this
 * lane: sums[0] for dw, sums[1] for db, sums[2] of dx. */
template <typename TX, typename TD, typename SHAPE, int PARTS>
DEVICE void norm_place_grad(const norm_grad_args &a, const norm_place<TX, TD> &p, const float *weights,
                            const float *biases, float (*sums)[SHAPE::CHANNELS])
{
    constexpr int VEC = SHAPE::VEC, L = SHAPE::L, NEXT = L * VEC, HOLD = SHAPE::HELD ? SHAPE::CHANNELS : VEC;
    constexpr float SHARE = 1.0f / (L * SHAPE::CHANNELS);
    float dy[HOLD], h[HOLD], w[VEC], out[VEC], sum = 0, dot = 0;
    auto normalised = [&](float *to, int s) {
        elements_load<TX, VEC>(to, p.x + s * NEXT);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            to[i] = (to[i] - p.stat.x) * p.stat.y;
    };
#pragma unroll
    for (int s = 0; s < SHAPE::SLICES; s++) {
        int held = SHAPE::HELD ? s * VEC : 0;
        elements_load<TD, VEC>(dy + held, p.dy + s * NEXT);
        normalised(h + held, s);
        vector_load<SHAPE>(w, weights, s);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            int c = s * VEC + i;
            float g = dy[held + i] * w[i];
            sums[0][c] = fmaf(dy[held + i], h[held + i], sums[0][c]);
            sums[1][c] += dy[held + i];
            sum += g;
            dot = fmaf(g, h[held + i], dot);
        }
    }
    sum = lane_sum<L>(sum) * SHARE;
    dot = lane_sum<L>(dot) * SHARE;
    if (!p.there)
        return;
#pragma unroll
    for (int s = 0; s < SHAPE::SLICES; s++) {
        int held = SHAPE::HELD ? s * VEC : 0;
        if (!SHAPE::HELD) {
            elements_load<TD, VEC>(dy, p.dy + s * NEXT);
            normalised(h, s);
        }
        vector_load<SHAPE>(w, weights, s);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            out[i] = 0;
        if (a.residual.data)
            elements_load<TX, VEC>(out, p.residual + s * NEXT);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            out[i] = fmaf(p.stat.y, fmaf(-h[held + i], dot, fmaf(dy[held + i], w[i], -sum)), out[i]);
            if constexpr (PARTS == 3)
                sums[2][s * VEC + i] += out[i];
        }
        slice_store<TX>((TX *)a.dx.data + p.at + s * NEXT, out);
        if (sizeof(TX) == 4 && a.copy.data)
            slice_store<__nv_bfloat16>((__nv_bfloat16 *)a.copy.data + p.at + s * NEXT, out);
    }
    if (!a.y.data)
        return;
#pragma unroll
    for (int s = 0; s < SHAPE::SLICES; s++) { /* as norm_fast() computes it */
        int held = SHAPE::HELD ? s * VEC : 0;
        if (!SHAPE::HELD)
            normalised(h, s);
        vector_load<SHAPE>(w, weights, s);
        vector_load<SHAPE>(out, biases, s);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            out[i] = fmaf(h[held + i], w[i], out[i]);
        slice_store<TD>((TD *)a.y.data + p.at + s * NEXT, out);
    }
}

/* The block's row of partial sums: over the row groups of a warp by shuffles, over warps in shared
 * memory. */
template <int WIDTH, int CHANNELS, int VEC, int PARTS, int WARPS>
DEVICE void norm_ahead_partial(const norm_grad_args &a, float *shared, float (*sums)[CHANNELS])
{
    constexpr int L = WIDTH / CHANNELS;
    int lane = threadIdx.x % 32;
    float *mine = shared + threadIdx.x / 32 * PARTS * WIDTH;
#pragma unroll
    for (int k = 0; k < PARTS; k++)
#pragma unroll
        for (int s = 0; s < CHANNELS / VEC; s++) {
            float *v = sums[k] + s * VEC;
#pragma unroll
            for (int i = 0; i < VEC; i++)
#pragma unroll
                for (int mask = L; mask < 32; mask *= 2)
                    v[i] += __shfl_xor_sync(0xffffffffu, v[i], mask);
            if (lane < L)
                *(float4 *)(mine + k * WIDTH + (s * L + lane) * VEC) = make_float4(v[0], v[1], v[2], v[3]);
        }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < PARTS * WIDTH; i += WARPS * 32) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++)
            sum += shared[k * PARTS * WIDTH + i];
        a.partial[(int64_t)blockIdx.x * PARTS * WIDTH + i] = sum;
    }
}

/* Stages first, then weights and biases where they are not held; partial sums in the end. */
template <typename TX, typename TD, int WIDTH, int PARTS, typename FILL> constexpr size_t norm_ahead_shared()
{
    using shape = norm_tile<TX, TD, WIDTH, FILL::DEEP>;
    size_t rows = (size_t)FILL::WARPS * FILL::STAGES * shape::BYTES + (shape::HELD ? 0 : 2 * WIDTH * sizeof(float));
    size_t sums = (size_t)FILL::WARPS * PARTS * WIDTH * sizeof(float);
    return rows > sums ? rows : sums;
}

template <typename TX, typename TD, int WIDTH, int PARTS, typename FILL>
__global__ void __launch_bounds__(FILL::WARPS * 32, FILL::RESIDENT) norm_grad_ahead(norm_grad_args a)
{
    using shape = norm_tile<TX, TD, WIDTH, FILL::DEEP>;
    constexpr int WARPS = FILL::WARPS, STAGES = FILL::STAGES, HOLD = shape::HELD ? shape::CHANNELS : 1;
    SHARED_BYTES(shared);
    int warp = threadIdx.x / 32;
    unsigned char *stages = shared + warp * STAGES * shape::BYTES;
    float sums[PARTS][shape::CHANNELS] = {{0}}, held_w[HOLD] = {0}, held_b[HOLD] = {0};
    int64_t tiles = (a.rows + shape::ROWS - 1) / shape::ROWS, step = (int64_t)a.blocks * WARPS;
    int64_t tile = last_first((int64_t)blockIdx.x * WARPS + warp, tiles);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++)
        norm_tile_copy<TX, TD, WIDTH, FILL::DEEP>(a, stages + s * shape::BYTES, tile - s * step);
    const float *w = (const float *)a.w.data, *b = (const float *)a.b.data;
    if constexpr (shape::HELD) {
#pragma unroll
        for (int s = 0; s < shape::SLICES; s++) {
            int from = (s * shape::L + threadIdx.x % shape::L) * shape::VEC;
            elements_load<float, shape::VEC>(held_w + s * shape::VEC, w + from);
            if (a.y.data)
                elements_load<float, shape::VEC>(held_b + s * shape::VEC, b + from);
        }
    } else {
        float *to = (float *)(shared + WARPS * STAGES * shape::BYTES);
        for (int i = threadIdx.x; i < WIDTH; i += WARPS * 32) {
            to[i] = w[i];
            to[WIDTH + i] = a.y.data ? b[i] : 0;
        }
        __syncthreads();
        w = to, b = to + WIDTH;
    }
    int now = 0; /* the stage of this turn; the one before it is free */
#pragma unroll 1
    for (; tile >= 0; tile -= step) {
        copy_wait<STAGES - 2>();
        __syncwarp(); /* all lanes' copies have arrived, and all are done with the turn before */
        norm_tile_copy<TX, TD, WIDTH, FILL::DEEP>(a, stages + (now ? now - 1 : STAGES - 1) * shape::BYTES,
                                                  tile - (STAGES - 1) * step);
        const unsigned char *stage = stages + now * shape::BYTES;
#pragma unroll 1
        for (int d = 0; d < FILL::DEEP; d++) {
            int group = (d * 32 + threadIdx.x % 32) / shape::L;
            int64_t row = tile * shape::ROWS + group;
            int first = threadIdx.x % shape::L * shape::VEC, at = group * WIDTH + first;
            norm_place<TX, TD> p = {(const TD *)stage + at,
                                    (const TX *)(stage + shape::X) + at,
                                    (const TX *)(stage + shape::RESIDUAL) + at,
                                    ((const float2 *)(stage + shape::STATISTICS))[group],
                                    row * WIDTH + first,
                                    row < a.rows};
            norm_place_grad<TX, TD, shape, PARTS>(a, p, shape::HELD ? held_w : w, shape::HELD ? held_b : b, sums);
        }
        now = now == STAGES - 1 ? 0 : now + 1;
    }
    copy_wait<0>();
    __syncthreads();
    norm_ahead_partial<WIDTH, shape::CHANNELS, shape::VEC, PARTS, WARPS>(a, (float *)shared, sums);
}

/* With as many blocks as have a tile for each warp, `most` at most. */
template <typename TX, typename TD, int WIDTH, typename FILL>
static void norm_ahead_launch(norm_grad_args &a, int most, cudaStream_t stream)
{
    int64_t each = norm_tile<TX, TD, WIDTH, FILL::DEEP>::ROWS * FILL::WARPS, blocks = (a.rows + each - 1) / each;
    most = most < FILL::BLOCKS ? most : FILL::BLOCKS;
    a.blocks = blocks < most ? (int)blocks : most;
    if (a.parts == 3)
        kernel_launch(stream, norm_grad_ahead<TX, TD, WIDTH, 3, FILL>, a.blocks, FILL::WARPS * 32,
                      norm_ahead_shared<TX, TD, WIDTH, 3, FILL>(), a);
    else
        kernel_launch(stream, norm_grad_ahead<TX, TD, WIDTH, 2, FILL>, a.blocks, FILL::WARPS * 32,
                      norm_ahead_shared<TX, TD, WIDTH, 2, FILL>(), a);
}

#endif
