/* simd_softmax.c - the softmax between the two products of attention. SPDX-License-Identifier: MIT
 *
 * Scores lie as [key][query], so a vector holds one key of sixteen queries and every sum over keys
 * is vertical: no sum crosses lanes. */
#include <math.h>

#include "cpu/simd_internal.h"

/* s = e^(scale s - shift) down one vector of queries; returns the sums. */
V_FN v_f32 column_exp(float *s, int64_t keys, int64_t n, int64_t left, v_f32 scale, v_f32 shift)
{
    v_f32 sum = v_zero();
    for (int64_t k = 0; k < keys; k++) {
        v_f32 p = exp_vector(v_fms(load_up_to(s + k * n, left), scale, shift));
        sum = v_add(sum, p);
        store_up_to(s + k * n, p, left);
    }
    return sum;
}

static void logsum_store(float *logsum, int64_t stride, v_f32 shift, v_f32 sum, int64_t left)
{
    float part[V_LANES], base[V_LANES];
    v_store(part, sum);
    v_store(base, shift);
    for (int64_t i = 0; i < V_LANES && i < left; i++)
        logsum[i * stride] = base[i] + logf(part[i]);
}

void SIMD_FN(softmax_columns)(float *s, int64_t keys, int64_t n, float scale, float *logsum, int64_t stride)
{
    for (int64_t i = 0; i < n; i += V_LANES) {
        int64_t left = n - i;
        v_f32 top = load_up_to(s + i, left), by = v_set(scale);
        for (int64_t k = 1; k < keys; k++)
            top = v_max(top, load_up_to(s + k * n + i, left));
        v_f32 shift = v_mul(by, top), sum = column_exp(s + i, keys, n, left, by, shift);
        v_f32 share = v_div(v_one(), sum);
        for (int64_t k = 0; k < keys; k++)
            store_up_to(s + k * n + i, v_mul(load_up_to(s + k * n + i, left), share), left);
        logsum_store(logsum + i * stride, stride, shift, sum, left);
    }
}

void SIMD_FN(weights_columns)(float *s, int64_t keys, int64_t n, float scale, const float *logsum, int64_t stride)
{
    for (int64_t i = 0; i < n; i += V_LANES) {
        float part[V_LANES] = {0};
        for (int64_t j = 0; j < V_LANES && i + j < n; j++)
            part[j] = logsum[(i + j) * stride];
        column_exp(s + i, keys, n, n - i, v_set(scale), v_load(part));
    }
}

void SIMD_FN(softmax_grad_columns)(float *dp, const float *p, int64_t keys, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i += V_LANES) {
        int64_t left = n - i;
        v_f32 dot = v_zero(), by = v_set(scale);
        for (int64_t k = 0; k < keys; k++)
            dot = v_fma(load_up_to(dp + k * n + i, left), load_up_to(p + k * n + i, left), dot);
        for (int64_t k = 0; k < keys; k++) {
            v_f32 d = v_sub(load_up_to(dp + k * n + i, left), dot);
            store_up_to(dp + k * n + i, v_mul(v_mul(by, load_up_to(p + k * n + i, left)), d), left);
        }
    }
}
