/* attention_wide.cuh - attention of a head by one warpgroup: up to 256 tokens, heads of 64
 * channels. SPDX-License-Identifier: MIT
 *
 * bf16, Hopper's tensor cores (wgmma.cuh, wgmma_rows.cuh). A block is one warpgroup and has one
 * head: k and v in shared memory, and one tile of 64 queries after the other, whose p goes from
 * registers to p v. The scores of a query with all keys are in registers at once, so the softmax is
 * the plain one: no maximum is corrected later. p v begins when half of the exponentials are there.
 * Two to four such blocks share a processor and nothing binds them to each other: while one waits
 * for memory or for tensor cores, another computes exponentials. The last tile may have few queries
 * (5 of 197): its product is of 64 all the same, but warps without any skip the arithmetic.
 *
 * p is not divided by its sum before the product, and rounded to bf16 once; y is divided.
 *
 * Read on: attention_wide_grad.cuh; attention_head.cuh for other GPUs; attention.cu picks. */
#ifndef CUDA_ATTENTION_WIDE_CUH
#define CUDA_ATTENTION_WIDE_CUH

#include "cuda/attention_head.cuh"
#include "cuda/wgmma_rows.cuh"

constexpr int WIDE = 64;                           /* channels of a head, and rows of a product */
constexpr int WIDE_GROUP = 128;                    /* threads of a warpgroup */
constexpr int WIDE_ALIGN = 1024;                   /* of operands */
constexpr int WIDE_BLOCK = WIDE * BLOCK_ROW_BYTES; /* bytes of 64 rows */
constexpr uint32_t BLOCK_STEP = WIDE_BLOCK / 16;   /* from 64 rows to the next, of an operand */

/* Bytes of a block: a tile of q, k and v of KEYS tokens. */
template <int KEYS> constexpr int wide_shared = WIDE_ALIGN + WIDE_BLOCK + KEYS *(2 * BLOCK_ROW_BYTES);

/* Starts the copy of rows first .. first + rows of a head by a warpgroup, eight threads to a row;
 * those past the last token become zero. `rows`: a multiple of 16, at most ROWS. */
template <int ROWS>
DEVICE void wide_fetch(unsigned char *to, array from, int64_t stride, const attention_args &a, const head_place &at,
                       int first, int rows)
{
    int thread = threadIdx.x % WIDE_GROUP, r = thread / 8, c = thread % 8;
    const uint16_t *row = attention_at(from, stride, a, at.group, at.head) + (first + r) * stride + c * 8;
    to += block_chunk(r, c); /* and the same permutation 16 rows on */
#pragma unroll
    for (int i = 0; i < ROWS; i += 16)
        if (i < rows)
            copy_async<16>(to + i * BLOCK_ROW_BYTES, row + i * stride, first + r + i < a.tokens);
}

/* s = q k^T for N keys. */
template <int N> DEVICE void scores_part(float (*s)[4], uint32_t q, uint32_t k)
{
    product_first<N>(s, q, k);
#pragma unroll
    for (uint32_t c = CHANNELS_STEP; c < WIDE / 16 * CHANNELS_STEP; c += CHANNELS_STEP)
        product<N>(s, q + c, k + c, 1);
}

template <int KEYS> DEVICE void scores(float (*s)[4], uint32_t q, uint32_t k)
{
    product_begin();
#pragma unroll
    for (int i = 0; i < KEYS / 64; i++)
        scores_part<64>(s + i * 8, q, k + i * BLOCK_STEP);
    if constexpr (KEYS % 64 > 0)
        scores_part<KEYS % 64>(s + KEYS / 64 * 8, q, k + KEYS / 64 * BLOCK_STEP);
    product_end();
}

/* The greatest scores of a thread's two rows, the same for the four threads that share them. At
 * least FEWEST keys exist; scores of those that do not become -infinity. */
template <int KEYS, int FEWEST> DEVICE void scores_top(float *top, float (*s)[4], int tokens)
{
    int column = 2 * (threadIdx.x % 4);
    if (tokens < KEYS)
#pragma unroll
        for (int i = FEWEST / 8 * 4; i < KEYS / 8 * 4; i++)
            s[i / 4][i % 4] = i / 4 * 8 + column + i % 2 < tokens ? s[i / 4][i % 4] : -INFINITY;
    top[0] = s[0][0], top[1] = s[0][2];
#pragma unroll
    for (int i = 0; i < KEYS / 8 * 4; i++)
        top[i % 4 / 2] = fmaxf(top[i % 4 / 2], s[i / 4][i % 4]);
    top[0] = lane_max<4>(top[0]), top[1] = lane_max<4>(top[1]);
}

