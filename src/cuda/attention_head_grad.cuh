/* attention_head_grad.cuh - the gradient of attention with a whole head on chip: up to 256 tokens.
 * SPDX-License-Identifier: MIT
 *
 * bf16, head width W of 32 or 64, y of the forward at hand. A block takes one head after the other.
 * q, k, v and dy of the head lie in shared memory. Each warp owns a strip of 16 keys, whose k and v
 * it has in registers, and goes over the queries, 16 at a time:
 *
 *   s^T = k q^T, p^T = exp(s^T - log-sum), dp^T = v dy^T, ds^T = p^T (dp^T - delta)
 *   dv += p^T dy, dk += ds^T q                  from registers, since accumulators are operands
 *
 * Only ds goes through shared memory: when all keys are done each warp owns a strip of queries
 * instead, and dq = ds k. So there are five products, no atomics and two barriers a head. delta = sum
 * over channels of y dy needs no product. The next head comes in meanwhile: v as soon as a warp has
 * its own in registers, k beside the present one where there is memory for both, q, dy and y while
 * dq is computed. Where there is not enough for ds of all queries, they are taken in rounds.
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
    int warps;                           /* as many as strips */
    uint32_t q, v, dy, k, tile, ds;      /* tile: bytes of one, k's second buffer is so far behind the first */
    uint32_t shift, delta, sums, shared; /* sums: columns of dk and dv by warps, W floats each */
} head_plan;

/* A thread's share of y, and the log-sums of those rows: in flight while something else is computed.
 * Rows are those whose dy the thread copies, so that it finds them without a barrier. */
template <int W> struct head_kept {
    static constexpr int COUNT = W / 16; /* a warp has 16 rows */
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

/* Log-sums in powers of two, negative, and delta = sum of y dy of every query; queries past the last get p = 0. */
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
        uint4 v = *(const uint4 *)(dy + head_chunk<W>(row, c));
        const uint32_t left[4] = {kept.y[i].x, kept.y[i].y, kept.y[i].z, kept.y[i].w}, right[4] = {v.x, v.y, v.z, v.w};
        float sum = 0;
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum = fmaf(float_high(left[e]), float_high(right[e]), fmaf(float_low(left[e]), float_low(right[e]), sum));
        sum = lane_sum<W / 8>(sum);
        if (c == 0) {
            shift[row] = row < a.tokens ? kept.logsum[i] * -LOG2_E : -INFINITY;
            delta[row] = row < a.tokens ? sum : 0.0f;
        }
    }
}

/* ---- the phases ---- */

/* 16 queries from query0 on against a strip of keys. `column`: where the first of them is in ds. */
template <int W>
DEVICE void head_block(unsigned char *shared, const attention_args &a, const head_plan &plan, const head_left<W> &k,
                       const head_left<W> &v, int key0, int query0, int column, float (*dk)[4], float (*dv)[4],
                       const head_lane<W> &at)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    int lane = threadIdx.x % 32, pair = 2 * (lane % 4);
    uint32_t base = shared_address(shared), q = base + plan.q + query0 * ROW, dy = base + plan.dy + query0 * ROW;
    const float *shift = (const float *)(shared + plan.shift) + query0 + pair;
    const float *delta = (const float *)(shared + plan.delta) + query0 + pair;
    uint16_t *to = (uint16_t *)(shared + plan.ds) + (key0 + lane / 4) * plan.pitch + column + pair;
    float s[2][4], factor = a.scale * LOG2_E;
    uint32_t p[2][2], ds[2][2];
    head_rows<2, W>(s, k, q, at);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        float2 by = *(const float2 *)(shift + n * 8);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            uint32_t w =
                bf16_pair(exp2_fast(fmaf(s[n][2 * h], factor, by.x)), exp2_fast(fmaf(s[n][2 * h + 1], factor, by.y)));
            p[n][h] = key0 + lane / 4 + 8 * h < a.tokens ? w : 0;
        }
    }
    head_rows<2, W>(s, v, dy, at);
    head_packed<2, W>(dv, p, dy, at);
#pragma unroll
    for (int n = 0; n < 2; n++) {
        float2 by = *(const float2 *)(delta + n * 8);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            ds[n][h] =
                bf16_pair(float_low(p[n][h]) * (s[n][2 * h] - by.x), float_high(p[n][h]) * (s[n][2 * h + 1] - by.y));
            *(uint32_t *)(to + h * 8 * plan.pitch + n * 8) = ds[n][h];
        }
    }
    head_packed<2, W>(dk, ds, q, at);
}

