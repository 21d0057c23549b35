/* attention_wide_grad.cuh - the gradient of attention by warpgroups: up to 208 tokens, heads of 64
 * channels. SPDX-License-Identifier: MIT
 *
 * bf16, Hopper's tensor cores (wgmma.cuh, wgmma_rows.cuh), y of the forward at hand. A block takes
 * one head after the other. TILES warpgroups own 64 keys each and go over the queries, a chunk of
 * 64 at a time:
 *
 *   s^T = k q^T, p^T = exp(s^T - log-sum), dp^T = v dy^T, ds^T = p^T (dp^T - delta)
 *   dv += p^T dy, dk += ds^T q                  from registers, since accumulators are operands
 *
 * One more warpgroup does everything else: copies from memory, log-sums and delta = sum of y dy of
 * the next chunk, dq = ds k of the chunk before, for which ds^T goes through shared memory, and the
 * keys that the tiles leave over, 16 at most (5 of 197). Of those it computes the transposed:
 *
 *   s = q k^T, dp = dy v^T, dv^T += dy^T p, dk^T += q^T ds
 *
 * with 64 queries or channels as the rows of a product and 16 keys as its columns, so a product of
 * 64 rows is never taken for 5 keys.
 *
 * There is one barrier a chunk. k and v have two buffers; the place of a chunk of q and dy receives
 * the next head's as soon as it was used. So copies are always in flight, C - 1 chunks ahead, C
 * being the chunks of a head (two chunks, up to 128 tokens: the copies of a step are waited for
 * within it). Chunks are counted through all heads of a block, as steps. ds has two
 * buffers: that of step g is written in g, read in g + 1, and written again in g + 2.
 *
 * p is rounded to bf16 once and used so everywhere; the scale of ds is left to the end, where dq
 * and dk are scaled. Column sums are added in a fixed order.
 *
 * Read on: attention_wide.cuh for the forward; attention_head_grad.cuh for other GPUs; attention.cu
 * picks. */
#ifndef CUDA_ATTENTION_WIDE_GRAD_CUH
#define CUDA_ATTENTION_WIDE_GRAD_CUH

#include "cuda/attention_wide.cuh"

constexpr int WIDE_LEFT = 16;  /* keys beside the tiles, at most */
constexpr int WIDE_PIECE = 32; /* queries of a chunk at a time: for more there are not enough registers */

/* Where in shared memory things lie, in bytes. A tile has all rows of a head. */
template <int TILES> struct wide_grad {
    static constexpr int KEYS = TILES * WIDE, ROWS = KEYS + WIDE_LEFT, TILE = ROWS * BLOCK_ROW_BYTES;
    static constexpr int THREADS = (TILES + 1) * WIDE_GROUP;
    static constexpr int K = 0, V = 2 * TILE, Q = 4 * TILE, DY = 5 * TILE, DS = 6 * TILE; /* k, v and ds twice */
    static constexpr int Y = 8 * TILE;                                                    /* of a chunk */
    static constexpr int P = Y + WIDE_BLOCK;                      /* p^T of the keys left over, and a chunk */
    static constexpr int SHIFT = P + WIDE_LEFT * BLOCK_ROW_BYTES; /* of a chunk's queries, twice */
    static constexpr int DELTA = SHIFT + 2 * WIDE * 4;
    static constexpr int SUMS_Q = DELTA + 2 * WIDE * 4; /* columns of dq by warps */
    static constexpr int SUMS = SUMS_Q + 4 * WIDE * 4;  /* of dk and dv by warpgroups, then of the keys left over */
    static constexpr int SHARED = WIDE_ALIGN + SUMS + (TILES + 1) * 2 * WIDE * 4;
    static_assert(SHARED <= 227 * 1024, "what a block may have");
};

enum { WIDE_STEP_BARRIER = 1, WIDE_HELPER_BARRIER = 2, WIDE_TILE_BARRIER = 3 }; /* the last: one for each tile */

