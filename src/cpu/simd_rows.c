/* simd_rows.c - loops over rows and elements: bias, column sums, sums, scale.
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
