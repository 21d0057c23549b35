/* attention_plain.cuh - attention for every size and dtype, without tensor cores.
 * SPDX-License-Identifier: MIT
 *
 * The path of f32, and of head widths that mma cannot take. A block owns 32 rows (queries; keys in
 * the last kernel) of one head, four threads to a row, and goes over 32 columns at a time through
 * shared memory. Channels are taken 64 at a time: wider heads recompute the scores for each 64
 * output channels, which costs time but no memory, so no size is too large.
 *
 * The same three kernels, in the same roles, as attention_stream.cuh. */
#ifndef CUDA_ATTENTION_PLAIN_CUH
#define CUDA_ATTENTION_PLAIN_CUH

#include "cuda/attention_args.cuh"

enum { PLAIN_ROWS = 32, PLAIN_CHANNELS = 64, PLAIN_THREADS = 128, PLAIN_SCORES = 8, PLAIN_OUT = 16 };

/* A head's rows in an array. */
typedef struct plain_rows {
    array of;
    int64_t first, stride;
} plain_rows;

typedef struct plain_place {
    int64_t group;
    int head, first, row, lane; /* of the block; of the thread: its row of the block, and which of the four it is */
} plain_place;

typedef struct plain_tile {
    float v[PLAIN_ROWS][PLAIN_CHANNELS + 1];
} plain_tile;

typedef struct plain_square {
    float v[PLAIN_ROWS][PLAIN_ROWS + 1];
} plain_square;

DEVICE plain_place plain_find(const attention_args &a)
{
    int parts = (a.tokens + PLAIN_ROWS - 1) / PLAIN_ROWS;
    plain_place at;
    at.first = (int)(blockIdx.x % parts) * PLAIN_ROWS;
    at.head = (int)(blockIdx.x / parts % a.heads);
    at.group = blockIdx.x / parts / a.heads;
    at.row = (int)threadIdx.x / 4;
    at.lane = (int)threadIdx.x % 4;
    return at;
}

DEVICE plain_rows plain_of(array whole, int64_t stride, const attention_args &a, const plain_place &at)
{
    return plain_rows{whole, at.group * a.tokens * stride + (int64_t)at.head * a.width, stride};
}

DEVICE void plain_fetch(plain_tile *t, const plain_rows &from, const attention_args &a, int row0, int channel0)
{
    for (int i = threadIdx.x; i < PLAIN_ROWS * PLAIN_CHANNELS; i += PLAIN_THREADS) {
        int r = i / PLAIN_CHANNELS, c = i % PLAIN_CHANNELS;
        bool there = row0 + r < a.tokens && channel0 + c < a.width;
        t->v[r][c] = there ? load(from.of, from.first + (row0 + r) * from.stride + channel0 + c) : 0.0f;
    }
}

/* out[i] = the product of row row0 + at.row of x with row column0 + at.lane + 4 i of z. Begins and
 * ends with barriers. */
DEVICE void plain_products(float *out, plain_tile *x_tile, plain_tile *z_tile, const plain_rows &x, const plain_rows &z,
                           const attention_args &a, const plain_place &at, int row0, int column0)
{
    for (int i = 0; i < PLAIN_SCORES; i++)
        out[i] = 0;
    for (int c0 = 0; c0 < a.width; c0 += PLAIN_CHANNELS) {
        __syncthreads();
        plain_fetch(x_tile, x, a, row0, c0);
        plain_fetch(z_tile, z, a, column0, c0);
        __syncthreads();
        int channels = a.width - c0 < PLAIN_CHANNELS ? a.width - c0 : PLAIN_CHANNELS;
        for (int c = 0; c < channels; c++) {
            float left = x_tile->v[at.row][c];
#pragma unroll
            for (int i = 0; i < PLAIN_SCORES; i++)
                out[i] = fmaf(left, z_tile->v[at.lane + 4 * i][c], out[i]);
        }
    }
    __syncthreads();
}