/* A block's heads, and the step in which it is. */
typedef struct wide_steps {
    int heads, chunks; /* heads of this block; chunks of a head */
    int head, chunk, parity;
} wide_steps;

DEVICE wide_steps wide_steps_make(const attention_args &a)
{
    int64_t heads = a.groups * a.heads;
    return {(int)((heads - blockIdx.x + gridDim.x - 1) / gridDim.x), (a.tokens + WIDE - 1) / WIDE, 0, 0, 0};
}

DEVICE void wide_step(wide_steps &at)
{
    at.parity ^= 1;
    if (++at.chunk == at.chunks)
        at.chunk = 0, at.head++;
}

/* Head number `i` of this block. */
DEVICE head_place wide_place(const attention_args &a, int i)
{
    return head_find(a, blockIdx.x + (int64_t)i * gridDim.x);
}

/* The head of this step, and its neighbours. Finding one takes a division, so it is done once. */
typedef struct wide_places {
    head_place before, here, next;
} wide_places;

/* One of two, in registers. */
DEVICE head_place place_select(bool first, const head_place &a, const head_place &b)
{
    return {first ? a.group : b.group, first ? a.head : b.head};
}

/* Sixteens of queries in a chunk. */
DEVICE int wide_sixteens(const attention_args &a, int chunk)
{
    int queries = a.tokens - chunk * WIDE;
    return queries >= WIDE ? WIDE / 16 : (queries + 15) / 16;
}

#ifndef CUDA_EMULATED
/* The reverse of matrix_load: row r of matrix m goes where lane 8 m + r says. */
DEVICE void matrix_store(void *row, const uint32_t *w)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)), "r"(w[0]),
                 "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
}
#endif

/* ---- keys in tiles --------------------------------------------------------------------------- */

/* What a warpgroup reads in a step: operands, and log-sums and delta at the thread's first pair of
 * queries. */
typedef struct wide_inputs {
    uint32_t k, v, q, dy;
    const float *shift, *delta;
    unsigned char *ds; /* the row of ds that the lane stores (matrix_store) */
} wide_inputs;

template <int SIXTEENS> DEVICE void wide_accumulate(float (*acc)[4], const uint32_t *left, uint32_t right, int add)
{
    product_begin();
#pragma unroll
    for (int i = 0; i < SIXTEENS; i++)
        product_packed<true>(acc, left + i * 4, right + i * ROWS_STEP, add || i > 0);
    product_end();
}

/* dv and dk of 64 keys and N queries. `block`: where the first query is in ds, in eights; there:
 * the thread's two keys exist. */
template <int N>
DEVICE void wide_tile(float (*dk)[4], float (*dv)[4], const wide_inputs &in, int block, const bool *there, float factor,
                      int add)
{
    int lane = threadIdx.x % 32;
    uint32_t q = in.q + block / 2 * ROWS_STEP, dy = in.dy + block / 2 * ROWS_STEP;
    float s[N / 8][4], dp[N / 8][4];
    uint32_t p[N / 4], ds[N / 4];
    product_begin();
    product_first<N>(s, in.k, q);
#pragma unroll
    for (uint32_t c = CHANNELS_STEP; c < WIDE / 16 * CHANNELS_STEP; c += CHANNELS_STEP)
        product<N>(s, in.k + c, q + c, 1);
    product_end();
    product_begin();
    product_first<N>(dp, in.v, dy);
#pragma unroll
    for (uint32_t c = CHANNELS_STEP; c < WIDE / 16 * CHANNELS_STEP; c += CHANNELS_STEP)
        product<N>(dp, in.v + c, dy + c, 1);
    product_end();
    product_wait<N, 1>(s);
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        float2 by = *(const float2 *)(in.shift + (block + n) * 8);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t w =
                bf16_pair(exp2_fast(fmaf(s[n][2 * h], factor, by.x)), exp2_fast(fmaf(s[n][2 * h + 1], factor, by.y)));
            p[held_word(n, h)] = there[h] ? w : 0;
        }
    }
    wide_accumulate<N / 16>(dv, p, dy, add);
    product_wait<N, 1>(dp);
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        float2 by = *(const float2 *)(in.delta + (block + n) * 8);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t w = p[held_word(n, h)];
            w = bf16_pair(float_low(w) * (dp[n][2 * h] - by.x), float_high(w) * (dp[n][2 * h + 1] - by.y));
            ds[held_word(n, h)] = w;
        }
    }
