/* norm_rows.cuh - the kernels of layer norm: a fast form for widths of 24 times a power of two, and
 * one for any width. SPDX-License-Identifier: MIT
 *
 * Fast form. L lanes share a row of 24 L channels (192: 8 lanes, four rows to a warp), so a lane
 * holds 24 of them in registers and sums need log2(L) shuffles. A lane's channels are slices of VEC
 * neighbours, slice s at channel (s L + j) VEC: the lanes of a row then touch whole sectors. VEC is
 * 8 where all operands are bf16, else 4.
 *
 * The gradient also needs sums over all rows. A lane always holds the same channels, so a block
 * goes over many rows and adds in registers, then over its lanes and warps in shared memory, and
 * writes one row of partial sums; a second kernel adds these in order. The number of blocks is
 * fixed, so the bits depend on nothing but the shape. A third sum, over dx itself, is the bias
 * gradient of the layer that wrote x; registers for it come from the weights, which are then read
 * from L1 for each row. Rows come in by asynchronous copies, one
 * round ahead of their use, into slots that only the lane itself reads: no barrier is needed.
 *
 * Read on: norm.cu picks the form. */
#ifndef CUDA_NORM_ROWS_CUH
#define CUDA_NORM_ROWS_CUH

#include "cuda/prim.cuh"

enum {
    NORM_CHANNELS = 24, /* of a lane */
    NORM_WARPS = 4,
    NORM_PROCESSORS = 132, /* of an H200; the grid of a gradient is made for it, and the same on every GPU */
    NORM_BLOCKS = 4 * NORM_PROCESSORS,
    NORM_PARTS = 16, /* threads that share a column of partial sums, and rows per block of the slow sums */
};

typedef struct norm_args {
    array x, y, w, b;
    const float2 *given; /* NULL: compute the statistics */
    float2 *kept;        /* NULL: nobody wants them */
    int64_t rows;
    int width;
    float eps;
} norm_args;

typedef struct norm_grad_args {
    array dy, x, w, residual, dx, dw, db, sums; /* data NULL where missing: residual, dw, db, sums */
    array b, y;                                 /* where y is given: the norm's output, recomputed with bias b */
    const float2 *statistics;
    float *partial; /* [blocks][parts][width]: sums for dw, then for db, then of dx */
    int64_t rows;
    int width, blocks, parts;
} norm_grad_args;

template <typename A, typename B> struct norm_vector {
    static constexpr int size = sizeof(A) == 2 && sizeof(B) == 2 ? 8 : 4;
};

/* ---- forward ---- */

template <int L> DEVICE float2 norm_statistics(const float *v, float eps)
{
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < NORM_CHANNELS; i++)
        sum += v[i];
    float mean = lane_sum<L>(sum) * (1.0f / (NORM_CHANNELS * L));
#pragma unroll
    for (int i = 0; i < NORM_CHANNELS; i++)
        square = fmaf(v[i] - mean, v[i] - mean, square);
    return make_float2(mean, 1.0f / sqrtf(fmaf(lane_sum<L>(square), 1.0f / (NORM_CHANNELS * L), eps)));
}

/* One pass, a block for every 4 * 32 / L rows: short blocks even out the load. Weights are f32 and
 * stay in L1. */
template <typename TX, typename TY, int L> __global__ void __launch_bounds__(NORM_WARPS * 32) norm_fast(norm_args a)
{
    constexpr int VEC = norm_vector<TX, TY>::size, SLICES = NORM_CHANNELS / VEC, WIDTH = NORM_CHANNELS * L;
    int lane = threadIdx.x % 32, j = lane % L;
    int64_t row = ((int64_t)blockIdx.x * NORM_WARPS + threadIdx.x / 32) * (32 / L) + lane / L;
    bool there = row < a.rows;
    float v[NORM_CHANNELS] = {0};
    if (there)
#pragma unroll
        for (int s = 0; s < SLICES; s++)
            elements_load<TX, VEC>(v + s * VEC, (const TX *)a.x.data + row * WIDTH + (s * L + j) * VEC);
    float2 stat = make_float2(0, 0);
    if (!a.given)
        stat = norm_statistics<L>(v, a.eps);
    else if (there)
        stat = a.given[row];
    if (!there)
        return;
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
        float w[VEC], b[VEC];
        elements_load<float, VEC>(w, (const float *)a.w.data + (s * L + j) * VEC);
        elements_load<float, VEC>(b, (const float *)a.b.data + (s * L + j) * VEC);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            w[i] = fmaf((v[s * VEC + i] - stat.x) * stat.y, w[i], b[i]);
        elements_store<TY, VEC>((TY *)a.y.data + row * WIDTH + (s * L + j) * VEC, w);
    }
    if (a.kept && j == 0)
        a.kept[row] = stat;
}

