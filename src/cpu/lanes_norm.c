/* lanes_norm.c - layer norm over rows that fit the first cache. SPDX-License-Identifier: MIT
 *
 * Two passes for mean and variance (the one-pass form loses digits where the mean is large), a third to write; the row stays in
 * the cache between them. The gradient needs two dot products per row and then one pass. */
#include <math.h>

#include "cpu/lanes_inside.h"

static void statistics(const float *x, int64_t n, float eps, float *stat)
{
    v_f32 sum = v_zero(), square = v_zero();
    for (int64_t i = 0; i < n; i += V_LANES)
        sum = v_add(sum, load_up_to(x + i, n - i));
    float mean = lanes_sum(sum) / (float)n;
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES) {
        v_f32 d = v_sub(v_load(x + i), v_set(mean));
        square = v_fma(d, d, square);
    }
    float rest = 0;
    for (; i < n; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    stat[0] = mean;
    stat[1] = 1.0f / sqrtf((lanes_sum(square) + rest) / (float)n + eps);
}

void LANES(norm_rows)(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
                      int64_t n, float eps)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n, stat += 2) {
        if (!given)
            statistics(x, n, eps, stat);
        v_f32 mean = v_set(stat[0]), scale = v_set(stat[1]);
        for (int64_t i = 0; i < n; i += V_LANES) {
            v_f32 hat = v_mul(v_sub(load_up_to(x + i, n - i), mean), scale);
            store_up_to(y + i, v_fma(hat, load_up_to(w + i, n - i), load_up_to(b + i, n - i)), n - i);
        }
    }
}

void LANES(norm_grad_rows)(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                           const float *residual, float *dw, float *db, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n, stat += 2) {
        v_f32 mean = v_set(stat[0]), scale = v_set(stat[1]), sum = v_zero(), dot = v_zero();
        for (int64_t i = 0; i < n; i += V_LANES) { /* lanes beyond the row have dy = 0, so they add nothing */
            v_f32 d = load_up_to(dy + i, n - i), hat = v_mul(v_sub(load_up_to(x + i, n - i), mean), scale);
            v_f32 g = v_mul(d, load_up_to(w + i, n - i));
            sum = v_add(sum, g);
            dot = v_fma(g, hat, dot);
            store_up_to(dw + i, v_fma(d, hat, load_up_to(dw + i, n - i)), n - i);
            store_up_to(db + i, v_add(d, load_up_to(db + i, n - i)), n - i);
        }
        v_f32 mean_g = v_set(lanes_sum(sum) / (float)n), mean_dot = v_set(lanes_sum(dot) / (float)n);
        for (int64_t i = 0; i < n; i += V_LANES) {
            v_f32 hat = v_mul(v_sub(load_up_to(x + i, n - i), mean), scale);
            v_f32 g = v_mul(load_up_to(dy + i, n - i), load_up_to(w + i, n - i));
            v_f32 d = v_mul(scale, v_fnma(hat, mean_dot, v_sub(g, mean_g)));
            if (residual)
                d = v_add(d, load_up_to(residual + r * n + i, n - i));
            store_up_to(dx + i, d, n - i);
        }
    }
}
