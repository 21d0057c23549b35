/* attention_chip.cuh - attention of few tokens: one block per group and head, nothing but operands
 * and results in memory. SPDX-License-Identifier: MIT
 *
 * For up to 8 N tokens (N blocks of 8 keys, odd) of head width W, bf16, tensor cores. q, k, v (and
 * dy) of the head lie in shared memory as tiles (cuda/tile.cuh); a warp owns F strips of 16
 * queries. Scores stay in registers: softmax needs the four lanes that share a row, and the packed
 * weights are the first operand of the next product.
 *
 * Backward: p from the kept log-sums, dp = dy v^T, delta = sum p dp, ds = p (dp - delta) scale, dq
 * = ds k, all in the registers of the warp that owns the queries. dk = ds^T q and dv = p^T dy sum
 * over queries, so p and ds are written to shared memory, where v and k were, and each warp takes
 * 16 F keys instead. p is rounded to bf16 once and used so everywhere: then the rows of ds sum to
 * zero as they should, up to the rounding of ds. Column sums of all three are taken from the
 * accumulators where somebody wants them (attention_sums.cuh).
 *
 * Read on: attention_stream.cuh for more tokens; attention.cu picks. */
#ifndef CUDA_ATTENTION_CHIP_CUH
#define CUDA_ATTENTION_CHIP_CUH

#include "cuda/attention_sums.cuh"
#include "cuda/tile.cuh"

template <int W, int N, int F> struct chip {
    static_assert(N % 2 == 1, "rows of p then are an odd number of 16-byte chunks apart");
    static constexpr int ROWS = 8 * N, STRIPS = (N + 1) / 2, WARPS = (STRIPS + F - 1) / F, THREADS = 32 * WARPS;
    static constexpr int TILE = ROWS * tile<W>::PITCH; /* elements */
    static constexpr int P_PITCH = 8 * N, P_TILE = ROWS * P_PITCH;
    static constexpr int BIG = TILE > P_TILE ? TILE : P_TILE;                         /* holds k or v, then ds or p */
    static constexpr int FORWARD = 3 * TILE * 2, BACKWARD = (3 * TILE + 2 * BIG) * 2; /* bytes */
};

template <int N> DEVICE void strip_clear(float (*acc)[4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        acc[n][0] = acc[n][1] = acc[n][2] = acc[n][3] = 0;
}

template <int F, int N> DEVICE void strips_clear(float (*acc)[N][4])
{
#pragma unroll
    for (int f = 0; f < F; f++)
        strip_clear<N>(acc[f]);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The two rows of a lane: p = exp(scale (s - top)) packed, 1 / sum p and the log-sum. Keys from
 * `tokens` on count nothing. */
template <int N>
DEVICE void strip_softmax(float (*s)[4], int tokens, float scale, uint32_t (*p)[2], float *inverse, float *logsum)
{
    int column = 2 * (threadIdx.x % 4);
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (n * 8 + column + i % 2 >= tokens)
                s[n][i] = -INFINITY;
            top[i / 2] = fmaxf(top[i / 2], s[n][i]);
        }
    float factor = scale * LOG2_E, shift[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = lane_max<4>(top[h]);
        shift[h] = top[h] * -factor;
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2_fast(fmaf(s[n][i], factor, shift[i / 2]));
            sum[i / 2] += s[n][i];
        }
        p[n][0] = bf16_pair(s[n][0], s[n][1]);
        p[n][1] = bf16_pair(s[n][2], s[n][3]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] = lane_sum<4>(sum[h]);
        inverse[h] = 1.0f / sum[h];
        logsum[h] = fmaf(top[h], scale, logf(sum[h]));
    }
}