/* dq of a strip of queries, the first of which is at `column` of ds. */
template <int W>
DEVICE void head_queries(uint32_t ds, const head_plan &plan, uint32_t k, int column, float (*dq)[4],
                         const head_lane<W> &at)
{
    int lane = threadIdx.x % 32;
    ds += (uint32_t)((lane / 16 * 8 + lane % 8) * plan.pitch + column + lane / 8 % 2 * 8) * 2;
    strip_clear<W / 8>(dq);
#pragma unroll 2
    for (int key = 0; key < plan.rows; key += 16) {
        uint32_t left[4];
        matrix_load_at<true>(left, ds + (uint32_t)(key * plan.pitch) * 2);
        head_step<W>(dq, left, k + key * head_tile<W>::PITCH * 2, at);
    }
}

/* A strip of accumulators, scaled, to memory; its column sums, where wanted, to `sums`, four columns together and `step`
 * floats from four to four. */
template <int W>
DEVICE void head_finish(array to, int64_t stride, const attention_args &a, const head_place &at, float (*acc)[4],
                        int row0, float scale, float *sums, int step)
{
#pragma unroll
    for (int e = 0; e < W / 2; e++)
        acc[e / 4][e % 4] *= scale;
    head_store<W>(to, stride, a, at, acc, row0);
    if (!a.partial)
        return;
    int lane = threadIdx.x % 32;
    float v[W / 4]; /* rows past the last token are zero */
#pragma unroll
    for (int e = 0; e < W / 4; e++)
        v[e] = acc[e / 2][e % 2] + acc[e / 2][2 + e % 2];
    int first = lanes_share<W / 4>(v);
#pragma unroll
    for (int i = 0; i < W / 32; i++) {
        int column = (first + i) / 2 * 8 + 2 * (lane % 4) + (first + i) % 2;
        sums[column / 4 * step + column % 4] = v[i];
    }
}

/* ---- the kernel ---- */

/* Starts the copy of a strip of v by the warp that owns it. */
template <int W>
DEVICE void head_fetch_values(unsigned char *shared, const attention_args &a, const head_plan &plan,
                              const head_place &at, int key0)
{
    int lane = threadIdx.x % 32, r = key0 + lane / (W / 8), c = lane % (W / 8);
    const uint16_t *row = attention_at(a.v, a.stride_v, a, at.group, at.head) + r * a.stride_v + c * 8;
    uint16_t *v = (uint16_t *)(shared + plan.v);
#pragma unroll
    for (int i = 0; i < 16; i += 256 / W, row += 256 / W * a.stride_v)
        copy_async<16>(v + head_chunk<W>(r + i, c), row, r + i < a.tokens);
}

/* Starts the copies of q and dy. */
template <int W>
DEVICE void head_fetch_queries(unsigned char *shared, const attention_args &a, const head_plan &plan,
                               const head_place &at)
{
    head_fetch<W>(shared + plan.dy, a.dy, a.dim, a, at, plan.rows);
    head_fetch<W>(shared + plan.q, a.q, a.stride_k, a, at, plan.rows);
}

/* Where partial column sums of dq lie: those of a warp beside its strip of ds, in the rows' padding. */
DEVICE float *head_padding(unsigned char *shared, const head_plan &plan, int strip)
{
    return (float *)(shared + plan.ds) + (16 * strip * plan.pitch + plan.span) / 2;
}

