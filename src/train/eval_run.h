/* eval_run.h - the accuracy of a finished or unfinished run, or of a file of weights. SPDX-License-Identifier: MIT */
#ifndef TRAIN_EVAL_RUN_H
#define TRAIN_EVAL_RUN_H

#include "train/metrics.h"

typedef struct eval_request {
    const char *run;                  /* a run's folder; with `weights` a model's name */
    const char *weights;              /* NULL: the run's */
    const char *which;                /* checkpoint of the run: last, best or a step */
    const char *data;                 /* NULL: the run's; val_labels are then not the run's either */
    const char *const (*settings)[2]; /* further keys and values of train/settings.h */
    size_t setting_count;
    const char *const *acts;
    size_t act_count;
    int batch, threads;
    int ema, train_split;
    void (*tick)(void *context, uint64_t images); /* may be NULL */
    void *context;
} eval_request;

/* Images are prepared as the run's evaluations do. */
berlu_status eval_run(const eval_request *request, score *out);

#endif
