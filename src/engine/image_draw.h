/* image_draw.h - the random choices for one image of a batch, as plain data, and the pixel values
 * they give. SPDX-License-Identifier: MIT
 *
 * A device that holds a data set as bytes (image_set.h) makes a batch from one image_draw per row:
 * which image, its window, flip, erased box, and the partner it is mixed with. data/loader.h draws
 * them by the same counters as the pixels the CPU's loader makes, and image_value() repeats that
 * loader's arithmetic operation by operation, so both give the same bits. The kernel of every
 * backend is a loop around image_value(): cpu/ref_images.c, cuda/images.cu.
 *
 * Everything here compiles as CUDA too; contraction is off, as everywhere. */
#ifndef ENGINE_IMAGE_DRAW_H
#define ENGINE_IMAGE_DRAW_H

#include <stdint.h>

#include "base/philox.h"
#include "simd/normal.h"

enum { IMAGE_LEVELS = 3 * 256 }; /* numbers that bytes become: per channel, per byte */

typedef enum image_mix { IMAGE_ALONE, IMAGE_BLENDED, IMAGE_CUT } image_mix;

typedef struct image_box {
    int16_t top, left, bottom, right; /* bottom and right are exclusive */
} image_box;

typedef struct image_draw {
    uint64_t seed, sample; /* with the epoch: the counter of the noise in an erased box */
    uint32_t epoch;
    uint32_t erase_words;      /* words of that counter's row consumed by the box itself */
    int32_t index;             /* of the image in the set; -1: this row holds none and is zero */
    int32_t label;             /* 0 where the row holds none */
    int32_t partner;           /* the row it is mixed with */
    float share, rest;         /* of a blended row: its own share, the partner's */
    float target, other, base; /* with soft targets: of its class, of the partner's, of every other */
    image_box erased, cut;     /* cut: the box copied from the partner */
    int16_t left, top;         /* the window's corner on the stored image, zero outside */
    uint8_t flip, mix;         /* mix: image_mix */
} image_draw;

typedef struct image_pixels {
    const uint8_t *bytes; /* [images][side][side][3] */
    const float *levels;  /* [3][256] */
    int side;
} image_pixels;

PHILOX_FN int image_inside(const image_box *b, int y, int x)
{
    return y >= b->top && y < b->bottom && x >= b->left && x < b->right;
}

/* Noise of an erased box: numbers run along its rows, then down, then over the channels; each takes
 * one word of the row of draws, whose blocks are handed out from their last word (data/draws.h). */
PHILOX_FN float image_noise(const image_draw *d, int channel, int y, int x)
{
    uint32_t wide = (uint32_t)(d->erased.right - d->erased.left), high = (uint32_t)(d->erased.bottom - d->erased.top);
    uint32_t place = ((uint32_t)channel * high + (uint32_t)(y - d->erased.top)) * wide + (uint32_t)(x - d->erased.left);
    uint32_t word = d->erase_words + place;
    return (float)normal_of_word(philox_draw(d->seed, PURPOSE_ERASE, d->epoch, d->sample, word / 4).w[3 - word % 4]);
}

/* One number of the stored image, flipped and moved. */
PHILOX_FN float image_stored(const image_pixels *p, const image_draw *d, int channel, int y, int x)
{
    int from_x = (d->flip ? p->side - 1 - x : x) + d->left, from_y = y + d->top, byte = 0;
    if (from_x >= 0 && from_x < p->side && from_y >= 0 && from_y < p->side)
        byte = p->bytes[(((int64_t)d->index * p->side + from_y) * p->side + from_x) * 3 + channel];
    return p->levels[channel * 256 + byte];
}

/* One number of a row before it is mixed. */
PHILOX_FN float image_own(const image_pixels *p, const image_draw *d, int channel, int y, int x)
{
    if (d->index < 0)
        return 0;
    if (image_inside(&d->erased, y, x))
        return image_noise(d, channel, y, x);
    return image_stored(p, d, channel, y, x);
}

/* One number of row `row` as the network sees it; `batch` has the draws of all its rows. */
PHILOX_FN float image_value(const image_pixels *p, const image_draw *batch, int64_t row, int channel, int y, int x)
{
    const image_draw *d = &batch[row];
    if (d->mix == IMAGE_CUT && image_inside(&d->cut, y, x))
        return image_own(p, &batch[d->partner], channel, y, x);
    float own = image_own(p, d, channel, y, x);
    if (d->mix != IMAGE_BLENDED)
        return own;
    return d->share * own + d->rest * image_own(p, &batch[d->partner], channel, y, x);
}

/* The target of class `k` of a row. */
PHILOX_FN float image_target(const image_draw *batch, int64_t row, int64_t k)
{
    const image_draw *d = &batch[row];
    return k == d->label ? d->target : k == batch[d->partner].label ? d->other : d->base;
}

#endif
