/* attention_head_grad.cuh - the gradient of attention with a whole head on chip: up to 256 tokens.
 * SPDX-License-Identifier: MIT
 *
 * bf16, head width W of 32 or 64, y of the forward at hand. A block takes one head after the other.
 * q, k, v and dy of the head lie in shared memory. Each warp owns F strips of 16 keys and goes over
 * the queries, 8 N at a time:
 *
 *   s^T = k q^T, p^T = exp(s^T - log-sum), dp^T = v dy^T, ds^T = p^T (dp^T - delta)
 *   dv += p^T dy, dk += ds^T q                  from registers, since accumulators are operands
 *
 * Only ds goes through shared memory: when all keys are done the warps own D strips of queries
 * each, and dq = ds k. So there are five products, no atomics and two barriers a head. delta = sum
 * over channels of y dy needs no product. While dq is computed q, v and dy of the next head come
 * in, and k beside the present one where there is memory for both. Where there is not enough for ds
 * of all queries, they are taken in rounds.
 *
 * p is rounded to bf16 once and used so everywhere; the scale of ds is left to the end, where dq
 * and dk are scaled.
 *
 * Read on: attention_head.cuh for the tiles; attention.cu picks. */
#ifndef CUDA_ATTENTION_HEAD_GRAD_CUH
#define CUDA_ATTENTION_HEAD_GRAD_CUH

#include "cuda/attention_head.cuh"

/* Sizes of a launch, and where in shared memory things lie, in bytes. The kernel reads all this
 * from its arguments instead of holding addresses in registers. */
typedef struct head_plan {
    int rows;                               /* tokens, rounded up to strips */
    int span;                               /* queries of a round, a multiple of 16 */
    int pitch;                              /* elements from row to row of ds; its rows are keys */
    int k_buffers;                          /* 2: k of the next head has a place of its own */
    int warps, slots;                       /* slots: sets of strips of queries that one warp takes at a time */
    uint32_t q, v, dy, k, tile, ds;         /* tile: bytes of one, k's second buffer is so far behind the first */
    uint32_t shift, delta, sums[3], shared; /* sums: columns of dq by slots, of dk and dv by warps, W floats each */
} head_plan;

/* Log-sums in powers of two, negative, and delta = sum of y dy of every query. dy is read where this very
 * thread has copied it; queries past the last get p = 0. */
template <int W>
DEVICE void head_statistics(unsigned char *shared, const attention_args &a, const head_plan &plan, int64_t index)
{
    int64_t group = index / a.heads;
    int head = (int)(index % a.heads);
    const uint16_t *y = attention_at(a.y, a.dim, a, group, head), *dy = (const uint16_t *)(shared + plan.dy);
    const float *sums = attention_row(a.logsum, a, group, head);
    float *shift = (float *)(shared + plan.shift), *delta = (float *)(shared + plan.delta);
#pragma unroll 4
    for (int i = threadIdx.x; i < plan.rows * (W / 8); i += blockDim.x) {
        int r = i / (W / 8), c = i % (W / 8);
        bool there = r < a.tokens;
        float left[8], right[8], sum = 0;
        elements_load<__nv_bfloat16, 8>(left, y + (there ? r : 0) * a.dim + c * 8);
        elements_load<__nv_bfloat16, 8>(right, dy + head_chunk<W>(r, c));
#pragma unroll
        for (int e = 0; e < 8; e++)
            sum = fmaf(left[e], right[e], sum);
        sum = lane_sum<W / 8>(sum);
        if (c == 0) {
            shift[r] = there ? sums[(int64_t)r * a.heads] * -LOG2_E : -INFINITY;
            delta[r] = there ? sum : 0.0f;
        }
    }
}

/* ---- the phases ---- */