template <int W, int N, int F, int BLOCKS>
__global__ void __launch_bounds__(chip<W, N, F>::THREADS, BLOCKS) attention_chip(attention_args a)
{
    using c = chip<W, N, F>;
    SHARED_BYTES(shared);
    uint16_t *q = (uint16_t *)shared, *k = q + c::TILE, *v = k + c::TILE;
    int head = (int)(blockIdx.x % a.heads), lane = threadIdx.x % 32, row0 = (int)threadIdx.x / 32 * 16 * F;
    int64_t group = group_of(a);
    tile_fetch<W, c::THREADS>(q, attention_at(a.q, a.stride_k, a, group, head), a.stride_k, c::ROWS, a.tokens);
    tile_fetch<W, c::THREADS>(k, attention_at(a.k, a.stride_k, a, group, head), a.stride_k, c::ROWS, a.tokens);
    copy_commit();
    tile_fetch<W, c::THREADS>(v, attention_at(a.v, a.stride_v, a, group, head), a.stride_v, c::ROWS, a.tokens);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    float s[F][N][4], y[F][W / 8][4], inverse[F][2], logsum[F][2];
    uint32_t p[F][N][2], out[W / 8][2];
    strips_clear<F, N>(s);
    tile_rows<F, N, W>(s, q, row0, c::ROWS - 1, k);
#pragma unroll
    for (int f = 0; f < F; f++) {
        strip_softmax<N>(s[f], a.tokens, a.scale, p[f], inverse[f], logsum[f]);
        strip_clear<W / 8>(y[f]);
    }
    copy_wait<0>();
    __syncthreads();
    tile_packed<F, N, W>(y, p, v);
    uint16_t *to = attention_at(a.y, a.dim, a, group, head);
    float *sums = attention_row(a.logsum, a, group, head);
#pragma unroll
    for (int f = 0; f < F; f++) { /* staged in the warp's own rows of q, which nobody reads any more */
        strip_pack<W / 8>(out, y[f], inverse[f][0], inverse[f][1]);
        __syncwarp();
        strip_stage<W / 8>(q, tile<W>::PITCH, out, row0 + f * 16, c::ROWS);
        __syncwarp();
        strip_store<W>(to, a.dim, q, row0 + f * 16, a.tokens);
        int row = row0 + f * 16 + lane / 4 + lane % 2 * 8; /* lanes 0 and 1 of four: first and second row */
        if (a.logsum && lane % 4 < 2 && row < a.tokens)
            sums[(int64_t)row * a.heads] = lane % 2 ? logsum[f][1] : logsum[f][0];
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* p of a strip from its scores and log-sums, packed; 0 for keys and queries that do not exist. */
template <int N>
DEVICE void strip_weights(uint32_t (*p)[2], float (*s)[4], const attention_args &a, const float *shift, int row)
{
    int column = 2 * (threadIdx.x % 4);
    float factor = a.scale * LOG2_E;
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool there = n * 8 + column + i % 2 < a.tokens && row + i / 2 * 8 < a.tokens;
            s[n][i] = there ? exp2_fast(fmaf(s[n][i], factor, shift[i / 2])) : 0.0f;
        }
        p[n][0] = bf16_pair(s[n][0], s[n][1]);
        p[n][1] = bf16_pair(s[n][2], s[n][3]);
    }
}

