/* attention_stream.cuh - attention of any number of tokens with tensor cores, streaming over keys.
 * SPDX-License-Identifier: MIT
 *
 * bf16, head width W a multiple of 16. A block owns 16 queries per warp of one head and streams k
 * and v past them, 8 N keys at a time, the next ones in flight while these are used. The softmax is
 * the running one: a larger score rescales what was added up before.
 *
 * Backward in two kernels, without atomics. The first owns queries and goes over the keys twice:
 * once for delta = sum p dp, which it also writes down, once for dq = ds k. Where y is at hand
 * delta is the sum of y dy instead, and the first time is left out. The second owns keys and
 * streams queries past them: s^T = k q^T is then what mma gives, and p^T and ds^T feed dv += p^T dy
 * and dk += ds^T q from registers.
 *
 * Read on: cuda/tile.cuh for the products; attention_chip.cuh for few tokens, where all of it stays
 * on chip. */
#ifndef CUDA_ATTENTION_STREAM_CUH
#define CUDA_ATTENTION_STREAM_CUH

#include "cuda/attention_chip.cuh"

enum {
    STREAM_WARPS = 7,    /* of a block, at most: 197 tokens are two blocks of 7 strips */
    STREAM_FORWARD = 9,  /* blocks of 8 keys at a time: 197 tokens are three rounds */
    STREAM_BACKWARD = 5, /* fewer, for the registers' sake: 197 tokens are five rounds of 40 */
};

/* Where a block works: which head of which group, from which row on. */
typedef struct stream_place {
    int64_t group;
    int head, first, rows; /* rows: 16 per warp */
} stream_place;

DEVICE stream_place stream_find(const attention_args &a)
{
    stream_place at;
    at.rows = (int)blockDim.x / 32 * 16;
    int parts = (a.tokens + at.rows - 1) / at.rows;
    at.first = (int)(blockIdx.x % parts) * at.rows;
    at.head = (int)(blockIdx.x / parts % a.heads);
    at.group = blockIdx.x / parts / a.heads;
    return at;
}

/* Starts the copy of rows first .. first + rows of a head; those past the last token become
 * zero. */
template <int W>
DEVICE void stream_fetch(uint16_t *to, array from, int64_t stride, const attention_args &a, const stream_place &at,
                         int first, int rows)
{
    tile_fetch<W>(to, attention_at(from, stride, a, at.group, at.head) + first * stride, stride, rows,
                  a.tokens - first);
}

/* A strip's packed result to rows of the head in memory, through the warp's own 16 rows of a
 * tile. */
template <int W>
DEVICE void stream_store(array to, int64_t stride, const attention_args &a, const stream_place &at, uint16_t *through,
                         const uint32_t (*out)[2])
{
    int row0 = (int)threadIdx.x / 32 * 16;
    __syncwarp();
    strip_stage<W / 8>(through, tile<W>::PITCH, out, row0, at.rows);
    __syncwarp();
    uint16_t *rows = attention_at(to, stride, a, at.group, at.head) + at.first * stride;
    strip_store<W>(rows, stride, through, row0, a.tokens - at.first);
}

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct running_softmax {
    float top[2], sum[2]; /* of the lane's two rows; sum over this lane's keys only */
} running_softmax;

/* Takes in the scores of 8 N more keys, of which `valid` exist; packs p and says by how much to
 * scale what came before. */
template <int N>
DEVICE void running_take(running_softmax *r, float (*s)[4], int valid, float factor, uint32_t (*p)[2], float *rescale)
{
    int column = 2 * (threadIdx.x % 4);
    float top[2] = {r->top[0], r->top[1]}, shift[2];
    if (valid < 8 * N) /* hardly ever: all but the last keys exist */
#pragma unroll
        for (int i = 0; i < 4 * N; i++)
            s[i / 4][i % 4] = i / 4 * 8 + column + i % 2 < valid ? s[i / 4][i % 4] : -INFINITY;
#pragma unroll
    for (int i = 0; i < 4 * N; i++)
        top[i % 4 / 2] = fmaxf(top[i % 4 / 2], s[i / 4][i % 4]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = lane_max<4>(top[h]);
        shift[h] = top[h] * -factor;
        rescale[h] = exp2_fast(fmaf(r->top[h], factor, shift[h]));
        r->top[h] = top[h];
        r->sum[h] *= rescale[h];
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2_fast(fmaf(s[n][i], factor, shift[i / 2]));
            r->sum[i / 2] += s[n][i];
        }
        p[n][0] = bf16_pair(s[n][0], s[n][1]);
        p[n][1] = bf16_pair(s[n][2], s[n][3]);
    }
}

