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
 * writes one row of partial sums; a second kernel adds these in order (ends.c). The number of
 * blocks is fixed, so the bits depend on nothing but the shape. A third sum, over dx itself, is the
 * bias gradient of the layer that wrote x. A lane keeps its row packed, as it was read, and unpacks
 * it twice; the registers that saves hold the sums.
 *
 * Read on: norm_ahead.cuh for the gradient with rows copied ahead; norm.cu picks the form. */
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

static inline norm_args norm_args_of(const op_call *c)
{
    norm_args a = {};
    a.x = array_of(&c->in[0]), a.w = array_of(&c->in[1]), a.b = array_of(&c->in[2]), a.y = array_of(&c->out[0]);
    a.given = (const float2 *)c->in[3].data, a.kept = (float2 *)c->out[1].data;
    a.rows = c->in[0].rows, a.width = (int)c->in[0].channels, a.eps = c->attr->eps;
    assert(!a.given || c->in[3].dtype == DTYPE_F32);
    assert(!a.kept || c->out[1].dtype == DTYPE_F32);
    return a;
}

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

/* elements_store() in one instruction, by name: of a row's slices the compiler (13.0) writes the
 * first element by element, four accesses of 4 bytes that lie 16 apart between lanes. */
template <typename T, int COUNT> DEVICE void slice_store(void *to, const float *v)
{
#ifdef CUDA_EMULATED
    elements_store<T, COUNT>(to, v);
#else
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            asm volatile("st.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"((float *)to + i), "f"(v[i]), "f"(v[i + 1]),
                         "f"(v[i + 2]), "f"(v[i + 3])
                         : "memory");
    } else if constexpr (COUNT == 8) {
        asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(bf16_pair(v[0], v[1])),
                     "r"(bf16_pair(v[2], v[3])), "r"(bf16_pair(v[4], v[5])), "r"(bf16_pair(v[6], v[7]))
                     : "memory");
    } else {
        asm volatile("st.global.v2.b32 [%0], {%1,%2};" ::"l"(to), "r"(bf16_pair(v[0], v[1])), "r"(bf16_pair(v[2], v[3]))
                     : "memory");
    }
#endif
}

/* For comparisons: with WHOLE as slice_store(), without it as the compiler likes. */
template <typename T, int COUNT, bool WHOLE> DEVICE void row_store(void *to, const float *v)
{
    if constexpr (WHOLE)
        slice_store<T, COUNT>(to, v);
    else
        elements_store<T, COUNT>(to, v);
}

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
template <typename TX, typename TY, int L, bool WHOLE>
__global__ void __launch_bounds__(NORM_WARPS * 32) norm_fast(norm_args a)
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
        row_store<TY, VEC, WHOLE>((TY *)a.y.data + row * WIDTH + (s * L + j) * VEC, w);
    }
    if (a.kept && j == 0)
        a.kept[row] = stat;
}

