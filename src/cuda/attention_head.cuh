/* attention_head.cuh - attention with a whole head on chip: up to 256 tokens.
 * SPDX-License-Identifier: MIT
 *
 * bf16, head width W of 32 or 64. The tiles and products that attention_head_grad.cuh also uses,
 * and the forward: one block per head, k and v in shared memory, and each warp owns one strip of 16
 * queries after the other, whose q it has in registers. The softmax is the running one of
 * attention_stream.cuh.
 *
 * Rows of 64 channels are 128 bytes, their chunks of 16 bytes permuted by the row, so that ldmatrix
 * meets every bank once; rows of 32 channels are padded.
 *
 * Read on: attention_head_grad.cuh; attention_chip.cuh for fewer tokens; attention_wide.cuh for the
 * same by warpgroups; attention.cu picks. */
#ifndef CUDA_ATTENTION_HEAD_CUH
#define CUDA_ATTENTION_HEAD_CUH

#include "cuda/attention_stream.cuh"

enum { HEAD_TOKENS = 256 }; /* at most */

template <int W> struct head_tile {
    static_assert(W == 32 || W == 64, "rows of 64 or 128 bytes");
    static constexpr int PITCH = W == 64 ? 64 : 40; /* elements */
};

/* Element at which a chunk of 8 channels of a row begins. */
template <int W> DEVICE int head_chunk(int row, int chunk)
{
    return row * head_tile<W>::PITCH + (W == 64 ? chunk ^ (row & 7) : chunk) * 8;
}

/* Byte offsets of the 16 x 16 blocks of a strip, as ldmatrix wants them. The matrices of a block
 * come by columns (first operand, and second operand transposed) or by rows (second operand), so
 * that the registers of an operand are neighbours. Strips begin at multiples of 16 rows, which
 * keeps the permutation. */
template <int W> struct head_lane {
    uint32_t block[W / 16], by_rows[W / 16];
};

template <int W> DEVICE head_lane<W> head_lane_make()
{
    head_lane<W> at;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < W / 16; c++) {
        at.block[c] = (uint32_t)head_chunk<W>(lane % 16, 2 * c + lane / 16) * 2;
        at.by_rows[c] = (uint32_t)head_chunk<W>(lane / 16 * 8 + lane % 8, 2 * c + lane / 8 % 2) * 2;
    }
    return at;
}

/* ---- products -------------------------------------------------------------------------------- */

/* A strip of 16 rows as mma takes it for its first operand. */
template <int W> struct head_left {
    uint32_t block[W / 16][4];
};

/* acc += A B^T: A a strip in registers, 8 N rows of B at `b`, both of W channels. */
template <int N, int W>
DEVICE void head_rows(float (*acc)[4], const head_left<W> &a, uint32_t b, const head_lane<W> &at)
{
#pragma unroll
    for (int c = 0; c < W / 16; c++)
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t right[4];
            matrix_load_at<false>(right, b + n / 2 * 16 * head_tile<W>::PITCH * 2 + at.by_rows[c]);
            mma16(acc[n], a.block[c], right[0], right[1]);
            mma16(acc[n + 1], a.block[c], right[2], right[3]);
        }
}

/* The same for F strips of A at `a`, and 16 rows of B. */
template <int F, int W> DEVICE void head_strips(float (*acc)[2][4], uint32_t a, uint32_t b, const head_lane<W> &at)
{
#pragma unroll
    for (int c = 0; c < W / 16; c++) {
        uint32_t left[F][4], right[4];
#pragma unroll
        for (int f = 0; f < F; f++)
            matrix_load_at<false>(left[f], a + f * 16 * head_tile<W>::PITCH * 2 + at.block[c]);
        matrix_load_at<false>(right, b + at.by_rows[c]);
#pragma unroll
        for (int f = 0; f < F; f++) {
            mma16(acc[f][0], left[f], right[0], right[1]);
            mma16(acc[f][1], left[f], right[2], right[3]);
        }
    }
}

