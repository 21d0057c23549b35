/* attention_head_grad.cuh - the gradient of attention with a whole head on chip: up to 256 tokens.
 * SPDX-License-Identifier: MIT
 *
 * bf16, head width W of 32 or 64, y of the forward at hand. A block takes one head after the other.
 * q, k, v and dy of the head lie in shared memory. Each warp owns two strips of 16 keys and goes
 * over the queries, 16 at a time:
 *
 *   s^T = k q^T, p^T = exp(s^T - log-sum), dp^T = v dy^T, ds^T = p^T (dp^T - delta)
 *   dv += p^T dy, dk += ds^T q                  from registers, since accumulators are operands
 *
 * Only ds goes through shared memory: when all keys are done the warps own strips of queries
 * instead, and dq = ds k. So there are five products, no atomics and two barriers a head. delta =
 * sum over channels of y dy needs no product. The next head comes in meanwhile: k beside the
 * present one where there is memory for both, q, v, dy and y while dq is computed. Where there is
 * not enough for ds of all queries, they are taken in rounds.
 *
 * One strip to a warp takes as long: more warps hide latency better, but each reads q and dy.
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
    int rows;                            /* tokens, rounded up to strips */
    int span;                            /* queries of a round, a multiple of 16 */
    int pitch;                           /* elements from row to row of ds; its rows are keys */
    int k_buffers;                       /* 2: k of the next head has a place of its own */
    int warps, pairs;                    /* the first `pairs` warps own two strips of keys, the last may own one */
    uint32_t q, v, dy, k, tile, ds;      /* tile: bytes of one, k's second buffer is so far after the first */
    uint32_t shift, delta, sums, shared; /* sums: columns of dk and dv by warps, W floats each */
} head_plan;

/* A thread's share of y, and the log-sums of those rows: in flight while something else is
 * computed. Rows are those whose dy the thread copies, so that it finds them without a barrier. */
template <int W> struct head_kept {
    static constexpr int COUNT = 2 * W / 16; /* a warp has 32 rows at most */
    uint4 y[COUNT];
    float logsum[COUNT];
};

template <int W> DEVICE void head_kept_load(head_kept<W> &kept, const attention_args &a, const head_place &at)
{
    int r = (int)threadIdx.x / (W / 8), c = (int)threadIdx.x % (W / 8), step = (int)blockDim.x / (W / 8);
    const uint16_t *y = attention_at(a.y, a.dim, a, at.group, at.head) + c * 8;
    const float *sums = attention_row(a.logsum, a, at.group, at.head);
#pragma unroll
    for (int i = 0; i < head_kept<W>::COUNT; i++) {
        int row = r + i * step < a.tokens ? r + i * step : 0;
        kept.y[i] = *(const uint4 *)(y + row * a.dim);
        kept.logsum[i] = sums[row * a.heads];
    }
}

/* Log-sums in powers of two, negative, and delta = sum of y dy of every query; queries past the
 * last get p = 0. */
template <int W>
DEVICE void head_statistics(unsigned char *shared, const head_kept<W> &kept, const attention_args &a,
                            const head_plan &plan)
{
    int r = (int)threadIdx.x / (W / 8), c = (int)threadIdx.x % (W / 8), step = (int)blockDim.x / (W / 8);
    const uint16_t *dy = (const uint16_t *)(shared + plan.dy);
    float *shift = (float *)(shared + plan.shift), *delta = (float *)(shared + plan.delta);
#pragma unroll
    for (int i = 0; i < head_kept<W>::COUNT; i++) {
        int row = r + i * step;
        uint4 v = *(const uint4 *)(dy + head_chunk<W>(row < plan.rows ? row : 0, c));
        const uint32_t left[4] = {kept.y[i].x, kept.y[i].y, kept.y[i].z, kept.y[i].w}, right[4] = {v.x, v.y, v.z, v.w};
        float sum = 0;
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum = fmaf(float_high(left[e]), float_high(right[e]), fmaf(float_low(left[e]), float_low(right[e]), sum));
        sum = lane_sum<W / 8>(sum);
        if (c == 0 && row < plan.rows) {
            shift[row] = row < a.tokens ? kept.logsum[i] * -LOG2_E : -INFINITY;
            delta[row] = row < a.tokens ? sum : 0.0f;
        }
    }
}

