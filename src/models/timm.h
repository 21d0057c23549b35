/* timm.h - timm's names for the models here. SPDX-License-Identifier: MIT */
#ifndef MODELS_TIMM_H
#define MODELS_TIMM_H

#include "base/text.h"
#include "models/models.h"

/* timm's constructor that makes the model of this name, NULL where timm has none (the micro models
 * and the presets for 32 x 32 images, which timm makes by options). */
const char *timm_name(const char *name);

/* The name used here for one of timm's ("vit_tiny_patch16_224", also with a tag,
 * "vit_tiny_patch16_224.augreg_in21k"); any other name comes back as it is. */
const char *model_canonical(const char *name);

/* How images are prepared for a model. */
typedef struct timm_images {
    const char *mean, *std;    /* three numbers each with commas between */
    const char *filter, *mode; /* of timm: "bicubic", "bilinear"; "center", "squash" */
    double crop_pct;           /* 0: 1 */
} timm_images;

/* The config.json with which timm.create_model("local-dir:DIR", pretrained=True) makes this model.
 * BERLU_ERR_UNSUPPORTED where timm's constructor cannot: its TNT takes no activation, a constructor
 * takes one for all sites, and the width of learned parameters is not known to it. */
berlu_status timm_config(text *out, const model *m, const timm_images *images);

#endif
