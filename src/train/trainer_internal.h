/* trainer_internal.h - the trainer's state, shared by its files. SPDX-License-Identifier: MIT
 *
 * trainer_open.c builds it, trainer_start.c starts or resumes the run, trainer.c loops over epochs,
 * trainer_update.c runs an update, trainer_save.c writes checkpoints, trainer_report.c metrics. */
#ifndef TRAIN_TRAINER_INTERNAL_H
#define TRAIN_TRAINER_INTERNAL_H

#include "data/loader.h"
#include "engine/image_set.h"
#include "io/tensorboard.h"
#include "train/checkpoint.h"
#include "train/constraint.h"
#include "train/diagnose.h"
#include "train/image_options.h"
#include "train/network.h"
#include "train/run_folder.h"
#include "train/settings_hash.h"
#include "train/trainer.h"

enum { PROBE_IMAGES = 10000, OVERFIT_UPDATES = 200, RESULTS_OUTSTANDING = 4 };
#define OVERFIT_LOSS 0.01

/* Seconds of one epoch in this process, for timing.csv. */
typedef struct timing {
    double loop, forward, backward, update, teacher, data, diagnose, evaluate, checkpoint;
    uint64_t images;
} timing;

typedef struct saver saver; /* trainer_save.c */

/* The record of --record-steps (trainer_record.c). */
typedef struct steps_record {
    int on;
    uint64_t batches, updates; /* recorded so far */
    text rows;                 /* not yet in the file */
} steps_record;

struct trainer {
    train_settings settings; /* a shallow copy: strings are the caller's, except the two below */
    char mean[CHANNELS_TEXT], std[CHANNELS_TEXT];
    unsigned char leave_out[RECIPE_KEYS_MAX]; /* rows without effect */
    char data_hash[SETTINGS_HASH], settings_hash[SETTINGS_HASH];
    text settings_text; /* canonical (settings_hash.h) */
    char init_path[RUN_PATH], init_hash[SETTINGS_HASH];
    char init_note[512];    /* summary of what --init loaded; "" without --init */
    char init_problem[512]; /* why its file cannot be used; irrelevant once there is a checkpoint */
    int64_t shorter;        /* epochs in run.json where this resume prolongs the run, else 0 */
    normalization normalization;
    train_hooks hooks;
    run_folder run;
    checkpoint_store store; /* its checkpoints */
    saver *saver;           /* writes them in the background; NULL: synchronously */
    data_source *data;
    size_t told; /* of its broken images */
    model *model;
    engine *train, *eval;
    loader *batches, *test, *probe; /* probe: the first training images, not augmented, for train_top1 */
    int drawable;                   /* every loader could give draws instead of pixels */
    image_set *set;                 /* images on the device, loaders give draws; NULL: pixels stream */
    teacher teacher;
    diagnosis *diagnosis;
    tb_writer *tb;
    constraint bounds;
    schedule schedule;
    train_state state;
    double *initial;                                /* site metrics at the initial weights, site_metric_count of them */
    engine_step step;                               /* constants are set once, the rest by update_run() */
    size_t train_images;                            /* that the run trains on */
    uint64_t *train_only, *test_only;               /* indices of --train-images and --test-images, or NULL */
    unsigned char *correct;                         /* a bit per test image, of the last evaluation */
    uint64_t epoch_batches, epoch_updates, updates; /* per epoch, per epoch, of the run (max_steps) */
    uint64_t saved_updates, saved_batches;          /* of the newest checkpoint; UINT64_MAX: none */
    uint64_t ahead;                                 /* the epoch whose batches are prefetched; 0: none */
    int resumed_format;                             /* of the checkpoint resumed from; -1: none */
    int old_columns;                                /* metrics.csv has the columns of 0.1.0 */
    int classes;
    int eval_batch;      /* images per forward of an evaluation, at most as many as there are */
    const float *images; /* of the current batch, owned by the loader; NULL where the device makes them */
    double lr, top1;     /* of the last update; of the last evaluation */
    int outstanding;     /* results not yet collected; ends_update[0] belongs to the oldest */
    char ends_update[RESULTS_OUTSTANDING];
    int learned;         /* overfit_batch: the loss fell below OVERFIT_LOSS and was reported */
    timing times, total; /* of this epoch; of this process */
    metrics_row row;
    steps_record steps;
    network_facts facts; /* in the metadata of every checkpoint */
};