#pragma unroll
    for (int i = 0; i < N / 16; i++)
        matrix_store(in.ds + (((block + 2 * i + lane / 16) ^ lane % 8) << 4), ds + i * 4);
    wide_accumulate<N / 16>(dk, ds, q, add);
    product_wait<WIDE, 0>(dv);
    product_wait<WIDE, 0>(dk);
    product_hold<N / 4>(p);
    product_hold<N / 4>(ds);
}

/* Column sums of a warp's strip: of two columns to v[0] and v[1], the first of which is
 * returned. */
DEVICE int columns_share(float *v, const float (*acc)[4])
{
#pragma unroll
    for (int e = 0; e < WIDE / 4; e++)
        v[e] = acc[e / 2][e % 2] + acc[e / 2][2 + e % 2];
    return lanes_share<WIDE / 4>(v) / 2 * 8 + 2 * (threadIdx.x % 4);
}

/* dk and dv to memory; their column sums over the warpgroup, where wanted, to `sums`, through
 * `scratch`, the warpgroup's own. */
DEVICE void wide_keys_finish(const attention_args &a, const head_place &at, float (*dk)[4], float (*dv)[4], int row0,
                             float *sums, float *scratch, int tile)
{
    float scaled[WIDE / 8][4]; /* not in place: only products write accumulators, or they would wait for each other */
#pragma unroll
    for (int e = 0; e < WIDE / 2; e++)
        scaled[e / 4][e % 4] = dk[e / 4][e % 4] * a.scale;
    head_store<WIDE>(a.dk, a.stride_k, a, at, scaled, row0);
    head_store<WIDE>(a.dv, a.stride_v, a, at, dv, row0);
    if (!a.partial)
        return;
    int thread = threadIdx.x % WIDE_GROUP;
    float *mine = scratch + thread / 32 * 2 * WIDE, v[WIDE / 4]; /* rows past the last token are zero */
    int first = columns_share(v, scaled);
    *(float2 *)(mine + first) = make_float2(v[0], v[1]);
    columns_share(v, dv);
    *(float2 *)(mine + WIDE + first) = make_float2(v[0], v[1]);
    barrier_wait(WIDE_TILE_BARRIER + tile, WIDE_GROUP);
    float sum = scratch[thread];
#pragma unroll
    for (int w = 1; w < 4; w++)
        sum += scratch[w * 2 * WIDE + thread];
    sums[tile * 2 * WIDE + thread] = sum;
    barrier_wait(WIDE_TILE_BARRIER + tile, WIDE_GROUP); /* before ds is written there */
}

