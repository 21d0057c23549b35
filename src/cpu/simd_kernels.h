/* simd_kernels.h - the inner loops of the fast kernels, compiled once per instruction set.
 * SPDX-License-Identifier: MIT
 *
 * Each simd_*.c is written over the vocabulary of simd/vec.h and compiled for scalar C, AVX2,
 * AVX-512 and NEON; simd_kernels.c joins them into one const table. The kernels (norm.c,
 * attention.c, ...) handle blocks and threads and call these for the rows of a block. Every
 * instruction set gives the same bits: sums run down a lane, or across a fixed number of lanes
 * (simd_internal.h). The number of threads changes no bit, because the work of a call is fixed by
 * the problem. */
#ifndef CPU_SIMD_KERNELS_H
#define CPU_SIMD_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct simd_adamw {
    float keep, step, root, toward, beta2, rest, clip, eps, low, high;
} simd_adamw;

/* One channel group of depthwise convolution: `lanes` channels of an image with its border of
 * zeros. */
typedef struct simd_map {
    int64_t height, width, channels, kernel; /* of the image */
} simd_map;

/* Attention among few tokens: as many problems side by side as there are lanes. Strides in
 * elements. */
enum { LANES_HEADS_WIDTH = 32 }; /* channels of a head, at most */
typedef struct simd_heads {
    int64_t tokens, width;
    int64_t stride_k, stride_v, dim; /* between tokens of q and k, of v, of y */
    float scale;
} simd_heads;

/* c (m x n) = a b, or c += a b; a's element (i, l) is a[i * row + l * column], b is k x n. */
typedef struct simd_product {
    int64_t m, n, k;
    const float *a;
    int64_t row, column;
    const float *b;
    int64_t stride_b;
    float *c;
    int64_t stride_c;
    int add;
} simd_product;

typedef struct simd_kernels {
    const char *isa;
    int64_t width; /* lanes of a vector */

    /* norm: rows of n elements. stat holds mean and 1/sigma per row; norm_rows computes it unless
     * `given`. */
    void (*norm_rows)(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
                      int64_t n, float eps);
    /* dw and db: sums over these rows, added in order to what is there. dx may be dy or
     * residual. */
    void (*norm_grad_rows)(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                           const float *residual, float *dw, float *db, int64_t rows, int64_t n);

    /* y += bias (n) + residual, either may be NULL */
    void (*finish_rows)(float *y, const float *bias, const float *residual, int64_t rows, int64_t n);
    void (*column_sums)(float *sum, const float *x, int64_t rows, int64_t n); /* added in order to what is there */
    void (*add)(float *y, const float *a, const float *b, int64_t count);
    void (*scale_rows)(float *y, const float *x, const float *gamma, const float *residual, int64_t rows, int64_t n);
    void (*scale_grad_rows)(float *dx, const float *dy, const float *x, const float *gamma, float *dgamma, int64_t rows,
                            int64_t n);

    /* softmax over the keys of scores [keys][n queries] times scale; logsum gets one element per
     * query, `stride` apart */
    void (*softmax_columns)(float *s, int64_t keys, int64_t n, float scale, float *logsum, int64_t stride);
    /* the same from known log-sums */
    void (*weights_columns)(float *s, int64_t keys, int64_t n, float scale, const float *logsum, int64_t stride);
    /* dp = scale p (dp - sum(p dp)) */
    void (*softmax_grad_columns)(float *dp, const float *p, int64_t keys, int64_t n, float scale);

    void (*product)(const simd_product *p);
    /* to[column][row] from rows of `columns` elements; strides between rows as stored */
    void (*transpose)(float *to, int64_t stride_to, const float *from, int64_t stride, int64_t rows, int64_t columns);

    /* `count` <= width problems; problem i has its q at q[i], and k = q + dim, and so on. work:
     * simd_heads_work() floats */
    void (*heads_forward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                          float *const *y, float *const *logsum, int64_t logsum_stride, int given, float *work);
    void (*heads_backward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                           const float *const *dy, const float *const *logsum, int64_t logsum_stride, float *const *dq,
                           float *const *dv, float *work);

    /* depthwise convolution of the channels [channel, channel + width) of one image; work:
     * simd_depthwise_work() floats */
    void (*depthwise)(const simd_map *m, int64_t channel, float *y, const float *x, const float *w, const float *bias,
                      const float *residual, int mirror, float *work);
    void (*depthwise_dw)(const simd_map *m, int64_t channel, float *dw, float *db, const float *dy, const float *x,
                         float *work);

    void (*adamw)(float *w, float *m, float *v, const float *g, int64_t count, const simd_adamw *k);
    double (*square_sum)(const float *x, int64_t count);
} simd_kernels;

/* Scratch, in floats. */
int64_t simd_heads_work(const simd_heads *h, int64_t width);
int64_t simd_depthwise_work(const simd_map *m, int64_t width);

extern const simd_kernels simd_kernels_scalar, simd_kernels_avx2, simd_kernels_avx512,
    simd_kernels_neon; /* those built */

#endif