template <typename TX, typename TY, int L, bool WHOLE>
static void norm_fast_launch(const norm_args &a, cudaStream_t stream)
{
    int64_t rows = NORM_WARPS * 32 / L;
    kernel_launch(stream, norm_fast<TX, TY, L, WHOLE>, (a.rows + rows - 1) / rows, NORM_WARPS * 32, 0, a);
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

/* ---- gradient, fast -------------------------------------------------------------------------- */

/* A lane holds its slices of dy, x and the residual as they come from memory, and up to 72 sums:
 * three blocks of a multiprocessor have the registers for that, two where all is f32. */
template <typename TX, typename TD> struct norm_grid {
    static constexpr int VEC = norm_vector<TX, TD>::size, SLICES = NORM_CHANNELS / VEC;
    static constexpr int RESIDENT = sizeof(TX) == 4 && sizeof(TD) == 4 ? 2 : 3;
    static constexpr int BLOCKS = RESIDENT * NORM_PROCESSORS;
    static_assert(BLOCKS <= NORM_BLOCKS, "the workspace suffices");
};

/* The part of its row that a lane reads. */
template <typename TX, typename TD> struct norm_row {
    packed<TD, norm_grid<TX, TD>::VEC> dy[norm_grid<TX, TD>::SLICES];
    packed<TX, norm_grid<TX, TD>::VEC> x[norm_grid<TX, TD>::SLICES], residual[norm_grid<TX, TD>::SLICES];
    float2 stat;
};

template <typename TX, typename TD, int L> DEVICE norm_row<TX, TD> norm_grad_load(const norm_grad_args &a, int64_t row)
{
    constexpr int VEC = norm_grid<TX, TD>::VEC;
    norm_row<TX, TD> r = {};
    if (row >= a.rows)
        return r;
#pragma unroll
    for (int s = 0; s < norm_grid<TX, TD>::SLICES; s++) {
        int64_t at = row * NORM_CHANNELS * L + (s * L + threadIdx.x % L) * VEC;
        r.dy[s] = packed_load<TD, VEC>((const TD *)a.dy.data + at);
        r.x[s] = packed_load<TX, VEC>((const TX *)a.x.data + at);
        if (a.residual.data)
            r.residual[s] = packed_load<TX, VEC>((const TX *)a.residual.data + at);
    }
    r.stat = a.statistics[row];
    return r;
}

/* dx of one row, and what the row adds to the column sums of this lane's channels: sums[0] for dw,
 * sums[1] for db, sums[2] of dx. `weights` are those of all channels, then the biases, in shared
 * memory. */
template <typename TX, typename TD, int L, int PARTS, bool WHOLE>
DEVICE void norm_grad_row(const norm_grad_args &a, const norm_row<TX, TD> &r, int64_t row, const float *weights,
                          float (*sums)[NORM_CHANNELS])
{
    constexpr int VEC = norm_grid<TX, TD>::VEC, SLICES = norm_grid<TX, TD>::SLICES, WIDTH = NORM_CHANNELS * L;
    float sum = 0, dot = 0;
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
        float dy[VEC], x[VEC], w[VEC];
        packed_floats(dy, r.dy[s]);
        packed_floats(x, r.x[s]);
        elements_load<float, VEC>(w, weights + (s * L + threadIdx.x % L) * VEC);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            int c = s * VEC + i;
            float h = (x[i] - r.stat.x) * r.stat.y, g = dy[i] * w[i];
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
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
        float dy[VEC], x[VEC], w[VEC], out[VEC];
        int channel = (s * L + threadIdx.x % L) * VEC;
        int64_t at = row * WIDTH + channel;
        packed_floats(dy, r.dy[s]);
        packed_floats(x, r.x[s]);
        packed_floats(out, r.residual[s]); /* zeros where there is none */
        elements_load<float, VEC>(w, weights + channel);
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            x[i] = (x[i] - r.stat.x) * r.stat.y;
            out[i] = fmaf(r.stat.y, fmaf(-x[i], dot, fmaf(dy[i], w[i], -sum)), out[i]);
            if constexpr (PARTS == 3)
                sums[2][s * VEC + i] += out[i];
        }
        row_store<TX, VEC, WHOLE>((TX *)a.dx.data + at, out);
        if (sizeof(TX) == 4 && a.copy.data)
            row_store<__nv_bfloat16, VEC, WHOLE>((__nv_bfloat16 *)a.copy.data + at, out);
        if (a.y.data) { /* as norm_fast() computes it */
            elements_load<float, VEC>(out, weights + WIDTH + channel);
#pragma unroll
            for (int i = 0; i < VEC; i++)
                out[i] = fmaf(x[i], w[i], out[i]);
            row_store<TD, VEC, WHOLE>((TD *)a.y.data + at, out);
        }
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

/* Weights and biases first, partial sums in the end. */
constexpr size_t norm_grad_shared(int width, int parts)
{
    return (size_t)NORM_WARPS * (size_t)parts * (size_t)width * sizeof(float);
}

template <typename TX, typename TD, int L, int PARTS, bool WHOLE>
__global__ void __launch_bounds__(NORM_WARPS * 32, norm_grid<TX, TD>::RESIDENT) norm_grad_fast(norm_grad_args a)
{
    constexpr int VEC = norm_grid<TX, TD>::VEC, ROWS = 32 / L, WIDTH = NORM_CHANNELS * L;
    SHARED_BYTES(shared);
    float *weights = (float *)shared, sums[PARTS][NORM_CHANNELS] = {{0}};
    for (int i = threadIdx.x; i < WIDTH; i += NORM_WARPS * 32) {
        weights[i] = ((const float *)a.w.data)[i];
        weights[WIDTH + i] = a.y.data ? ((const float *)a.b.data)[i] : 0;
    }
    __syncthreads();
    int64_t step = (int64_t)a.blocks * NORM_WARPS * ROWS; /* first: the warp's, so that all its lanes loop alike */
#pragma unroll 1
    for (int64_t first = ((int64_t)blockIdx.x * NORM_WARPS + threadIdx.x / 32) * ROWS; first < a.rows; first += step) {
        int64_t row = first + threadIdx.x % 32 / L;
        norm_row<TX, TD> r = norm_grad_load<TX, TD, L>(a, row);
        norm_grad_row<TX, TD, L, PARTS, WHOLE>(a, r, row, weights, sums);
    }
    __syncthreads();
    norm_grad_partial<L, VEC, PARTS>(a, (float *)shared, sums);
}

template <typename TX, typename TD, int L, bool WHOLE>
static void norm_grad_fast_launch(norm_grad_args &a, cudaStream_t stream)
{
    int64_t rows = NORM_WARPS * 32 / L, blocks = (a.rows + rows - 1) / rows;
    a.blocks = (int)(blocks < norm_grid<TX, TD>::BLOCKS ? blocks : norm_grid<TX, TD>::BLOCKS);
    if (a.parts == 3)
        kernel_launch(stream, norm_grad_fast<TX, TD, L, 3, WHOLE>, a.blocks, NORM_WARPS * 32,
                      norm_grad_shared(NORM_CHANNELS * L, 3), a);
    else
        kernel_launch(stream, norm_grad_fast<TX, TD, L, 2, WHOLE>, a.blocks, NORM_WARPS * 32,
                      norm_grad_shared(NORM_CHANNELS * L, 2), a);
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