/* ---- the phases ------------------------------------------------------------------------------ */

/* 16 queries from query0 on against F strips of keys. `column`: where the first of them is in
 * ds. */
template <int F, int W>
DEVICE void head_block(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                       int query0, int column, float (*dk)[W / 8][4], float (*dv)[W / 8][4], const head_lane<W> &at)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    int lane = threadIdx.x % 32, pair = 2 * (lane % 4);
    uint32_t base = shared_address(shared), q = base + plan.q + query0 * ROW, dy = base + plan.dy + query0 * ROW;
    const float *shift = (const float *)(shared + plan.shift) + query0 + pair;
    const float *delta = (const float *)(shared + plan.delta) + query0 + pair;
    uint16_t *to = (uint16_t *)(shared + plan.ds) + (key0 + lane / 4) * plan.pitch + column + pair;
    float s[F][2][4], factor = a.scale * LOG2_E;
    uint32_t p[F][2][2], ds[F][2][2];
    strips_clear<F, 2>(s);
    head_strips<F, W>(s, k + key0 * ROW, q, at);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        float2 by = *(const float2 *)(shift + n * 8);
#pragma unroll
        for (int i = 0; i < 2 * F; i++) {
            const float *t = &s[i / 2][n][i % 2 * 2];
            uint32_t w = bf16_pair(exp2_fast(fmaf(t[0], factor, by.x)), exp2_fast(fmaf(t[1], factor, by.y)));
            p[i / 2][n][i % 2] = key0 + i * 8 + lane / 4 < a.tokens ? w : 0;
        }
    }
    strips_clear<F, 2>(s);
    head_strips<F, W>(s, base + plan.v + key0 * ROW, dy, at);
    head_packed<F, 2, W>(dv, p, dy, at);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        float2 by = *(const float2 *)(delta + n * 8);
#pragma unroll
        for (int i = 0; i < 2 * F; i++) {
            const float *t = &s[i / 2][n][i % 2 * 2];
            uint32_t w = p[i / 2][n][i % 2];
            w = bf16_pair(float_low(w) * (t[0] - by.x), float_high(w) * (t[1] - by.y));
            *(uint32_t *)(to + i * 8 * plan.pitch + n * 8) = ds[i / 2][n][i % 2] = w;
        }
    }
    head_packed<F, 2, W>(dk, ds, q, at);
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

/* Strips of accumulators, scaled, to memory; their column sums, where wanted, to `sums`, four
 * columns together and `step` floats from four to four. Whole stores are slower here at most sizes:
 * 41.3 instead of 38.9 us for 256 x 3 heads of 80 tokens on an H200. */
