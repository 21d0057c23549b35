/* levels.h - normalises the bytes of an image to the floats of the network's input.
 * SPDX-License-Identifier: MIT
 *
 * A byte v of channel c becomes (v / 255 - mean[c]) / std[c], every operation rounded to float, as
 * torchvision does it. */
#ifndef DATA_LEVELS_H
#define DATA_LEVELS_H

#include "data/image.h"

typedef struct levels {
    float table[3][256]; /* value of every byte and channel */
    float mean[3], std[3], inverse[3];
    int vector; /* the CPU has the vector loop, and it gives the table's values */
} levels;

/* BERLU_ERR_ARG where a deviation is not positive or a number not finite. */
berlu_status levels_make(levels *out, const double mean[3], const double std[3]);

/* Three planes of floats; mirrored left to right if asked. */
void levels_apply(const levels *l, float *planes, const image *in, int mirrored);
void levels_apply_plain(const levels *l, float *planes, const image *in, int mirrored); /* for the test */

#endif
