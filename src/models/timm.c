/* timm.c - see timm.h. SPDX-License-Identifier: MIT
 *
 * ConvNeXt has the same names in both. tests/models/test_models.c checks that every model that timm
 * can make by name alone has a row here. */
#include "models/timm.h"

#include <string.h>

#include "base/status.h"

static const struct {
    const char *name, *timm;
} pairs[] = {
    {"vit_tiny", "vit_tiny_patch16_224"},
    {"vit_small", "vit_small_patch16_224"},
    {"vit_base", "vit_base_patch16_224"},
    {"deit_tiny", "deit_tiny_patch16_224"},
    {"deit_small", "deit_small_patch16_224"},
    {"deit_tiny_distilled", "deit_tiny_distilled_patch16_224"},
    {"deit_small_distilled", "deit_small_distilled_patch16_224"},
    {"tnt_s", "tnt_s_patch16_224"},
    {"tnt_s_legacy", "tnt_s_legacy_patch16_224"},
    {"convnext_atto", "convnext_atto"},
    {"convnext_femto", "convnext_femto"},
    {"convnext_pico", "convnext_pico"},
    {"convnext_nano", "convnext_nano"},
    {"convnext_tiny", "convnext_tiny"},
};

const char *timm_name(const char *name)
{
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (strcmp(pairs[i].name, name) == 0)
            return pairs[i].timm;
    return NULL;
}

const char *model_canonical(const char *name)
{
    size_t length = strcspn(name, "."); /* a tag names weights, not a network */
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (strlen(pairs[i].timm) == length && strncmp(pairs[i].timm, name, length) == 0)
            return pairs[i].name;
    return name;
}
