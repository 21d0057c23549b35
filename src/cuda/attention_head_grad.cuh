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
 * Only ds goes through shared memory: when all keys are done the warps own strips of queries
 * instead, and dq = ds k. So there are five products, no atomics and two barriers a head. delta = sum
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
    int warps, pairs;                       /* of keys the first `pairs` warps own two strips, the others one */
    int slots;                              /* partial column sums of dq */
    uint32_t q, v, dy, k, tile, ds;         /* tile: bytes of one, k's second buffer is so far behind the first */
    uint32_t shift, delta, sums[3], shared; /* sums: columns of dq by slots, of dk and dv by warps, W floats each */
} head_plan;

/* Log-sums in powers of two, negative, and delta = sum of y dy of every query. dy is read where this very
 * thread has copied it; queries past the last get p = 0. */
template <int W>
DEVICE void head_statistics(unsigned char *shared, const attention_args &a, const head_plan &plan, const head_place &at)
{
    int r = (int)threadIdx.x / (W / 8), c = (int)threadIdx.x % (W / 8), step = (int)blockDim.x / (W / 8);
    const uint16_t *y = attention_at(a.y, a.dim, a, at.group, at.head) + c * 8;
    const uint16_t *dy = (const uint16_t *)(shared + plan.dy);
    const float *sums = attention_row(a.logsum, a, at.group, at.head);
    float *shift = (float *)(shared + plan.shift), *delta = (float *)(shared + plan.delta);
#pragma unroll 4
    for (; r < plan.rows; r += step) {
        bool there = r < a.tokens;
        int row = there ? r : 0;
        float left[8], right[8], sum = 0, logsum = sums[row * a.heads];
        elements_load<__nv_bfloat16, 8>(left, y + row * a.dim);
        elements_load<__nv_bfloat16, 8>(right, dy + head_chunk<W>(r, c));
#pragma unroll
        for (int e = 0; e < 8; e++)
            sum = fmaf(left[e], right[e], sum);
        sum = lane_sum<W / 8>(sum);
        if (c == 0) {
            shift[r] = there ? logsum * -LOG2_E : -INFINITY;
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
DEVICE void head_finish(array to, int64_t stride, const attention_args &a, const head_place &at,
                        float (*acc)[W / 8][4], int row0, float scale, float *sums)
{
#pragma unroll
    for (int f = 0; f < F; f++) {
#pragma unroll
        for (int e = 0; e < W / 2; e++)
            acc[f][e / 4][e % 4] *= scale;
        head_store<W>(to, stride, a, at, acc[f], row0 + f * 16);
    }
    if (!a.partial)
        return;
    int lane = threadIdx.x % 32;
    float v[W / 4]; /* rows past the last token are zero */
#pragma unroll
    for (int e = 0; e < W / 4; e++) {
        v[e] = acc[0][e / 2][e % 2] + acc[0][e / 2][2 + e % 2];
#pragma unroll
        for (int f = 1; f < F; f++)
            v[e] += acc[f][e / 2][e % 2] + acc[f][e / 2][2 + e % 2];
    }
    int first = lanes_share<W / 4>(v);
#pragma unroll
    for (int i = 0; i < W / 32; i++)
        sums[(first + i) / 2 * 8 + 2 * (lane % 4) + (first + i) % 2] = v[i];
}

/* ---- the kernel ---- */

/* Brings what a head reads to L2; only k's copy can begin as early. */
template <int W> DEVICE void head_prefetch(const attention_args &a, const head_place &at)
{
    uint16_t *const first[] = {attention_at(a.q, a.stride_k, a, at.group, at.head),
                               attention_at(a.v, a.stride_v, a, at.group, at.head),
                               attention_at(a.dy, a.dim, a, at.group, at.head),
                               attention_at(a.y, a.dim, a, at.group, at.head)};
    const int64_t stride[] = {a.stride_k, a.stride_v, a.dim, a.dim};
    const float *sums = attention_row(a.logsum, a, at.group, at.head);
    for (int r = threadIdx.x; r < a.tokens; r += blockDim.x) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            cache_prefetch(first[i] + r * stride[i]);
        cache_prefetch(sums + r * a.heads);
    }
}

/* Starts the copies of a head but k's. */
template <int W>
DEVICE void head_fetch_all(unsigned char *shared, const attention_args &a, const head_plan &plan, const head_place &at)
{
    head_fetch<W>(shared + plan.dy, a.dy, a.dim, a, at, plan.rows);
    head_fetch<W>(shared + plan.q, a.q, a.stride_k, a, at, plan.rows);
    head_fetch<W>(shared + plan.v, a.v, a.stride_v, a, at, plan.rows);
}

/* Adds the column sums of dq (part 0), dk or dv over `slots` slots, in a fixed order. */
template <int W>
DEVICE void head_sums(const float *sums, const attention_args &a, const head_place &at, int slots, int part)
{
    for (int i = threadIdx.x; i < W; i += blockDim.x) {
        float sum = 0;
        for (int s = 0; s < slots; s++)
            sum += sums[s * W + i];
        a.partial[(at.group * 3 + part) * a.dim + at.head * W + i] = sum;
    }
}

/* dq of D strips of a round's queries from `column` of ds on; the round begins at query `first`. */
template <int D, int W>
DEVICE void head_round(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k,
                       const head_place &here, int first, int column, int slot, const head_lane<W> &at)
{
    float dq[D][W / 8][4], *sums = (float *)(shared + plan.sums[0]) + slot * W;
    head_queries<D, W>(shared_address(shared) + plan.ds, plan, k, column, dq, at);
    head_finish<D, W>(a.dq, a.stride_k, a, here, dq, first + column, a.scale, sums);
}

/* A head for a warp that owns F strips of keys, the first of them at key0, and k at byte `k`. `next`: the head
 * to fetch meanwhile, if there is one. */
template <int F, int N, int HOLD, bool ONE, int W>
DEVICE void head_run(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                     const head_place &here, const head_place &next)
{
    head_lane<W> at = head_lane_make<W>();
    uint32_t other = 2 * plan.k + plan.tile - k;
    if (next.head >= 0) {
        if (plan.k_buffers == 2)
            head_fetch<W>(shared + other, a.k, a.stride_k, a, next, plan.rows);
        head_prefetch<W>(a, next);
    }
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
            head_finish<F, W>(a.dk, a.stride_k, a, here, dk, key0, a.scale, sums_k);
            head_finish<F, W>(a.dv, a.stride_v, a, here, dv, key0, 1.0f, sums_v);
        }
        __syncthreads(); /* ds is complete; in the last round nobody reads q, v and dy any more */
        if (last && next.head >= 0)
            head_fetch_all<W>(shared, a, plan, next);
        copy_commit();
        for (int part = 1; last && a.partial && part < 3; part++)
            head_sums<W>((const float *)(shared + plan.sums[part]), a, here, plan.warps, part);
        if constexpr (ONE) /* the strips that it owns as keys */
            head_round<F, W>(shared, a, plan, k_at, here, 0, key0, warp, at);
        else
            for (int i = warp; i * 16 < count; i += plan.warps)
                head_round<1, W>(shared, a, plan, k_at, here, first, i * 16, first / 16 + i, at);
        if (!last)
            __syncthreads(); /* before ds is overwritten */
    }
}

