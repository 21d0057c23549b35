/* simd_heads.c - attention among few tokens, one problem per lane. SPDX-License-Identifier: MIT
 *
 * TNT's inner attention has thousands of problems of 16 tokens and 6 channels: too small for a
 * matrix library, and a row of 16 scores would need sums across lanes. So sixteen problems run side
 * by side: packed as [token][channel][problem], every step of the textbook is one vector operation.
 * The backward first iterates over the queries, which gives weights, their gradients and dq, then
 * over the keys, which gives dk and dv: so every sum is finished in registers. The number of
 * channels is a constant where it matters (the switch at the end). */
#include <math.h>
#include <string.h>

#include "cpu/simd_internal.h"

/* ---- layout ---------------------------------------------------------------------------------- */

/* Channels are packed in groups of eight, first as rows [token][group][lane][8], then as
 * [token][channel][lane]: compilers turn the two loops over eight by lanes into shuffles, where a
 * single loop would move element by element. All rows are written before the first is read, to
 * avoid failed store forwarding. The last group of a token may overrun its end: the next token
 * overwrites it, and an array has a spare group at its end. */
enum { GROUP = 8 };

V_FN void group_spread(float *restrict channels, const float *restrict rows)
{
    if (V_LANES > GROUP) /* the shorter loop inside: gcc then needs a third of the shuffles */
        for (int lane = 0; lane < V_LANES; lane++)
            for (int c = 0; c < GROUP; c++)
                channels[c * V_LANES + lane] = rows[lane * GROUP + c];
    else
        for (int c = 0; c < GROUP; c++)
            for (int lane = 0; lane < V_LANES; lane++)
                channels[c * V_LANES + lane] = rows[lane * GROUP + c];
}

V_FN void group_join(float *restrict rows, const float *restrict channels)
{
    for (int lane = 0; lane < V_LANES; lane++)
        for (int c = 0; c < GROUP; c++)
            rows[lane * GROUP + c] = channels[c * V_LANES + lane];
}

V_FN int64_t group_width(int64_t width, int64_t first)
{
    return width - first < GROUP ? width - first : GROUP;
}

/* work[token][channel][lane] from `count` problems; missing lanes are zero. */
V_FN void gather(float *work, float *rows, const float *const *from, int64_t count, int64_t tokens, int64_t width,
                 int64_t stride)
{
    float *row = rows;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t first = 0; first < width; first += GROUP, row += GROUP * V_LANES) {
            for (int64_t lane = 0; lane < count; lane++)
                memcpy(row + lane * GROUP, from[lane] + t * stride + first,
                       (size_t)group_width(width, first) * sizeof(float));
            memset(row + count * GROUP, 0, (size_t)((V_LANES - count) * GROUP) * sizeof(float));
        }
    row = rows;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t first = 0; first < width; first += GROUP, row += GROUP * V_LANES)
            group_spread(work + (t * width + first) * V_LANES, row);
}

V_FN void scatter(float *const *to, float *rows, const float *work, int64_t count, int64_t tokens, int64_t width,
                  int64_t stride)
{
    float *row = rows;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t first = 0; first < width; first += GROUP, row += GROUP * V_LANES)
            group_join(row, work + (t * width + first) * V_LANES);
    row = rows;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t first = 0; first < width; first += GROUP, row += GROUP * V_LANES)
            for (int64_t lane = 0; lane < count; lane++)
                memcpy(to[lane] + t * stride + first, row + lane * GROUP,
                       (size_t)group_width(width, first) * sizeof(float));
}

/* log-sum of token t for every problem, in and out of a vector */
V_FN v_f32 logsum_load(const float *const *from, int64_t count, int64_t at)
{
    float part[V_LANES] = {0};
    for (int64_t i = 0; i < count; i++)
        part[i] = from[i][at];
    return v_load(part);
}

V_FN void logsum_store(float *const *to, int64_t count, int64_t at, v_f32 logsum)
{
    float part[V_LANES];
    v_store(part, logsum);
    for (int64_t i = 0; i < count; i++)
        to[i][at] = part[i];
}

/* ---- rows: `width` vectors, held in registers ------------------------------------------------ */

