/* family.h - helpers shared by the builders of vit.c, tnt.c, convnext.c and linear.c.
 * SPDX-License-Identifier: MIT
 *
 * A builder goes through its network once, in the order of the paper, and declares each parameter
 * where timm's state dict has it. The small struct below carries the two counters that run through
 * all blocks: activation sites and drop path. */
#ifndef MODELS_FAMILY_H
#define MODELS_FAMILY_H

#include "models/models.h"

typedef struct model_builder {
    graph *g;
    const model_config *m;
    berlu_act *const *acts; /* one for all, or one per site */
    int act_count;
    int site; /* sites built so far */
} model_builder;

enum { HAS_PATCH = 1, HAS_STRIDE = 2, HAS_STEM = 4 }; /* the options that a family has */

struct model_family {
    const char *name;
    unsigned options;
    int (*sites)(const model_config *m);
    berlu_status (*check)(const model_config *m); /* whether the sizes fit each other; the message names the option */
    void (*build)(model_builder *b);              /* errors stay in the graph */
};

extern const model_family family_vit, family_tnt, family_convnext, family_linear;

/* The activation `name`, the next site of the model. */
tensor site_act(model_builder *b, tensor x, const char *name);

/* fc1, activation, fc2: the two-layer perceptron of ViT and TNT, under `name`. */
tensor layer_mlp(model_builder *b, tensor x, const char *name);

/* A convolution whose windows are already rows (build_unfold): weight (outputs, channels, kernel,
 * kernel) and bias. */
tensor layer_conv(graph *g, tensor rows, int outputs, int channels, int kernel, param_init weight, param_init bias,
                  const char *name);

/* x + branch, where training drops the branch of block `i` of `blocks` at its rate: 0 for the
 * first, the model's drop_path for the last, linear between. `groups` is the number of draws per
 * image (build_drop_path). */
tensor residual(model_builder *b, tensor x, tensor branch, int i, int blocks, int groups);

#endif
