/* lanes_softmax.c - the rows between the two products of attention. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cpu/lanes_inside.h"

/* p = e^(scale s - shift) over one row; returns the sum. */
V_FN float row_exp(float *s, int64_t keys, float scale, float shift)
{
    v_f32 sum = v_zero(), by = v_set(scale), less = v_set(shift);
    int64_t i = 0;
    for (; i + V_LANES <= keys; i += V_LANES) {
        v_f32 p = exp_lanes(v_fms(v_load(s + i), by, less));
        sum = v_add(sum, p);
        v_store(s + i, p);
    }
    float total = lanes_sum(sum);
    if (i < keys) {
        v_f32 p = exp_lanes(v_fms(v_load_n(s + i, (size_t)(keys - i)), by, less));
        v_store_n(s + i, p, (size_t)(keys - i));
        for (; i < keys; i++)
            total += s[i];
    }
    return total;
}

void LANES(softmax_rows)(float *s, int64_t rows, int64_t keys, float scale, float *logsum, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++, s += keys) {
        float top = s[0];
        int64_t i = 0;
        if (keys >= V_LANES) {
            v_f32 most = v_load(s);
            for (i = V_LANES; i + V_LANES <= keys; i += V_LANES)
                most = v_max(most, v_load(s + i));
            top = lanes_max(most);
        }
        for (; i < keys; i++)
            top = s[i] > top ? s[i] : top;
        float sum = row_exp(s, keys, scale, scale * top);
        v_f32 by = v_set(1.0f / sum);
        for (i = 0; i < keys; i += V_LANES)
            store_up_to(s + i, v_mul(load_up_to(s + i, keys - i), by), keys - i);
        logsum[r * stride] = scale * top + logf(sum);
    }
}

void LANES(weights_rows)(float *s, int64_t rows, int64_t keys, float scale, const float *logsum, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++)
        row_exp(s + r * keys, keys, scale, logsum[r * stride]);
}

void LANES(softmax_grad_rows)(float *dp, const float *p, int64_t rows, int64_t keys, float scale)
{
    for (int64_t r = 0; r < rows; r++, dp += keys, p += keys) {
        v_f32 dot = v_zero();
        for (int64_t i = 0; i < keys; i += V_LANES)
            dot = v_fma(load_up_to(dp + i, keys - i), load_up_to(p + i, keys - i), dot);
        v_f32 mean = v_set(lanes_sum(dot)), by = v_set(scale);
        for (int64_t i = 0; i < keys; i += V_LANES) {
            v_f32 d = v_sub(load_up_to(dp + i, keys - i), mean);
            store_up_to(dp + i, v_mul(v_mul(by, load_up_to(p + i, keys - i)), d), keys - i);
        }
    }
}