template <int TILES> DEVICE void wide_keys(unsigned char *shared, const attention_args &a, int tile)
{
    using at_byte = wide_grad<TILES>;
    int lane = threadIdx.x % 32, row0 = tile * WIDE + (int)threadIdx.x % WIDE_GROUP / 32 * 16, row = row0 + lane / 4;
    bool there[2] = {row < a.tokens, row + 8 < a.tokens};
    float dk[WIDE / 8][4], dv[WIDE / 8][4], factor = a.scale * LOG2_E;
    float *sums = (float *)(shared + at_byte::SUMS);
    uint32_t base = block_operand(shared);
    wide_steps at = wide_steps_make(a);
    auto scratch = [&]() { return (float *)(shared + at_byte::DS + at.parity * at_byte::TILE + tile * WIDE_BLOCK); };
    for (; at.head < at.heads; wide_step(at)) {
        barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
        if (at.chunk == 0 && at.head > 0)
            wide_keys_finish(a, wide_place(a, at.head - 1), dk, dv, row0, sums, scratch(), tile);
        uint32_t keys = at.head % 2 * (at_byte::TILE / 16) + tile * BLOCK_STEP, queries = at.chunk * BLOCK_STEP;
        wide_inputs in = {base + at_byte::K / 16 + keys,
                          base + at_byte::V / 16 + keys,
                          base + at_byte::Q / 16 + queries,
                          base + at_byte::DY / 16 + queries,
                          (const float *)(shared + at_byte::SHIFT) + at.parity * WIDE + 2 * (lane % 4),
                          (const float *)(shared + at_byte::DELTA) + at.parity * WIDE + 2 * (lane % 4),
                          shared + at_byte::DS + at.parity * at_byte::TILE + (row0 + lane % 16) * BLOCK_ROW_BYTES};
        int eights = 2 * wide_sixteens(a, at.chunk), block = WIDE_PIECE / 8;
        if (eights >= block) {
            wide_tile<WIDE_PIECE>(dk, dv, in, 0, there, factor, at.chunk > 0);
#pragma unroll 1
            for (; block + WIDE_PIECE / 8 <= eights; block += WIDE_PIECE / 8)
                wide_tile<WIDE_PIECE>(dk, dv, in, block, there, factor, 1);
        } else {
            block = 0;
        }
        if (block < eights) /* in the last chunk, which is never the first */
            wide_tile<16>(dk, dv, in, block, there, factor, 1);
        shared_publish();
    }
    barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
    wide_keys_finish(a, wide_place(a, at.head - 1), dk, dv, row0, sums, scratch(), tile);
    barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
}

/* ---- the helper: copies ---------------------------------------------------------------------- */

/* q and dy of a chunk. */
template <int TILES>
DEVICE void wide_fetch_chunk(unsigned char *shared, const attention_args &a, const head_place &at, int chunk)
{
    using at_byte = wide_grad<TILES>;
    int first = chunk * WIDE, rows = at_byte::ROWS - first < WIDE ? at_byte::ROWS - first : WIDE;
    wide_fetch<WIDE>(shared + at_byte::Q + chunk * WIDE_BLOCK, a.q, a.stride_k, a, at, first, rows);
    wide_fetch<WIDE>(shared + at_byte::DY + chunk * WIDE_BLOCK, a.dy, a.dim, a, at, first, rows);
}

/* k and v of a head, to the first or second of their buffers. */
template <int TILES>
DEVICE void wide_fetch_keys(unsigned char *shared, const attention_args &a, const head_place &at, int buffer)
{
    using at_byte = wide_grad<TILES>;
    constexpr int ROWS = at_byte::ROWS;
    wide_fetch<ROWS>(shared + at_byte::K + buffer * at_byte::TILE, a.k, a.stride_k, a, at, 0, ROWS);
    wide_fetch<ROWS>(shared + at_byte::V + buffer * at_byte::TILE, a.v, a.stride_v, a, at, 0, ROWS);
}

/* Log-sums of a chunk: thread i of the eight that share rows has that of row i / 8 + 16 i. */
DEVICE float wide_logsum(const attention_args &a, const head_place &at, int chunk)
{
    int thread = threadIdx.x % WIDE_GROUP, row = chunk * WIDE + thread / 8 + thread % 4 * 16;
    return attention_row(a.logsum, a, at.group, at.head)[(int64_t)(row < a.tokens ? row : 0) * a.heads];
}

/* Log-sums in powers of two, negative, and delta = sum of y dy of a chunk; queries past the last
 * get p = 0. A thread reads what it copied itself. */