/* Any width and any dtypes: a warp for each row, three passes over it. */
static __global__ void __launch_bounds__(NORM_WARPS * 32) norm_any(norm_args a)
{
    int lane = threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * NORM_WARPS + threadIdx.x / 32, at = row * a.width;
    if (row >= a.rows)
        return;
    float2 stat;
    if (a.given) {
        stat = a.given[row];
    } else {
        float sum = 0, square = 0;
        for (int i = lane; i < a.width; i += 32)
            sum += load(a.x, at + i);
        stat.x = lane_sum<32>(sum) / (float)a.width;
        for (int i = lane; i < a.width; i += 32) {
            float d = load(a.x, at + i) - stat.x;
            square = fmaf(d, d, square);
        }
        stat.y = 1.0f / sqrtf(lane_sum<32>(square) / (float)a.width + a.eps);
    }
    for (int i = lane; i < a.width; i += 32)
        store(a.y, at + i, fmaf((load(a.x, at + i) - stat.x) * stat.y, load(a.w, i), load(a.b, i)));
    if (a.kept && lane == 0)
        a.kept[row] = stat;
}

/* ---- gradient, fast ---- */

/* Where a lane's slices of one round lie in shared memory: those of dy, then of x, then of the
 * residual. */
template <typename TX, typename TD> struct norm_slots {
    static constexpr int VEC = norm_vector<TX, TD>::size, SLICES = NORM_CHANNELS / VEC;
    static constexpr int DY = SLICES * VEC * (int)sizeof(TD), X = SLICES * VEC * (int)sizeof(TX); /* bytes of a lane */
    static constexpr int ROUND = 32 * (DY + 2 * X);                                               /* bytes of a warp */
    static constexpr int BLOCK = 2 * NORM_WARPS * ROUND;
    static constexpr int RESIDENT = sizeof(TX) == 2 && sizeof(TD) == 2 ? 4 : 3; /* blocks of a multiprocessor */
    static constexpr int BLOCKS = RESIDENT * NORM_PROCESSORS;
    static_assert(BLOCKS <= NORM_BLOCKS && RESIDENT * BLOCK <= 224 * 1024, "the workspace and shared memory suffice");
};

/* Slot of slice s of an array that begins at `array`: slices of neighbouring lanes are neighbours,
 * free of conflicts. */
template <typename T, int VEC> DEVICE unsigned char *norm_slot(unsigned char *array, int s, int lane)
{
    return array + (s * 32 + lane) * VEC * (int)sizeof(T);
}

template <typename TX, typename TD, int L>
DEVICE void norm_grad_fetch(const norm_grad_args &a, unsigned char *round, int64_t row, int lane, float2 *stat)
{
    using slots = norm_slots<TX, TD>;
    constexpr int VEC = slots::VEC, WIDTH = NORM_CHANNELS * L;
    bool there = row < a.rows;
    int64_t from = there ? row * WIDTH : 0;
    *stat = there ? a.statistics[row] : make_float2(0, 0);
    unsigned char *x = round + 32 * slots::DY, *residual = x + 32 * slots::X;
#pragma unroll
    for (int s = 0; s < slots::SLICES; s++) {
        int64_t at = from + (s * L + lane % L) * VEC;
        copy_async<VEC * sizeof(TD)>(norm_slot<TD, VEC>(round, s, lane), (const TD *)a.dy.data + at, there);
        copy_async<VEC * sizeof(TX)>(norm_slot<TX, VEC>(x, s, lane), (const TX *)a.x.data + at, there);
        if (a.residual.data)
            copy_async<VEC * sizeof(TX)>(norm_slot<TX, VEC>(residual, s, lane), (const TX *)a.residual.data + at,
                                         there);
    }
    copy_commit();
}

