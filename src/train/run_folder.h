/* run_folder.h - the folder of a run: run.json, log.txt, and the lock that protects it.
 * SPDX-License-Identifier: MIT
 *
 * run.json is written first and once; a folder without it is no run. One process at a time trains
 * in a folder: the one that holds its lock (run_lock.h). It holds the folder open and writes
 * relative to that descriptor: if the folder is moved, its files follow, and a new folder of the
 * old name is not touched. Parents are created at the start only. */
#ifndef TRAIN_RUN_FOLDER_H
#define TRAIN_RUN_FOLDER_H

#include "train/run_json.h"
#include "train/run_lock.h"

enum { RUN_PATH = 4096 };

typedef struct run_folder {
    char path[RUN_PATH];
    folder_handle folder; /* fd -1: not open */
    run_lock lock;
    const berlu_log *echo; /* receives log lines too */
    berlu_log log;         /* writes log.txt and the echo */
} run_folder;

/* Whether a folder holds a run. */
int run_exists(const char *path);

/* Checks that a run can be created there, or with `resume` continued: BERLU_ERR_ARG names an
 * obstacle, BERLU_ERR_BUSY the process that trains there. */
berlu_status run_check(const char *path, int resume);

typedef struct run_taking {
    int resume;  /* 0: the folder must not hold a run */
    double wait; /* seconds to wait for another process there to end */
    const atomic_int *stop;
    const berlu_log *echo;
} run_taking;

/* Creates the folder if necessary, opens and locks it. `there` reports whether it holds a run; if
 * not, run_begin() must follow. BERLU_ERR_ARG: the folder holds something else; BERLU_ERR_BUSY:
 * another process trains there. `out` must not move while it is open. */
berlu_status run_take(run_folder *out, const char *path, const run_taking *how, int *there);
berlu_status run_begin(run_folder *run, const run_about *about); /* writes run.json */
void run_init(run_folder *run);
void run_close(run_folder *run);

/* Writes the state and the newest checkpoint's step into the lock file. */
berlu_status run_mark(run_folder *run, run_state state, uint64_t step);

/* BERLU_ERR_IO if the path no longer names the folder held open, or `lock` no longer the locked
 * file: it was moved, removed or replaced. run_intact() also requires run.json. */
berlu_status run_in_place(const run_folder *run);
berlu_status run_intact(const run_folder *run);

/* Reads the settings in run.json, and the rest of it; either may be NULL. */
berlu_status run_settings(train_settings *out, run_facts *facts, const char *folder);

#endif
