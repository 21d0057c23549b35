/* levels.h - bytes of a picture to the normalised numbers a network sees. SPDX-License-Identifier: MIT
 *
 * A byte v of channel c becomes (v / 255 - mean[c]) / std[c], every operation rounded to float, as torchvision does it. */
#ifndef DATA_LEVELS_H
#define DATA_LEVELS_H

#include "data/image.h"

typedef struct levels {
    float table[3][256]; /* all there is to know */
    float mean[3], std[3], inverse[3];
    int vector; /* the vector loop may be used: this machine has it, and it gives the table's numbers */
} levels;

/* BERLU_ERR_ARG where a deviation is not positive or a number not finite. */
berlu_status levels_make(levels *out, const double mean[3], const double std[3]);

/* Three planes of floats; mirrored left to right if asked. */
void levels_apply(const levels *l, float *planes, const image *picture, int mirrored);
void levels_apply_plain(const levels *l, float *planes, const image *picture, int mirrored); /* for the test */

#endif