template <int W>
DEVICE void head_sums_queries(unsigned char *shared, const attention_args &a, const head_plan &plan,
                              const head_place &at)
{
    for (int i = threadIdx.x; i < W; i += blockDim.x) {
        const float *from = head_padding(shared, plan, 0) + i / 4 * (plan.pitch / 2) + i % 4;
        float sum = 0;
#pragma unroll 4
        for (int w = 0; w < plan.warps; w++)
            sum += from[w * 8 * plan.pitch];
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

/* A head for the warp that owns 16 keys from key0 on; k lies at byte `k`. `next`: the head to fetch meanwhile, if there
 * is one; `kept` becomes its share of y. ONE: all queries in one round. */
template <bool ONE, int W>
DEVICE void head_run(unsigned char *shared, const attention_args &a, const head_plan &plan, uint32_t k, int key0,
                     const head_place &here, const head_place &next, head_kept<W> &kept)
{
    constexpr uint32_t ROW = head_tile<W>::PITCH * 2;
    uint32_t base = shared_address(shared);
    head_lane<W> at = head_lane_make<W>();
    float dk[W / 8][4], dv[W / 8][4], dq[W / 8][4], *sums_k = (float *)(shared + plan.sums) + key0 / 16 * W;
    strip_clear<W / 8>(dk);
    strip_clear<W / 8>(dv);
    int first = 0;
    do {
        int count = ONE || plan.rows - first > plan.span ? plan.span : plan.rows - first;
        bool last = ONE || first + count == plan.rows;
        head_left<W> keys, values;
        head_left_load<W>(keys, base + k + key0 * ROW, at);
        head_left_load<W>(values, base + plan.v + key0 * ROW, at);
        __syncwarp();
        if (last && next.head >= 0) /* nobody else reads these rows */
            head_fetch_values<W>(shared, a, plan, next, key0);
#pragma unroll 1
        for (int i = 0; i < count; i += 16)
            head_block<W>(shared, a, plan, keys, values, key0, first + i, i, dk, dv, at);
        if (last) {
            head_finish<W>(a.dk, a.stride_k, a, here, dk, key0, a.scale, sums_k, 4);
            head_finish<W>(a.dv, a.stride_v, a, here, dv, key0, 1.0f, sums_k + plan.warps * W, 4);
        }
        __syncthreads(); /* ds is complete; in the last round nobody reads q and dy any more */
        if (last && next.head >= 0)
            head_fetch_queries<W>(shared, a, plan, next);
        copy_commit();
        if (last) /* also without a next head, so that nothing stays in registers all along */
            head_kept_load<W>(kept, a, next.head >= 0 ? next : here);
        if (last && a.partial)
            head_sums_keys<W>(shared, a, plan, here);
        for (int i = ONE ? key0 : (int)threadIdx.x / 32 * 16; i < count; i += ONE ? count : plan.warps * 16) {
            head_queries<W>(base + plan.ds, plan, base + k, i, dq, at);
            head_finish<W>(a.dq, a.stride_k, a, here, dq, first + i, a.scale,
                           head_padding(shared, plan, (first + i) / 16), plan.pitch / 2);
        }
        if (!last)
            __syncthreads(); /* before ds is overwritten */
        first += plan.span;
    } while (!ONE && first < plan.rows);
}

template <bool ONE, int W>
__global__ void __launch_bounds__(HEAD_TOKENS * 2, 1)
    attention_head_grad(const __grid_constant__ attention_args a, const __grid_constant__ head_plan plan)
{
    SHARED_BYTES(shared);
    int64_t heads = a.groups * a.heads;
    int key0 = (int)threadIdx.x / 32 * 16;
    uint32_t k = plan.k;
    head_place here = head_find(a, blockIdx.x), next = here, before = here;
    head_kept<W> kept;
    head_fetch_queries<W>(shared, a, plan, here);
    head_fetch_values<W>(shared, a, plan, here, key0);
    head_fetch<W>(shared + k, a.k, a.stride_k, a, here, plan.rows);
    copy_commit();
    head_kept_load<W>(kept, a, here);
    for (int64_t index = blockIdx.x; index < heads; index += gridDim.x, before = here, here = next) {
        copy_wait<0>();
        head_statistics<W>(shared, kept, a, plan);
        __syncthreads();
        if (a.partial && index != blockIdx.x)
            head_sums_queries<W>(shared, a, plan, before);
        next = head_find(a, index + gridDim.x);
        if (index + gridDim.x >= heads)
            next.head = -1;
        uint32_t other = plan.k_buffers == 2 ? 2 * plan.k + plan.tile - k : k;
        if (next.head >= 0 && other != k)
            head_fetch<W>(shared + other, a.k, a.stride_k, a, next, plan.rows);
        head_run<ONE, W>(shared, a, plan, k, key0, here, next, kept);
        if (next.head >= 0 && other == k) {
            __syncthreads(); /* nobody reads k any more */
            head_fetch<W>(shared + k, a.k, a.stride_k, a, next, plan.rows);
            copy_commit();
        }
        k = other;
    }
    if (!a.partial)
        return;
    __syncthreads();
    head_sums_queries<W>(shared, a, plan, before);
}

/* ---- sizes ---- */

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
    p.warps = strips;
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