/* The weights of a lane's slice: those it holds, or from memory where registers hold a third sum. */
template <int VEC, int L, int PARTS>
DEVICE void norm_weights(float *out, const norm_grad_args &a, const float *w, int s)
{
    if constexpr (PARTS == 3)
        elements_load<float, VEC>(out, (const float *)a.w.data + (s * L + threadIdx.x % L) * VEC);
    else
#pragma unroll
        for (int i = 0; i < VEC; i++)
            out[i] = w[s * VEC + i];
}

/* The norm's output of one row, as norm_fast() computes it. */
template <typename TX, typename TD, int L>
DEVICE void norm_grad_y(const norm_grad_args &a, unsigned char *x, int64_t row, int lane, float2 stat)
{
    constexpr int VEC = norm_slots<TX, TD>::VEC;
    read_again();
#pragma unroll 1 /* registers have the sums to hold */
    for (int s = 0; s < norm_slots<TX, TD>::SLICES; s++) {
        float v[VEC], w[VEC], b[VEC];
        int channel = (s * L + lane % L) * VEC;
        elements_load<TX, VEC>(v, norm_slot<TX, VEC>(x, s, lane));
        elements_load<float, VEC>(w, (const float *)a.w.data + channel);
        elements_load<float, VEC>(b, (const float *)a.b.data + channel);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            w[i] = fmaf((v[i] - stat.x) * stat.y, w[i], b[i]);
        elements_store<TD, VEC>((TD *)a.y.data + row * NORM_CHANNELS * L + channel, w);
    }
}

/* dx of one row, and what the row adds to the column sums of this lane's channels: sum[0] for dw,
 * sum[1] for db, sum[2] of dx. */
template <typename TX, typename TD, int L, int PARTS>
DEVICE void norm_grad_row(const norm_grad_args &a, unsigned char *round, int64_t row, int lane, float2 stat,
                          const float *held, float (*sums)[NORM_CHANNELS])
{
    using slots = norm_slots<TX, TD>;
    constexpr int VEC = slots::VEC, WIDTH = NORM_CHANNELS * L;
    unsigned char *x = round + 32 * slots::DY, *residual = x + 32 * slots::X;
    float sum = 0, dot = 0;
#pragma unroll
    for (int s = 0; s < slots::SLICES; s++) {
        float dy[VEC], xh[VEC], w[VEC];
        elements_load<TD, VEC>(dy, norm_slot<TD, VEC>(round, s, lane));
        elements_load<TX, VEC>(xh, norm_slot<TX, VEC>(x, s, lane));
        norm_weights<VEC, L, PARTS>(w, a, held, s);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            int c = s * VEC + i;
            float h = (xh[i] - stat.x) * stat.y, g = dy[i] * w[i];
            sums[0][c] = fmaf(dy[i], h, sums[0][c]);
            sums[1][c] += dy[i];
            sum += g;
            dot = fmaf(g, h, dot);
        }
    }
    sum = lane_sum<L>(sum) * (1.0f / WIDTH);
    dot = lane_sum<L>(dot) * (1.0f / WIDTH);
    if (row >= a.rows)
        return;
    if (a.y.data)
        norm_grad_y<TX, TD, L>(a, x, row, lane, stat);
    read_again(); /* shared memory holds dy and x; registers have the sums to hold */
