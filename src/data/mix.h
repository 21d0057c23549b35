/* mix.h - mixup and cutmix over a batch, and the soft targets that go with them.
 * SPDX-License-Identifier: MIT
 *
 * As timm's Mixup in mode "batch": within a group of rows, row i is mixed with row n-1-i (the group
 * reversed), with one draw for all. Targets are smoothed here, since with mixing the smoothing is
 * part of the targets. */
#ifndef DATA_MIX_H
#define DATA_MIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/image_draw.h"

typedef struct mix_options {
    double mixup, cutmix;    /* the alphas of Beta(a, a); 0 switches that one off */
    double probability;      /* of mixing a group at all: 1 mixes every one, 0 none */
    double switch_to_cutmix; /* share of cutmix when both are on: 0 mixup only, 1 cutmix only */
    double smoothing;        /* label smoothing inside the soft targets */
    size_t group; /* rows that share a draw, even, divides the rows; 0: 256 where it divides them, else all rows */
} mix_options;

static inline int mix_is_on(const mix_options *m)
{
    return m->mixup > 0 || m->cutmix > 0;
}

/* The default group. */
static inline size_t mix_group_for(size_t rows)
{
    return rows % 256 == 0 ? 256 : rows;
}

/* One draw: the mixing of a group. lam is already corrected for the clipped box of a cutmix. */
typedef struct mix_draw {
    int cut;
    double lam;
    int top, left, bottom, right; /* of the box of a cutmix */
} mix_draw;
mix_draw mix_draw_for(const mix_options *m, uint64_t seed, uint32_t epoch, uint64_t group, int height, int width);

/* Mixes `rows` images of channels x height x width floats (NCHW) in place by one draw. */
void mix_images(const mix_draw *d, float *images, size_t rows, int channels, int height, int width);

/* targets[rows][classes] by the same draw from the labels of the rows. */
void mix_targets(const mix_draw *d, double smoothing, const int32_t *labels, float *targets, size_t rows,
                 size_t classes);

/* The same of the draws of a batch: `rows` of them from `first` on, whose labels are set, learn
 * whom they are mixed with. */
void mix_draws(const mix_draw *d, double smoothing, image_draw *batch, size_t first, size_t rows, size_t classes);

#endif