template <int F, int W>
DEVICE void head_finish(array to, int64_t stride, const attention_args &a, const head_place &at, float (*acc)[W / 8][4],
                        int row0, float scale, float *sums, int step)
{
#pragma unroll
    for (int f = 0; f < F; f++) {
#pragma unroll
        for (int e = 0; e < W / 2; e++)
            acc[f][e / 4][e % 4] *= scale;
        head_store<W, false>(to, stride, a, at, acc[f], row0 + f * 16);
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
    for (int i = 0; i < W / 32; i++) {
        int column = (first + i) / 2 * 8 + 2 * (lane % 4) + (first + i) % 2;
        sums[column / 4 * step + column % 4] = v[i];
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Starts the copies of all but k. */
template <int W>
DEVICE void head_fetch_most(unsigned char *shared, const attention_args &a, const head_plan &plan, const head_place &at)
{
    head_fetch<W>(shared + plan.dy, a.dy, a.dim, a, at, plan.rows);
    head_fetch<W>(shared + plan.q, a.q, a.stride_k, a, at, plan.rows);
    head_fetch<W>(shared + plan.v, a.v, a.stride_v, a, at, plan.rows);
}

/* Where partial column sums of dq lie: those of a warp beside its strip of ds, in the rows'
 * padding. */
DEVICE float *head_padding(unsigned char *shared, const head_plan &plan, int strip)
{
    return (float *)(shared + plan.ds) + (16 * strip * plan.pitch + plan.span) / 2;
}

template <int W>
DEVICE void head_sums_queries(unsigned char *shared, const attention_args &a, const head_plan &plan,
                              const head_place &at, bool one)
{
    int count = one ? plan.warps : plan.rows / 16, pairs = one ? plan.pairs : 0;
    for (int i = threadIdx.x; i < W; i += blockDim.x) {
        const float *from = head_padding(shared, plan, 0) + i / 4 * (plan.pitch / 2) + i % 4;
        float sum = 0;
#pragma unroll 4
        for (int w = 0; w < count; w++)
            sum += from[(w + (w < pairs ? w : pairs)) * 8 * plan.pitch];
        a.partial[at.group * 3 * a.dim + at.head * W + i] = sum;
    }
}

/* Of dk and dv, by warps, in a fixed order. */
template <int W>
DEVICE void head_sums_keys(unsigned char *shared, const attention_args &a, const head_plan &plan, const head_place &at)
{
    for (int i = threadIdx.x; i < 2 * W; i += blockDim.x) {
        const float *from = (const float *)(shared + plan.sums) + i / W * plan.warps * W + i % W;
        float sum = 0;
#pragma unroll 4
        for (int w = 0; w < plan.warps; w++)
            sum += from[w * W];
        a.partial[(at.group * 3 + 1 + i / W) * a.dim + at.head * W + i % W] = sum;
    }
}

/* dq of D strips of a round's queries from `column` of ds on; the round begins at query `first`. */
template <int D, int W>
DEVICE void head_round(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k,
                       const head_place &here, int first, int column, const head_lane<W> &at)
{
    float dq[D][W / 8][4], *sums = head_padding(shared, plan, (first + column) / 16);
    head_queries<D, W>(shared_address(shared) + plan.ds, plan, k, column, dq, at);
    head_finish<D, W>(a.dq, a.stride_k, a, here, dq, first + column, a.scale, sums, plan.pitch / 2);
}

/* A head for a warp that owns F strips of keys, the first of them at key0, and k at byte `k`.
 * `next`: the head to fetch meanwhile, if there is one. */
template <int F, bool ONE, int W>
DEVICE void head_run(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                     const head_place &here, const head_place &next, head_kept<W> &kept)
{
    head_lane<W> at = head_lane_make<W>();
    if (next.head >= 0 && plan.k_buffers == 2)
        head_fetch<W>(shared + 2 * plan.k + plan.tile - k, a.k, a.stride_k, a, next, plan.rows);
    int warp = (int)threadIdx.x / 32;
    uint32_t k_at = shared_address(shared) + k;
    float dk[F][W / 8][4], dv[F][W / 8][4];
    strips_clear<F, W / 8>(dk);
    strips_clear<F, W / 8>(dv);
    int first = 0;
    do {
        int count = ONE || plan.rows - first > plan.span ? plan.span : plan.rows - first;
        bool last = ONE || first + count == plan.rows;
#pragma unroll 1
        for (int i = 0; i < count; i += 16)
            head_block<F, W>(shared, a, plan, k_at, key0, first + i, i, dk, dv, at);
        if (last) {
            float *sums_k = (float *)(shared + plan.sums) + warp * W, *sums_v = sums_k + plan.warps * W;
            head_finish<F, W>(a.dk, a.stride_k, a, here, dk, key0, a.scale, sums_k, 4);
            head_finish<F, W>(a.dv, a.stride_v, a, here, dv, key0, 1.0f, sums_v, 4);
        }
        __syncthreads(); /* ds is complete; in the last round nobody reads q, v and dy any more */
        if (last && next.head >= 0)
            head_fetch_most<W>(shared, a, plan, next);
        copy_commit();
        if (last) /* also without a next head, so that nothing is kept in registers all along */
            head_kept_load<W>(kept, a, next.head >= 0 ? next : here);
        if (last && a.partial)
            head_sums_keys<W>(shared, a, plan, here);
        if constexpr (ONE) /* the strips that it owns as keys */
            head_round<F, W>(shared, a, plan, k_at, here, 0, key0, at);
        else
            for (int i = warp; i * 16 < count; i += plan.warps)
                head_round<1, W>(shared, a, plan, k_at, here, first, i * 16, at);
        if (!last)
            __syncthreads(); /* before ds is overwritten */
        first += plan.span;
    } while (!ONE && first < plan.rows);
}

template <bool ONE, int W>
__global__ void __launch_bounds__(HEAD_TOKENS, 1)
    attention_head_grad(const __grid_constant__ attention_args a, const __grid_constant__ head_plan plan)
{
    SHARED_BYTES(shared);
    int64_t heads = a.groups * a.heads;
    int warp = (int)threadIdx.x / 32, key0 = 16 * (warp + (warp < plan.pairs ? warp : plan.pairs));
    uint32_t k = plan.k;
    head_place here = head_find(a, blockIdx.x), next = here, before = here;
    head_kept<W> kept;
    head_fetch_most<W>(shared, a, plan, here);
    head_fetch<W>(shared + k, a.k, a.stride_k, a, here, plan.rows);
    copy_commit();
    head_kept_load<W>(kept, a, here);
    for (int64_t index = blockIdx.x; index < heads; index += gridDim.x, before = here, here = next) {
        copy_wait<0>();
        head_statistics<W>(shared, kept, a, plan);
        __syncthreads();
        if (a.partial && index != blockIdx.x)
            head_sums_queries<W>(shared, a, plan, before, ONE);
        next = head_find(a, index + gridDim.x);
        if (index + gridDim.x >= heads)
            next.head = -1;
        if (warp < plan.pairs)
            head_run<2, ONE, W>(shared, a, plan, k, key0, here, next, kept);
        else
            head_run<1, ONE, W>(shared, a, plan, k, key0, here, next, kept);
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
    head_sums_queries<W>(shared, a, plan, before, ONE);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

template <int W> static void head_arrange(head_plan *p)
{
    uint32_t tile = (uint32_t)(p->rows * head_tile<W>::PITCH) * 2;
    p->tile = tile, p->q = 0, p->v = tile, p->dy = 2 * tile, p->k = 3 * tile;
    p->ds = (uint32_t)(3 + p->k_buffers) * tile;
    p->pitch = p->span + 8; /* an odd number of chunks */
    p->shift = p->ds + (uint32_t)(p->rows * p->pitch) * 2, p->delta = p->shift + 4 * (uint32_t)p->rows;
    p->sums = p->delta + 4 * (uint32_t)p->rows, p->shared = p->sums + 4 * (uint32_t)(2 * p->warps * W);
}

/* The fewest rounds, then two buffers for k; shared is 0 where nothing fits into `limit` bytes. */
template <int W> static head_plan head_plan_make(int tokens, size_t limit)
{
    head_plan p = {};
    int strips = (tokens + 15) / 16;
    p.rows = 16 * strips;
    p.warps = (strips + 1) / 2;
    p.pairs = strips / 2;
    for (int rounds = 1; rounds <= 2 && tokens <= HEAD_TOKENS; rounds++)
        for (p.k_buffers = 2; p.k_buffers > 0; p.k_buffers--) {
            p.span = 16 * ((strips + rounds - 1) / rounds);
            head_arrange<W>(&p);
            if (p.shared <= limit)
                return p;
        }
    p.shared = 0;
    return p;
}

#endif
