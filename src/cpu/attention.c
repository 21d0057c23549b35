/* attention.c - attention without the T x T matrix in memory. SPDX-License-Identifier: MIT
 *
 * Two algorithms. Among many tokens each (image, head) is a group of small products on one thread:
 * scores of up to 128 queries against all keys, softmax, times v (simd_product.c); the scores live
 * in the thread's scratch only. The backward recomputes them from the saved log-sum. Among few
 * tokens (TNT's pixels) many problems run side by side in the lanes of a vector (simd_heads.c). No
 * sum crosses problems in either, so the number of threads changes no bit. */
#include <assert.h>

#include "cpu/blocks.h"
#include "cpu/heads.h"
#include "cpu/kernels.h"
#include "cpu/work.h"

enum { QUERIES = 128, FEW_TOKENS = 32 };

static int heads_in_lanes(const heads *h)
{
    return h->tokens <= FEW_TOKENS && h->width <= LANES_HEADS_WIDTH;
}

static simd_heads simd_heads_of(const heads *h)
{
    return (simd_heads){h->tokens, h->width, h->stride_k, h->stride_v, h->dim, (float)h->scale};
}

static heads heads_of(const op_call *c)
{
    return c->op == OP_ATTENTION ? heads_make(c, 0, 1) : heads_make(c, 1, 2);
}

static size_t scratch_bytes(const op_call *c, const heads *h)
{
    if (heads_in_lanes(h)) {
        simd_heads l = simd_heads_of(h);
        return align_64((size_t)simd_heads_work(&l, simd_of(c)->width) * sizeof(float));
    }
    int64_t queries = h->tokens < QUERIES ? h->tokens : QUERIES;
    return align_64((size_t)(2 * queries * (h->tokens + h->width)) * sizeof(float));
}

size_t cpu_attention_workspace(const op_call *c)
{
    heads h = heads_of(c);
    return (size_t)c->threads * scratch_bytes(c, &h);
}

/* Everything of one (group, head): pointers to its first token. */
typedef struct problem {
    const float *q, *k, *v, *dy, *known;
    float *y, *logsum, *dq, *dk, *dv;
} problem;

static problem problem_at(const op_call *c, const heads *h, int64_t i)
{
    int forward = c->op == OP_ATTENTION, x = forward ? 0 : 1;
    int64_t row = i / h->heads * h->tokens, head = i % h->heads, at = row * h->stride_k + head * h->width;
    int64_t at_v = row * h->stride_v + head * h->width, at_y = row * h->dim + head * h->width;
    problem p = {.q = (const float *)c->in[x].data + at, .k = (const float *)c->in[x].data + at + h->dim};
    p.v = c->in[x + 1].data ? (const float *)c->in[x + 1].data + at_v : p.k + h->dim;
    const float *known = c->in[forward ? 2 : 3].data;
    p.known = known ? known + row * h->heads + head : NULL;
    if (forward) {
        p.y = (float *)c->out[0].data + at_y;
        p.logsum = c->out[1].data ? (float *)c->out[1].data + row * h->heads + head : NULL;
        return p;
    }
    p.dy = (const float *)c->in[0].data + at_y;
    p.dq = (float *)c->out[0].data + at;
    p.dk = p.dq + h->dim;
    p.dv = c->out[1].data ? (float *)c->out[1].data + at_v : p.dk + h->dim;
    return p;
}

/* ---- many tokens ----------------------------------------------------------------------------- */

/* A thread's scratch: scores [key][query] of a block of queries, their gradients, q and dy of the
 * block transposed. */
typedef struct scratch {
    float *s, *ds, *q_t, *dy_t;
} scratch;

static scratch scratch_at(const op_call *c, const heads *h)
{
    float *base = (float *)(void *)((char *)c->workspace + (size_t)omp_get_thread_num() * scratch_bytes(c, h));
    int64_t queries = h->tokens < QUERIES ? h->tokens : QUERIES;
    scratch w = {.s = base, .ds = base + queries * h->tokens, .q_t = base + 2 * queries * h->tokens};
    w.dy_t = w.q_t + h->width * queries;
    return w;
}

/* [key][query] = keys (tokens x width) times queries^T, already transposed */
static void scores(const simd_kernels *l, const heads *h, const float *keys, int64_t stride, const float *queries_t,
                   int64_t n, float *to)
{
    l->product(&(simd_product){h->tokens, n, h->width, keys, stride, 1, queries_t, n, to, n, 0});
}

/* per query: the sum over keys of weight times value */
static void over_keys(const simd_kernels *l, const heads *h, const float *weights, const float *values, int64_t stride,
                      int64_t n, float *to, int64_t stride_to)
{
    l->product(&(simd_product){n, h->width, h->tokens, weights, 1, n, values, stride, to, stride_to, 0});
}

/* per key: the sum over queries, added to that of earlier blocks of queries */
static void over_queries(const simd_kernels *l, const heads *h, const float *weights, const float *values,
                         int64_t stride, int64_t n, float *to, int64_t stride_to, int add)
{
    l->product(&(simd_product){h->tokens, h->width, n, weights, n, 1, values, stride, to, stride_to, add});
}

