/* shape.h - the fixed form of an activation, besides its real parameters.
 * SPDX-License-Identifier: MIT
 *
 * Never per channel, never learned. Plain C without pointers into the library, so that a formula on
 * CUDA takes it too. */
#ifndef ACT_FORMULAS_SHAPE_H
#define ACT_FORMULAS_SHAPE_H

#include <stddef.h>

typedef struct act_shape {
    int degree;           /* of a smoothed function; 0 for the others. BerLU: 2 to 16, even */
    size_t count;         /* length of numbers; their meaning is the formula's own (kinks, slopes, ...) */
    const float *numbers; /* owned by the activation */
    const void *exact;    /* the same in double for the reference (a berlu_smooth), or NULL; kernels never read it */
} act_shape;

#endif
