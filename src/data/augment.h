/* augment.h - from a stored image to the numbers a network sees, with every random choice made by counter.
 * SPDX-License-Identifier: MIT
 *
 * Order as in timm and DeiT: crop, flip, RandAugment or colour jitter (all on bytes), to float, normalise, erase. The
 * distributions are theirs, the pixel operations are Pillow's to the bit; the draws are ours: Philox with the key
 * (seed, epoch, sample, purpose), so neither the order of workers nor a resume changes an image. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include <stdint.h>

#include "data/data.h"
#include "data/resize.h"

typedef enum augment_crop {
    CROP_EVAL,    /* short edge to image_size / crop_pct, centre crop */
    CROP_PAD,     /* as CROP_EVAL without margin, then zeros around it and a random window */
    CROP_RESIZED, /* a random part of random shape, resized: RandomResizedCrop */
    CROP_SQUASH   /* the whole image to the square, whatever its shape */
} augment_crop;

typedef struct augment_options {
    augment_crop crop;
    int image_size;               /* side of the square that comes out */
    double crop_pct;              /* of CROP_EVAL; 0: 1 for sets of square images of one size, else 0.875 */
    int pad;                      /* of CROP_PAD; 0: 4 pixels at 32, in proportion elsewhere */
    double scale_low, scale_high; /* of CROP_RESIZED; both 0: 0.08 to 1 */
    resize_filter filter;         /* of every resize and affine operation; bicubic by default */
    int filter_random;            /* bilinear or bicubic by coin instead */
    int flip;                     /* half of the images, left to right */
    double brightness, contrast, saturation, hue; /* colour jitter; not used together with RandAugment (as timm) */
    int randaugment;                              /* operations a current, 0 or 2 */
    double magnitude, magnitude_std;              /* 9 and 0.5 */
    double erase;                                 /* probability of random erasing, 0.25 in DeiT and ConvNeXt */
} augment_options;

/* The presets of --augment: none, crop-flip, deit, convnext. Sides up to 32 are padded and cropped, larger ones get a
 * random resized crop. The test split always uses "none". */
berlu_status augment_preset(augment_options *out, const char *name, int image_size);
extern const char *const augment_names[]; /* NULL-terminated */

/* The crop_pct that 0 stands for. */
double augment_crop_pct(const data_info *info, int image_size);

#endif