/* ds = p (dp - delta) scale, packed, with delta = sum over keys of p dp. */
template <int N> DEVICE void strip_slopes(uint32_t (*ds)[2], const uint32_t (*p)[2], const float (*dp)[4], float scale)
{
    float delta[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            delta[h] = fmaf(float_high(p[n][h]), dp[n][2 * h + 1], fmaf(float_low(p[n][h]), dp[n][2 * h], delta[h]));
    delta[0] = lane_sum<4>(delta[0]);
    delta[1] = lane_sum<4>(delta[1]);
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            ds[n][h] = bf16_pair(float_low(p[n][h]) * scale * (dp[n][2 * h] - delta[h]),
                                 float_high(p[n][h]) * scale * (dp[n][2 * h + 1] - delta[h]));
}

/* p and ds of a warp's queries, packed. */
template <int W, int N, int F>
DEVICE void chip_queries(const attention_args &a, const uint16_t *q, const uint16_t *k, const uint16_t *v,
                         const uint16_t *dy, int row0, const float (*shift)[2], uint32_t (*p)[N][2],
                         uint32_t (*ds)[N][2])
{
    constexpr int LAST = chip<W, N, F>::ROWS - 1;
    float s[F][N][4];
    strips_clear<F, N>(s);
    tile_rows<F, N, W>(s, q, row0, LAST, k);
#pragma unroll
    for (int f = 0; f < F; f++) {
        strip_weights<N>(p[f], s[f], a, shift[f], row0 + f * 16 + (int)threadIdx.x % 32 / 4);
        strip_clear<N>(s[f]);
    }
    copy_wait<0>(); /* dy and v came in after q and k */
    __syncthreads();
    tile_rows<F, N, W>(s, dy, row0, LAST, v);
#pragma unroll
    for (int f = 0; f < F; f++)
        strip_slopes<N>(ds[f], p[f], s[f], a.scale);
}

/* Accumulators of a warp's strips to memory, through its own rows of a tile that no other warp
 * reads. */
template <int W, int N, int F>
DEVICE void chip_store(array to, int64_t stride, const attention_args &a, uint16_t *through,
                       const float (*acc)[W / 8][4], int row0)
{
    uint16_t *rows = attention_at(to, stride, a, group_of(a), (int)(blockIdx.x % a.heads));
    __syncwarp();
#pragma unroll
    for (int f = 0; f < F; f++) {
        uint32_t out[W / 8][2];
        strip_pack<W / 8>(out, acc[f], 1.0f, 1.0f);
        strip_stage<W / 8>(through, tile<W>::PITCH, out, row0 + f * 16, chip<W, N, F>::ROWS);
    }
    __syncwarp();
#pragma unroll
    for (int f = 0; f < F; f++)
        strip_store<W>(rows, stride, through, row0 + f * 16, a.tokens);
}

template <int W, int N, int F, int BLOCKS>
__global__ void __launch_bounds__(chip<W, N, F>::THREADS, BLOCKS) attention_chip_grad(attention_args a)
{
    using c = chip<W, N, F>;
    SHARED_BYTES(shared);
    /* p and ds come first: reading 16 columns of the last row may run past them, into what
     * follows. */
    uint16_t *v = (uint16_t *)shared, *k = v + c::BIG, *q = k + c::BIG, *dy = q + c::TILE, *through = dy + c::TILE;
    int head = (int)(blockIdx.x % a.heads), lane = threadIdx.x % 32, row0 = (int)threadIdx.x / 32 * 16 * F;
    int64_t group = group_of(a);
    tile_fetch<W, c::THREADS>(q, attention_at(a.q, a.stride_k, a, group, head), a.stride_k, c::ROWS, a.tokens);
    tile_fetch<W, c::THREADS>(k, attention_at(a.k, a.stride_k, a, group, head), a.stride_k, c::ROWS, a.tokens);
    copy_commit();
    tile_fetch<W, c::THREADS>(dy, attention_at(a.dy, a.dim, a, group, head), a.dim, c::ROWS, a.tokens);
    tile_fetch<W, c::THREADS>(v, attention_at(a.v, a.stride_v, a, group, head), a.stride_v, c::ROWS, a.tokens);
    copy_commit();
    __shared__ float column_sums[3][c::WARPS][W]; /* of dq, dk, dv, by warps */
    int warp = (int)threadIdx.x / 32;
    float shift[F][2], acc[F][W / 8][4];
    uint32_t p[F][N][2], ds[F][N][2];
    const float *sums = attention_row(a.logsum, a, group, head);
#pragma unroll
    for (int i = 0; i < 2 * F; i++) {
        int row = row0 + i * 8 + lane / 4;
        shift[i / 2][i % 2] = row < a.tokens ? sums[(int64_t)row * a.heads] * -LOG2_E : 0.0f;
    }
    copy_wait<1>();
    __syncthreads();
    chip_queries<W, N, F>(a, q, k, v, dy, row0, shift, p, ds);
    strips_clear<F, W / 8>(acc);
    tile_packed<F, N, W>(acc, ds, k);
    __syncthreads(); /* nobody reads k and v any more */
#pragma unroll
    for (int f = 0; f < F; f++) {
        strip_stage<N>(v, c::P_PITCH, p[f], row0 + f * 16, c::ROWS);
        strip_stage<N>(k, c::P_PITCH, ds[f], row0 + f * 16, c::ROWS);
    }
    chip_store<W, N, F>(a.dq, a.stride_k, a, through, acc, row0);
    if (a.partial)
        strips_sum<W, F>(column_sums[0][warp], acc, row0, a.tokens);
    __syncthreads();
    strips_clear<F, W / 8>(acc); /* from here on the warp owns keys: columns of p and ds */
    tile_transposed<F, N, W>(acc, v, c::P_PITCH, row0, dy);
    chip_store<W, N, F>(a.dv, a.stride_v, a, through, acc, row0);
    if (a.partial)
        strips_sum<W, F>(column_sums[2][warp], acc, row0, a.tokens);
    strips_clear<F, W / 8>(acc);
    tile_transposed<F, N, W>(acc, k, c::P_PITCH, row0, q);
    chip_store<W, N, F>(a.dk, a.stride_k, a, through, acc, row0);
    if (!a.partial)
        return;
    strips_sum<W, F>(column_sums[1][warp], acc, row0, a.tokens);
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * W; i += c::THREADS) {
        float sum = 0;
        for (int k = 0; k < c::WARPS; k++)
            sum += column_sums[i / W][k][i % W];
        a.partial[group * 3 * a.dim + i / W * a.dim + head * W + i % W] = sum;
    }
}

#endif
