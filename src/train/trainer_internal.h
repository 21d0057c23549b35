/* trainer_internal.h - what the files of the trainer share. SPDX-License-Identifier: MIT
 *
 * trainer_open.c builds it, trainer_start.c finds where to begin, trainer.c runs the loop, trainer_report.c writes what
 * came out. */
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

/* Seconds of one epoch in this process, and what else timing.csv holds. */
typedef struct timing {
    double loop, forward, backward, update, teacher, data, diagnose, evaluate, checkpoint;
    uint64_t images;
} timing;

typedef struct saver saver; /* trainer_save.c */
/* What --record-steps keeps (trainer_steps.c). */
typedef struct steps_record {
    int on;
    uint64_t batches, updates; /* recorded so far */
    text rows;                 /* not yet in the file */
} steps_record;

struct trainer {
    train_settings settings; /* a shallow copy; texts belong to the caller's, but for the two below */
    char mean[CHANNELS_TEXT], std[CHANNELS_TEXT];
    unsigned char leave_out[RECIPE_KEYS_MAX]; /* rows without effect */
    char data_hash[SETTINGS_HASH], settings_hash[SETTINGS_HASH];
    text settings_text; /* canonical (settings_hash.h) */
    char init_path[RUN_PATH], init_hash[SETTINGS_HASH];
    char init_note[512];    /* what was taken from the file of --init; "": nothing was asked for */
    char init_problem[512]; /* why it cannot be had; no matter for a run that has a checkpoint */
    int64_t shorter;        /* epochs of run.json that this resume prolongs; 0: it does not */
    normalization normalization;
    train_hooks hooks;
    run_folder run;
    checkpoint_store store; /* its checkpoints */
    saver *saver;           /* writes them in the background; NULL: they are written at once */
    data_source *data;
    model *model;
    engine *train, *eval;
    loader *batches, *test, *probe; /* probe: the first training images as they are, for train_top1 */
    int drawable;                   /* all of them could give draws instead of pixels */
    image_set *set;                 /* the images on the device, and loaders give draws; NULL: they stream */
    teacher teacher;
    diagnosis *diagnosis;
    tb_writer *tb;
    constraint bounds;
    schedule schedule;
    train_state state;
    double *initial;                  /* metrics of sites at the initial weights, as many as the state has */
    engine_step step;                 /* what does not change is set once */
    size_t train_images;              /* in use */
    uint64_t *train_only, *test_only; /* indices of --train-images and --test-images, or NULL */
    unsigned char *correct;           /* a bit per test image, of the last evaluation */
    uint64_t epoch_batches, epoch_updates, updates; /* per epoch; of the run, max_steps counted in */
    uint64_t saved_updates, saved_batches;          /* of the newest checkpoint; UINT64_MAX: none */
    uint64_t ahead;                                 /* the epoch that the loader makes already; 0: none */
    int resumed_format;                             /* of the checkpoint that the run was resumed from; -1: none */
    int old_columns;                                /* metrics.csv was begun by 0.1.0 */
    int classes;
    int eval_batch;      /* images per pass of an evaluation: no more than there are */
    const float *images; /* of the batch under way, in the loader; NULL where a device makes them */
    double lr, top1;     /* of the last update; of the last evaluation */
    int outstanding;     /* results of batches that the device still owes, oldest first: does it end an update? */
    char ends_update[RESULTS_OUTSTANDING];
    int learned;         /* overfit_batch: the loss fell below OVERFIT_LOSS, and that was told */
    timing times, total; /* of this epoch; of this process */
    metrics_row row;
    steps_record steps;
    network_facts facts; /* in the metadata of every checkpoint */
};

/* trainer_settle.c */
berlu_status trainer_settle(trainer *t);   /* settings as data and network settle them */
berlu_status trainer_identify(trainer *t); /* their canonical text and its hash */
int learns_activations(const graph *g);

/* trainer_open.c */
berlu_status trainer_loaders_open(trainer *t); /* or open them anew, for draws where there is a set */

/* trainer_images.c */
berlu_status trainer_place_images(trainer *t); /* on the device where they fit, and reopens the loaders then */

/* trainer.c */
berlu_status trainer_results(trainer *t); /* waits for all results of steps and adds them up */

/* trainer_save.c */
berlu_status trainer_saver_open(trainer *t, const engine_options *like); /* of the training engine */
void trainer_saver_close(trainer *t);
berlu_status trainer_save(trainer *t);        /* perhaps in the background */
berlu_status trainer_save_finish(trainer *t); /* until it is in place */
/* trainer_init.c */
berlu_status init_settle(trainer *t);        /* finds the file of --init and its hash */
berlu_status init_take(trainer *t);          /* its weights over the drawn ones */
berlu_status init_missing(const trainer *t); /* BERLU_ERR_INPUT where it was needed and cannot be had */

/* trainer_prolong.c */
berlu_status prolong_check(trainer *t);                 /* sets t->shorter; settings but for epochs must be the run's */
berlu_status prolong_text(const trainer *t, text *out); /* canonical text of the shorter run */
berlu_status prolong_history(const trainer *t, text *out); /* run.json's `history`, with what run.json holds now */
void prolong_tell(const trainer *t);

/* trainer.c: mean seconds of an update with its batches, from updates made for about so long */
berlu_status updates_time(trainer *t, double seconds, double *out);

/* trainer_measure.c: rewrites the message of a failed allocation */
void memory_advice(const trainer *t, const engine_options *train, const engine_options *eval);

/* trainer_steps.c; without --record-steps the last two do nothing */
berlu_status steps_begin(trainer *t); /* writes the weights as they are now, before the first step */
void steps_add(trainer *t, const step_result *r, double loss, int ends_update);
berlu_status steps_write(trainer *t);

/* trainer_report.c */
berlu_status report_start(trainer *t, int fresh); /* metrics.csv, timing.csv, TensorBoard */
berlu_status report_epoch(trainer *t, const metrics_row *row, int best, int cut);
berlu_status report_timing(trainer *t);
/* start.csv: what the sites do before the first update, in two parts around its backward pass. */
berlu_status report_initial_forward(trainer *t);
berlu_status report_initial_backward(trainer *t);
train_speed report_speed(const timing *m);
void report_progress(const trainer *t, const char *phase, uint64_t done, uint64_t total);
uint64_t report_peak_bytes(void);                /* of the process */
uint64_t report_planned_bytes(const trainer *t); /* of both engines */
berlu_status report_not_finite(trainer *t, const char *what);
/* Of the arrays that are to be saved; BERLU_ERR_NUMERIC names the array and the parameter. */
berlu_status report_state_finite(const trainer *t, engine *arrays, uint64_t updates);
berlu_status report_not_saved(const trainer *t, berlu_status status); /* adds what is left to the sentence */

#endif