template <int W>
DEVICE void stream_finish(const attention_args &a, const stream_place &at, uint16_t *q, running_softmax *r,
                          const float (*y)[4])
{
    int lane = threadIdx.x % 32, row = at.first + (int)threadIdx.x / 32 * 16 + lane / 4 + lane % 2 * 8;
    uint32_t out[W / 8][2];
    float sum[2] = {lane_sum<4>(r->sum[0]), lane_sum<4>(r->sum[1])};
    strip_pack<W / 8>(out, y, 1.0f / sum[0], 1.0f / sum[1]);
    stream_store<W>(a.y, a.dim, a, at, q, out);
    if (a.logsum && lane % 4 < 2 && row < a.tokens)
        attention_row(a.logsum, a, at.group, at.head)[(int64_t)row * a.heads] =
            lane % 2 ? fmaf(r->top[1], a.scale, logf(sum[1])) : fmaf(r->top[0], a.scale, logf(sum[0]));
}

template <int W> __global__ void __launch_bounds__(STREAM_WARPS * 32, 2) attention_stream(attention_args a)
{
    constexpr int N = STREAM_FORWARD, KEYS = 8 * N, TILE = KEYS * tile<W>::PITCH;
    SHARED_BYTES(shared);
    stream_place at = stream_find(a);
    int row0 = (int)threadIdx.x / 32 * 16, rounds = (a.tokens + KEYS - 1) / KEYS;
    uint16_t *kv = (uint16_t *)shared, *q = kv + 4 * TILE; /* k and v of two rounds, then q */
    stream_fetch<W>(q, a.q, a.stride_k, a, at, at.first, at.rows);
    stream_fetch<W>(kv, a.k, a.stride_k, a, at, 0, KEYS);
    stream_fetch<W>(kv + TILE, a.v, a.stride_v, a, at, 0, KEYS);
    copy_commit();
    running_softmax r = {{-INFINITY, -INFINITY}, {0, 0}};
    float s[1][N][4], y[1][W / 8][4], rescale[2];
    uint32_t p[1][N][2];
    strip_clear<W / 8>(y[0]);
    for (int i = 0; i < rounds; i++) {
        uint16_t *k = kv + i % 2 * 2 * TILE, *next = kv + (i + 1) % 2 * 2 * TILE;
        if (i + 1 < rounds) {
            stream_fetch<W>(next, a.k, a.stride_k, a, at, (i + 1) * KEYS, KEYS);
            stream_fetch<W>(next + TILE, a.v, a.stride_v, a, at, (i + 1) * KEYS, KEYS);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        strip_clear<N>(s[0]);
        tile_rows<1, N, W>(s, q, row0, at.rows - 1, k);
        running_take<N>(&r, s[0], a.tokens - i * KEYS, a.scale * LOG2_E, p[0], rescale);
#pragma unroll
        for (int n = 0; n < W / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                y[0][n][e] *= rescale[e / 2];
        tile_packed<1, N, W>(y, p, k + TILE);
        __syncthreads(); /* before the next round overwrites k and v */
    }
    stream_finish<W>(a, at, q, &r, y[0]);
}

/* ---- backward: queries ----------------------------------------------------------------------- */

/* p and dp of a strip against 8 N keys, of which `valid` exist; p is 0 for the others. */
template <int N, int W>
DEVICE void stream_scores(float (*p)[N][4], float (*dp)[N][4], const uint16_t *q, const uint16_t *dy, const uint16_t *k,
                          const uint16_t *v, int row0, int last, int valid, float factor, const float *shift)
{
    int column = 2 * (threadIdx.x % 4);
    strip_clear<N>(p[0]);
    strip_clear<N>(dp[0]);
    tile_rows<1, N, W>(p, q, row0, last, k);
    tile_rows<1, N, W>(dp, dy, row0, last, v);
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool there = n * 8 + column + i % 2 < valid;
            p[0][n][i] = there ? exp2_fast(fmaf(p[0][n][i], factor, shift[i / 2])) : 0.0f;
        }
}

/* ds = p (dp - delta) scale, in the place of p. */
template <int N>
DEVICE void stream_slopes(uint32_t (*ds)[2], const float (*p)[4], const float (*dp)[4], const float *delta, float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            ds[n][h] = bf16_pair(p[n][2 * h] * scale * (dp[n][2 * h] - delta[h]),
                                 p[n][2 * h + 1] * scale * (dp[n][2 * h + 1] - delta[h]));
}

/* Sum of y dy of a row; four lanes share it. */
template <int W> DEVICE float stream_delta(const attention_args &a, const stream_place &at, int row)
{
    int64_t from = (row < a.tokens ? row : a.tokens - 1) * a.dim;
    const uint16_t *y = attention_at(a.y, a.dim, a, at.group, at.head) + from;
    const uint16_t *dy = attention_at(a.dy, a.dim, a, at.group, at.head) + from;
    float sum = 0, left[8], right[8];
#pragma unroll
    for (int c = threadIdx.x % 4; c < W / 8; c += 4) {
        elements_load<__nv_bfloat16, 8>(left, y + c * 8);
        elements_load<__nv_bfloat16, 8>(right, dy + c * 8);
#pragma unroll
        for (int e = 0; e < 8; e++)
            sum = fmaf(left[e], right[e], sum);
    }
    return lane_sum<4>(sum);
}

template <int W>
__global__ void __launch_bounds__(STREAM_WARPS * 32, W <= 64 ? 2 : 1) attention_stream_queries(attention_args a)
{
    constexpr int N = STREAM_BACKWARD, KEYS = 8 * N, TILE = KEYS * tile<W>::PITCH;
    SHARED_BYTES(shared);
    stream_place at = stream_find(a);
    int lane = threadIdx.x % 32, row0 = (int)threadIdx.x / 32 * 16, rounds = (a.tokens + KEYS - 1) / KEYS;
    uint16_t *kv = (uint16_t *)shared, *q = kv + 4 * TILE, *dy = q + at.rows * tile<W>::PITCH;
    stream_fetch<W>(q, a.q, a.stride_k, a, at, at.first, at.rows);
    stream_fetch<W>(dy, a.dy, a.dim, a, at, at.first, at.rows);
    stream_fetch<W>(kv, a.k, a.stride_k, a, at, 0, KEYS);
    stream_fetch<W>(kv + TILE, a.v, a.stride_v, a, at, 0, KEYS);
    copy_commit();
    float shift[2], delta[2] = {0, 0}, p[1][N][4], dp[1][N][4], dq[1][W / 8][4];
    const float *sums = attention_row(a.logsum, a, at.group, at.head);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = at.first + row0 + lane / 4 + h * 8;
        shift[h] = row < a.tokens ? sums[(int64_t)row * a.heads] * -LOG2_E : -INFINITY;
        if (a.y.data)
            delta[h] = stream_delta<W>(a, at, row);
    }
    uint32_t ds[1][N][2], out[W / 8][2];
    strip_clear<W / 8>(dq[0]);
    int begin = a.y.data ? rounds : 0;
    for (int i = begin; i < 2 * rounds; i++) { /* twice over the keys: delta, then dq */
        uint16_t *k = kv + (i - begin) % 2 * 2 * TILE, *next = kv + (i - begin + 1) % 2 * 2 * TILE;
        if (i + 1 < 2 * rounds) {
            stream_fetch<W>(next, a.k, a.stride_k, a, at, (i + 1) % rounds * KEYS, KEYS);
            stream_fetch<W>(next + TILE, a.v, a.stride_v, a, at, (i + 1) % rounds * KEYS, KEYS);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        stream_scores<N, W>(p, dp, q, dy, k, k + TILE, row0, at.rows - 1, a.tokens - i % rounds * KEYS,
                            a.scale * LOG2_E, shift);
        if (i < rounds) {
#pragma unroll
            for (int e = 0; e < 4 * N; e++)
                delta[e % 4 / 2] = fmaf(p[0][e / 4][e % 4], dp[0][e / 4][e % 4], delta[e % 4 / 2]);
            if (i == rounds - 1)
                delta[0] = lane_sum<4>(delta[0]), delta[1] = lane_sum<4>(delta[1]);
        } else {
            stream_slopes<N>(ds[0], p[0], dp[0], delta, a.scale);
            tile_packed<1, N, W>(dq, ds, k);
        }
        __syncthreads();
    }
    strip_pack<W / 8>(out, dq[0], 1.0f, 1.0f);
    stream_store<W>(a.dq, a.stride_k, a, at, q, out);
    int row = at.first + row0 + lane / 4 + lane % 2 * 8;
    if (lane % 4 < 2 && row < a.tokens)
        attention_row(a.delta, a, at.group, at.head)[(int64_t)row * a.heads] = lane % 2 ? delta[1] : delta[0];
}

/* ---- backward: keys -------------------------------------------------------------------------- */

/* Starts the copy of q and dy of a round, and reads its log-sums and deltas; queries past the last
 * get p = 0. */
template <int W, int QUERIES>
DEVICE void stream_fetch_queries(uint16_t *to, float *rows, const attention_args &a, const stream_place &at, int first)
{
    stream_fetch<W>(to, a.q, a.stride_k, a, at, first, QUERIES);
    stream_fetch<W>(to + QUERIES * tile<W>::PITCH, a.dy, a.dim, a, at, first, QUERIES);
    for (int i = threadIdx.x; i < QUERIES; i += blockDim.x) {
        bool there = first + i < a.tokens;
        int64_t row = (int64_t)(first + i) * a.heads;
        rows[i] = there ? attention_row(a.logsum, a, at.group, at.head)[row] * -LOG2_E : -INFINITY;
        rows[QUERIES + i] = there ? attention_row(a.delta, a, at.group, at.head)[row] : 0.0f;
    }
}

/* p^T and ds^T of a strip of keys, packed, from s^T and dp^T; rows: shift and delta of each query,
 * the columns here. */
template <int N>
DEVICE void stream_columns(uint32_t (*p)[2], uint32_t (*ds)[2], const float (*s)[4], const float (*dp)[4],
                           const float *rows, float factor, float scale)
{
    const float *shift = rows + 2 * (threadIdx.x % 4), *delta = shift + 8 * N;
#pragma unroll
    for (int n = 0; n < N; n++) {
        float w[4], d[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w[i] = exp2_fast(fmaf(s[n][i], factor, shift[n * 8 + i % 2]));
            d[i] = w[i] * scale * (dp[n][i] - delta[n * 8 + i % 2]);
        }
        p[n][0] = bf16_pair(w[0], w[1]), p[n][1] = bf16_pair(w[2], w[3]);
        ds[n][0] = bf16_pair(d[0], d[1]), ds[n][1] = bf16_pair(d[2], d[3]);
    }
}

template <int W>
__global__ void __launch_bounds__(STREAM_WARPS * 32, W <= 64 ? 2 : 1) attention_stream_keys(attention_args a)
{
    constexpr int N = STREAM_BACKWARD, QUERIES = 8 * N, TILE = QUERIES * tile<W>::PITCH;
    SHARED_BYTES(shared);
    stream_place at = stream_find(a);
    int row0 = (int)threadIdx.x / 32 * 16, rounds = (a.tokens + QUERIES - 1) / QUERIES;
    uint16_t *streamed = (uint16_t *)shared, *k = streamed + 4 * TILE, *v = k + at.rows * tile<W>::PITCH;
    float *rows = (float *)(v + at.rows * tile<W>::PITCH); /* two rounds of shift and delta */
    stream_fetch<W>(k, a.k, a.stride_k, a, at, at.first, at.rows);
    stream_fetch<W>(v, a.v, a.stride_v, a, at, at.first, at.rows);
    stream_fetch_queries<W, QUERIES>(streamed, rows, a, at, 0);
    copy_commit();
    float s[1][N][4], dp[1][N][4], dk[1][W / 8][4], dv[1][W / 8][4];
    uint32_t p[1][N][2], ds[1][N][2], out[W / 8][2];
    strip_clear<W / 8>(dk[0]);
    strip_clear<W / 8>(dv[0]);
    for (int i = 0; i < rounds; i++) {
        uint16_t *q = streamed + i % 2 * 2 * TILE, *dy = q + TILE;
        if (i + 1 < rounds)
            stream_fetch_queries<W, QUERIES>(streamed + (i + 1) % 2 * 2 * TILE, rows + (i + 1) % 2 * 2 * QUERIES, a, at,
                                             (i + 1) * QUERIES);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        strip_clear<N>(s[0]);
        strip_clear<N>(dp[0]);
        tile_rows<1, N, W>(s, k, row0, at.rows - 1, q);
        tile_rows<1, N, W>(dp, v, row0, at.rows - 1, dy);
        stream_columns<N>(p[0], ds[0], s[0], dp[0], rows + i % 2 * 2 * QUERIES, a.scale * LOG2_E, a.scale);
        tile_packed<1, N, W>(dv, p, dy);
        tile_packed<1, N, W>(dk, ds, q);
        __syncthreads();
    }
    strip_pack<W / 8>(out, dk[0], 1.0f, 1.0f);
    stream_store<W>(a.dk, a.stride_k, a, at, k, out);
    strip_pack<W / 8>(out, dv[0], 1.0f, 1.0f);
    stream_store<W>(a.dv, a.stride_v, a, at, v, out);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* As few blocks of at most STREAM_WARPS strips as there can be, and as few warps in each. */
static inline int stream_warps(int tokens)
{
    int strips = (tokens + 15) / 16, blocks = (strips + STREAM_WARPS - 1) / STREAM_WARPS;
    return (strips + blocks - 1) / blocks;
}

template <int W> static size_t stream_forward_shared(int warps)
{
    return (size_t)(4 * 8 * STREAM_FORWARD + 16 * warps) * tile<W>::PITCH * 2;
}

template <int W> static size_t stream_backward_shared(int warps)
{
    return (size_t)(4 * 8 * STREAM_BACKWARD + 2 * 16 * warps) * tile<W>::PITCH * 2 +
           4 * 8 * STREAM_BACKWARD * sizeof(float);
}

#endif
