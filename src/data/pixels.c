/* pixels.c - colour operations on bytes, by Pillow's arithmetic. SPDX-License-Identifier: MIT
 *
 * Most operations map each value on its own, so they are tables of 256 entries (one per channel
 * where the channel's own histogram matters). Blends are written in float as Pillow does: d + f (v
 * - d), truncated, and clipped only for factors outside of [0, 1]. Rotation and shear:
 * pixels_affine.c. */
#include "data/pixels.h"

#include <math.h>
#include <string.h>

typedef uint8_t table[256];

static size_t pixel_count(const image *i)
{
    return (size_t)i->width * (size_t)i->height;
}

static void map_all(image *i, const table t)
{
    for (size_t n = 3 * pixel_count(i), k = 0; k < n; k++)
        i->pixels[k] = t[i->pixels[k]];
}

static void map_channels(image *i, const table t[3])
{
    uint8_t *p = i->pixels;
    for (size_t n = pixel_count(i); n > 0; n--, p += 3)
        for (int c = 0; c < 3; c++)
            p[c] = t[c][p[c]];
}

static void histogram(const image *i, uint32_t h[3][256])
{
    const uint8_t *p = i->pixels;
    memset(h, 0, 3 * sizeof *h);
    for (size_t n = pixel_count(i); n > 0; n--, p += 3)
        for (int c = 0; c < 3; c++)
            h[c][p[c]]++;
}

