/* lanes_heads.c - attention among few tokens, one problem per lane. SPDX-License-Identifier: MIT
 *
 * TNT's inner attention has thousands of problems of 16 tokens and 6 channels: too small for a matrix library, and a row of 16
 * scores would need sums across lanes. So sixteen problems run side by side: the first thing is to lay them out as
 * [token][channel][problem], after which every step of the textbook is one vector operation. Layouts cost about as much as a
 * fifth of the arithmetic. */
#include <math.h>

#include "cpu/lanes_inside.h"

/* work[token][channel][lane] from `count` problems; missing lanes stay zero. */
static void gather(float *work, const float *const *from, int64_t count, int64_t tokens, int64_t width, int64_t stride)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t lane = 0; lane < V_LANES; lane++)
            for (int64_t c = 0; c < width; c++)
                work[(t * width + c) * V_LANES + lane] = lane < count ? from[lane][t * stride + c] : 0.0f;
}

static void scatter(float *const *to, const float *work, int64_t count, int64_t tokens, int64_t width, int64_t stride)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t lane = 0; lane < count; lane++)
            for (int64_t c = 0; c < width; c++)
                to[lane][t * stride + c] = work[(t * width + c) * V_LANES + lane];
}

V_FN v_f32 dot(const float *a, const float *b, int64_t width)
{
    v_f32 sum = v_mul(v_load(a), v_load(b));
    for (int64_t c = 1; c < width; c++)
        sum = v_fma(v_load(a + c * V_LANES), v_load(b + c * V_LANES), sum);
    return sum;
}

/* p[j] = e^(scale q k_j - logsum) for the tokens j; without `given` the log-sum is found first. */
V_FN v_f32 weights(const lanes_heads *h, const float *q, const float *k, float *p, v_f32 logsum, int given)
{
    v_f32 scale = v_set(h->scale), top = v_set(-INFINITY), sum = v_zero();
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 s = v_mul(scale, dot(q, k + j * h->width * V_LANES, h->width));
        top = v_max(top, s);
        v_store(p + j * V_LANES, s);
    }
    v_f32 shift = given ? logsum : top;
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 e = exp_lanes(v_sub(v_load(p + j * V_LANES), shift));
        sum = v_add(sum, e);
        v_store(p + j * V_LANES, e);
    }
    if (given)
        return logsum;
    v_f32 by = v_div(v_one(), sum);
    for (int64_t j = 0; j < h->tokens; j++)
        v_store(p + j * V_LANES, v_mul(v_load(p + j * V_LANES), by));
    float part[V_LANES];
    v_store(part, sum);
    for (int i = 0; i < V_LANES; i++)
        part[i] = logf(part[i]);
    return v_add(top, v_load(part));
}

/* log-sum of token t for every problem, in and out of a vector */
V_FN v_f32 logsum_load(const float *const *from, int64_t count, int64_t at)
{
    float part[V_LANES] = {0};
    for (int64_t i = 0; i < count; i++)
        part[i] = from[i][at];
    return v_load(part);
}

void LANES(heads_forward)(const lanes_heads *h, int64_t count, const float *const *q, const float *const *v,
                          float *const *y, float *const *logsum, int64_t logsum_stride, int given, float *work)
{
    int64_t size = h->tokens * h->width * V_LANES, row = h->width * V_LANES;
    float *wq = work, *wk = wq + size, *wv = wk + size, *wy = wv + size, *p = wy + size;
    const float *k[V_LANES] = {NULL};
    for (int64_t i = 0; i < count; i++)
        k[i] = q[i] + h->dim;
    gather(wq, q, count, h->tokens, h->width, h->stride_k);
    gather(wk, k, count, h->tokens, h->width, h->stride_k);
    gather(wv, v, count, h->tokens, h->width, h->stride_v);
    for (int64_t t = 0; t < h->tokens; t++) {
        v_f32 known = given ? logsum_load((const float *const *)logsum, count, t * logsum_stride) : v_zero();
        v_f32 found = weights(h, wq + t * row, wk, p, known, given);
        float part[V_LANES];
        v_store(part, found);
        for (int64_t i = 0; i < count && !given; i++)
            logsum[i][t * logsum_stride] = part[i];
        for (int64_t c = 0; c < h->width; c++) {
            v_f32 sum = v_zero();
            for (int64_t j = 0; j < h->tokens; j++)
                sum = v_fma(v_load(p + j * V_LANES), v_load(wv + j * row + c * V_LANES), sum);
            v_store(wy + t * row + c * V_LANES, sum);
        }
    }
    scatter(y, wy, count, h->tokens, h->width, h->dim);
}