template <int TILES>
DEVICE void wide_statistics(unsigned char *shared, const attention_args &a, int chunk, int parity, float logsum)
{
    using at_byte = wide_grad<TILES>;
    int thread = threadIdx.x % WIDE_GROUP, r = thread / 8, c = thread % 8;
    float *shift = (float *)(shared + at_byte::SHIFT) + parity * WIDE;
    float *delta = (float *)(shared + at_byte::DELTA) + parity * WIDE;
#pragma unroll
    for (int i = 0; i < 4; i++, r += 16) {
        float left[8], right[8], sum = 0;
        elements_load<__nv_bfloat16, 8>(left, shared + at_byte::Y + block_chunk(r, c));
        elements_load<__nv_bfloat16, 8>(right, shared + at_byte::DY + chunk * WIDE_BLOCK + block_chunk(r, c));
#pragma unroll
        for (int e = 0; e < 8; e++)
            sum = fmaf(left[e], right[e], sum);
        sum = lane_sum<8>(sum);
        if (c == i) {
            bool there = chunk * WIDE + r < a.tokens;
            shift[r] = there ? logsum * -LOG2_E : -INFINITY;
            delta[r] = there ? sum : 0.0f;
        }
    }
}

/* ---- the helper: keys left over -------------------------------------------------------------- */

/* p or ds of 64 queries and 16 keys, packed with neighbouring keys, to rows of keys. */
DEVICE void wide_left_put(unsigned char *to, const uint32_t (*w)[2])
{
    int lane = threadIdx.x % 32, query = (int)threadIdx.x % WIDE_GROUP / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int n = i / 4, h = i / 2 % 2, e = i % 2, key = n * 8 + 2 * (lane % 4) + e;
        uint16_t *row = (uint16_t *)(to + block_chunk(key, (query + 8 * h) / 8));
        row[query % 8] = (uint16_t)(e ? w[n][h] >> 16 : w[n][h] & 0xffffu);
    }
}

/* A chunk of queries and the keys left over, after their scores and dp. */
template <int TILES>
DEVICE void wide_left_products(unsigned char *shared, const attention_args &a, const wide_steps &at, float (*s)[4],
                               float (*dp)[4], float (*dk)[4], float (*dv)[4])
{
    using at_byte = wide_grad<TILES>;
    int lane = threadIdx.x % 32, query = (int)threadIdx.x % WIDE_GROUP / 32 * 16 + lane / 4;
    const float *shift = (const float *)(shared + at_byte::SHIFT) + at.parity * WIDE + query;
    const float *delta = (const float *)(shared + at_byte::DELTA) + at.parity * WIDE + query;
    unsigned char *ds_at = shared + at_byte::DS + at.parity * at_byte::TILE + at_byte::KEYS * BLOCK_ROW_BYTES;
    float factor = a.scale * LOG2_E;
    uint32_t p[2][2], ds[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int n = i / 2, h = i % 2, valid = a.tokens - at_byte::KEYS - n * 8 - 2 * (lane % 4);
        uint32_t w = bf16_pair(exp2_fast(fmaf(s[n][2 * h], factor, shift[8 * h])),
                               exp2_fast(fmaf(s[n][2 * h + 1], factor, shift[8 * h])));
        p[n][h] = w = valid > 1 ? w : valid > 0 ? w & 0xffffu : 0;
        ds[n][h] =
            bf16_pair(float_low(w) * (dp[n][2 * h] - delta[8 * h]), float_high(w) * (dp[n][2 * h + 1] - delta[8 * h]));
    }
    wide_left_put(shared + at_byte::P, p);
    wide_left_put(ds_at, ds);
    shared_publish();
    barrier_wait(WIDE_HELPER_BARRIER, WIDE_GROUP);
    uint32_t base = block_operand(shared), queries = at.chunk * BLOCK_STEP;
    uint32_t dy = base + at_byte::DY / 16 + queries, q = base + at_byte::Q / 16 + queries;
    uint32_t p_operand = base + at_byte::P / 16, ds_operand = block_operand(ds_at);
    int sixteens = wide_sixteens(a, at.chunk);
#pragma unroll 1
    for (int i = 0; i < sixteens; i++) {
        product_begin(); /* a group a turn, or the compiler adds some of its own */
        product_across<16, true>(dv, dy + i * ROWS_STEP, p_operand + i * CHANNELS_STEP, at.chunk || i);
        product_across<16, true>(dk, q + i * ROWS_STEP, ds_operand + i * CHANNELS_STEP, at.chunk || i);
        product_end();
    }
}