static uint8_t clip(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void pixels_flip(image *i)
{
    for (int y = 0; y < i->height; y++) {
        uint8_t *a = i->pixels + (size_t)y * (size_t)i->width * 3, *b = a + ((size_t)i->width - 1) * 3;
        for (; a < b; a += 3, b -= 3)
            for (int c = 0; c < 3; c++) {
                uint8_t kept = a[c];
                a[c] = b[c];
                b[c] = kept;
            }
    }
}

void pixels_autocontrast(image *i)
{
    uint32_t h[3][256];
    table t[3];
    histogram(i, h);
    for (int c = 0; c < 3; c++) {
        int low = 0, high = 255;
        while (low < 255 && !h[c][low])
            low++;
        while (high > 0 && !h[c][high])
            high--;
        double scale = high > low ? 255.0 / (high - low) : 1, offset = high > low ? -low * scale : 0;
        for (int v = 0; v < 256; v++)
            t[c][v] = clip((int)(v * scale + offset));
    }
    map_channels(i, (const table *)t);
}

static void equalize_table(table t, const uint32_t h[256])
{
    uint32_t sum = 0, used = 0, last = 0, step;
    for (int v = 0; v < 256; v++)
        if (h[v]) {
            sum += h[v];
            used++;
            last = h[v];
        }
    step = (sum - last) / 255;
    uint32_t n = step / 2;
    for (int v = 0; v < 256; v++) {
        t[v] = used <= 1 || step == 0 ? (uint8_t)v : (uint8_t)(n / step < 255 ? n / step : 255);
        n += h[v];
    }
}

void pixels_equalize(image *i)
{
    uint32_t h[3][256];
    table t[3];
    histogram(i, h);
    for (int c = 0; c < 3; c++)
        equalize_table(t[c], h[c]);
    map_channels(i, (const table *)t);
}

void pixels_invert(image *i)
{
    for (size_t n = 3 * pixel_count(i), k = 0; k < n; k++)
        i->pixels[k] = (uint8_t)(255 - i->pixels[k]);
}

void pixels_posterize(image *i, int bits)
{
    unsigned mask = bits >= 8 ? 255u : 255u & ~((1u << (8 - bits)) - 1);
    for (size_t n = 3 * pixel_count(i), k = 0; k < n; k++)
        i->pixels[k] &= (uint8_t)mask;
}

void pixels_solarize(image *i, int from)
{
    table t;
    for (int v = 0; v < 256; v++)
        t[v] = (uint8_t)(v < from ? v : 255 - v);
    map_all(i, t);
}

void pixels_solarize_add(image *i, int add)
{
    table t;
    for (int v = 0; v < 256; v++)
        t[v] = v < 128 ? clip(v + add) : (uint8_t)v;
    map_all(i, t);
}

/* Pillow's blend of one value. Inside [0, 1] the result cannot leave the range of bytes. */
static uint8_t blend(int degenerate, int value, float factor)
{
    float mixed = (float)degenerate + factor * (float)(value - degenerate);
    return mixed <= 0 ? 0 : mixed >= 255 ? 255 : (uint8_t)mixed;
}

static void blend_constant(image *i, int degenerate, float factor)
{
    table t;
    for (int v = 0; v < 256; v++)
        t[v] = blend(degenerate, v, factor);
    map_all(i, t);
}

static int grey(const uint8_t *p)
{
    return (int)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
}

void pixels_brightness(image *i, float factor)
{
    blend_constant(i, 0, factor);
}

void pixels_contrast(image *i, float factor)
{
    uint64_t sum = 0;
    const uint8_t *p = i->pixels;
    for (size_t n = pixel_count(i); n > 0; n--, p += 3)
        sum += (uint64_t)grey(p);
    blend_constant(i, (int)((double)sum / (double)pixel_count(i) + 0.5), factor);
}

void pixels_saturation(image *i, float factor)
{
    uint8_t *p = i->pixels;
    for (size_t n = pixel_count(i); n > 0; n--, p += 3) {
        int l = grey(p);
        for (int c = 0; c < 3; c++)
            p[c] = blend(l, p[c], factor);
    }
}

/* Pillow's SMOOTH: the middle counts five, its eight neighbours one each; the border is kept. */
static void smooth(uint8_t *out, const image *i)
{
    size_t row = (size_t)i->width * 3;
    memcpy(out, i->pixels, row * (size_t)i->height);
    for (int y = 1; y + 1 < i->height; y++) {
        const uint8_t *m = i->pixels + (size_t)y * row, *u = m - row, *d = m + row;
        for (size_t x = 3; x + 3 < row; x++) {
            int sum = u[x - 3] + u[x] + u[x + 3] + m[x - 3] + 5 * m[x] + m[x + 3] + d[x - 3] + d[x] + d[x + 3];
            out[(size_t)y * row + x] = (uint8_t)((2 * sum + 13) / 26);
        }
    }
}

berlu_status pixels_sharpness(image *i, float factor, image *spare)
{
    TRY(image_reserve(spare, i->width, i->height));
    smooth(spare->pixels, i);
    for (size_t n = 3 * pixel_count(i), k = 0; k < n; k++)
        i->pixels[k] = blend(spare->pixels[k], i->pixels[k], factor);
    return BERLU_OK;
}

/* The mix of float and double below is Pillow's own; another would differ by one level here and
 * there. */
static void to_hsv(uint8_t hsv[3], const uint8_t *p)
{
    int r = p[0], g = p[1], b = p[2];
    int high = r > g ? r : g, low = r < g ? r : g;
    high = b > high ? b : high;
    low = b < low ? b : low;
    hsv[0] = hsv[1] = 0;
    hsv[2] = (uint8_t)high;
    if (high == low)
        return;
    float range = (float)(high - low), s = range / (float)high, h;
    float rc = (float)(high - r) / range, gc = (float)(high - g) / range, bc = (float)(high - b) / range;
    if (r == high)
        h = bc - gc;
    else if (g == high)
        h = (float)(2.0 + rc - bc);
    else
        h = (float)(4.0 + gc - rc);
    h = (float)fmod(h / 6.0 + 1.0, 1.0);
    hsv[0] = clip((int)(h * 255.0));
    hsv[1] = clip((int)(s * 255.0));
}

static void from_hsv(uint8_t *p, const uint8_t hsv[3])
{
    int v = hsv[2];
    if (hsv[1] == 0) {
        p[0] = p[1] = p[2] = (uint8_t)v;
        return;
    }
    int sector = (int)floor((float)hsv[0] * 6.0 / 255.0);
    float f = (float)((float)hsv[0] * 6.0 / 255.0 - (float)sector), fs = (float)((float)hsv[1] / 255.0);
    uint8_t a = clip((int)round((float)v * (1.0 - fs))), q = clip((int)round((float)v * (1.0 - fs * f)));
    uint8_t t = clip((int)round((float)v * (1.0 - fs * (1.0 - f)))), u = (uint8_t)v;
    const uint8_t rgb[6][3] = {{u, t, a}, {q, u, a}, {a, u, t}, {a, q, u}, {t, a, u}, {u, a, q}};
    memcpy(p, rgb[sector % 6], 3);
}

void pixels_hue(image *i, double turn)
{
    uint8_t shift = (uint8_t)(int)(turn * 255);
    uint8_t *p = i->pixels, hsv[3];
    for (size_t n = pixel_count(i); n > 0; n--, p += 3) {
        to_hsv(hsv, p);
        hsv[0] = (uint8_t)(hsv[0] + shift);
        from_hsv(p, hsv);
    }
}
