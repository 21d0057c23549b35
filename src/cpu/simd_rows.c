/* simd_rows.c - loops over rows and elements: bias, column sums, scale, AdamW, sums of squares.
 * SPDX-License-Identifier: MIT
 *
 * Compiled once per instruction set (simd_internal.h: SIMD_FN, the v_ vocabulary); simd_kernels.c
 * lists the functions. Elements are independent, and every sum has an order that does not depend on
 * the vector length, so all instruction sets give the same bits. */
#include "cpu/simd_internal.h"

void SIMD_FN(finish_rows)(float *y, const float *bias, const float *residual, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i += V_LANES) {
            v_f32 sum = load_up_to(y + r * n + i, n - i);
            if (bias)
                sum = v_add(sum, load_up_to(bias + i, n - i));
            if (residual)
                sum = v_add(sum, load_up_to(residual + r * n + i, n - i));
            store_up_to(y + r * n + i, sum, n - i);
        }
}

/* One accumulator per column keeps the order of the rows; eight vectors of columns at a time keep
 * enough loads in flight. */
void SIMD_FN(column_sums)(float *sum, const float *x, int64_t rows, int64_t n)
{
    enum { WIDE = 8 };
    int64_t i = 0;
    for (; i + WIDE * V_LANES <= n; i += WIDE * V_LANES) {
        v_f32 part[WIDE];
        V_FOR(int j = 0; j < WIDE; j++)
            part[j] = v_load(sum + i + j * V_LANES);
        for (int64_t r = 0; r < rows; r++)
            V_FOR(int j = 0; j < WIDE; j++)
                part[j] = v_add(part[j], v_load(x + r * n + i + j * V_LANES));
        V_FOR(int j = 0; j < WIDE; j++)
            v_store(sum + i + j * V_LANES, part[j]);
    }
    for (; i < n; i += V_LANES) {
        v_f32 part = load_up_to(sum + i, n - i);
        for (int64_t r = 0; r < rows; r++)
            part = v_add(part, load_up_to(x + r * n + i, n - i));
        store_up_to(sum + i, part, n - i);
    }
}

void SIMD_FN(add)(float *y, const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i += V_LANES)
        store_up_to(y + i, v_add(load_up_to(a + i, count - i), load_up_to(b + i, count - i)), count - i);
}

void SIMD_FN(scale_rows)(float *y, const float *x, const float *gamma, const float *residual, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i += V_LANES) {
            v_f32 product = v_mul(load_up_to(x + r * n + i, n - i), load_up_to(gamma + i, n - i));
            if (residual)
                product = v_add(product, load_up_to(residual + r * n + i, n - i));
            store_up_to(y + r * n + i, product, n - i);
        }
}

void SIMD_FN(scale_grad_rows)(float *dx, const float *dy, const float *x, const float *gamma, float *dgamma,
                              int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i += V_LANES) {
            v_f32 d = load_up_to(dy + r * n + i, n - i);
            store_up_to(dgamma + i, v_fma(d, load_up_to(x + r * n + i, n - i), load_up_to(dgamma + i, n - i)), n - i);
            store_up_to(dx + r * n + i, v_mul(d, load_up_to(gamma + i, n - i)), n - i);
        }
}

/* torch's order: decay, moments, denominator sqrt(v) / sqrt(correction2) + eps. */
void SIMD_FN(adamw)(float *w, float *m, float *v, const float *g, int64_t count, const simd_adamw *k)
{
    for (int64_t i = 0; i < count; i += V_LANES) {
        int64_t left = count - i;
        v_f32 d = v_mul(load_up_to(g + i, left), v_set(k->clip)), m1 = load_up_to(m + i, left);
        m1 = v_fma(v_set(k->toward), v_sub(d, m1), m1);
        v_f32 m2 = v_fma(v_mul(v_set(k->rest), d), d, v_mul(v_set(k->beta2), load_up_to(v + i, left)));
        v_f32 under = v_add(v_div(v_sqrt(m2), v_set(k->root)), v_set(k->eps));
        v_f32 kept = v_mul(load_up_to(w + i, left), v_set(k->keep));
        v_f32 moved = v_fnma(v_set(k->step), v_div(m1, under), kept);
        store_up_to(m + i, m1, left);
        store_up_to(v + i, m2, left);
        store_up_to(w + i, v_min(v_max(moved, v_set(k->low)), v_set(k->high)), left);
    }
}

/* In f32 over one block, lanes joined in double; callers keep blocks short. SQUARE_LANES lanes
 * whatever the vector length; the last elements go to the first SUM_LANES of them. */
double SIMD_FN(square_sum)(const float *x, int64_t count)
{
    enum { SQUARE_LANES = 64, VECTORS = SQUARE_LANES / V_LANES };
    v_f32 sum[VECTORS];
    int64_t i = 0;
    for (int j = 0; j < VECTORS; j++)
        sum[j] = v_zero();
    for (; i + SQUARE_LANES <= count; i += SQUARE_LANES)
        V_FOR(int j = 0; j < VECTORS; j++) {
            v_f32 a = v_load(x + i + j * V_LANES);
            sum[j] = v_fma(a, a, sum[j]);
        }
    for (int j = 0; i < count; i += V_LANES, j = (j + 1) % SUM_VECTORS) {
        v_f32 a = load_up_to(x + i, count - i);
        sum[j] = v_fma(a, a, sum[j]);
    }
    float part[SQUARE_LANES];
    double total = 0;
    for (int j = 0; j < VECTORS; j++)
        v_store(part + j * V_LANES, sum[j]);
    for (int j = 0; j < SQUARE_LANES; j++)
        total += part[j];
    return total;
}
