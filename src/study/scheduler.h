/* scheduler.h - runs what a study still lacks: one process per run, some at a time. SPDX-License-Identifier: MIT
 *
 * A worker is `berlu train --resume --json-lines` in the run's folder: it makes the run or takes it up where it was cut. The
 * scheduler starts workers, reads their progress, and believes nobody's exit code: when a worker ends, the folder says how
 * the run stands. A run cut by a signal or a lost device is taken up again, `retries` times without progress; a loss that is
 * not finite is a result and is not. Workers end, saved, with their scheduler, however that ends. */
#ifndef STUDY_SCHEDULER_H
#define STUDY_SCHEDULER_H

#include <stdatomic.h>

#include "study/store.h"

enum { STUDY_JOBS = 64 };

/* A worker as the display shows it. */
typedef struct study_worker {
    long process; /* 0: this slot is free */
    size_t run;
    int landscape; /* measures the weights of the run, which is done, instead of training it */
    uint64_t epoch, step, steps, first_step; /* first_step: of the first report, after a resume */
    double loss, top1, images_per_s, began;
    double epoch_began, epoch_seconds; /* the last whole epoch; 0 before there was one */
    char error[512];                   /* the last line it wrote to stderr */
} study_worker;

typedef struct study_view {
    const study *study;
    const study_entries *runs;
    const study_worker *workers;
    int slots;
    size_t counts[STUDY_STATES];
    double seconds, left; /* since the start; expected, NaN before anything is known */
} study_view;

typedef struct study_schedule {
    const char *program; /* the command to run, an absolute path */
    const char *yaml;    /* the study's file as it is: for the index */
    const char
        *folder; /* of the study, for the algorithms of GPU runs (algorithms.h); NULL: workers choose by themselves */
    int jobs;    /* workers at a time */
    int threads; /* of each; 0: not said */
    const int *devices; /* CUDA: the GPUs, `per_device` workers each; NULL: not said */
    int device_count;
    double seconds; /* stop, saved, after so long; 0: never */
    int retries;
    int slim;               /* delete the checkpoints of finished runs */
    const char *only;       /* cells whose label holds this text; NULL: all */
    const atomic_int *stop; /* becomes non-zero: all workers save and end; may be NULL */
    void (*tick)(void *context, const study_view *v);
    void *context;
} study_schedule;

/* BERLU_ERR_STOPPED: a stop or the time limit came, everything is saved. A run that fails stops nothing; how many did is in
 * runs. The store is written here and nowhere else. */
berlu_status study_schedule_run(const study_schedule *how, const study *s, study_entries *runs, store *index);

/* The command line of a run, NULL-terminated, allocated from `memory`; for `study list --commands` too. */
char **study_command(arena *memory, const study *s, const study_entry *run, const study_schedule *how);

#endif