/* trainer_settle.c */
berlu_status trainer_settle(trainer *t);   /* resolves settings by data and network */
berlu_status trainer_identify(trainer *t); /* their canonical text and its hash */
int learns_activations(const graph *g);

/* trainer_loaders.c */
berlu_status trainer_loaders_make(trainer *t); /* chooses subsets, then opens the loaders */
berlu_status trainer_loaders_open(trainer *t); /* or reopens them, for draws where t->set exists */

/* trainer_images.c */
berlu_status trainer_place_images(trainer *t); /* on the device where they fit; reopens the loaders then */

/* trainer_update.c */
berlu_status update_run(trainer *t);      /* one update with its micro-batches */
berlu_status trainer_results(trainer *t); /* waits for all outstanding results and adds them up */

/* trainer_save.c */
berlu_status trainer_saver_open(trainer *t, const engine_options *like); /* `like`: the training engine's */
void trainer_saver_close(trainer *t);
berlu_status trainer_save(trainer *t);        /* starts it where there is a saver */
berlu_status trainer_save_finish(trainer *t); /* waits until the checkpoint is in place */

/* trainer_init.c */
berlu_status init_settle(trainer *t);        /* finds the file of --init and its hash */
berlu_status init_load(trainer *t);          /* overwrites drawn weights by those of the file */
berlu_status init_missing(const trainer *t); /* BERLU_ERR_INPUT where the file cannot be used */

/* trainer_prolong.c */
berlu_status prolong_check(trainer *t);                 /* sets t->shorter; all settings but epochs must be the run's */
berlu_status prolong_text(const trainer *t, text *out); /* canonical text of the shorter run */
berlu_status prolong_history(const trainer *t, text *out); /* `history` of run.json with the current record appended */
void prolong_warn(const trainer *t);

/* trainer.c: trains for about `seconds`; returns the mean time of an update with its batches */
berlu_status updates_time(trainer *t, double seconds, double *out);

/* trainer_measure.c. BERLU_ERR_MEMORY where both engines and the loaders need more than `free`
 * bytes of the host's memory; 0: not known. */
berlu_status memory_check(const trainer *t, const engine_options *train, const engine_options *eval, double free);
void memory_advice(const trainer *t, const engine_options *train, const engine_options *eval); /* after a failure */

/* trainer_record.c; without --record-steps the last two do nothing */
berlu_status steps_begin(trainer *t); /* writes the initial weights */
void steps_add(trainer *t, const step_result *r, double loss, int ends_update);
berlu_status steps_write(trainer *t);

/* trainer_report.c */
berlu_status report_check(trainer *t);            /* metrics.csv against the checkpoint; writes nothing */
berlu_status report_start(trainer *t, int fresh); /* metrics.csv, timing.csv, TensorBoard */
berlu_status report_epoch(trainer *t, const metrics_row *row, int best, int cut);
berlu_status report_timing(trainer *t);
/* start.csv: site metrics at the initial weights, collected around the first backward. */
berlu_status report_initial_forward(trainer *t);
berlu_status report_initial_backward(trainer *t);
train_speed report_speed(const timing *m);
void report_progress(const trainer *t, const char *phase, uint64_t done, uint64_t total);
uint64_t report_peak_bytes(void);                /* of the process */
uint64_t report_planned_bytes(const trainer *t); /* of both engines */

/* trainer_fault.c; `what`: "loss" or "norm of the gradients" */
berlu_status report_not_finite(trainer *t, const char *what);
/* BERLU_ERR_NUMERIC names the first array and parameter that are not finite. */
berlu_status report_state_finite(const trainer *t, engine *arrays, uint64_t updates);
berlu_status report_not_saved(const trainer *t, berlu_status status); /* adds to the message which checkpoint is left */

#endif