constexpr int head_threads(int w, int f, bool one)
{
    return f == 2 ? HEAD_TOKENS : (one && w == 64 ? 14 : HEAD_TOKENS / 16) * 32;
}

template <int F, int N, int HOLD, bool ONE, int W>
__global__ void __launch_bounds__(head_threads(W, F, ONE), 1)
    attention_head_grad(const __grid_constant__ attention_args a, const __grid_constant__ head_plan plan)
{
    SHARED_BYTES(shared);
    int64_t heads = a.groups * a.heads;
    int warp = (int)threadIdx.x / 32, key0 = 16 * (warp + (warp < plan.pairs ? warp : plan.pairs));
    uint32_t k = plan.k;
    head_place here = head_find(a, blockIdx.x), next = here, before = here;
    head_fetch_all<W>(shared, a, plan, here);
    head_fetch<W>(shared + k, a.k, a.stride_k, a, here, plan.rows);
    copy_commit();
    for (int64_t index = blockIdx.x; index < heads; index += gridDim.x, before = here, here = next) {
        copy_wait<0>();
        head_statistics<W>(shared, a, plan, here);
        __syncthreads();
        if (a.partial && index != blockIdx.x)
            head_sums<W>((const float *)(shared + plan.sums[0]), a, before, plan.slots, 0);
        next = head_find(a, index + gridDim.x);
        if (index + gridDim.x >= heads)
            next.head = -1;
        if (F == 1 || warp < plan.pairs)
            head_run<F, N, HOLD, ONE, W>(shared, a, plan, k, key0, here, next);
        else
            head_run<1, N, HOLD, ONE, W>(shared, a, plan, k, key0, here, next);
        if (next.head >= 0 && plan.k_buffers == 2) {
            k = 2 * plan.k + plan.tile - k;
        } else if (next.head >= 0) {
            __syncthreads(); /* nobody reads k any more */
            head_fetch<W>(shared + k, a.k, a.stride_k, a, next, plan.rows);
            copy_commit();
        }
    }
    if (!a.partial)
        return;
    __syncthreads();
    head_sums<W>((const float *)(shared + plan.sums[0]), a, before, plan.slots, 0);
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
template <int W> static head_plan head_plan_make(int tokens, int f, size_t limit, int HEAD_EIGHT = 0)
{
    head_plan p = {};
    int strips = (tokens + 15) / 16;
    p.rows = 16 * strips;
    p.warps = f == 1 ? strips : (strips + 1) / 2;
    if (f == 2 && strips == 13 && HEAD_EIGHT)
        p.warps = 8;
    p.pairs = strips - p.warps;
    for (int rounds = 1; rounds <= 2 && tokens <= HEAD_TOKENS; rounds++)
        for (p.k_buffers = 2; p.k_buffers > 0; p.k_buffers--) {
            p.span = 16 * ((strips + rounds - 1) / rounds);
            p.slots = rounds == 1 ? p.warps : strips;
            head_arrange<W>(&p);
            if (p.shared <= limit)
                return p;
        }
    p.shared = 0;
    return p;
}

#endif