static void problem_forward(const simd_kernels *l, const heads *h, const problem *p, const scratch *w)
{
    for (int64_t first = 0; first < h->tokens; first += QUERIES) {
        int64_t n = h->tokens - first < QUERIES ? h->tokens - first : QUERIES;
        l->transpose(w->q_t, n, p->q + first * h->stride_k, h->stride_k, n, h->width);
        scores(l, h, p->k, h->stride_k, w->q_t, n, w->s);
        if (p->known)
            l->weights_columns(w->s, h->tokens, n, (float)h->scale, p->known + first * h->heads, h->heads);
        else
            l->softmax_columns(w->s, h->tokens, n, (float)h->scale, p->logsum + first * h->heads, h->heads);
        over_keys(l, h, w->s, p->v, h->stride_v, n, p->y + first * h->dim, h->dim);
    }
}

static void problem_backward(const simd_kernels *l, const heads *h, const problem *p, const scratch *w)
{
    for (int64_t first = 0; first < h->tokens; first += QUERIES) {
        int64_t n = h->tokens - first < QUERIES ? h->tokens - first : QUERIES;
        const float *dy = p->dy + first * h->dim, *q = p->q + first * h->stride_k;
        l->transpose(w->q_t, n, q, h->stride_k, n, h->width);
        l->transpose(w->dy_t, n, dy, h->dim, n, h->width);
        scores(l, h, p->k, h->stride_k, w->q_t, n, w->s);
        l->weights_columns(w->s, h->tokens, n, (float)h->scale, p->known + first * h->heads, h->heads);
        scores(l, h, p->v, h->stride_v, w->dy_t, n, w->ds);
        over_queries(l, h, w->s, dy, h->dim, n, p->dv, h->stride_v, first > 0);
        l->softmax_grad_columns(w->ds, w->s, h->tokens, n, (float)h->scale);
        over_keys(l, h, w->ds, p->k, h->stride_k, n, p->dq + first * h->stride_k, h->stride_k);
        over_queries(l, h, w->ds, q, h->stride_k, n, p->dk, h->stride_k, first > 0);
    }
}

static void problem_run(const op_call *c, const heads *h, int64_t i)
{
    scratch w = scratch_at(c, h);
    problem p = problem_at(c, h, i);
    if (c->op == OP_ATTENTION)
        problem_forward(simd_of(c), h, &p, &w);
    else
        problem_backward(simd_of(c), h, &p, &w);
}

/* ---- few tokens ------------------------------------------------------------------------------ */

enum { LANES_MOST = 16 };

static void heads_in_lanes_run(const op_call *c, const heads *h, int64_t first, int64_t count)
{
    const float *q[LANES_MOST], *v[LANES_MOST], *dy[LANES_MOST], *known[LANES_MOST];
    float *y[LANES_MOST], *logsum[LANES_MOST], *dq[LANES_MOST], *dv[LANES_MOST];
    simd_heads l = simd_heads_of(h);
    float *work = (float *)(void *)((char *)c->workspace + (size_t)omp_get_thread_num() * scratch_bytes(c, h));
    int given = 0;
    for (int64_t i = 0; i < count; i++) {
        problem p = problem_at(c, h, first + i);
        q[i] = p.q, v[i] = p.v, dy[i] = p.dy, known[i] = p.known;
        y[i] = p.y, dq[i] = p.dq, dv[i] = p.dv;
        logsum[i] = p.known ? (float *)(uintptr_t)p.known : p.logsum; /* only read when given */
        given = p.known != NULL;
    }
    if (c->op == OP_ATTENTION)
        simd_of(c)->heads_forward(&l, count, q, v, y, logsum, h->heads, given, work);
    else
        simd_of(c)->heads_backward(&l, count, q, v, dy, known, h->heads, dq, dv, work);
}

/* ---- all problems, and those of some rows ---------------------------------------------------- */

/* Problems are independent, so it does not matter which of them share a vector. */
static blocks problem_blocks(const op_call *c, const heads *h)
{
    return blocks_of(h->groups * h->heads, heads_in_lanes(h) ? simd_of(c)->width : 1);
}

static void problems_run(const op_call *c, const heads *h, int64_t first, int64_t count)
{
    if (heads_in_lanes(h))
        heads_in_lanes_run(c, h, first, count);
    else
        problem_run(c, h, first);
}

static void run(const op_call *c)
{
    heads h = heads_of(c);
    blocks b = problem_blocks(c, &h);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    for (int64_t i; (i = work_take(&s)) >= 0;)
        problems_run(c, &h, block_begin(&b, i), block_rows(&b, i));
}

/* Each group of tokens is whole among these rows: group.c ensures it. */
void cpu_attention_rows(const op_call *c, int64_t begin, int64_t rows)
{
    heads h = heads_of(c);
    assert(begin % h.tokens == 0 && rows % h.tokens == 0);
    int64_t size = problem_blocks(c, &h).size, end = (begin + rows) / h.tokens * h.heads;
    for (int64_t i = begin / h.tokens * h.heads; i < end; i += size)
        problems_run(c, &h, i, end - i < size ? end - i : size);
}

void cpu_attention(const op_call *c)
{
    run(c);
}

void cpu_attention_grad(const op_call *c)
{
    run(c);
}
