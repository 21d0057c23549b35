/* simd_internal.h - helpers of the simd_*.c, which are compiled once per instruction set.
 * SPDX-License-Identifier: MIT
 *
 * SIMD_FN(name) gives a function the name of its instruction set, simd_avx512_name; SIMD_TABLE is
 * the table that simd_kernels.c fills with them. Sums run in a fixed number of lanes, so every
 * instruction set gives the same bits. */
#ifndef CPU_SIMD_INTERNAL_H
#define CPU_SIMD_INTERNAL_H

#include "simd/vmath.h" /* first: vec_neon.h has a local array `lanes` */

#include "cpu/simd_kernels.h"

#define SIMD_PASTE(prefix, isa, name)  prefix##isa##name
#define SIMD_EXPAND(prefix, isa, name) SIMD_PASTE(prefix, isa, name)
/* the build defines SIMD_ISA, such as avx512 */
#define SIMD_FN(name) SIMD_EXPAND(simd_, SIMD_ISA, _##name)
#define SIMD_TABLE    SIMD_EXPAND(simd_kernels_, SIMD_ISA, )

V_FN v_f32 load_up_to(const float *p, int64_t left)
{
    return left >= V_LANES ? v_load(p) : v_load_n(p, (size_t)left);
}
V_FN void store_up_to(float *p, v_f32 a, int64_t left)
{
    if (left >= V_LANES)
        v_store(p, a);
    else
        v_store_n(p, a, (size_t)left);
}

/* Sums across lanes run in SUM_LANES lanes whatever the vector length, so that every instruction
 * set gives the same bits: element i belongs to lane i % SUM_LANES, which is part of vector i /
 * V_LANES % SUM_VECTORS. */
enum { SUM_LANES = 16, SUM_VECTORS = SUM_LANES / V_LANES };

/* Adds the lanes in a fixed tree: halves, quarters, ... In registers where a compiler would go
 * through memory. */
V_FN float simd_sum(v_f32 *lanes)
{
    V_FOR(int half = SUM_VECTORS / 2; half > 0; half /= 2)
        V_FOR(int i = 0; i < half; i++)
            lanes[i] = v_add(lanes[i], lanes[i + half]);
    v_f32 a = lanes[0];
#if V_LANES == 16
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
#elif V_LANES == 8
    __m256 eight = a;
#endif
#if V_LANES >= 8
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    float part[V_LANES];
    v_store(part, a);
    for (int half = V_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
#endif
}

/* e^z for z <= 0, and up to 88. Below -87 it stays at e^-87, which is negligible beside the 1 that
 * every softmax contains. */
V_FN v_f32 exp_vector(v_f32 z)
{
    v_f32 shifted, tail = v_exp(v_max(z, v_set(-87.0f)), &shifted), power = v_power(shifted);
    return v_fma(power, tail, power);
}

void SIMD_FN(norm_rows)(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
                        int64_t n, float eps);
void SIMD_FN(norm_grad_rows)(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                             const float *residual, float *dw, float *db, int64_t rows, int64_t n);
void SIMD_FN(finish_rows)(float *y, const float *bias, const float *residual, int64_t rows, int64_t n);
void SIMD_FN(column_sums)(float *sum, const float *x, int64_t rows, int64_t n);
void SIMD_FN(add)(float *y, const float *a, const float *b, int64_t count);
void SIMD_FN(scale_rows)(float *y, const float *x, const float *gamma, const float *residual, int64_t rows, int64_t n);
void SIMD_FN(scale_grad_rows)(float *dx, const float *dy, const float *x, const float *gamma, float *dgamma,
                              int64_t rows, int64_t n);
void SIMD_FN(softmax_columns)(float *s, int64_t keys, int64_t n, float scale, float *logsum, int64_t stride);
void SIMD_FN(weights_columns)(float *s, int64_t keys, int64_t n, float scale, const float *logsum, int64_t stride);
void SIMD_FN(softmax_grad_columns)(float *dp, const float *p, int64_t keys, int64_t n, float scale);
void SIMD_FN(product)(const simd_product *p);
void SIMD_FN(transpose)(float *to, int64_t stride_to, const float *from, int64_t stride, int64_t rows, int64_t columns);
void SIMD_FN(heads_forward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                            float *const *y, float *const *logsum, int64_t logsum_stride, int given, float *work);
void SIMD_FN(heads_backward)(const simd_heads *h, int64_t count, const float *const *q, const float *const *v,
                             const float *const *dy, const float *const *logsum, int64_t logsum_stride,
                             float *const *dq, float *const *dv, float *work);
void SIMD_FN(depthwise)(const simd_map *m, int64_t channel, float *y, const float *x, const float *w, const float *bias,
                        const float *residual, int mirror, float *work);
void SIMD_FN(depthwise_dw)(const simd_map *m, int64_t channel, float *dw, float *db, const float *dy, const float *x,
                           float *work);
void SIMD_FN(adamw)(float *w, float *m, float *v, const float *g, int64_t count, const simd_adamw *k);
double SIMD_FN(square_sum)(const float *x, int64_t count);

#endif