/* Queries query0 .. query0 + 8 N against F strips of keys. `column`: where the first of them is in ds. */
template <int F, int N, int HOLD, int W>
DEVICE void head_block(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                       int query0, int column, const head_left<F, W> &kl, const head_left<F, W> &vl,
                       float (*dk)[W / 8][4], float (*dv)[W / 8][4], const head_lane<W> &at)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    int lane = threadIdx.x % 32, pair = 2 * (lane % 4);
    uint32_t base = shared_address(shared), q = base + plan.q + query0 * ROW, dy = base + plan.dy + query0 * ROW;
    const float *shift = (const float *)(shared + plan.shift) + query0 + pair;
    const float *delta = (const float *)(shared + plan.delta) + query0 + pair;
    uint16_t *to = (uint16_t *)(shared + plan.ds) + (key0 + lane / 4) * plan.pitch + column + pair;
    float s[F][N][4], factor = a.scale * LOG2_E;
    uint32_t p[F][N][2], ds[F][N][2];
    strips_clear<F, N>(s);
    head_rows<F, N, W>(s, k + key0 * ROW, kl, HOLD > 0, q, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
        float2 by = *(const float2 *)(shift + n * 8);
#pragma unroll
        for (int i = 0; i < 2 * F; i++) {
            const float *t = &s[i / 2][n][i % 2 * 2];
            uint32_t w = bf16_pair(exp2_fast(fmaf(t[0], factor, by.x)), exp2_fast(fmaf(t[1], factor, by.y)));
            p[i / 2][n][i % 2] = key0 + i * 8 + lane / 4 < a.tokens ? w : 0;
        }
    }
    strips_clear<F, N>(s);
    head_rows<F, N, W>(s, base + plan.v + key0 * ROW, vl, HOLD > 1, dy, at);
    head_packed<F, N, W>(dv, p, dy, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
        float2 by = *(const float2 *)(delta + n * 8);
#pragma unroll
        for (int i = 0; i < 2 * F; i++) {
            const float *t = &s[i / 2][n][i % 2 * 2];
            uint32_t w = p[i / 2][n][i % 2];
            w = bf16_pair(float_low(w) * (t[0] - by.x), float_high(w) * (t[1] - by.y));
            *(uint32_t *)(to + i * 8 * plan.pitch + n * 8) = ds[i / 2][n][i % 2] = w;
        }
    }
    head_packed<F, N, W>(dk, ds, q, at);
}

/* Queries of a round, first .. first + count, against F strips of keys. */
template <int F, int N, int HOLD, int W>
DEVICE void head_keys(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                      int first, int count, float (*dk)[W / 8][4], float (*dv)[W / 8][4], const head_lane<W> &at)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    head_left<F, W> kl, vl;
    if (HOLD > 0)
        head_left_load<F, W>(kl, k + key0 * ROW, at);
    if (HOLD > 1)
        head_left_load<F, W>(vl, shared_address(shared) + plan.v + key0 * ROW, at);
    int i = 0;
#pragma unroll 1
    for (; i + 8 * N <= count; i += 8 * N)
        head_block<F, N, HOLD, W>(shared, a, plan, k, key0, first + i, i, kl, vl, dk, dv, at);
    if constexpr (N > 2)
#pragma unroll 1
        for (; i < count; i += 16)
            head_block<F, 2, HOLD, W>(shared, a, plan, k, key0, first + i, i, kl, vl, dk, dv, at);
}

/* dq of D strips of queries, the first of which is at `column` of ds. */
template <int D, int W>
DEVICE void head_queries(uint32_t ds, const head_plan &plan, uint32_t k, int column, float (*dq)[W / 8][4],
                         const head_lane<W> &at)
{
    int lane = threadIdx.x % 32;
    ds += (uint32_t)((lane / 16 * 8 + lane % 8) * plan.pitch + column + lane / 8 % 2 * 8) * 2;
    strips_clear<D, W / 8>(dq);
#pragma unroll 2
    for (int key = 0; key < plan.rows; key += 16) {
        uint32_t left[D][4];
#pragma unroll
        for (int f = 0; f < D; f++)
            matrix_load_at<true>(left[f], ds + (uint32_t)(key * plan.pitch + f * 16) * 2);
        head_step<D, W>(dq, left, k + key * head_tile<W>::PITCH * 2, at);
    }
}

/* Strips of accumulators, scaled, to memory; their column sums to `sums`, where wanted. */
template <int F, int W>
DEVICE void head_finish(array to, int64_t stride, const attention_args &a, int64_t index, float (*acc)[W / 8][4],
                        int row0, float scale, float *sums)
{
#pragma unroll
    for (int f = 0; f < F; f++) {
#pragma unroll
        for (int e = 0; e < W / 2; e++)
            acc[f][e / 4][e % 4] *= scale;
        head_store<W>(to, stride, a, index, acc[f], row0 + f * 16);
    }
    if (a.partial)
        strips_sum<W, F>(sums, acc, row0, a.tokens);
}

