/* pixels_affine.c - rotation, shear and translation of an image, by Pillow's arithmetic.
 * SPDX-License-Identifier: MIT
 *
 * Each output pixel maps to a point of the input; the value there is interpolated between two
 * (bilinear) or four (bicubic) neighbours a direction, clamped at the edge, in double, and
 * truncated. Note the bicubic: here it is the sharper one with a = -1, unlike the a = -0.5 of
 * resizing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/pixels.h"

/* Pillow rounds the sine and cosine to 15 decimals; where a value falls on a pixel's edge that
 * decides. */
static double decimals_15(double v)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.15f", v);
    return strtod(digits, NULL);
}

affine affine_rotation(double degrees, int width, int height)
{
    const double pi = 3.14159265358979323846;
    double turn = fmod(degrees, 360), w = width / 2.0, h = height / 2.0;
    double r = -((turn < 0 ? turn + 360 : turn) * (pi / 180));
    double c = decimals_15(cos(r)), s = decimals_15(sin(r));
    return (affine){c, s, c * -w + s * -h + w, -s, c, -s * -w + c * -h + h};
}

static int clamp(int v, int size)
{
    return v < 0 ? 0 : v < size ? v : size - 1;
}

/* The neighbours of a point: columns as byte offsets, rows as pointers. */
typedef struct neighbours {
    const uint8_t *rows[4];
    size_t columns[4];
    double dx, dy;
} neighbours;

static void find(neighbours *n, const image *in, double x, double y, int count)
{
    int left = (int)floor(x), top = (int)floor(y), before = count / 2 - 1;
    n->dx = x - left;
    n->dy = y - top;
    for (int k = 0; k < count; k++) {
        n->columns[k] = (size_t)clamp(left - before + k, in->width) * 3;
        n->rows[k] = in->pixels + (size_t)clamp(top - before + k, in->height) * (size_t)in->width * 3;
    }
}

static double linear(double a, double b, double d)
{
    return a + (b - a) * d;
}

static double cubic(double v1, double v2, double v3, double v4, double d)
{
    double p1 = v2, p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
    return p1 + d * (p2 + d * (p3 + d * p4));
}

static uint8_t value_linear(const neighbours *n, int c)
{
    double row[2];
    for (int k = 0; k < 2; k++)
        row[k] = linear(n->rows[k][n->columns[0] + (size_t)c], n->rows[k][n->columns[1] + (size_t)c], n->dx);
    return (uint8_t)linear(row[0], row[1], n->dy);
}

static uint8_t value_cubic(const neighbours *n, int c)
{
    double row[4];
    for (int k = 0; k < 4; k++) {
        const uint8_t *p = n->rows[k] + c;
        row[k] = cubic(p[n->columns[0]], p[n->columns[1]], p[n->columns[2]], p[n->columns[3]], n->dx);
    }
    double v = cubic(row[0], row[1], row[2], row[3], n->dy);
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

berlu_status pixels_affine(image *out, const image *in, affine m, resize_filter filter, const uint8_t fill[3])
{
    TRY(image_reserve(out, in->width, in->height));
    uint8_t *p = out->pixels;
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++, p += 3) {
            double at_x = m.a * (x + 0.5) + m.b * (y + 0.5) + m.c, at_y = m.d * (x + 0.5) + m.e * (y + 0.5) + m.f;
            neighbours n;
            int inside = at_x >= 0 && at_x < in->width && at_y >= 0 && at_y < in->height;
            if (inside)
                find(&n, in, at_x - 0.5, at_y - 0.5, filter == RESIZE_BICUBIC ? 4 : 2);
            for (int c = 0; c < 3; c++)
                p[c] = !inside ? fill[c] : filter == RESIZE_BICUBIC ? value_cubic(&n, c) : value_linear(&n, c);
        }
    return BERLU_OK;
}