/* A gradient of the keys left over, of which the thread has channels by rows, to memory; its sums
 * over keys to `sums`. */
template <int TILES>
DEVICE void wide_left_store(array to, int64_t stride, const attention_args &a, const head_place &at, float (*acc)[4],
                            float scale, float *sums)
{
    int lane = threadIdx.x % 32, channel = (int)threadIdx.x % WIDE_GROUP / 32 * 16 + lane / 4;
    uint16_t *first = attention_at(to, stride, a, at.group, at.head) + channel;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = wide_grad<TILES>::KEYS + i / 2 * 8 + 2 * (lane % 4) + i % 2;
            float v = acc[i / 2][2 * h + i % 2] * scale;
            if (key < a.tokens) {
                first[key * stride + 8 * h] = (uint16_t)bf16_pair(v, 0);
                sum += v;
            }
        }
        sum = lane_sum<4>(sum);
        if (lane % 4 == 0)
            sums[channel + 8 * h] = sum;
    }
}

/* ---- the helper: dq -------------------------------------------------------------------------- */

/* Begins dq = ds k of the step before, as far as scale. */
template <int TILES>
DEVICE void wide_queries_begin(float (*dq)[4], uint32_t base, const attention_args &a, const wide_steps &at)
{
    using at_byte = wide_grad<TILES>;
    constexpr uint32_t TILE = at_byte::TILE / 16;
    uint32_t ds = base + at_byte::DS / 16 + (at.parity ^ 1) * TILE;
    uint32_t k = base + at_byte::K / 16 + (at.chunk ? at.head & 1 : (at.head & 1) ^ 1) * TILE;
    product_begin();
    product_across<WIDE, false>(dq, ds, k, 0);
    product_end();
#pragma unroll 1
    for (int i = 1; i * 16 < a.tokens; i++) {
        product_begin();
        product_across<WIDE, true>(dq, ds + i * ROWS_STEP, k + i * ROWS_STEP, 1);
        product_end();
    }
}

/* dq of the step before to memory, and `total`, a lane's two column sums, over the chunks of a
 * head; after the last chunk those of the warps are added. */
DEVICE void wide_queries_finish(const attention_args &a, const wide_steps &at, const wide_places &places,
                                float (*dq)[4], float *total, float *sums)
{
    head_place place = place_select(at.chunk > 0, places.here, places.before);
    int chunk = (at.chunk ? at.chunk : at.chunks) - 1, thread = threadIdx.x % WIDE_GROUP, lane = thread % 32;
    int row0 = chunk * WIDE + thread / 32 * 16;
    float scaled[WIDE / 8][4];
#pragma unroll
    for (int e = 0; e < WIDE / 2; e++)
        scaled[e / 4][e % 4] = dq[e / 4][e % 4] * a.scale;
    head_store<WIDE>(a.dq, a.stride_k, a, place, scaled, row0);
    if (!a.partial)
        return;
    if (at.chunk == 0) /* rows past the last token may be anything */
#pragma unroll
        for (int e = 0; e < WIDE / 2; e++)
            scaled[e / 4][e % 4] = row0 + lane / 4 + e % 4 / 2 * 8 < a.tokens ? scaled[e / 4][e % 4] : 0.0f;
    float v[WIDE / 4];
    int first = columns_share(v, scaled);
    total[0] = chunk ? total[0] + v[0] : v[0];
    total[1] = chunk ? total[1] + v[1] : v[1];
    if (at.chunk)
        return;
    *(float2 *)(sums + thread / 32 * WIDE + first) = make_float2(total[0], total[1]);
    barrier_wait(WIDE_HELPER_BARRIER, WIDE_GROUP);
    if (thread < WIDE)
        a.partial[place.group * 3 * a.dim + place.head * WIDE + thread] =
            sums[thread] + sums[WIDE + thread] + sums[2 * WIDE + thread] + sums[3 * WIDE + thread];
}