/* ---- the kernel ---- */

/* Starts the copies of a head but k's, and brings y and the log-sums to L2: they are read directly. */
template <int W>
DEVICE void head_fetch_all(unsigned char *shared, const attention_args &a, const head_plan &plan, int64_t index)
{
    head_fetch<W>((uint16_t *)(shared + plan.q), a.q, a.stride_k, a, index, plan.rows);
    head_fetch<W>((uint16_t *)(shared + plan.dy), a.dy, a.dim, a, index, plan.rows);
    head_fetch<W>((uint16_t *)(shared + plan.v), a.v, a.stride_v, a, index, plan.rows);
    int64_t group = index / a.heads;
    int head = (int)(index % a.heads);
    for (int r = threadIdx.x; r < a.tokens; r += blockDim.x) {
        cache_prefetch(attention_at(a.y, a.dim, a, group, head) + r * a.dim);
        cache_prefetch(attention_row(a.logsum, a, group, head) + (int64_t)r * a.heads);
    }
}

/* Adds the column sums of dq (part 0), dk or dv over `slots` slots, in a fixed order. */
template <int W>
DEVICE void head_sums(const float *sums, const attention_args &a, int64_t index, int slots, int part)
{
    int64_t group = index / a.heads, head = index % a.heads;
    for (int i = threadIdx.x; i < W; i += blockDim.x) {
        float sum = 0;
        for (int s = 0; s < slots; s++)
            sum += sums[s * W + i];
        a.partial[(group * 3 + part) * a.dim + head * W + i] = sum;
    }
}

/* dq of the queries of a round. */
template <int D, int W>
DEVICE void head_round(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int64_t index,
                       int first, int count, const head_lane<W> &at)
{
    uint32_t ds = shared_address(shared) + plan.ds;
    for (int slot = (int)threadIdx.x / 32; slot * 16 * D < count; slot += plan.warps) {
        int column = slot * 16 * D;
        float dq[D][W / 8][4], *sums = (float *)(shared + plan.sums[0]) + (first / (16 * D) + slot) * W;
        if (D == 1 || column + 16 < count) {
            head_queries<D, W>(ds, plan, k, column, dq, at);
            head_finish<D, W>(a.dq, a.stride_k, a, index, dq, first + column, a.scale, sums);
        } else {
            head_queries<1, W>(ds, plan, k, column, dq, at);
            head_finish<1, W>(a.dq, a.stride_k, a, index, dq, first + column, a.scale, sums);
        }
    }
}

/* A head for a warp that owns F strips of keys, the first of them at key0, and k at byte `k`. `next`: the head
 * to fetch meanwhile, if there is one. */
template <int F, int N, int HOLD, int D, bool ONE, int W>
DEVICE void head_run(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                     int64_t index, int64_t next)
{
    head_lane<W> at = head_lane_make<W>();
    int warp = (int)threadIdx.x / 32;
    uint32_t k_at = shared_address(shared) + k;
    float dk[F][W / 8][4], dv[F][W / 8][4];
    strips_clear<F, W / 8>(dk);
    strips_clear<F, W / 8>(dv);
#pragma unroll 1
    for (int first = 0; first < (ONE ? 1 : plan.rows); first += plan.span) {
        int count = ONE || plan.rows - first > plan.span ? plan.span : plan.rows - first;
        bool last = ONE || first + count == plan.rows;
        head_keys<F, N, HOLD, W>(shared, a, plan, k_at, key0, first, count, dk, dv, at);
        if (last) {
            float *sums_k = (float *)(shared + plan.sums[1]) + warp * W, *sums_v = sums_k + plan.warps * W;
            head_finish<F, W>(a.dk, a.stride_k, a, index, dk, key0, a.scale, sums_k);
            head_finish<F, W>(a.dv, a.stride_v, a, index, dv, key0, 1.0f, sums_v);
        }
        __syncthreads(); /* ds is complete; in the last round nobody reads q, v and dy any more */
        if (last && next >= 0) {
            head_fetch_all<W>(shared, a, plan, next);
            if (plan.k_buffers == 2)
                head_fetch<W>((uint16_t *)(shared + 2 * plan.k + plan.tile - k), a.k, a.stride_k, a, next, plan.rows);
            copy_commit();
        }
        for (int part = 1; last && a.partial && part < 3; part++)
            head_sums<W>((const float *)(shared + plan.sums[part]), a, index, plan.warps, part);
        head_round<D, W>(shared, a, plan, k_at, index, first, count, at);
        if (!last)
            __syncthreads(); /* before ds is overwritten */
    }
}