/* acc += P B for 16 rows of B; left[f] as mma takes it. */
template <int F, int W>
DEVICE void head_step(float (*acc)[W / 8][4], const uint32_t (*left)[4], uint32_t b, const head_lane<W> &at)
{
#pragma unroll
    for (int c = 0; c < W / 16; c++) {
        uint32_t right[4];
        matrix_load_at<true>(right, b + at.block[c]);
#pragma unroll
        for (int f = 0; f < F; f++) {
            mma16(acc[f][2 * c], left[f], right[0], right[1]);
            mma16(acc[f][2 * c + 1], left[f], right[2], right[3]);
        }
    }
}

template <int F, int N, int W>
DEVICE void head_packed(float (*acc)[W / 8][4], const uint32_t (*p)[N][2], uint32_t b, const head_lane<W> &at)
{
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        uint32_t left[F][4];
#pragma unroll
        for (int f = 0; f < F; f++)
            left[f][0] = p[f][n][0], left[f][1] = p[f][n][1], left[f][2] = p[f][n + 1][0], left[f][3] = p[f][n + 1][1];
        head_step<F, W>(acc, left, b + n / 2 * 16 * head_tile<W>::PITCH * 2, at);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A head of a group. */
typedef struct head_place {
    int64_t group;
    int head;
} head_place;

DEVICE head_place head_find(const attention_args &a, int64_t index)
{
    head_place at = {quotient(index, a.heads), 0};
    at.head = (int)(index - at.group * a.heads);
    return at;
}

/* Starts the copy of a head's rows of one array; those past the last token become zero. Thread t
 * copies chunks of rows t / (W / 8) and on. */
template <int W>
DEVICE void head_fetch(unsigned char *to, array from, int64_t stride, const attention_args &a, const head_place &at,
                       int rows)
{
    int r = (int)threadIdx.x / (W / 8), c = (int)threadIdx.x % (W / 8), step = (int)blockDim.x / (W / 8);
    const uint16_t *row = attention_at(from, stride, a, at.group, at.head) + r * stride + c * 8;
#pragma unroll 4
    for (; r < rows; r += step, row += step * stride)
        copy_async<16>((uint16_t *)to + head_chunk<W>(r, c), row, r < a.tokens);
}

DEVICE void lanes_swap(uint32_t &a, uint32_t &b, int mask)
{
    bool upper = threadIdx.x & mask;
    uint32_t got = __float_as_uint(__shfl_xor_sync(0xffffffffu, __uint_as_float(upper ? a : b), mask));
    a = upper ? got : a;
    b = upper ? b : got;
}

/* Accumulators of a strip to memory, rounded. Four lanes share a row, each with two channels of
 * every eight; they exchange them so that each has whole chunks of 16 bytes. WHOLE: which are then
 * stored in one instruction each (vector_store); false: as the compiler likes. */
template <int W, bool WHOLE = true>
DEVICE void head_store(array to, int64_t stride, const attention_args &a, const head_place &at, const float (*acc)[4],
                       int row0)
{
    int lane = threadIdx.x % 32;
    uint16_t *first = attention_at(to, stride, a, at.group, at.head) + lane % 4 * 8;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = row0 + lane / 4 + 8 * h;
#pragma unroll
        for (int n = 0; n < W / 8; n += 4) {
            uint32_t w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[i] = bf16_pair(acc[n + i][2 * h], acc[n + i][2 * h + 1]);
            lanes_swap(w[0], w[1], 1), lanes_swap(w[2], w[3], 1);
            lanes_swap(w[0], w[2], 2), lanes_swap(w[1], w[3], 2);
            if (row >= a.tokens)
                continue;
            if constexpr (WHOLE)
                vector_store(first + row * stride + n * 8, make_uint4(w[0], w[1], w[2], w[3]));
            else
                *(uint4 *)(first + row * stride + n * 8) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}

/* A strip of 16 rows from memory, as mma takes it. Each lane loads whole chunks of 16 bytes and the
 * four lanes of a row exchange them, as head_store() does. Rows past the last token repeat it. */
template <int W>
DEVICE void head_left_global(head_left<W> &left, const uint16_t *first, int64_t stride, int row0, int tokens)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int row = row0 + lane / 4 + 8 * h;
        const uint16_t *from = first + (row < tokens ? row : tokens - 1) * stride;
#pragma unroll
        for (int n = 0; n < W / 8; n += 4) {
            uint4 v = *(const uint4 *)(from + (n + lane % 4) * 8);
            lanes_swap(v.x, v.y, 1), lanes_swap(v.z, v.w, 1);
            lanes_swap(v.x, v.z, 2), lanes_swap(v.y, v.w, 2);
            left.block[n / 2][h] = v.x, left.block[n / 2][2 + h] = v.y;
            left.block[n / 2 + 1][h] = v.z, left.block[n / 2 + 1][2 + h] = v.w;
        }
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

/* 8 N keys from key0 on for a strip of queries. */
template <int N, int W>
DEVICE void head_take(running_softmax *r, float (*y)[W / 8][4], const head_left<W> &q, uint32_t k, uint32_t v, int key0,
                      int tokens, float factor, const head_lane<W> &at)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    float s[1][N][4], rescale[2];
    uint32_t p[1][N][2];
    strips_clear<1, N>(s);
    head_rows<N, W>(s[0], q, k + key0 * ROW, at);
    running_take<N>(r, s[0], tokens - key0, factor, p[0], rescale);
#pragma unroll
    for (int e = 0; e < W / 2; e++)
        y[0][e / 4][e % 4] *= rescale[e % 4 / 2];
    head_packed<1, N, W>(y, p, v + key0 * ROW, at);
}

/* y and log-sums of 16 queries from row0 on; k and v: addresses in shared memory. */
template <int N, int W>
DEVICE void head_strip(const attention_args &a, const head_place &here, const head_left<W> &q, uint32_t k, uint32_t v,
                       int rows, int row0, const head_lane<W> &at)
{
    int lane = threadIdx.x % 32, key = 0, row = row0 + lane / 4 + lane % 2 * 8;
    running_softmax r = {{-INFINITY, -INFINITY}, {0, 0}};
    float y[1][W / 8][4], factor = a.scale * LOG2_E;
    strips_clear<1, W / 8>(y);
#pragma unroll 1
    for (; key + 8 * N <= rows; key += 8 * N)
        head_take<N, W>(&r, y, q, k, v, key, a.tokens, factor, at);
#pragma unroll 1
    for (; key < rows; key += 16)
        head_take<2, W>(&r, y, q, k, v, key, a.tokens, factor, at);
    float sum[2] = {lane_sum<4>(r.sum[0]), lane_sum<4>(r.sum[1])}, inverse[2] = {1.0f / sum[0], 1.0f / sum[1]};
#pragma unroll
    for (int e = 0; e < W / 2; e++)
        y[0][e / 4][e % 4] *= inverse[e % 4 / 2];
    head_store<W>(a.y, a.dim, a, here, y[0], row0);
    if (a.logsum && lane % 4 < 2 && row < a.tokens)
        attention_row(a.logsum, a, here.group, here.head)[(int64_t)row * a.heads] =
            lane % 2 ? fmaf(r.top[1], a.scale, logf(sum[1])) : fmaf(r.top[0], a.scale, logf(sum[0]));
}

template <int N, int W>
__global__ void __launch_bounds__(HEAD_TOKENS, 2) attention_head(const __grid_constant__ attention_args a)
{
    SHARED_BYTES(shared);
    int rows = (a.tokens + 15) / 16 * 16, tile = rows * head_tile<W>::PITCH * 2, row0 = (int)threadIdx.x / 32 * 16;
    uint32_t k = shared_address(shared);
    head_lane<W> at = head_lane_make<W>();
    head_place here = head_find(a, blockIdx.x);
    head_fetch<W>(shared, a.k, a.stride_k, a, here, rows);
    head_fetch<W>(shared + tile, a.v, a.stride_v, a, here, rows);
    copy_commit();
    const uint16_t *from = attention_at(a.q, a.stride_k, a, here.group, here.head);
    head_left<W> q;
    head_left_global<W>(q, from, a.stride_k, row0, a.tokens);
    copy_wait<0>();
    __syncthreads();
    while (true) {
        head_strip<N, W>(a, here, q, k, k + tile, rows, row0, at);
        row0 += (int)blockDim.x / 2;
        if (row0 >= rows)
            return;
        head_left_global<W>(q, from, a.stride_k, row0, a.tokens);
    }
}

template <int W> static size_t head_shared(int tokens)
{
    return (size_t)2 * ((tokens + 15) / 16 * 16) * head_tile<W>::PITCH * 2;
}

#endif