/* Column sums of dk and dv of a head, over warpgroups. */
template <int TILES> DEVICE void wide_sums_keys(const attention_args &a, const head_place &at, const float *sums)
{
    int thread = threadIdx.x % WIDE_GROUP;
    float sum = sums[thread];
#pragma unroll
    for (int i = 1; i < TILES; i++)
        sum += sums[i * 2 * WIDE + thread];
    if (a.tokens > wide_grad<TILES>::KEYS)
        sum += sums[TILES * 2 * WIDE + thread];
    a.partial[(at.group * 3 + 1 + thread / WIDE) * a.dim + at.head * WIDE + thread % WIDE] = sum;
}

/* ---- the helper ------------------------------------------------------------------------------ */

/* Starts the copies of step 0 and of all chunks but the last of head 0, and waits for them. */
template <int TILES>
DEVICE void wide_first(unsigned char *shared, const attention_args &a, const head_place &here, int chunks)
{
    wide_fetch<WIDE>(shared + wide_grad<TILES>::Y, a.y, a.dim, a, here, 0, WIDE);
    wide_fetch_keys<TILES>(shared, a, here, 0);
#pragma unroll 1
    for (int i = 0; i + 1 < chunks; i++)
        wide_fetch_chunk<TILES>(shared, a, here, i);
    copy_commit();
    float logsum = wide_logsum(a, here, 0);
    copy_wait<0>();
    shared_publish();
    wide_statistics<TILES>(shared, a, 0, 0, logsum);
}

/* The copies of a step: y of the next one as a group of its own, then q and dy of the step that
 * comes C - 1 later, at whose place the step before was, and k and v of the next head as soon as dq
 * of the head before is complete. Returns a log-sum of the next step. */
template <int TILES>
DEVICE float wide_ahead(unsigned char *shared, const attention_args &a, const wide_steps &at, const wide_places &places)
{
    bool last = at.chunk == at.chunks - 1, further = at.head + 1 < at.heads;
    float logsum = 0;
    if (!last || further) {
        int chunk = last ? 0 : at.chunk + 1;
        head_place there = place_select(last, places.next, places.here);
        wide_fetch<WIDE>(shared + wide_grad<TILES>::Y, a.y, a.dim, a, there, chunk * WIDE, WIDE);
        logsum = wide_logsum(a, there, chunk);
    }
    copy_commit();
    if (at.chunk == 0 || further)
        wide_fetch_chunk<TILES>(shared, a, place_select(at.chunk > 0, places.next, places.here),
                                (at.chunk ? at.chunk : at.chunks) - 1);
    if (at.chunk == 1 && further)
        wide_fetch_keys<TILES>(shared, a, places.next, (at.head + 1) % 2);
    copy_commit();
    return logsum;
}

/* Begins s = q k^T and dp = dy v^T of a chunk and the keys left over. */
template <int TILES> DEVICE void wide_left_begin(float (*s)[4], float (*dp)[4], uint32_t base, const wide_steps &at)
{
    using at_byte = wide_grad<TILES>;
    uint32_t keys = base + at.head % 2 * (at_byte::TILE / 16) + TILES * BLOCK_STEP;
    uint32_t queries = base + at.chunk * BLOCK_STEP;
    uint32_t q = queries + at_byte::Q / 16, dy = queries + at_byte::DY / 16;
    uint32_t k = keys + at_byte::K / 16, v = keys + at_byte::V / 16;
    product_begin();
    product_first<16>(s, q, k);
    product_first<16>(dp, dy, v);
#pragma unroll
    for (uint32_t c = CHANNELS_STEP; c < WIDE / 16 * CHANNELS_STEP; c += CHANNELS_STEP) {
        product<16>(s, q + c, k + c, 1);
        product<16>(dp, dy + c, v + c, 1);
    }
    product_end();
}

