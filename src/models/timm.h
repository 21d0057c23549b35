/* timm.h - timm's names for the models here. SPDX-License-Identifier: MIT */
#ifndef MODELS_TIMM_H
#define MODELS_TIMM_H

/* timm's constructor that makes the model of this name, NULL where timm has none (the micro models
 * and the presets for 32 x 32 images, which timm makes by options). */
const char *timm_name(const char *model);

/* The name used here for one of timm's ("vit_tiny_patch16_224", also with a tag,
 * "vit_tiny_patch16_224.augreg_in21k"); any other name comes back as it is. */
const char *model_canonical(const char *name);

#endif