/* Scores of N keys to p, as a product takes it, and their sums. */
template <int N> DEVICE void scores_exp(uint32_t *p, float *sum, float (*s)[4], const float *top, float factor)
{
    float shift[2] = {top[0] * -factor, top[1] * -factor};
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2_fast(fmaf(s[n][i], factor, shift[i / 2]));
            sum[i / 2] += s[n][i];
        }
        p[held_word(n, 0)] = bf16_pair(s[n][0], s[n][1]);
        p[held_word(n, 1)] = bf16_pair(s[n][2], s[n][3]);
    }
}

/* y = p v for the first N keys, or added to y for N more; `active`: the warp has queries. */
template <int N, bool ADD>
DEVICE void values_part(float (*y)[4], uint32_t *p, float *sum, float (*s)[4], const float *top, float factor,
                        uint32_t v, bool active)
{
    if (active) {
        scores_exp<N>(p, sum, s, top, factor);
    } else {
#pragma unroll
        for (int i = 0; i < N / 4; i++)
            p[i] = 0;
    }
    product_begin();
    product_packed<ADD>(y, p, v, ADD);
#pragma unroll
    for (int i = 1; i < N / 16; i++)
        product_packed<true>(y, p + i * 4, v + i * ROWS_STEP, 1);
    product_end();
}

/* y and log-sums of a thread's two rows of the strip from row0 on. */
DEVICE void wide_finish(const attention_args &a, const head_place &here, float (*y)[4], const float *top, float *sum,
                        int row0)
{
    int lane = threadIdx.x % 32, row = row0 + lane / 4 + lane % 2 * 8;
    sum[0] = lane_sum<4>(sum[0]), sum[1] = lane_sum<4>(sum[1]);
    float inverse[2] = {1.0f / sum[0], 1.0f / sum[1]};
#pragma unroll
    for (int e = 0; e < WIDE / 2; e++)
        y[e / 4][e % 4] *= inverse[e % 4 / 2];
    head_store<WIDE>(a.y, a.dim, a, here, y, row0);
    if (a.logsum && lane % 4 < 2 && row < a.tokens)
        attention_row(a.logsum, a, here.group, here.head)[(int64_t)row * a.heads] =
            lane % 2 ? fmaf(top[1], a.scale, logf(sum[1])) : fmaf(top[0], a.scale, logf(sum[0]));
}

/* BLOCKS of them on a processor. KEYS: tokens, rounded up to what is compiled; more than FEWEST. */
template <int KEYS, int FEWEST, int BLOCKS>
__global__ void __launch_bounds__(WIDE_GROUP, BLOCKS) attention_wide(const __grid_constant__ attention_args a)
{
    constexpr int HALF = (KEYS / 2 + 15) / 16 * 16; /* the keys whose product is begun first */
    SHARED_BYTES(raw);
    unsigned char *shared = raw + (-shared_address(raw) & (WIDE_ALIGN - 1));
    unsigned char *keys = shared + WIDE_BLOCK, *values = keys + KEYS * BLOCK_ROW_BYTES;
    int row0 = warp_uniform((int)threadIdx.x / 32) * 16;
    head_place here = head_find(a, blockIdx.x);
    wide_fetch<WIDE>(shared, a.q, a.stride_k, a, here, 0, WIDE);
    wide_fetch<KEYS>(keys, a.k, a.stride_k, a, here, 0, KEYS);
    copy_commit();
    wide_fetch<KEYS>(values, a.v, a.stride_v, a, here, 0, KEYS);
    copy_commit();
    copy_wait<1>();
    shared_publish();
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < a.tokens; first += WIDE, row0 += WIDE) {
        float s[KEYS / 8][4], y[WIDE / 8][4], top[2] = {0, 0}, sum[2] = {0, 0}, factor = a.scale * LOG2_E;
        uint32_t p[KEYS / 4];
        uint32_t v = block_operand(values);
        bool active = row0 < a.tokens;
        scores<KEYS>(s, block_operand(shared), block_operand(keys));
        product_wait<KEYS, 0>(s);
        if (first == 0) {
            copy_wait<0>();
            shared_publish();
        }
        __syncthreads(); /* nobody reads q any more, and v is here */
        if (first + WIDE < a.tokens)
            wide_fetch<WIDE>(shared, a.q, a.stride_k, a, here, first + WIDE, WIDE);
        copy_commit();
        if (active)
            scores_top<KEYS, FEWEST>(top, s, a.tokens);
        values_part<HALF, false>(y, p, sum, s, top, factor, v, active);
        values_part<KEYS - HALF, true>(y, p + HALF / 4, sum, s + HALF / 8, top, factor, v + HALF / 16 * ROWS_STEP,
                                       active);
        product_wait<WIDE, 0>(y);
        product_hold<KEYS / 4>(p);
        if (active)
            wide_finish(a, here, y, top, sum, row0);
        copy_wait<0>();
        shared_publish();
        __syncthreads(); /* the next q is here */
    }
}

#endif