/* One row of the backward: adds to dk and dv, sets dq. */
static void backward_row(const lanes_heads *h, const float *q, const float *k, const float *v, const float *dy,
                         float *dq, float *dk, float *dv, float *p, v_f32 logsum)
{
    int64_t row = h->width * V_LANES;
    float *dp = p + h->tokens * V_LANES;
    v_f32 mean = v_zero(), scale = v_set(h->scale);
    weights(h, q, k, p, logsum, 1);
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 d = dot(dy, v + j * row, h->width);
        mean = v_fma(v_load(p + j * V_LANES), d, mean);
        v_store(dp + j * V_LANES, d);
    }
    for (int64_t c = 0; c < h->width; c++)
        v_store(dq + c * V_LANES, v_zero());
    for (int64_t j = 0; j < h->tokens; j++) {
        v_f32 weight = v_load(p + j * V_LANES);
        v_f32 ds = v_mul(v_mul(scale, weight), v_sub(v_load(dp + j * V_LANES), mean));
        for (int64_t c = 0; c < h->width; c++) {
            int64_t at = j * row + c * V_LANES;
            v_store(dq + c * V_LANES, v_fma(ds, v_load(k + at), v_load(dq + c * V_LANES)));
            v_store(dk + at, v_fma(ds, v_load(q + c * V_LANES), v_load(dk + at)));
            v_store(dv + at, v_fma(weight, v_load(dy + c * V_LANES), v_load(dv + at)));
        }
    }
}

void LANES(heads_backward)(const lanes_heads *h, int64_t count, const float *const *q, const float *const *v,
                           const float *const *dy, const float *const *logsum, int64_t logsum_stride, float *const *dq,
                           float *const *dv, float *work)
{
    int64_t size = h->tokens * h->width * V_LANES, row = h->width * V_LANES;
    float *wq = work, *wk = wq + size, *wv = wk + size, *wdy = wv + size;
    float *wdq = wdy + size, *wdk = wdq + size, *wdv = wdk + size, *p = wdv + size;
    const float *k[V_LANES] = {NULL};
    float *dk[V_LANES] = {NULL};
    for (int64_t i = 0; i < count; i++) {
        k[i] = q[i] + h->dim;
        dk[i] = dq[i] + h->dim;
    }
    gather(wq, q, count, h->tokens, h->width, h->stride_k);
    gather(wk, k, count, h->tokens, h->width, h->stride_k);
    gather(wv, v, count, h->tokens, h->width, h->stride_v);
    gather(wdy, dy, count, h->tokens, h->width, h->dim);
    for (int64_t i = 0; i < size; i += V_LANES) {
        v_store(wdk + i, v_zero());
        v_store(wdv + i, v_zero());
    }
    for (int64_t t = 0; t < h->tokens; t++)
        backward_row(h, wq + t * row, wk, wv, wdy + t * row, wdq + t * row, wdk, wdv, p,
                     logsum_load(logsum, count, t * logsum_stride));
    scatter(dq, wdq, count, h->tokens, h->width, h->stride_k);
    scatter(dk, wdk, count, h->tokens, h->width, h->stride_k);
    scatter(dv, wdv, count, h->tokens, h->width, h->stride_v);
}
