/* image_options.c - from settings to the loader's augmentation, evaluation crop, mean and
 * deviation. SPDX-License-Identifier: MIT
 *
 * A setting without effect at this image size or with this augmentation is found by
 * image_options_idle(). normalization_find() takes published values of known sets and measures
 * others. */
#include "train/image_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { SQUASH_SIDE = 384 }; /* from this side on ConvNeXt's script evaluates without a crop */

berlu_status image_options_train(augment_options *out, const train_settings *s, int side)
{
    berlu_status status = augment_preset(out, augment_names[s->augment], side);
    out->brightness = out->contrast = out->saturation = s->jitter;
    out->hue = s->hue;
    out->filter = s->interpolation == RECIPE_BILINEAR ? RESIZE_BILINEAR : RESIZE_BICUBIC;
    out->filter_random = s->interpolation == RECIPE_RANDOM;
    return status;
}

int image_options_squashed(const train_settings *s, int side)
{
    int large_convnext = strcmp(s->recipe, "convnext") == 0 && side >= SQUASH_SIDE;
    return s->eval_crop == RECIPE_CROP_SQUASH || (s->eval_crop == RECIPE_CROP_AUTO && large_convnext);
}

int image_options_resized(const train_settings *s, const data_info *info, int side, int64_t augment)
{
    int crops = augment > 1 || (augment == 1 && side > 32); /* random-sized crops in training */
    int whole = s->crop_pct == 0 || s->crop_pct == 1 || image_options_squashed(s, side);
    return info->width != side || info->height != side || !whole || crops;
}

berlu_status image_options_idle(const train_settings *s, const data_info *info, int side, int64_t augment)
{
    if (recipe_given(s, "interpolation") && !image_options_resized(s, info, side, augment))
        return berlu_fail(BERLU_ERR_ARG,
                          "interpolation: has no effect because nothing is resized: the images of %s "
                          "have the network's size; leave it out",
                          s->data);
    if (recipe_given(s, "crop_pct") && image_options_squashed(s, side))
        return berlu_fail(BERLU_ERR_ARG, "crop_pct: has no effect because whole images are evaluated; give "
                                         "--eval-crop center or leave it out");
    return BERLU_OK;
}

berlu_status image_options_eval(augment_options *out, const train_settings *s, int side)
{
    berlu_status status = augment_preset(out, "none", side);
    out->crop_pct = s->crop_pct;
    out->filter = s->interpolation == RECIPE_BILINEAR ? RESIZE_BILINEAR : RESIZE_BICUBIC;
    if (image_options_squashed(s, side))
        out->crop = CROP_SQUASH;
    return status;
}

static berlu_status channels_parse(double out[3], const char *key, const char *list, double least)
{
    const char *at = list;
    for (int c = 0; c < 3; c++) {
        char number[NUMBER_TEXT];
        size_t length = strcspn(at, ",");
        int last = at[length] == 0;
        snprintf(number, sizeof number, "%.*s", (int)length, at);
        if (length >= sizeof number || last != (c == 2) || !number_parse(number, &out[c]) ||
            !(out[c] >= least && out[c] <= 1))
            return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is not R,G,B with numbers from %g to 1", key, list, least);
        at += length + !last;
    }
    return BERLU_OK;
}

const char *channels_text(char out[CHANNELS_TEXT], const double channels[3])
{
    char digits[3][NUMBER_TEXT];
    for (int c = 0; c < 3; c++)
        number_text(digits[c], channels[c]);
    snprintf(out, CHANNELS_TEXT, "%s,%s,%s", digits[0], digits[1], digits[2]);
    return out;
}

static double four_digits(double x)
{
    return rint(x * 1e4) / 1e4;
}

static berlu_status normalization_measure(normalization *out, const train_settings *s, data_source *data)
{
    data_statistics found;
    TRY(data_measure(data, DATA_TRAIN, IMAGES_MEASURED, (size_t)s->holdout, (int)s->workers, &found));
    for (int c = 0; c < 3; c++) {
        out->mean[c] = four_digits(found.mean[c]);
        out->std[c] = four_digits(found.std[c]);
        if (!(out->std[c] > 0))
            return berlu_fail(BERLU_ERR_INPUT,
                              "normalize: channel %d of %s has one value everywhere; give --mean and --std", c,
                              s->data);
    }
    return BERLU_OK;
}

berlu_status normalization_find(normalization *out, const train_settings *s, data_source *data)
{
    static const normalization imagenet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    const data_info *info = data_describe(data);
    if (*s->mean) {
        TRY(channels_parse(out->mean, "mean", s->mean, 0));
        return channels_parse(out->std, "std", s->std, 1e-4);
    }
    if (s->normalize == RECIPE_OWN && !info->published)
        return normalization_measure(out, s, data);
    *out = imagenet;
    if (s->normalize != RECIPE_IMAGENET && info->published) {
        memcpy(out->mean, info->mean, sizeof out->mean);
        memcpy(out->std, info->std, sizeof out->std);
    }
    return BERLU_OK;
}
