/* opened.h - the network of a run, or of a model by name, with some images to compute on.
 * SPDX-License-Identifier: MIT
 *
 * The analyses of trained networks need the initial weights (redrawn: they are a function of the
 * seed), the weights of a checkpoint, and the loss and its gradient on a fixed set of images.
 * Images are prepared as in the run's evaluations, nothing is random (no augmentation, no drop
 * path), and the loss is cross entropy. On a GPU products are in f32. */
#ifndef ANALYZE_OPENED_H
#define ANALYZE_OPENED_H

#include "engine/engine.h"
#include "models/models.h"
#include "train/recipe.h"

typedef struct opened_options {
    const char *name;                 /* a run's folder, or a model's name */
    const char *which;                /* checkpoint of the run: last, best or a step; NULL: last */
    int ema;                          /* the average of the weights */
    const char *const (*settings)[2]; /* of a model: keys and values of train/settings.h */
    size_t setting_count;
    size_t images; /* how many, balanced over classes; 0: none, and the run's data are not needed */
    int test;      /* test images instead of training images */
    int batch;     /* images per pass, at least 1 */
    int cuda, threads;
} opened_options;

typedef struct opened {
    int is_run;
    train_settings settings;
    model *model;
    engine *engine;
    char weights[4096]; /* the file of the checkpoint; "" for a model */
    size_t count;       /* of images */
    float *images;      /* `count` images, in the engine's format */
    int32_t *labels;
    int batch;
    size_t parameters;                          /* elements of all weights, in state-dict order */
    size_t passes;                              /* of opened_loss() so far, one a batch */
    void (*tick)(void *context, size_t passes); /* after each; NULL: nobody listens */
    void *context;
} opened;

berlu_status opened_make(opened *out, const opened_options *o); /* weights are not set yet */
void opened_free(opened *out);                                  /* {0} is allowed */

berlu_status opened_start(opened *o);      /* sets the weights that training begins with */
berlu_status opened_checkpoint(opened *o); /* those of the checkpoint; of a run only */

/* All weights as one vector. */
berlu_status opened_get(const opened *o, double *weights);
berlu_status opened_set(opened *o, const double *weights); /* rounded to f32 */

/* The mean loss over the images, and with `gradient` not NULL its gradient by all weights, summed
 * over batches in double. */
berlu_status opened_loss(opened *o, double *loss, double *gradient);

/* A parameter by its name, values included (free() them); BERLU_ERR_INPUT where there is none. */
berlu_status opened_parameter(const opened *o, engine_array array, const char *name, float **values,
                              const tensor_info **info);

#endif
