/* norm_rows.cuh - the kernels of layer norm: the forward for widths of 24 times a power of two, and
 * both directions for any width. SPDX-License-Identifier: MIT
 *
 * The fast form of the forward: L lanes share a row of 24 L channels (192: 8 lanes, four rows to a
 * warp), so a lane holds 24 of them in registers and sums need log2(L) shuffles. A lane's channels
 * are slices of VEC neighbours, slice s at channel (s L + j) VEC: the lanes of a row then touch
 * whole sectors. VEC is 8 where all operands are bf16, else 4. Rows are read when they are needed:
 * copied ahead, as those of the gradient are, they took 15.8 instead of 16.3 us (66,560 rows of
 * 192 channels on an H200), which no training step showed.
 *
 * The gradient also needs sums over all rows: a block adds those of its rows and writes one row of
 * partial sums, and a second kernel adds these in order (ends.c). The number of blocks depends on
 * the shape alone, so the bits do too. A third sum, over dx itself, is the bias gradient of the
 * layer that wrote x.
 *
 * Read on: norm_ahead.cuh for the fast form of the gradient; norm.cu picks the form. */
#ifndef CUDA_NORM_ROWS_CUH
#define CUDA_NORM_ROWS_CUH

#include <assert.h>

#include "cuda/prim.cuh"

enum {
    NORM_CHANNELS = 24, /* of a lane */
    NORM_WARPS = 4,
    NORM_PROCESSORS = 132, /* of an H200; the grid of a gradient is made for it, and the same on every GPU */
    NORM_BLOCKS = 4 * NORM_PROCESSORS,
    NORM_PARTS = 16, /* rows per block of the slow sums */
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
    array dy, x, w, residual, dx; /* data NULL where missing: residual */
    array b, y;                   /* where y is given: the norm's output, recomputed with bias b */
    array copy;                   /* where given: dx once more, in bf16 */
    const float2 *statistics;
    float *partial; /* [blocks][parts][width]: sums for dw, then for db, then of dx */
    int64_t rows;
    int width, blocks, parts;
} norm_grad_args;

static inline int norm_grad_parts(const op_call *c)
{
    return c->out[3].info ? 3 : 2;
}

static inline norm_grad_args norm_grad_args_of(const op_call *c)
{
    norm_grad_args a = {};
    a.dy = array_of(&c->in[0]), a.x = array_of(&c->in[1]), a.w = array_of(&c->in[2]), a.residual = array_of(&c->in[4]);
    a.dx = array_of(&c->out[0]);
    a.statistics = (const float2 *)c->in[3].data, a.partial = (float *)c->workspace;
    a.rows = c->in[0].rows, a.width = (int)c->in[0].channels;
    a.parts = norm_grad_parts(c);
    a.y = array_of(&c->out[4]), a.b = array_of(&c->in[5]), a.copy = array_of(&c->out[5]);
    assert(c->in[3].dtype == DTYPE_F32);
    return a;
}

/* The partial sums of all blocks are to be added. */
static inline void norm_grad_end(const norm_grad_args &a, const op_call *c)
{
    for (int i = 0; i < a.parts; i++) {
        const op_operand *to = &c->out[1 + i];
        cuda_end end = {a.partial + i * a.width,  (float *)to->data, a.blocks,
                        a.rows > 0 ? a.width : 0, a.parts * a.width, 0};
        assert(!to->data || to->dtype == DTYPE_F32);
        cuda_end_add(c, &end);
    }
}

template <typename A, typename B> struct norm_vector {
    static constexpr int size = sizeof(A) == 2 && sizeof(B) == 2 ? 8 : 4;
};

/* ---- forward --------------------------------------------------------------------------------- */

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
    int64_t row = (last_first(blockIdx.x, gridDim.x) * NORM_WARPS + threadIdx.x / 32) * (32 / L) + lane / L;
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

/* ---- gradient, any width --------------------------------------------------------------------- */

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
        float dx = fmaf(stat.y, fmaf(-h, dot, g), add);
        store(a.dx, at + i, dx);
        if (a.copy.data)
            store(a.copy, at + i, dx);
    }
}

#endif
