/* attention_small.cuh - attention of at most 16 tokens with very narrow heads: TNT's pixels.
 * SPDX-License-Identifier: MIT
 *
 * 16 tokens and heads of 6 channels are too little for tensor cores, but there are 64 such groups
 * in every image. A thread owns one query of one head; its scores are registers. A block takes some
 * groups, whose rows are one contiguous piece of memory, into shared memory as floats, computes,
 * and writes results the same way back. For the backward p and ds go through shared memory too, and
 * the thread then owns a key.
 *
 * Rows in shared memory are padded by two floats: pairs stay aligned, and the rows of neighbouring
 * threads spread over banks. */
#ifndef CUDA_ATTENTION_SMALL_CUH
#define CUDA_ATTENTION_SMALL_CUH

#include "cuda/attention_args.cuh"

enum { SMALL_TOKENS = 16, SMALL_PAD = 2, SMALL_THREADS = 128 };

/* The groups of a block, and the item (group, head, row) of a thread. */
typedef struct small_place {
    int64_t first_row; /* of the block, in all rows */
    int rows;          /* of the block that exist */
    int local, head, row0,
        square; /* of the thread: its row in the block, its group's first row, its square of weights */
    bool there;
} small_place;

static inline int small_groups(const attention_args *a) /* of a block */
{
    int groups = SMALL_THREADS / (a->tokens * a->heads);
    return groups < 1 ? 1 : groups;
}

DEVICE small_place small_find(const attention_args &a, int groups)
{
    small_place at;
    int64_t first = (int64_t)blockIdx.x * groups, left = a.groups - first;
    int item = (int)threadIdx.x, row = item % a.tokens, group = item / a.tokens / a.heads;
    at.first_row = first * a.tokens;
    at.rows = (int)(left < groups ? left : groups) * a.tokens;
    at.there = group * a.tokens < at.rows && group < groups;
    at.head = item / a.tokens % a.heads;
    at.row0 = at.there ? group * a.tokens : 0;
    at.local = at.row0 + row;
    at.square = item / a.tokens;
    return at;
}

/* `width` channels of each of the block's rows; rows of an array are contiguous and `width`
 * elements long. */
template <typename T> DEVICE void small_fetch(float *to, array from, int width, const small_place &at)
{
    for (int i = threadIdx.x * 8; i < at.rows * width; i += blockDim.x * 8) {
        float v[8];
        elements_load<T, 8>(v, (const T *)from.data + at.first_row * width + i);
        float *row = to + i / width * (width + SMALL_PAD) + i % width;
#pragma unroll
        for (int e = 0; e < 8; e += 2)
            *(float2 *)(row + e) = make_float2(v[e], v[e + 1]);
    }
}

template <typename T> DEVICE void small_store(array to, const float *from, int width, const small_place &at)
{
    for (int i = threadIdx.x * 8; i < at.rows * width; i += blockDim.x * 8) {
        float v[8];
        const float *row = from + i / width * (width + SMALL_PAD) + i % width;
#pragma unroll
        for (int e = 0; e < 8; e += 2) {
            float2 pair = *(const float2 *)(row + e);
            v[e] = pair.x, v[e + 1] = pair.y;
        }
        elements_store<T, 8>((T *)to.data + at.first_row * width + i, v);
    }
}

template <int W> DEVICE void small_read(float *v, const float *row)
{
#pragma unroll
    for (int e = 0; e < W; e += 2) {
        float2 pair = *(const float2 *)(row + e);
        v[e] = pair.x, v[e + 1] = pair.y;
    }
}

template <int W> DEVICE void small_write(float *row, const float *v)
{
#pragma unroll
    for (int e = 0; e < W; e += 2)
        *(float2 *)(row + e) = make_float2(v[e], v[e + 1]);
}

template <int W> DEVICE float small_dot(const float *x, const float *row)
{
    float v[W], sum = 0;
    small_read<W>(v, row);
#pragma unroll
    for (int e = 0; e < W; e++)
        sum = fmaf(x[e], v[e], sum);
    return sum;
}