constexpr int head_threads(int w, int f, bool one)
{
    return ((one && w == 64 ? 14 : HEAD_TOKENS / 16) + f - 1) / f * 32;
}

template <int F, int N, int HOLD, int D, bool ONE, int W>
__global__ void __launch_bounds__(head_threads(W, F, ONE), 1)
    attention_head_grad(const __grid_constant__ attention_args a, const __grid_constant__ head_plan plan)
{
    SHARED_BYTES(shared);
    int64_t heads = a.groups * a.heads;
    int key0 = (int)threadIdx.x / 32 * 16 * F;
    uint32_t k = plan.k;
    head_fetch_all<W>(shared, a, plan, blockIdx.x);
    head_fetch<W>((uint16_t *)(shared + k), a.k, a.stride_k, a, blockIdx.x, plan.rows);
    copy_commit();
    for (int64_t index = blockIdx.x; index < heads; index += gridDim.x) {
        copy_wait<0>();
        head_statistics<W>(shared, a, plan, index);
        __syncthreads();
        if (a.partial && index != blockIdx.x)
            head_sums<W>((const float *)(shared + plan.sums[0]), a, index - gridDim.x, plan.slots, 0);
        int64_t next = index + gridDim.x < heads ? index + gridDim.x : -1;
        if (F == 1 || key0 + 16 < plan.rows)
            head_run<F, N, HOLD, D, ONE, W>(shared, a, plan, k, key0, index, next);
        else
            head_run<1, N, HOLD, D, ONE, W>(shared, a, plan, k, key0, index, next);
        if (next < 0) {
            if (!a.partial)
                return;
            __syncthreads();
            head_sums<W>((const float *)(shared + plan.sums[0]), a, index, plan.slots, 0);
        } else if (plan.k_buffers == 2) {
            k = 2 * plan.k + plan.tile - k;
        } else {
            __syncthreads(); /* nobody reads k any more */
            head_fetch<W>((uint16_t *)(shared + k), a.k, a.stride_k, a, next, plan.rows);
            copy_commit();
        }
    }
}

/* ---- sizes ---- */

template <int W> static void head_arrange(head_plan *p)
{
    uint32_t tile = (uint32_t)(p->rows * head_tile<W>::PITCH) * 2;
    p->tile = tile, p->q = 0, p->v = tile, p->dy = 2 * tile, p->k = 3 * tile;
    p->ds = (uint32_t)(3 + p->k_buffers) * tile;
    p->pitch = p->span + 8; /* an odd number of chunks */
    p->shift = p->ds + (uint32_t)(p->rows * p->pitch) * 2, p->delta = p->shift + 4 * (uint32_t)p->rows;
    p->sums[0] = p->delta + 4 * (uint32_t)p->rows, p->sums[1] = p->sums[0] + 4 * (uint32_t)(p->slots * W);
    p->sums[2] = p->sums[1] + 4 * (uint32_t)(p->warps * W), p->shared = p->sums[2] + 4 * (uint32_t)(p->warps * W);
}

/* The fewest rounds, then two buffers for k; shared is 0 where nothing fits into `limit` bytes. */
template <int W> static head_plan head_plan_make(int tokens, int f, size_t limit)
{
    head_plan p = {};
    int strips = (tokens + 15) / 16;
    p.rows = 16 * strips;
    p.warps = (strips + f - 1) / f;
    for (int rounds = 1; rounds <= 2 && tokens <= HEAD_TOKENS; rounds++)
        for (p.k_buffers = 2; p.k_buffers > 0; p.k_buffers--) {
            p.span = 16 * ((strips + rounds - 1) / rounds);
            p.slots = rounds == 1 ? (strips + f - 1) / f : strips;
            head_arrange<W>(&p);
            if (p.shared <= limit)
                return p;
        }
    p.shared = 0;
    return p;
}

#endif
