/* runs.h - helpers of the trainer's tests: a tiny run, stopping runs, comparing runs.
 * SPDX-License-Identifier: MIT
 *
 * The network is vit_micro on 16 x 16 images with patches of 8: five tokens, milliseconds a
 * step. */
#ifndef TESTS_TRAIN_RUNS_H
#define TESTS_TRAIN_RUNS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file_in.h"
#include "io/csv.h"
#include "support/folder.h"
#include "train/run_folder.h"
#include "train/trainer.h"

/* The settings of the tiny run, overridden by `extra`: "key=value" texts up to NULL; "key=" omits a
 * key. */
void tiny_settings(train_settings *s, const char *run, const char *const *extra);

/* Stops a run after a number of calls of the progress hook in a given phase. */
typedef struct stopper {
    atomic_int stop;
    const char *phase;
    uint64_t at;
} stopper;
void stopper_tick(void *context, const train_progress *p);

berlu_status run_with(const train_settings *s, int resume, stopper *stop, train_result *result);
train_result run_whole(const char *run, const char *const *extra);

/* A new path for a run; the folder itself does not exist yet. */
const char *run_place(char out[FOLDER_PATH], const char *name);

void tree_copy(const char *from, const char *to); /* files, folders and links; hidden ones are left out */
void files_equal(const char *a, const char *b, const char *name);
void runs_equal(const char *a, const char *b); /* weights, state, metrics and start, byte for byte */

csv_table metrics_of(const char *run);
double metric(const char *run, size_t row, const char *column);

#endif
