/* scheduler.h - runs what a study still lacks: one process per run, several at a time.
 * SPDX-License-Identifier: MIT
 *
 * A worker is `berlu train --resume --json-lines` in the run's folder: it starts the run or resumes
 * it from its checkpoint. The scheduler starts workers and reads their progress, but never trusts
 * an exit code: when a worker ends, the folder has the state of the run. A run interrupted by a
 * signal or a lost device is resumed, `retries` times without progress; a loss that is not finite
 * is a result and is not retried. Workers end, saved, with their scheduler, however that ends. */
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
    double epoch_began, epoch_seconds; /* duration of the last complete epoch; 0 before the first */
    char error[512];                   /* the last line it wrote to stderr */
} study_worker;

typedef struct study_view {
    const study *study;
    const study_entries *runs;
    const study_worker *workers;
    int slots;
    size_t counts[STUDY_STATES];
    double seconds, left; /* since the start; expected, NaN if unknown */
} study_view;

typedef struct study_schedule {
    const char *program; /* the command to run, an absolute path */
    const char *yaml;    /* text of the study's file, for the index */
    const char
        *folder; /* of the study, for the algorithms of GPU runs (algorithms.h); NULL: workers choose their own */
    int jobs;    /* workers at a time */
    int threads; /* of each; 0: the default */
    const int *devices; /* CUDA: the GPUs, `per_device` workers each; NULL: the default */
    int device_count;
    double seconds; /* time limit, after which workers save and end; 0: none */
    int retries;
    int landscapes;         /* measure those of finished runs if the study names STUDY_FLATNESS */
    int slim;               /* delete the checkpoints of finished runs */
    const char *only;       /* cells whose label holds this text; NULL: all */
    const atomic_int *stop; /* non-zero: all workers save and end; may be NULL */
    void (*tick)(void *context, const study_view *v);
    void *context;
} study_schedule;

/* BERLU_ERR_STOPPED after a stop or at the time limit; everything is saved. A failed run stops
 * nothing; its state is in `runs`. The store is written here and nowhere else. */
berlu_status study_schedule_run(const study_schedule *how, const study *s, study_entries *runs, store *index);

/* The command line of a run, NULL-terminated, allocated from `memory`; for `study list --commands`
 * too. */
char **study_command(arena *memory, const study *s, const study_entry *run, const study_schedule *how);

#endif
