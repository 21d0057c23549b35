/* models.h - networks by name: ViT, DeiT, TNT and ConvNeXt as timm computes them.
 * SPDX-License-Identifier: MIT
 *
 * A model is a graph for one image together with the activations at its sites. Names and presets
 * are rows of the table in models.c; each family is one file that reads like its paper (vit.c tnt.c
 * convnext.c). Parameters have timm's names, shapes, order, decay flags and initialisation, so
 * timm's weights load without a converter (weights.h).
 *
 *     model *m;
 *     model_options options = {.classes = 100, .acts = (const char *[]){"berlu"}, .act_count = 1};
 *     model_create(&m, "vit_tiny_cifar", &options);
 *     engine_create(&e, m->graph, ...);
 *
 * Read on: docs/add-a-model.md. */
#ifndef MODELS_MODELS_H
#define MODELS_MODELS_H

#include <berlu/act.h>

#include "graph/graph.h"

typedef struct model_family model_family;

/* The input of a builder: the row of the table with the options applied. */
typedef struct model_config {
    const char *name;
    const model_family *family;
    int image_size, classes;
    int patch;    /* ViT, TNT: side of a patch */
    int stride;   /* TNT: of the pixel convolution */
    int stem;     /* ConvNeXt: kernel and stride of the first convolution */
    int width[4]; /* ViT, TNT: [0]; ConvNeXt: one per stage */
    int depth[4];
    int heads;       /* ViT; TNT: among words */
    int inner_width; /* TNT: of a pixel */
    int inner_heads; /* TNT: among the pixels of a patch */
    int distilled;   /* DeiT: a second token and head */
    int legacy;      /* TNT: as timm's older weights */
    int linear_mlp;  /* ConvNeXt: fc1 and fc2 are stored as (N, K) instead of (N, K, 1, 1) */
    float drop_path; /* rate of the last block; rates rise linearly from 0 */
    int per_channel; /* learned activation parameters: one per channel instead of one per site */
} model_config;

#define MODEL_DROP_PATH_MOST 0.999 /* the kept branches are divided by 1 - rate */

/* A user's options; zero means the model's own value. Options a family does not have are refused by
 * name. */
typedef struct model_options {
    int image_size, patch, stride, stem, classes;
    double drop_path;
    int per_channel;
    const char *const *acts; /* activation specs: one for all sites, or one per site in state-dict order */
    int act_count;           /* 0: gelu everywhere */
} model_options;

typedef struct model {
    graph *graph;
    model_config config;
    berlu_act **acts; /* owned; the graph's sites point to them */
    int act_count;
} model;

/* BERLU_ERR_ARG for an unknown name (with the nearest one) or an option that does not fit (named as
 * on the command line). `options` may be NULL. */
berlu_status model_create(model **out, const char *name, const model_options *options);
void model_free(model *m); /* NULL is allowed; engines made from the graph must be gone */

/* The row of `name` with the options applied, checked, without building anything. */
berlu_status model_configure(model_config *out, const char *name, const model_options *options);

const char *model_name(size_t i); /* every model of the table; NULL after the last */

#endif