#pragma unroll
    for (int s = 0; s < slots::SLICES; s++) {
        float dy[VEC], xh[VEC], w[VEC], out[VEC];
        elements_load<TD, VEC>(dy, norm_slot<TD, VEC>(round, s, lane));
        elements_load<TX, VEC>(xh, norm_slot<TX, VEC>(x, s, lane));
        norm_weights<VEC, L, PARTS>(w, a, held, s);
#pragma unroll
        for (int i = 0; i < VEC; i++)
            out[i] = 0;
        if (a.residual.data)
            elements_load<TX, VEC>(out, norm_slot<TX, VEC>(residual, s, lane));
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            float h = (xh[i] - stat.x) * stat.y, g = fmaf(dy[i], w[i], -sum);
            out[i] = fmaf(stat.y, fmaf(-h, dot, g), out[i]);
            if constexpr (PARTS == 3)
                sums[2][s * VEC + i] += out[i];
        }
        elements_store<TX, VEC>((TX *)a.dx.data + row * WIDTH + (s * L + lane % L) * VEC, out);
    }
}

/* The block's row of partial sums: over the row groups of a warp by shuffles, over warps in shared
 * memory. */
template <int L, int VEC, int PARTS>
DEVICE void norm_grad_partial(const norm_grad_args &a, float *shared, float (*sums)[NORM_CHANNELS])
{
    constexpr int WIDTH = NORM_CHANNELS * L;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float *mine = shared + warp * PARTS * WIDTH;
#pragma unroll
    for (int c = 0; c < NORM_CHANNELS; c++) {
        int channel = (c / VEC * L + lane) * VEC + c % VEC;
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
#pragma unroll
            for (int mask = L; mask < 32; mask *= 2)
                sums[k][c] += __shfl_xor_sync(0xffffffffu, sums[k][c], mask);
            if (lane < L)
                mine[k * WIDTH + channel] = sums[k][c];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < PARTS * WIDTH; i += NORM_WARPS * 32) {
        float sum = 0;
        for (int k = 0; k < NORM_WARPS; k++)
            sum += shared[k * PARTS * WIDTH + i];
        a.partial[(int64_t)blockIdx.x * PARTS * WIDTH + i] = sum;
    }
}

template <typename TX, typename TD, int L, int PARTS>
__global__ void __launch_bounds__(NORM_WARPS * 32, norm_slots<TX, TD>::RESIDENT) norm_grad_fast(norm_grad_args a)
{
    using slots = norm_slots<TX, TD>;
    constexpr int VEC = slots::VEC, ROWS = 32 / L;
    static_assert(slots::BLOCK >= NORM_WARPS * PARTS * NORM_CHANNELS * L * (int)sizeof(float), "sums fit in the slots");
    SHARED_BYTES(shared);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned char *used = shared + warp * 2 * slots::ROUND, *next = used + slots::ROUND;
    float w[NORM_CHANNELS], sums[PARTS][NORM_CHANNELS] = {{0}};
#pragma unroll
    for (int s = 0; s < slots::SLICES && PARTS == 2; s++)
        elements_load<float, VEC>(w + s * VEC, (const float *)a.w.data + (s * L + lane % L) * VEC);
    int64_t step = (int64_t)a.blocks * NORM_WARPS * ROWS;
    int64_t first = ((int64_t)blockIdx.x * NORM_WARPS + warp) * ROWS; /* the warp's, so that all its lanes loop alike */
    float2 stat, next_stat;
    norm_grad_fetch<TX, TD, L>(a, used, first + lane / L, lane, &stat);
#pragma unroll 1
    for (; first < a.rows; first += step) {
        norm_grad_fetch<TX, TD, L>(a, next, first + step + lane / L, lane, &next_stat);
        copy_wait<1>();
        norm_grad_row<TX, TD, L, PARTS>(a, used, first + lane / L, lane, stat, w, sums);
        unsigned char *free = used;
        used = next, next = free, stat = next_stat;
    }
    copy_wait<0>();
    __syncthreads();
    norm_grad_partial<L, VEC, PARTS>(a, (float *)shared, sums);
}

/* ---- gradient, any width ---- */

