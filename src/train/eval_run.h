/* eval_run.h - the accuracy of a finished or unfinished run, or of a file of weights.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_EVAL_RUN_H
#define TRAIN_EVAL_RUN_H

#include "base/arena.h"
#include "data/loader.h"
#include "train/metrics.h"
#include "train/recipe.h"

/* The network and images of an evaluation. Texts live in `memory`; free it with arena_free(). */
typedef struct eval_report {
    const char *model, *act, *data; /* the activations of several sites are joined by "; " */
    uint64_t step;                  /* of the checkpoint; 0 for a file of weights */
    size_t classes;
    const char **class_names;
    arena memory;
} eval_report;

typedef struct eval_request {
    const char *run;                  /* a run's folder; with `weights` a model's name */
    const char *weights;              /* NULL: the run's */
    const char *which;                /* checkpoint of the run: last, best or a step */
    const char *data;                 /* NULL: the run's; val_labels are then not the run's either */
    const char *const (*settings)[2]; /* further keys and values of train/settings.h */
    size_t setting_count;
    const char *const *acts;
    size_t act_count;
    int batch, threads; /* batch 0: 100, on cuda 1024 or as many images as there are */
    int ema, train_split;
    const char *const *files; /* `file_count` images to evaluate in place of a split of the data */
    size_t file_count;
    const berlu_log *log; /* warnings; may be NULL */
    eval_report *report;  /* filled where not NULL, {0} before */
    /* Called with every image's logits where not NULL: `index` in the split or in `files`. */
    void (*each)(void *context, size_t index, const float *logits, size_t classes, size_t label);
    void (*tick)(void *context, uint64_t images); /* may be NULL */
    void *context;
} eval_request;

/* Prepares images as the run's evaluations do. With `files`, which have no labels, the score is
 * meaningless. */
berlu_status eval_run(const eval_request *request, score *out);

/* Opens the images alone: of `request->train_split`, `request->batch` at a time, prepared in the
 * same way. `only` receives the indices where the run used a subset; free() it after the loader. */
berlu_status eval_images_open(loader **out, uint64_t **only, data_source *data, const train_settings *s,
                              const eval_request *request, int side);

/* Compares run.json with the settings in the checkpoint of these weights: an edited mean or size
 * would silently give a wrong accuracy. */
berlu_status run_record_check(const train_settings *s, const char *weights);

#endif
