/* image_options.h - image preparation from settings: training, evaluation and normalization.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_IMAGE_OPTIONS_H
#define TRAIN_IMAGE_OPTIONS_H

#include "data/loader.h"
#include "train/recipe.h"

/* For training --augment with jitter and interpolation; for evaluation the crop of --eval-crop. */
berlu_status image_options_train(augment_options *out, const train_settings *s, int side);
berlu_status image_options_eval(augment_options *out, const train_settings *s, int side);

/* Refuses settings without effect on these images: an interpolation where none is resized, a crop
 * where nothing is cropped. `augment` is that of training, 0 where only evaluation matters. */
berlu_status image_options_idle(const train_settings *s, const data_info *info, int side, int64_t augment);

/* Mean and standard deviation: --mean and --std, else ImageNet's, else the set's own. Where none
 * are published, `own` measures them over IMAGES_MEASURED training images, held-out ones excepted,
 * rounded to four digits, and `customary` uses ImageNet's. */
enum { IMAGES_MEASURED = 2048 };
typedef struct normalization {
    double mean[3], std[3];
} normalization;
berlu_status normalization_find(normalization *out, const train_settings *s, data_source *data);

/* "R,G,B" with enough digits for normalization_find() to read back the same bits. */
enum { CHANNELS_TEXT = 3 * NUMBER_TEXT };
const char *channels_text(char out[CHANNELS_TEXT], const double channels[3]);

/* Whether evaluation resizes images to a square without a crop; whether any image is resized. */
int image_options_squashed(const train_settings *s, int side);
int image_options_resized(const train_settings *s, const data_info *info, int side, int64_t augment);

#endif