/* Partial sums: a block owns 32 columns and every blocks-th row; 16 rows of it at a time. */
static __global__ void __launch_bounds__(NORM_PARTS * 32) norm_grad_sums_any(norm_grad_args a, int columns)
{
    __shared__ float shared[2][NORM_PARTS][32];
    int lane = threadIdx.x % 32, part = threadIdx.x / 32, column = (int)(blockIdx.x % columns) * 32 + lane;
    int64_t block = blockIdx.x / columns;
    float sum_w = 0, sum_b = 0;
    if (column < a.width)
        for (int64_t row = block * NORM_PARTS + part; row < a.rows; row += (int64_t)a.blocks * NORM_PARTS) {
            float dy = load(a.dy, row * a.width + column);
            float2 stat = a.statistics[row];
            sum_w = fmaf(dy, (load(a.x, row * a.width + column) - stat.x) * stat.y, sum_w);
            sum_b += dy;
        }
    shared[0][part][lane] = sum_w;
    shared[1][part][lane] = sum_b;
    __syncthreads();
    if (part > 1 || column >= a.width)
        return;
    float sum = 0;
    for (int i = 0; i < NORM_PARTS; i++)
        sum += shared[part][i][lane];
    a.partial[(block * a.parts + part) * a.width + column] = sum;
}

/* The third sum, of the stored dx, in the same cut of rows and columns. */
static __global__ void __launch_bounds__(NORM_PARTS * 32) norm_grad_dx_sums_any(norm_grad_args a, int columns)
{
    __shared__ float shared[NORM_PARTS][32];
    int lane = threadIdx.x % 32, part = threadIdx.x / 32, column = (int)(blockIdx.x % columns) * 32 + lane;
    int64_t block = blockIdx.x / columns;
    float sum = 0;
    if (column < a.width)
        for (int64_t row = block * NORM_PARTS + part; row < a.rows; row += (int64_t)a.blocks * NORM_PARTS)
            sum += load(a.dx, row * a.width + column);
    shared[part][lane] = sum;
    __syncthreads();
    if (part || column >= a.width)
        return;
    for (int i = 1; i < NORM_PARTS; i++)
        sum += shared[i][lane];
    a.partial[(block * a.parts + 2) * a.width + column] = sum;
}

static __global__ void __launch_bounds__(NORM_WARPS * 32) norm_grad_any(norm_grad_args a)
{
    int lane = threadIdx.x % 32;
    int64_t row = (int64_t)blockIdx.x * NORM_WARPS + threadIdx.x / 32, at = row * a.width;
    if (row >= a.rows)
        return;
    float2 stat = a.statistics[row];
    for (int i = lane; i < a.width && a.y.data; i += 32)
        store(a.y, at + i, fmaf((load(a.x, at + i) - stat.x) * stat.y, load(a.w, i), load(a.b, i)));
    float sum = 0, dot = 0;
    for (int i = lane; i < a.width; i += 32) {
        float g = load(a.dy, at + i) * load(a.w, i);
        sum += g;
        dot = fmaf(g, (load(a.x, at + i) - stat.x) * stat.y, dot);
    }
    sum = lane_sum<32>(sum) / (float)a.width;
    dot = lane_sum<32>(dot) / (float)a.width;
    for (int i = lane; i < a.width; i += 32) {
        float h = (load(a.x, at + i) - stat.x) * stat.y;
        float g = fmaf(load(a.dy, at + i), load(a.w, i), -sum);
        float add = a.residual.data ? load(a.residual, at + i) : 0.0f;
        store(a.dx, at + i, fmaf(stat.y, fmaf(-h, dot, g), add));
    }
}

/* ---- the end of the sums ---- */

/* Columns of dw, db and the sums of dx side by side, 16 to a block, 32 threads to a column, in a
 * fixed order. */
static __global__ void __launch_bounds__(512) norm_grad_finish(norm_grad_args a)
{
    __shared__ float shared[32][17];
    int c = threadIdx.x % 16, part = threadIdx.x / 16, column = (int)blockIdx.x * 16 + c, columns = a.parts * a.width;
    float sum = 0;
    if (column < columns)
#pragma unroll 4
        for (int b = part; b < a.blocks; b += 32)
            sum += a.partial[(int64_t)b * columns + column];
    shared[part][c] = sum;
    __syncthreads();
    if (part || column >= columns)
        return;
    for (int i = 1; i < 32; i++)
        sum += shared[i][c];
    array out = column < a.width ? a.dw : column < 2 * a.width ? a.db : a.sums;
    if (out.data)
        store(out, column % a.width, sum);
}

#endif
