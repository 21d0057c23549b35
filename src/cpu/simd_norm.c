/* simd_norm.c - layer norm over rows that fit L1. SPDX-License-Identifier: MIT
 *
 * Two passes for mean and variance (the one-pass form loses digits where the mean is large), a
 * third to write; the row stays in L1 between them. The gradient needs two dot products per row and
 * then one pass. Short rows (TNT's pixels: 24 elements, 16384 rows) stay in registers, and with
 * them w, b and the sums of their gradients: the number of vectors is a constant there. Short and
 * long rows add in the same order. */
#include <math.h>

#include "cpu/simd_internal.h"

enum { FEW = 4 }; /* vectors of a short row, at most */

/* Mask of the last vector: one within the row, zero beyond its end. */
V_FN v_f32 ones_up_to(int64_t left)
{
    static const float one[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return load_up_to(one, left);
}

/* ---- forward --------------------------------------------------------------------------------- */

V_FN void lanes_clear(v_f32 *lanes)
{
    V_FOR(int j = 0; j < SUM_VECTORS; j++)
        lanes[j] = v_zero();
}

static void statistics(const float *x, int64_t n, float eps, float *stat)
{
    v_f32 sum[SUM_VECTORS], square[SUM_VECTORS];
    lanes_clear(square);
    V_FOR(int j = 0; j < SUM_VECTORS; j++)
        sum[j] = j * V_LANES < n ? load_up_to(x + j * V_LANES, n - j * V_LANES) : v_zero();
    for (int64_t from = SUM_LANES; from < n; from += SUM_LANES)
        V_FOR(int j = 0; j < SUM_VECTORS; j++) {
            int64_t i = from + j * V_LANES;
            if (i < n)
                sum[j] = v_add(sum[j], load_up_to(x + i, n - i));
        }
    stat[0] = simd_sum(sum) / (float)n;
    for (int64_t from = 0; from < n; from += SUM_LANES)
        V_FOR(int j = 0; j < SUM_VECTORS; j++) {
            int64_t i = from + j * V_LANES;
            if (i >= n)
                continue;
            v_f32 d = v_mul(v_sub(load_up_to(x + i, n - i), v_set(stat[0])), ones_up_to(n - i));
            square[j] = v_fma(d, d, square[j]);
        }
    stat[1] = 1.0f / sqrtf(simd_sum(square) / (float)n + eps);
}

static void norm_long(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
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

/* A row of `vectors` vectors, the last of which may be short. */
V_FN void short_load(v_f32 *to, const float *x, int64_t n, int vectors)
{
    V_FOR(int j = 0; j < vectors; j++)
        to[j] = j < vectors - 1 ? v_load(x + j * V_LANES) : load_up_to(x + j * V_LANES, n - j * V_LANES);
}
V_FN void short_store(float *y, const v_f32 *from, int64_t n, int vectors)
{
    V_FOR(int j = 0; j < vectors; j++)
        if (j < vectors - 1)
            v_store(y + j * V_LANES, from[j]);
        else
            store_up_to(y + j * V_LANES, from[j], n - j * V_LANES);
}

V_FN void norm_short(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
                     int64_t n, float eps, int vectors)
{
    v_f32 weight[FEW], bias[FEW], row[FEW], ones = ones_up_to(n - (vectors - 1) * V_LANES);
    short_load(weight, w, n, vectors);
    short_load(bias, b, n, vectors);
    for (int64_t r = 0; r < rows; r++, x += n, y += n, stat += 2) {
        short_load(row, x, n, vectors);
        if (!given) {
            v_f32 sum[SUM_VECTORS], square[SUM_VECTORS];
            lanes_clear(square);
            V_FOR(int j = 0; j < SUM_VECTORS; j++)
                sum[j] = j < vectors ? row[j] : v_zero();
            V_FOR(int j = SUM_VECTORS; j < vectors; j++)
                sum[j % SUM_VECTORS] = v_add(sum[j % SUM_VECTORS], row[j]);
            stat[0] = simd_sum(sum) / (float)n;
            V_FOR(int j = 0; j < vectors; j++) {
                v_f32 d = v_sub(row[j], v_set(stat[0]));
                d = j < vectors - 1 ? d : v_mul(d, ones);
                square[j % SUM_VECTORS] = v_fma(d, d, square[j % SUM_VECTORS]);
            }
            stat[1] = 1.0f / sqrtf(simd_sum(square) / (float)n + eps);
        }
        v_f32 mean = v_set(stat[0]), scale = v_set(stat[1]);
        V_FOR(int j = 0; j < vectors; j++)
            row[j] = v_fma(v_mul(v_sub(row[j], mean), scale), weight[j], bias[j]);
        short_store(y, row, n, vectors);
    }
}

void SIMD_FN(norm_rows)(float *y, const float *x, const float *w, const float *b, float *stat, int given, int64_t rows,
                        int64_t n, float eps)
{
    switch ((n + V_LANES - 1) / V_LANES) {
    case 1:
        norm_short(y, x, w, b, stat, given, rows, n, eps, 1);
        break;
    case 2:
        norm_short(y, x, w, b, stat, given, rows, n, eps, 2);
        break;
    case 3:
        norm_short(y, x, w, b, stat, given, rows, n, eps, 3);
        break;
    case FEW:
        norm_short(y, x, w, b, stat, given, rows, n, eps, FEW);
        break;
    default:
        norm_long(y, x, w, b, stat, given, rows, n, eps);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

static void grad_long(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                      const float *residual, float *dw, float *db, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n, stat += 2) {
        v_f32 mean = v_set(stat[0]), scale = v_set(stat[1]), sum[SUM_VECTORS], dot[SUM_VECTORS];
        lanes_clear(sum);
        lanes_clear(dot);
        for (int64_t from = 0; from < n; from += SUM_LANES)
            V_FOR(int j = 0; j < SUM_VECTORS; j++) {
                int64_t i = from + j * V_LANES;
                if (i >= n)
                    continue;
                /* Elements beyond the row have dy = 0, so they add nothing. */
                v_f32 d = load_up_to(dy + i, n - i), hat = v_mul(v_sub(load_up_to(x + i, n - i), mean), scale);
                v_f32 g = v_mul(d, load_up_to(w + i, n - i));
                sum[j] = v_add(sum[j], g);
                dot[j] = v_fma(g, hat, dot[j]);
                store_up_to(dw + i, v_fma(d, hat, load_up_to(dw + i, n - i)), n - i);
                store_up_to(db + i, v_add(d, load_up_to(db + i, n - i)), n - i);
            }
        v_f32 mean_g = v_set(simd_sum(sum) / (float)n), mean_dot = v_set(simd_sum(dot) / (float)n);
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

V_FN void grad_short(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                     const float *residual, float *dw, float *db, int64_t rows, int64_t n, int vectors)
{
    v_f32 weight[FEW], weight_sum[FEW], bias_sum[FEW], d[FEW], hat[FEW], more[FEW];
    short_load(weight, w, n, vectors);
    short_load(weight_sum, dw, n, vectors);
    short_load(bias_sum, db, n, vectors);
    for (int64_t r = 0; r < rows; r++, x += n, dy += n, dx += n, stat += 2) {
        v_f32 mean = v_set(stat[0]), scale = v_set(stat[1]), sum[SUM_VECTORS], dot[SUM_VECTORS];
        lanes_clear(sum);
        lanes_clear(dot);
        short_load(d, dy, n, vectors);
        short_load(hat, x, n, vectors);
        V_FOR(int j = 0; j < vectors; j++) {
            hat[j] = v_mul(v_sub(hat[j], mean), scale);
            weight_sum[j] = v_fma(d[j], hat[j], weight_sum[j]);
            bias_sum[j] = v_add(d[j], bias_sum[j]);
            d[j] = v_mul(d[j], weight[j]);
            sum[j % SUM_VECTORS] = v_add(sum[j % SUM_VECTORS], d[j]);
            dot[j % SUM_VECTORS] = v_fma(d[j], hat[j], dot[j % SUM_VECTORS]);
        }
        v_f32 mean_g = v_set(simd_sum(sum) / (float)n), mean_dot = v_set(simd_sum(dot) / (float)n);
        if (residual)
            short_load(more, residual + r * n, n, vectors);
        V_FOR(int j = 0; j < vectors; j++) {
            d[j] = v_mul(scale, v_fnma(hat[j], mean_dot, v_sub(d[j], mean_g)));
            if (residual)
                d[j] = v_add(d[j], more[j]);
        }
        short_store(dx, d, n, vectors);
    }
    short_store(dw, weight_sum, n, vectors);
    short_store(db, bias_sum, n, vectors);
}

void SIMD_FN(norm_grad_rows)(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                             const float *residual, float *dw, float *db, int64_t rows, int64_t n)
{
    switch ((n + V_LANES - 1) / V_LANES) {
    case 1:
        grad_short(dx, dy, x, w, stat, residual, dw, db, rows, n, 1);
        break;
    case 2:
        grad_short(dx, dy, x, w, stat, residual, dw, db, rows, n, 2);
        break;
    case 3:
        grad_short(dx, dy, x, w, stat, residual, dw, db, rows, n, 3);
        break;
    case FEW:
        grad_short(dx, dy, x, w, stat, residual, dw, db, rows, n, FEW);
        break;
    default:
        grad_long(dx, dy, x, w, stat, residual, dw, db, rows, n);
    }
}
