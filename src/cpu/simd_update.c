/* simd_update.c - the loops of an update: AdamW, and the sum of squares for the norm of gradients.
 * SPDX-License-Identifier: MIT
 *
 * Compiled once per instruction set (simd_internal.h: SIMD_FN, the v_ vocabulary); simd_kernels.c
 * lists the functions, update.c calls them. All instruction sets give the same bits: elements are
 * independent, and the sum has an order that does not depend on the vector length. */
#include "cpu/simd_internal.h"

/* Decay, moments, denominator sqrt(v) / sqrt(correction2) + eps, as torch orders them; but the step
 * multiplies m / denominator, where torch divides step * m, which allows one fused operation. */
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