V_FN void row_load(v_f32 *row, const float *from, int64_t width)
{
    V_FOR(int64_t c = 0; c < width; c++)
        row[c] = v_load(from + c * V_LANES);
}

V_FN void row_store(float *to, const v_f32 *row, int64_t width)
{
    V_FOR(int64_t c = 0; c < width; c++)
        v_store(to + c * V_LANES, row[c]);
}

V_FN v_f32 row_dot(const v_f32 *row, const float *other, int64_t width)
{
    v_f32 sum = v_mul(row[0], v_load(other));
    V_FOR(int64_t c = 1; c < width; c++)
        sum = v_fma(row[c], v_load(other + c * V_LANES), sum);
    return sum;
}

/* row = sum over tokens of weight times the token's row; weights are `step` vectors apart. */
V_FN void row_sum(v_f32 *row, const float *weights, int64_t step, const float *rows, int64_t tokens, int64_t width)
{
    V_FOR(int64_t c = 0; c < width; c++)
        row[c] = v_zero();
    for (int64_t t = 0; t < tokens; t++) {
        v_f32 weight = v_load(weights + t * step * V_LANES);
        V_FOR(int64_t c = 0; c < width; c++)
            row[c] = v_fma(weight, v_load(rows + (t * width + c) * V_LANES), row[c]);
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

/* p[j] = softmax over the tokens j of scale q k_j; returns the log-sum. */
V_FN v_f32 softmax(const simd_heads *h, const v_f32 *q, const float *k, float *p, int64_t width)
{
    v_f32 scale = v_set(h->scale), top = v_set(-INFINITY), sum = v_zero();
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 s = v_mul(scale, row_dot(q, k + j * width * V_LANES, width));
        top = v_max(top, s);
        v_store(p + j * V_LANES, s);
    }
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 e = exp_vector(v_sub(v_load(p + j * V_LANES), top));
        sum = v_add(sum, e);
        v_store(p + j * V_LANES, e);
    }
    v_f32 by = v_div(v_one(), sum);
    for (int64_t j = 0; j < h->tokens; j++)
        v_store(p + j * V_LANES, v_mul(v_load(p + j * V_LANES), by));
    return v_add(top, v_log1p(v_sub(sum, v_one()))); /* sum >= 1, so the difference is exact */
}

/* The same from a known log-sum. */
V_FN v_f32 weight_of(const simd_heads *h, const v_f32 *q, const float *k, v_f32 logsum, int64_t width)
{
    return exp_vector(v_fms(v_set(h->scale), row_dot(q, k, width), logsum));
}

V_FN void forward(const simd_heads *h, int64_t count, const float *const *q, const float *const *v, float *const *y,
                  float *const *logsum, int64_t logsum_stride, int given, float *work, int64_t width)
{
    int64_t row = width * V_LANES, size = h->tokens * row + GROUP * V_LANES;
    float *wq = work, *wk = wq + size, *wv = wk + size, *p = wv + size, *rows = p + h->tokens * V_LANES;
    const float *k[V_LANES] = {NULL};
    for (int64_t i = 0; i < count; i++)
        k[i] = q[i] + h->dim;
    gather(wq, rows, q, count, h->tokens, width, h->stride_k);
    gather(wk, rows, k, count, h->tokens, width, h->stride_k);
    gather(wv, rows, v, count, h->tokens, width, h->stride_v);
    for (int64_t t = 0; t < h->tokens; t++) {
        v_f32 this[LANES_HEADS_WIDTH];
        row_load(this, wq + t * row, width);
        if (given) {
            v_f32 known = logsum_load((const float *const *)logsum, count, t * logsum_stride);
            for (int64_t j = 0; j < h->tokens; j++)
                v_store(p + j * V_LANES, weight_of(h, this, wk + j * row, known, width));
        } else {
            logsum_store(logsum, count, t * logsum_stride, softmax(h, this, wk, p, width));
        }
        row_sum(this, p, 1, wv, h->tokens, width);
        row_store(wq + t * row, this, width); /* q of this token is no longer needed */
    }
    scatter(y, rows, wq, count, h->tokens, width, h->dim);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Query t: its weights p[j], their gradients ds[j] = scale p (dp - sum p dp), and dq. */
V_FN void backward_query(const simd_heads *h, const float *q, const float *k, const float *v, const float *dy,
                         float *dq, float *p, float *ds, v_f32 logsum, int64_t width)
{
    v_f32 mean = v_zero(), scale = v_set(h->scale), row[LANES_HEADS_WIDTH];
    row_load(row, q, width);
    for (int64_t j = 0; j < h->tokens; j++)
        v_store(p + j * V_LANES, weight_of(h, row, k + j * width * V_LANES, logsum, width));
    row_load(row, dy, width);
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 d = row_dot(row, v + j * width * V_LANES, width);
        mean = v_fma(v_load(p + j * V_LANES), d, mean);
        v_store(ds + j * V_LANES, d);
    }
    for (int64_t j = 0; j < h->tokens; j++)
        v_store(ds + j * V_LANES, v_mul(v_mul(scale, v_load(p + j * V_LANES)), v_sub(v_load(ds + j * V_LANES), mean)));
    row_sum(row, ds, 1, k, h->tokens, width);
    row_store(dq, row, width);
}

