/* run_folder.h - the folder of a run: run.json, log.txt, timing.csv and who may write there.
 * SPDX-License-Identifier: MIT
 *
 * run.json is written first and once; a folder without it is no run. One process at a time
 * trains in a folder, the one that holds its lock (run_lock.h). It keeps the folder open and
 * writes relative to that descriptor: when somebody moves the folder, its files move along, and
 * whatever takes the old name is not touched. Parents are made at the start only. */
#ifndef TRAIN_RUN_FOLDER_H
#define TRAIN_RUN_FOLDER_H

#include "train/run_json.h"
#include "train/run_lock.h"

enum { RUN_PATH = 4096 };

typedef struct run_folder {
    char path[RUN_PATH];
    folder_handle folder; /* fd -1: not open */
    run_lock lock;
    const berlu_log *echo; /* where log lines go besides log.txt */
    berlu_log log;         /* writes log.txt and the echo; handed to others */
} run_folder;

/* Whether a folder holds a run; one that is there, not empty and no run is refused by
 * run_take(). */
int run_exists(const char *path);

/* Whether a run could be made there, or with `resume` continued: BERLU_ERR_ARG names what is in
 * the way, BERLU_ERR_BUSY who trains there. */
berlu_status run_check(const char *path, int resume);

typedef struct run_taking {
    int resume;  /* 0: the folder must not hold a run */
    double wait; /* seconds, for the process that trains there to end */
    const atomic_int *stop;
    const berlu_log *echo;
} run_taking;

/* Makes the folder where there is none, opens and locks it. `there` tells whether it holds a
 * run; if not, run_begin() has to follow. BERLU_ERR_ARG: something is in the way;
 * BERLU_ERR_BUSY: somebody trains there. `out` must not move while it is open. */
berlu_status run_take(run_folder *out, const char *path, const run_taking *how, int *there);
berlu_status run_begin(run_folder *run, const run_about *about); /* writes run.json */
void run_init(run_folder *run);
void run_close(run_folder *run);

/* Into the lock file: the state and the newest checkpoint's step. */
berlu_status run_mark(run_folder *run, run_state state, uint64_t step);

/* BERLU_ERR_IO when the path no longer leads to the folder that is held, or `lock` in it not to the
 * file that is locked: moved, removed or replaced. The second asks for run.json too, once that was
 * written. */
berlu_status run_in_place(const run_folder *run);
berlu_status run_intact(const run_folder *run);

/* The settings that run.json holds, and the rest of it; either may be NULL. */
berlu_status run_settings(train_settings *out, run_facts *facts, const char *folder);

#endif