template <int W> DEVICE void small_add(float *acc, float weight, const float *row)
{
    float v[W];
    small_read<W>(v, row);
#pragma unroll
    for (int e = 0; e < W; e++)
        acc[e] = fmaf(weight, v[e], acc[e]);
}

/* Where q, k, v and dy of the block's rows lie in shared memory. v behind k in the same rows, or an
 * array of its own. */
typedef struct small_layout {
    float *q, *k, *v, *dy, *end;
    int pitch_k, pitch_v, pitch_y;
    bool apart;
} small_layout;

DEVICE small_layout small_lay(const attention_args &a, float *shared, int rows)
{
    small_layout l;
    int dim = (int)a.dim;
    l.apart = a.stride_v == a.dim;
    l.pitch_k = (int)a.stride_k + SMALL_PAD;
    l.pitch_v = (int)a.stride_v + SMALL_PAD;
    l.pitch_y = dim + SMALL_PAD;
    l.q = shared;
    l.k = l.q + dim;
    l.v = l.apart ? shared + rows * l.pitch_k : l.k + dim;
    l.dy = shared + rows * (l.pitch_k + (l.apart ? l.pitch_v : 0));
    l.end = l.dy + rows * l.pitch_y;
    return l;
}

template <typename T> DEVICE void small_fetch_all(const attention_args &a, const small_layout &l, const small_place &at)
{
    small_fetch<T>(l.q, a.q, (int)a.stride_k, at); /* with k, and with v where it is not apart */
    if (l.apart)
        small_fetch<T>(l.v, a.v, (int)a.stride_v, at);
}

template <typename T> DEVICE float small_exp(float x)
{
    return sizeof(T) == 4 ? expf(x) : exp2_fast(x * LOG2_E);
}

/* ---- forward --------------------------------------------------------------------------------- */