/* acc[i] += sum over the 32 columns of p[row][j] z[j][at.lane + 4 i], channels from channel0 on. */
DEVICE void plain_add(float *acc, const plain_square *p, plain_tile *z_tile, const plain_rows &z,
                      const attention_args &a, const plain_place &at, int column0, int channel0)
{
    __syncthreads();
    plain_fetch(z_tile, z, a, column0, channel0);
    __syncthreads();
    for (int j = 0; j < PLAIN_ROWS; j++) {
        float weight = p->v[at.row][j];
#pragma unroll
        for (int i = 0; i < PLAIN_OUT; i++)
            acc[i] = fmaf(weight, z_tile->v[j][at.lane + 4 * i], acc[i]);
    }
}

DEVICE void plain_store(const plain_rows &to, const attention_args &a, const plain_place &at, int channel0,
                        const float *acc, float factor)
{
    int row = at.first + at.row;
    for (int i = 0; i < PLAIN_OUT; i++) {
        int c = channel0 + at.lane + 4 * i;
        if (row < a.tokens && c < a.width)
            store(to.of, to.first + row * to.stride + c, acc[i] * factor);
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Takes 8 more scores of the row into the running softmax: p in their place, `rescale` for what
 * came before. */
DEVICE float plain_take(float *s, float *top, float *sum, const attention_args &a, const plain_place &at, int column0)
{
    float high = *top, rescale;
    for (int i = 0; i < PLAIN_SCORES; i++) {
        bool there = column0 + at.lane + 4 * i < a.tokens;
        s[i] = there ? s[i] * a.scale : -INFINITY;
        high = fmaxf(high, s[i]);
    }
    high = lane_max<4>(high);
    rescale = expf(*top - high);
    *top = high;
    *sum *= rescale;
    for (int i = 0; i < PLAIN_SCORES; i++) {
        s[i] = expf(s[i] - high);
        *sum += s[i];
    }
    return rescale;
}

static __global__ void __launch_bounds__(PLAIN_THREADS) attention_plain(attention_args a)
{
    __shared__ plain_tile x_tile, z_tile;
    __shared__ plain_square p;
    plain_place at = plain_find(a);
    plain_rows q = plain_of(a.q, a.stride_k, a, at), k = plain_of(a.k, a.stride_k, a, at);
    plain_rows v = plain_of(a.v, a.stride_v, a, at), y = plain_of(a.y, a.dim, a, at);
    float top = 0, sum = 0;
    for (int c0 = 0; c0 < a.width; c0 += PLAIN_CHANNELS) {
        float acc[PLAIN_OUT] = {0}, s[PLAIN_SCORES];
        top = -INFINITY, sum = 0;
        for (int j0 = 0; j0 < a.tokens; j0 += PLAIN_ROWS) {
            plain_products(s, &x_tile, &z_tile, q, k, a, at, at.first, j0);
            float rescale = plain_take(s, &top, &sum, a, at, j0);
            for (int i = 0; i < PLAIN_SCORES; i++)
                p.v[at.row][at.lane + 4 * i] = s[i];
            for (int i = 0; i < PLAIN_OUT; i++)
                acc[i] *= rescale;
            plain_add(acc, &p, &z_tile, v, a, at, j0, c0);
        }
        sum = lane_sum<4>(sum);
        plain_store(y, a, at, c0, acc, 1.0f / sum);
    }
    int row = at.first + at.row;
    if (a.logsum && at.lane == 0 && row < a.tokens)
        attention_row(a.logsum, a, at.group, at.head)[(int64_t)row * a.heads] = top + logf(sum);
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct plain_operands {
    plain_rows q, k, v, dy;
} plain_operands;

DEVICE plain_operands plain_all(const attention_args &a, const plain_place &at)
{
    return plain_operands{plain_of(a.q, a.stride_k, a, at), plain_of(a.k, a.stride_k, a, at),
                          plain_of(a.v, a.stride_v, a, at), plain_of(a.dy, a.dim, a, at)};
}

/* Owns queries: delta in a first pass over the keys, dq in a second. */
static __global__ void __launch_bounds__(PLAIN_THREADS) attention_plain_queries(attention_args a)
{
    __shared__ plain_tile x_tile, z_tile;
    __shared__ plain_square ds;
    plain_place at = plain_find(a);
    plain_operands o = plain_all(a, at);
    plain_rows dq = plain_of(a.dq, a.stride_k, a, at);
    int row = at.first + at.row;
    float s[PLAIN_SCORES], dp[PLAIN_SCORES], delta = 0, logsum = 0;
    if (row < a.tokens)
        logsum = attention_row(a.logsum, a, at.group, at.head)[(int64_t)row * a.heads];
    for (int c0 = -PLAIN_CHANNELS; c0 < a.width; c0 += PLAIN_CHANNELS) { /* the first pass has no channels: delta */
        float acc[PLAIN_OUT] = {0};
        for (int j0 = 0; j0 < a.tokens; j0 += PLAIN_ROWS) {
            plain_products(s, &x_tile, &z_tile, o.q, o.k, a, at, at.first, j0);
            plain_products(dp, &x_tile, &z_tile, o.dy, o.v, a, at, at.first, j0);
            for (int i = 0; i < PLAIN_SCORES; i++) {
                bool there = row < a.tokens && j0 + at.lane + 4 * i < a.tokens;
                float p = there ? expf(fmaf(s[i], a.scale, -logsum)) : 0.0f;
                if (c0 < 0)
                    delta = fmaf(p, dp[i], delta);
                else
                    ds.v[at.row][at.lane + 4 * i] = p * a.scale * (dp[i] - delta);
            }
            if (c0 >= 0)
                plain_add(acc, &ds, &z_tile, o.k, a, at, j0, c0);
        }
        if (c0 < 0)
            delta = lane_sum<4>(delta);
        else
            plain_store(dq, a, at, c0, acc, 1.0f);
    }
    if (at.lane == 0 && row < a.tokens)
        attention_row(a.delta, a, at.group, at.head)[(int64_t)row * a.heads] = delta;
}

/* Owns keys: rows of p^T and ds^T. */
static __global__ void __launch_bounds__(PLAIN_THREADS) attention_plain_keys(attention_args a)
{
    __shared__ plain_tile x_tile, z_tile;
    __shared__ plain_square p, ds;
    plain_place at = plain_find(a);
    plain_operands o = plain_all(a, at);
    plain_rows dk = plain_of(a.dk, a.stride_k, a, at), dv = plain_of(a.dv, a.stride_v, a, at);
    const float *logsum = attention_row(a.logsum, a, at.group, at.head);
    const float *delta = attention_row(a.delta, a, at.group, at.head);
    for (int c0 = 0; c0 < a.width; c0 += PLAIN_CHANNELS) {
        float acc_k[PLAIN_OUT] = {0}, acc_v[PLAIN_OUT] = {0}, s[PLAIN_SCORES], dp[PLAIN_SCORES];
        for (int i0 = 0; i0 < a.tokens; i0 += PLAIN_ROWS) {
            plain_products(s, &x_tile, &z_tile, o.k, o.q, a, at, at.first, i0);
            plain_products(dp, &x_tile, &z_tile, o.v, o.dy, a, at, at.first, i0);
            for (int i = 0; i < PLAIN_SCORES; i++) {
                int query = i0 + at.lane + 4 * i;
                bool there = query < a.tokens && at.first + at.row < a.tokens;
                int64_t index = there ? (int64_t)query * a.heads : 0;
                float weight = there ? expf(fmaf(s[i], a.scale, -logsum[index])) : 0.0f;
                p.v[at.row][at.lane + 4 * i] = weight;
                ds.v[at.row][at.lane + 4 * i] = weight * a.scale * (dp[i] - delta[index]);
            }
            plain_add(acc_v, &p, &z_tile, o.dy, a, at, i0, c0);
            plain_add(acc_k, &ds, &z_tile, o.q, a, at, i0, c0);
        }
        plain_store(dk, a, at, c0, acc_k, 1.0f);
        plain_store(dv, a, at, c0, acc_v, 1.0f);
    }
}

#endif
