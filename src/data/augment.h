/* augment.h - augmentation and normalisation of a stored image, with counter-based randomness.
 * SPDX-License-Identifier: MIT
 *
 * The order is that of timm and DeiT: crop, flip, RandAugment or colour jitter (all on bytes), then
 * conversion to float, normalisation, erasing. The distributions are theirs, and pixel operations
 * equal Pillow's to the bit; the draws come from Philox with the key (seed, epoch, sample,
 * purpose), so neither the order of workers nor a resume changes an image. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include <stdint.h>

#include "data/data.h"
#include "data/resize.h"

typedef enum augment_crop {
    CROP_EVAL,    /* short edge to image_size / crop_pct, centre crop */
    CROP_PAD,     /* as CROP_EVAL with crop_pct 1, then zero padding and a random window */
    CROP_RESIZED, /* RandomResizedCrop */
    CROP_SQUASH   /* resized to the square without a crop */
} augment_crop;

typedef struct augment_options {
    augment_crop crop;
    int image_size;               /* side of the resulting square */
    double crop_pct;              /* of CROP_EVAL; 0: 1 for sets of square images of one size, else 0.875 */
    int pad;                      /* of CROP_PAD; 0: 4 pixels at 32, in proportion elsewhere */
    double scale_low, scale_high; /* of CROP_RESIZED; both 0: 0.08 to 1 */
    resize_filter filter;         /* of every resize and affine operation; bicubic by default */
    int filter_random;            /* choose bilinear or bicubic at random instead */
    int flip;                     /* mirror half of the images horizontally */
    double brightness, contrast, saturation, hue; /* colour jitter; not used together with RandAugment (as timm) */
    int randaugment;                              /* operations per image, 0 or 2 */
    double magnitude, magnitude_std;              /* 9 and 0.5 */
    double erase;                                 /* probability of random erasing, 0.25 in DeiT and ConvNeXt */
} augment_options;

/* The presets of --augment: none, crop-flip, deit, convnext. Sides up to 32 are padded and cropped,
 * larger ones get a random resized crop. The test split always uses "none". */
berlu_status augment_preset(augment_options *out, const char *name, int image_size);
extern const char *const augment_names[]; /* NULL-terminated */

/* The default of crop_pct. */
double augment_crop_pct(const data_info *info, int image_size);

#endif