V_FN void backward(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                   const float *const *dy, const float *const *logsum, int64_t logsum_stride, float *const *dq,
                   float *const *dv, float *work, int64_t width)
{
    int64_t row = width * V_LANES, size = h->tokens * row + GROUP * V_LANES, square = h->tokens * h->tokens * V_LANES;
    float *wq = work, *wk = wq + size, *wv = wk + size, *wdy = wv + size, *wdq = wdy + size;
    float *p = wdq + size, *ds = p + square, *rows = ds + square;
    const float *k[V_LANES] = {NULL};
    float *dk[V_LANES] = {NULL};
    for (int64_t i = 0; i < count; i++) {
        k[i] = q[i] + h->dim;
        dk[i] = dq[i] + h->dim;
    }
    gather(wq, rows, q, count, h->tokens, width, h->stride_k);
    gather(wk, rows, k, count, h->tokens, width, h->stride_k);
    gather(wv, rows, v, count, h->tokens, width, h->stride_v);
    gather(wdy, rows, dy, count, h->tokens, width, h->dim);
    for (int64_t t = 0; t < h->tokens; t++)
        backward_query(h, wq + t * row, wk, wv, wdy + t * row, wdq + t * row, p + t * h->tokens * V_LANES,
                       ds + t * h->tokens * V_LANES, logsum_load(logsum, count, t * logsum_stride), width);
    for (int64_t j = 0; j < h->tokens; j++) { /* k and v are no longer needed: dk and dv overwrite them */
        v_f32 sum[LANES_HEADS_WIDTH];
        row_sum(sum, ds + j * V_LANES, h->tokens, wq, h->tokens, width);
        row_store(wk + j * row, sum, width);
        row_sum(sum, p + j * V_LANES, h->tokens, wdy, h->tokens, width);
        row_store(wv + j * row, sum, width);
    }
    scatter(dq, rows, wdq, count, h->tokens, width, h->stride_k);
    scatter(dk, rows, wk, count, h->tokens, width, h->stride_k);
    scatter(dv, rows, wv, count, h->tokens, width, h->stride_v);
}

/* ---- one copy per width that a model has, and one for any ------------------------------------ */

void SIMD_FN(heads_forward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                            float *const *y, float *const *logsum, int64_t logsum_stride, int given, float *work)
{
    if (h->width == 6) /* TNT-S */
        forward(h, count, q, v, y, logsum, logsum_stride, given, work, 6);
    else
        forward(h, count, q, v, y, logsum, logsum_stride, given, work, h->width);
}

void SIMD_FN(heads_backward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                             const float *const *dy, const float *const *logsum, int64_t logsum_stride,
                             float *const *dq, float *const *dv, float *work)
{
    if (h->width == 6)
        backward(h, count, q, v, dy, logsum, logsum_stride, dq, dv, work, 6);
    else
        backward(h, count, q, v, dy, logsum, logsum_stride, dq, dv, work, h->width);
}