/* LEFT: there are keys left over. */
template <int TILES, bool LEFT> DEVICE void wide_helper(unsigned char *shared, const attention_args &a)
{
    using at_byte = wide_grad<TILES>;
    uint32_t base = block_operand(shared);
    float *sums = (float *)(shared + at_byte::SUMS), *sums_q = (float *)(shared + at_byte::SUMS_Q), total[2] = {};
    float dk[2][4] = {}, dv[2][4] = {}, dq[WIDE / 8][4];
    wide_steps at = wide_steps_make(a);
    wide_places places = {{}, {}, wide_place(a, 0)};
    wide_first<TILES>(shared, a, places.next, at.chunks);
    for (; at.head < at.heads; wide_step(at)) {
        if (at.chunk == 0)
            places = {places.here, places.next, wide_place(a, at.head + 1)};
        float s[2][4], dp[2][4];
        barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
        wide_queries_begin<TILES>(dq, base, a, at); /* of anything in step 0, and then not used */
        if constexpr (LEFT)
            wide_left_begin<TILES>(s, dp, base, at);
        float logsum = wide_ahead<TILES>(shared, a, at, places);
        if (a.partial && at.chunk == 1 && at.head > 0)
            wide_sums_keys<TILES>(a, places.before, sums);
        product_wait<WIDE, 0>(dq);
        if constexpr (LEFT) {
            product_wait<16, 0>(s);
            product_wait<16, 0>(dp);
            wide_left_products<TILES>(shared, a, at, s, dp, dk, dv);
        }
        if (at.head > 0 || at.chunk > 0)
            wide_queries_finish(a, at, places, dq, total, sums_q);
        if constexpr (LEFT) {
            product_wait<16, 0>(dv);
            product_wait<16, 0>(dk);
            if (at.chunk == at.chunks - 1) {
                float *mine = sums + TILES * 2 * WIDE;
                wide_left_store<TILES>(a.dk, a.stride_k, a, places.here, dk, a.scale, mine);
                wide_left_store<TILES>(a.dv, a.stride_v, a, places.here, dv, 1.0f, mine + WIDE);
            }
        }
        if (at.chunks > 2)
            copy_wait<1>(); /* what the next step needs is older than the last group */
        else
            copy_wait<0>();
        shared_publish();
        wide_statistics<TILES>(shared, a, at.chunk + 1 < at.chunks ? at.chunk + 1 : 0, at.parity ^ 1, logsum);
    }
    barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
    wide_queries_begin<TILES>(dq, base, a, at);
    product_wait<WIDE, 0>(dq);
    places.before = places.here;
    wide_queries_finish(a, at, places, dq, total, sums_q);
    barrier_wait(WIDE_STEP_BARRIER, at_byte::THREADS);
    if (a.partial)
        wide_sums_keys<TILES>(a, places.before, sums);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

template <int TILES, bool LEFT>
__global__ void __launch_bounds__(wide_grad<TILES>::THREADS, 1)
    attention_wide_grad(const __grid_constant__ attention_args a)
{
    SHARED_BYTES(raw);
    unsigned char *shared = raw + (-shared_address(raw) & (WIDE_ALIGN - 1));
    int group = warp_uniform((int)threadIdx.x / WIDE_GROUP);
    if (group == TILES)
        wide_helper<TILES, LEFT>(shared, a);
    else
        wide_keys<TILES>(shared, a, group);
}

#endif
