/* simd_depthwise.c - depthwise convolution, one vector of channels at a time.
 * SPDX-License-Identifier: MIT
 *
 * The channels of one image are copied into a map with a border of zeros, [y][x][lane]: then there
 * are no edges, every load is aligned, and the map (38 x 38 x 16 floats for 32 x 32) stays in L2.
 * Outputs are computed eight at a time, so that a weight is loaded once for eight products and an
 * input once for up to seven. */
#include "cpu/simd_internal.h"

enum { STRIP = 8, KERNEL_MAX = 7 };

/* Copies V_LANES channels of [H, W, C] inside a border of `half` zeros. */
static void border_copy(float *map, const float *x, const simd_map *m, int64_t channel, int64_t half)
{
    int64_t across = m->width + 2 * half, left = m->channels - channel;
    for (int64_t y = 0; y < m->height + 2 * half; y++)
        for (int64_t i = 0; i < across; i++) {
            int64_t sy = y - half, sx = i - half;
            int inside = sy >= 0 && sy < m->height && sx >= 0 && sx < m->width;
            v_store(map + (y * across + i) * V_LANES,
                    inside ? load_up_to(x + (sy * m->width + sx) * m->channels + channel, left) : v_zero());
        }
}

/* weights[ky][kx][lane] from (C, 1, k, k) */
static void weights_copy(float *to, const float *w, const simd_map *m, int64_t channel, int mirror)
{
    int64_t taps = m->kernel * m->kernel;
    for (int64_t i = 0; i < taps; i++)
        for (int64_t lane = 0; lane < V_LANES; lane++)
            to[(mirror ? taps - 1 - i : i) * V_LANES + lane] =
                channel + lane < m->channels ? w[(channel + lane) * taps + i] : 0.0f;
}

/* `count` <= STRIP outputs side by side, the first window beginning at `from` */
V_FN void strip(v_f32 *sum, const float *from, const float *w, int64_t across, int64_t kernel, int count)
{
    for (int64_t ky = 0; ky < kernel; ky++)
        for (int64_t kx = 0; kx < kernel; kx++) {
            v_f32 weight = v_load(w + (ky * kernel + kx) * V_LANES);
            V_FOR(int i = 0; i < count; i++)
                sum[i] = v_fma(weight, v_load(from + (ky * across + kx + i) * V_LANES), sum[i]);
        }
}

void SIMD_FN(depthwise)(const simd_map *m, int64_t channel, float *y, const float *x, const float *w, const float *bias,
                        const float *residual, int mirror, float *work)
{
    int64_t half = m->kernel / 2, across = m->width + 2 * half, left = m->channels - channel;
    float *weights = work, *map = work + m->kernel * m->kernel * V_LANES;
    weights_copy(weights, w, m, channel, mirror);
    border_copy(map, x, m, channel, half);
    v_f32 start = bias ? load_up_to(bias + channel, left) : v_zero();
    for (int64_t row = 0; row < m->height; row++)
        for (int64_t column = 0; column < m->width; column += STRIP) {
            v_f32 sum[STRIP];
            for (int i = 0; i < STRIP; i++)
                sum[i] = start;
            const float *from = map + (row * across + column) * V_LANES;
            int64_t count = m->width - column < STRIP ? m->width - column : STRIP;
            if (count == STRIP && m->kernel == KERNEL_MAX)
                strip(sum, from, weights, across, KERNEL_MAX, STRIP);
            else
                for (int i = 0; i < count; i++)
                    strip(sum + i, from + i * V_LANES, weights, across, m->kernel, 1);
            for (int64_t i = 0; i < count; i++) {
                int64_t at = (row * m->width + column + i) * m->channels + channel;
                v_f32 all = residual ? v_add(sum[i], load_up_to(residual + at, left)) : sum[i];
                store_up_to(y + at, all, left);
            }
        }
}

/* dw[ky][kx] = sum over the pixels of dy times x moved by (ky, kx); one row of taps at a time in
 * registers. */
void SIMD_FN(depthwise_dw)(const simd_map *m, int64_t channel, float *dw, float *db, const float *dy, const float *x,
                           float *work)
{
    int64_t half = m->kernel / 2, across = m->width + 2 * half, taps = m->kernel * m->kernel;
    int64_t pixels = m->height * m->width, left = m->channels - channel;
    float *map = work, *gradient = work + (m->height + 2 * half) * across * V_LANES;
    border_copy(map, x, m, channel, half);
    border_copy(gradient, dy, m, channel, 0);
    v_f32 bias = v_zero();
    for (int64_t i = 0; i < pixels; i++)
        bias = v_add(bias, v_load(gradient + i * V_LANES));
    store_up_to(db + channel, bias, left);
    for (int64_t ky = 0; ky < m->kernel; ky++)
        for (int64_t first = 0; first < m->kernel; first += KERNEL_MAX) {
            v_f32 sum[KERNEL_MAX];
            int64_t count = m->kernel - first < KERNEL_MAX ? m->kernel - first : KERNEL_MAX;
            for (int i = 0; i < KERNEL_MAX; i++)
                sum[i] = v_zero();
            for (int64_t row = 0; row < m->height; row++)
                for (int64_t column = 0; column < m->width; column++) {
                    v_f32 d = v_load(gradient + (row * m->width + column) * V_LANES);
                    const float *from = map + ((row + ky) * across + column + first) * V_LANES;
                    if (count == KERNEL_MAX)
                        V_FOR(int i = 0; i < KERNEL_MAX; i++)
                            sum[i] = v_fma(d, v_load(from + i * V_LANES), sum[i]);
                    else
                        for (int64_t i = 0; i < count; i++)
                            sum[i] = v_fma(d, v_load(from + i * V_LANES), sum[i]);
                }
            for (int64_t i = 0; i < count; i++)
                for (int64_t lane = 0; lane < V_LANES && lane < left; lane++) {
                    float part[V_LANES];
                    v_store(part, sum[i]);
                    dw[(channel + lane) * taps + ky * m->kernel + first + i] = part[lane];
                }
        }
}
