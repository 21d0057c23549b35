/* pixels.h - operations on the bytes of an image, each equal to Pillow's to the bit.
 * SPDX-License-Identifier: MIT
 *
 * All operate in place unless noted. None is random: augment.c makes the draws. */
#ifndef DATA_PIXELS_H
#define DATA_PIXELS_H

#include "data/image.h"
#include "data/resize.h"

void pixels_flip(image *i); /* left to right */
void pixels_autocontrast(image *i);
void pixels_equalize(image *i);
void pixels_invert(image *i);
void pixels_posterize(image *i, int bits);   /* keep the top bits, 0 to 8; 0 gives black */
void pixels_solarize(image *i, int from);    /* values at or above `from` are inverted */
void pixels_solarize_add(image *i, int add); /* values below 128 grow by add */

/* Blends of the image with a degenerate one: 0 gives that one, 1 the image, beyond 1 the opposite
 * of it. */
void pixels_brightness(image *i, float factor);                      /* with black */
void pixels_contrast(image *i, float factor);                        /* with its mean grey */
void pixels_saturation(image *i, float factor);                      /* with its grey image */
berlu_status pixels_sharpness(image *i, float factor, image *spare); /* with a smoothed one */

void pixels_hue(image *i, double turn); /* by `turn` of the circle, -0.5 to 0.5 */

/* out(x, y) = in at (a x + b y + c, d x + e y + f), pixel centres at .5; outside of `in` the fill
 * colour. */
typedef struct affine {
    double a, b, c, d, e, f;
} affine;
affine affine_rotation(double degrees, int width, int height); /* counter-clockwise about the middle */
berlu_status pixels_affine(image *out, const image *in, affine m, resize_filter filter, const uint8_t fill[3]);

#endif
