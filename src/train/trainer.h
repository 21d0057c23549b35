/* trainer.h - trains a network from settings into a run folder. SPDX-License-Identifier: MIT
 *
 *     trainer *t;
 *     trainer_open(&t, &settings, &hooks);   // reads and checks everything, writes nothing
 *     trainer_start(t, resume);              // creates or resumes the run folder
 *     trainer_run(t, &result);               // until the end, a stop or a failure
 *     trainer_close(t);
 *
 * A run is a function of its settings: interruptions and resumes change no byte of its weights,
 * state and metrics. All state between two updates is in train_state (checkpoint.h) and in the
 * engine's arrays. */
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
    uint64_t images, all;     /* trained on since the start of the run; of the complete run */
    double loss, lr;          /* mean of this epoch so far; of the last update */
    double top1;              /* of the last evaluation; NaN before the first */
    double images_per_s;
} train_progress;

/* Speed of an epoch or a run in this process. A step is everything between two updates; `overhead`
 * is the share of it outside the network and its teacher, `wait` the part of that spent waiting for
 * images. Evaluations and checkpoints are not steps. */
typedef struct train_speed {
    double images_per_s;
    double wait_percent, overhead_percent;
} train_speed;

/* Callbacks; every member may be NULL. They are called on the thread that called the trainer. */
typedef struct train_hooks {
    const atomic_int *stop; /* once non-zero, the run is saved and BERLU_ERR_STOPPED returned */
    void (*progress)(void *context, const train_progress *p);
    void (*epoch)(void *context, const metrics_row *row, const train_speed *speed, int best);
    const berlu_log *log;
    void *context;
} train_hooks;

typedef struct train_result {
    metrics_row last;
    double best_top1;
    uint64_t best_step;
    uint64_t epochs, updates; /* since the start of the run */
    double seconds;           /* of training, this process, without evaluations */
    train_speed speed;
    uint64_t peak_bytes, planned_bytes; /* of the process; of the engines */
} train_result;

typedef struct trainer trainer;
berlu_status trainer_open(trainer **out, const train_settings *s, const train_hooks *hooks);
void trainer_close(trainer *t); /* NULL is allowed */

/* Data that several calls of train_canonical() share. */
typedef struct train_data {
    data_source *source; /* NULL: none is open */
    size_t classes;
    char hash[SETTINGS_HASH];
} train_data;

/* The canonical text of settings, whose SHA-256 identifies a run: all settings that change a
 * result, data included (settings_hash.h). No memory for a network is allocated.
 *
 * data          what an earlier call opened for settings of the same data, or {0}: opening and
 *               hashing take most of the time. Afterwards it holds the data of these settings
 *               or nothing; close it at the end.
 * teacher_hash  identifies a teacher that is not trained yet; NULL: the hash of its weights. */
berlu_status train_canonical(text *out, const train_settings *s, train_data *data, const char *teacher_hash);
void train_data_close(train_data *data);
const char *trainer_settings_hash(const trainer *t);

/* Trains for about `seconds` to estimate the time of the run, writing nothing. The trainer cannot
 * be started afterwards. */
typedef struct train_estimate {
    double images_per_s, seconds; /* of training; of the complete run with its evaluations */
    uint64_t updates, planned_bytes;
} train_estimate;
berlu_status trainer_measure(trainer *t, double seconds, train_estimate *out);

/* Reports what trainer_begin() would of a run that is not begun: the weights that --init names,
 * more passes an update than an epoch has. */
berlu_status trainer_new_check(const trainer *t);

/* A summary in ten lines (model, data, recipe, steps, memory); all settings in two columns. */
void trainer_describe(const trainer *t, text *out);
void trainer_settings_print(const trainer *t, text *out);

/* `resume` 0: the folder must not hold a run. 1: its newest intact checkpoint is loaded; without
 * one the run starts from the beginning, and without a run it is created. */
berlu_status trainer_start(trainer *t, int resume);

/* The same with all options. */
typedef struct train_start {
    int resume;
    double wait;      /* seconds to wait for another process in the folder; then BERLU_ERR_BUSY */
    int strict;       /* another version, BLAS, instruction set or device: BERLU_ERR_ARG instead of a warning */
    int record_steps; /* write initial.safetensors and steps.csv; not together with resume */
    const char *const *command; /* for run.json: words, NULL-terminated; may be NULL */
    const char *commit;         /* of the program's source; may be NULL */
} train_start;
berlu_status trainer_begin(trainer *t, const train_start *how);

/* BERLU_ERR_STOPPED: a stop was requested and the state is saved. BERLU_ERR_NUMERIC: a loss or a
 * norm is not finite; the message names the first bad tensor and the last good checkpoint. `out`
 * may be NULL. */
berlu_status trainer_run(trainer *t, train_result *out);

/* Settings for a resume: those of the run, with the ones that may change taken from `asked`.
 * BERLU_ERR_ARG names every other key that was given and differs. */
berlu_status trainer_resume_settings(train_settings *out, const train_settings *asked);

#endif