template <typename T, int W>
__global__ void __launch_bounds__(2 * SMALL_THREADS) attention_small(attention_args a, int groups)
{
    SHARED_BYTES(shared);
    small_place at = small_find(a, groups);
    small_layout l = small_lay(a, (float *)shared, groups * a.tokens);
    small_fetch_all<T>(a, l, at);
    __syncthreads();
    float s[SMALL_TOKENS], x[W], y[W] = {0}, top = -INFINITY, sum = 0;
    int channel = at.head * W;
    if (at.there) {
        small_read<W>(x, l.q + at.local * l.pitch_k + channel);
#pragma unroll
        for (int j = 0; j < SMALL_TOKENS; j++) {
            s[j] = -INFINITY;
            if (j < a.tokens)
                s[j] = small_dot<W>(x, l.k + (at.row0 + j) * l.pitch_k + channel) * a.scale;
            top = fmaxf(top, s[j]);
        }
#pragma unroll
        for (int j = 0; j < SMALL_TOKENS; j++)
            if (j < a.tokens) {
                float p = small_exp<T>(s[j] - top);
                sum += p;
                small_add<W>(y, p, l.v + (at.row0 + j) * l.pitch_v + channel);
            }
        float inverse = 1.0f / sum;
#pragma unroll
        for (int e = 0; e < W; e++)
            y[e] *= inverse;
        small_write<W>(l.dy + at.local * l.pitch_y + channel, y);
        if (a.logsum)
            a.logsum[(at.first_row + at.local) * a.heads + at.head] = top + logf(sum);
    }
    __syncthreads();
    small_store<T>(a.y, l.dy, (int)a.dim, at);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* p and ds of the thread's query into its squares, and dq. */
template <typename T, int W>
DEVICE void small_query(const attention_args &a, const small_layout &l, const small_place &at, float *p, float *ds,
                        float *dq)
{
    int channel = at.head * W, row = at.local - at.row0;
    float x[W], dy[W], weight[SMALL_TOKENS], slope[SMALL_TOKENS], delta = 0;
    float logsum = a.logsum[(at.first_row + at.local) * a.heads + at.head];
    small_read<W>(x, l.q + at.local * l.pitch_k + channel);
    small_read<W>(dy, l.dy + at.local * l.pitch_y + channel);
#pragma unroll
    for (int j = 0; j < SMALL_TOKENS; j++)
        if (j < a.tokens) {
            float s = small_dot<W>(x, l.k + (at.row0 + j) * l.pitch_k + channel);
            weight[j] = small_exp<T>(fmaf(s, a.scale, -logsum));
            slope[j] = small_dot<W>(dy, l.v + (at.row0 + j) * l.pitch_v + channel);
            delta = fmaf(weight[j], slope[j], delta);
        }
#pragma unroll
    for (int j = 0; j < SMALL_TOKENS; j++)
        if (j < a.tokens) {
            slope[j] = weight[j] * a.scale * (slope[j] - delta);
            small_add<W>(dq, slope[j], l.k + (at.row0 + j) * l.pitch_k + channel);
            p[row * (SMALL_TOKENS + 1) + j] = weight[j];
            ds[row * (SMALL_TOKENS + 1) + j] = slope[j];
        }
}

/* dk and dv of the thread's key: its column of ds and p. */
template <int W>
DEVICE void small_key(const attention_args &a, const small_layout &l, const small_place &at, const float *p,
                      const float *ds, float *dk, float *dv)
{
    int channel = at.head * W, key = at.local - at.row0;
    for (int i = 0; i < a.tokens; i++) {
        small_add<W>(dk, ds[i * (SMALL_TOKENS + 1) + key], l.q + (at.row0 + i) * l.pitch_k + channel);
        small_add<W>(dv, p[i * (SMALL_TOKENS + 1) + key], l.dy + (at.row0 + i) * l.pitch_y + channel);
    }
}

template <typename T, int W>
__global__ void __launch_bounds__(2 * SMALL_THREADS) attention_small_grad(attention_args a, int groups)
{
    SHARED_BYTES(shared);
    small_place at = small_find(a, groups);
    small_layout l = small_lay(a, (float *)shared, groups * a.tokens);
    small_fetch_all<T>(a, l, at);
    small_fetch<T>(l.dy, a.dy, (int)a.dim, at);
    __syncthreads();
    int size = a.tokens * (SMALL_TOKENS + 1), channel = at.head * W;
    float *p = l.end + at.square * 2 * size, *ds = p + size, dq[W] = {0}, dk[W] = {0}, dv[W] = {0};
    if (at.there)
        small_query<T, W>(a, l, at, p, ds, dq);
    __syncthreads();
    if (at.there)
        small_key<W>(a, l, at, p, ds, dk, dv);
    __syncthreads(); /* all operands were read: results take their places */
    if (at.there) {
        small_write<W>(l.q + at.local * l.pitch_k + channel, dq);
        small_write<W>(l.k + at.local * l.pitch_k + channel, dk);
        small_write<W>(l.v + at.local * l.pitch_v + channel, dv);
    }
    __syncthreads();
    small_store<T>(a.dq, l.q, (int)a.stride_k, at);
    if (l.apart)
        small_store<T>(a.dv, l.v, (int)a.stride_v, at);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static inline int small_threads(const attention_args *a)
{
    return (small_groups(a) * a->tokens * a->heads + 31) / 32 * 32;
}

static inline size_t small_shared(const attention_args *a, bool backward)
{
    int64_t rows = (int64_t)small_groups(a) * a->tokens, apart = a->stride_v == a->dim ? a->stride_v + SMALL_PAD : 0;
    int64_t floats = rows * (a->stride_k + SMALL_PAD + apart + a->dim + SMALL_PAD);
    if (backward)
        floats += rows * a->heads * 2 * (SMALL_TOKENS + 1);
    return (size_t)floats * sizeof(float);
}

/* Rows must be whole vectors of 8; what a block holds must fit it. */
static inline bool small_fits(const attention_args *a)
{
    return a->tokens <= SMALL_TOKENS && a->dim % 8 == 0 && small_threads(a) <= 2 * SMALL_THREADS &&
           small_shared(a, true) <= 96 * 1024;
}

#endif
