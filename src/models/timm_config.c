/* timm_config.c - a model as timm's hub configuration. SPDX-License-Identifier: MIT
 *
 * timm can only make architectures that it has a name for; sizes go in as arguments of the
 * constructor, all of them, so that the nearest name serves every preset here. A wrong activation
 * would load without an error, so what the constructor cannot be told is refused. */
#include <string.h>

#include "models/family.h"
#include "models/timm.h"

typedef struct layout {
    const model_family *family;
    const char *architecture; /* where timm has no name for the preset */
    const char *first, *classifier;
} layout;

static const layout layouts[] = {
    {&family_vit, "vit_tiny_patch16_224", "patch_embed.proj", "\"head\""},
    {&family_tnt, "tnt_s_patch16_224", "pixel_embed.proj", "\"head\""},
    {&family_convnext, "convnext_atto", "stem.0", "\"head.fc\""},
};

static berlu_status possible(const model *m)
{
    const char *spec = m->act_count ? berlu_act_spec(m->acts[0]) : "gelu";
    for (int i = 1; i < m->act_count; i++)
        if (strcmp(berlu_act_spec(m->acts[i]), spec) != 0)
            return berlu_fail(BERLU_ERR_UNSUPPORTED,
                              "timm's constructors take one activation for all sites, and this network has several; in "
                              "Python, berlu.timm.load(RUN) makes the model");
    if (m->config.family == &family_tnt && strcmp(spec, "gelu") != 0)
        return berlu_fail(BERLU_ERR_UNSUPPORTED,
                          "timm's TNT takes no activation, so %s would be replaced by gelu in silence; in Python, "
                          "berlu.timm.load(RUN) makes the model",
                          spec);
    if (m->config.per_channel)
        return berlu_fail(BERLU_ERR_UNSUPPORTED,
                          "timm does not tell an activation how many channels it has; in Python, berlu.timm.load(RUN) "
                          "makes the model with parameters per channel");
    return BERLU_OK;
}

static void arguments_add(text *out, const model *m)
{
    const model_config *c = &m->config;
    if (c->family == &family_convnext) {
        text_add(out, "\"patch_size\": %d, \"dims\": [%d, %d, %d, %d], \"depths\": [%d, %d, %d, %d], \"conv_mlp\": %s",
                 c->stem, c->width[0], c->width[1], c->width[2], c->width[3], c->depth[0], c->depth[1], c->depth[2],
                 c->depth[3], c->linear_mlp ? "false" : "true");
    } else {
        text_add(out, "\"img_size\": %d, \"patch_size\": %d, \"embed_dim\": %d, \"depth\": %d", c->image_size, c->patch,
                 c->width[0], c->depth[0]);
        if (c->family == &family_tnt)
            text_add(out, ", \"inner_dim\": %d, \"first_stride\": %d", c->inner_width, c->stride);
        else
            text_add(out, ", \"num_heads\": %d", c->heads);
    }
    if (m->act_count && strcmp(berlu_act_spec(m->acts[0]), "gelu") != 0)
        text_add(out, ", \"act_layer\": \"%s\"", berlu_act_spec(m->acts[0]));
}

berlu_status timm_config(text *out, const model *m, const timm_images *images)
{
    const model_config *c = &m->config;
    const layout *l = NULL;
    char crop[NUMBER_TEXT];
    for (size_t i = 0; i < COUNT(layouts); i++)
        l = layouts[i].family == c->family ? &layouts[i] : l;
    if (!l)
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "timm has no %s", c->family->name);
    berlu_status status = possible(m);
    if (status != BERLU_OK)
        return status;
    const char *architecture = timm_name(c->name);
    if (!architecture)
        architecture = c->distilled ? "deit_tiny_distilled_patch16_224" : l->architecture;
    text_add(out, "{\n  \"architecture\": \"%s\",\n  \"num_classes\": %d,\n  \"model_args\": {", architecture,
             c->classes);
    arguments_add(out, m);
    text_add(out, "},\n  \"pretrained_cfg\": {\n    \"input_size\": [3, %d, %d], \"fixed_input_size\": %s,\n",
             c->image_size, c->image_size, c->family == &family_convnext ? "false" : "true");
    text_add(out, "    \"mean\": [%s], \"std\": [%s],\n", images->mean, images->std);
    text_add(out, "    \"interpolation\": \"%s\", \"crop_pct\": %s, \"crop_mode\": \"%s\", \"num_classes\": %d,\n",
             images->filter, number_text(crop, images->crop_pct > 0 ? images->crop_pct : 1), images->mode, c->classes);
    text_add(out, "    \"first_conv\": \"%s\", \"classifier\": %s\n  },\n", l->first,
             c->distilled ? "[\"head\", \"head_dist\"]" : l->classifier);
    text_add(out, "  \"berlu\": \"%s; import berlu.timm before loading, it knows the activation\"\n}\n",
             berlu_version());
    return text_status(out);
}
