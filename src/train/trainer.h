/* trainer.h - trains a network as the settings say, into a run folder. SPDX-License-Identifier: MIT
 *
 *     trainer *t;
 *     trainer_open(&t, &settings, &hooks);   // reads and checks everything, writes nothing
 *     trainer_start(t, resume);              // makes or takes up the run folder
 *     trainer_run(t, &result);               // until the end, a stop or a failure
 *     trainer_close(t);
 *
 * A run is a function of its settings: how often it was interrupted and by what changes no byte of its weights, state
 * and metrics. All state between two updates is in train_state (checkpoint.h) and in the engine's arrays. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <stdatomic.h>

#include "data/data.h"
#include "train/metrics.h"
#include "train/recipe.h"
#include "train/settings_hash.h"

typedef struct train_progress {
    const char *phase;        /* "train", "test", "train set" */
    uint64_t epoch, epochs;   /* from 1 */
    uint64_t done, total;     /* images of this phase */
    uint64_t update, updates; /* of the run */
    uint64_t images, all;     /* trained on since the run began; of the whole run */
    double loss, lr;          /* mean of this epoch so far; of the last update */
    double top1;              /* of the last evaluation; NaN before the first */
    double images_per_s;
} train_progress;

/* How fast an epoch or a run was in this process. A step is everything between two updates; `overhead` is the share of
 * it outside of the network and its teacher, `wait` the part of that spent waiting for images. Evaluations and
 * checkpoints are not steps. */
typedef struct train_speed {
    double images_per_s;
    double wait_percent, overhead_percent;
} train_speed;

/* Whom a trainer tells what. Everything may be NULL. The calls come from the thread that called the trainer. */
typedef struct train_hooks {
    const atomic_int *stop; /* becomes non-zero: save and return BERLU_ERR_STOPPED */
    void (*progress)(void *context, const train_progress *p);
    void (*epoch)(void *context, const metrics_row *row, const train_speed *speed, int best);
    const berlu_log *log;
    void *context;
} train_hooks;

typedef struct train_result {
    metrics_row last;
    double best_top1;
    uint64_t best_step;
    uint64_t epochs, updates; /* made in all */
    double seconds;           /* of training, this process, without evaluations */
    train_speed speed;
    uint64_t peak_bytes, planned_bytes; /* of the process; of the engines */
} train_result;

typedef struct trainer trainer;
berlu_status trainer_open(trainer **out, const train_settings *s, const train_hooks *hooks);
void trainer_close(trainer *t); /* NULL is allowed */

/* SHA-256 of all settings that change a number, data included (settings_hash.h): how a run is known. train_canonical() gives the
 * text that is hashed, without making a network's memory. */
typedef struct train_data {
    data_source *source; /* NULL: none is open */
    size_t classes;
    char hash[SETTINGS_HASH];
} train_data;
/* `data` is what an earlier call opened for settings that mean the same data, or {0}; opening and looking at it takes most of
 * the time. It holds the data of these settings afterwards, or nothing after a failure; close it at the end. */
/* A teacher is known by its weights, or, before it is trained, by what the caller knows it by: `teacher_hash`, or NULL. */
berlu_status train_canonical(text *out, const train_settings *s, train_data *data, const char *teacher_hash);
void train_data_close(train_data *data);
const char *trainer_settings_hash(const trainer *t);

/* Trains for about so many seconds to see how long the run will take; the trainer is of no use afterwards. Nothing is
 * written. */
typedef struct train_estimate {
    double images_per_s, seconds; /* of training; of the whole run, evaluations included */
    uint64_t updates, planned_bytes;
} train_estimate;
berlu_status trainer_measure(trainer *t, double seconds, train_estimate *out);

/* Whether the run could start: what trainer_begin() would say of weights that --init names. */
berlu_status trainer_init_check(const trainer *t);

/* Ten lines: model, data, recipe, steps, memory. And all settings in use, two columns. */
void trainer_describe(const trainer *t, text *out);
void trainer_settings_print(const trainer *t, text *out);

/* `resume` 0: the folder must not hold a run. 1: its newest whole checkpoint is read; without one the run starts from
 * the beginning, and without a run it is made. */
berlu_status trainer_start(trainer *t, int resume);

/* The same with more to say. */
typedef struct train_start {
    int resume;
    double wait; /* seconds that another process in the folder is waited for; then BERLU_ERR_BUSY */
    int strict; /* resumed by another version, matrix library, instruction set or device: BERLU_ERR_ARG, not a warning */
    int record_steps;           /* keep initial.safetensors and steps.csv in the run folder; not together with resume */
    const char *const *command; /* for run.json: words, NULL-terminated; may be NULL */
    const char *commit;         /* of the program's source; may be NULL */
} train_start;
berlu_status trainer_begin(trainer *t, const train_start *how);

/* BERLU_ERR_STOPPED: a stop was asked for and the state is saved. BERLU_ERR_NUMERIC: a loss or a norm is not finite; the
 * sentence names the first tensor that went bad and the last good checkpoint. `out` may be NULL. */
berlu_status trainer_run(trainer *t, train_result *out);

/* Settings for a resume: those of the run with what may change taken from `asked`. BERLU_ERR_ARG names every key that
 * was asked for and differs. */
berlu_status trainer_resume_settings(train_settings *out, const train_settings *asked);

#endif
