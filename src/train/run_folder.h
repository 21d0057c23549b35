/* run_folder.h - the folder of a run: run.json, log.txt, timing.csv and who may write there. SPDX-License-Identifier: MIT
 *
 * run.json is written first and once; a folder without it is no run. One process at a time trains in a folder: it holds
 * a lock on the folder, which the system drops however the process ends. */
#ifndef TRAIN_RUN_FOLDER_H
#define TRAIN_RUN_FOLDER_H

#include "train/recipe.h"

enum { RUN_PATH = 4096 };

typedef struct run_folder {
    char path[RUN_PATH];
    int lock;              /* file descriptor; -1: not held */
    const berlu_log *echo; /* where log lines go besides log.txt */
    berlu_log log;         /* writes log.txt and the echo; handed to others */
} run_folder;

/* Whether a folder holds a run; one that is there, not empty and no run is refused by run_create(). */
int run_exists(const char *path);

/* Whether a run could be made there, or with `resume` continued: BERLU_ERR_ARG names what is in the way. */
berlu_status run_check(const char *path, int resume);

/* Makes the folder and its run.json. BERLU_ERR_ARG if there is a run already, or anything else in the folder. */
berlu_status run_create(run_folder *out, const char *path, const train_settings *s, const char *extra_json,
                        const berlu_log *echo);

/* Takes up an existing run. */
berlu_status run_open(run_folder *out, const char *path, const berlu_log *echo);
void run_close(run_folder *run);

/* The settings that run.json holds; and from the bytes of such a file, `path` for the messages. */
berlu_status run_settings(train_settings *out, const char *folder);
berlu_status run_settings_parse(train_settings *out, const char *bytes, size_t count, const char *path);

/* RUN/name */
berlu_status run_path(char out[RUN_PATH], const run_folder *run, const char *name);

#endif
