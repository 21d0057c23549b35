/* compare.h - several runs side by side: settings that differ, results, curves.
 * SPDX-License-Identifier: MIT
 *
 * Runs that differ in their seed alone are one cell: its mean, its deviation, its range by epoch. A
 * run of the same seed again, a copy or a repetition, tells nothing of other seeds and is shown,
 * but not counted. A setting counts where it changes a number of the run (train/recipe.h: roles) or
 * how long it lasts; paths count only for the data. Any run folder works, including one still in
 * training and one of an earlier version. Nothing is judged here: contrasts that were fixed in
 * advance belong in a study. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "io/csv.h"
#include "train/recipe.h"

/* One run. Unknown values are NaN. */
typedef struct compare_run {
    const char *path;
    int64_t seed;
    size_t cell;
    train_settings settings;
    csv_table metrics;   /* all rows of metrics.csv */
    uint64_t epochs;     /* done */
    int complete;        /* all requested epochs are done */
    const char *repeats; /* a run before it of the same settings and seed: it is not counted; NULL: none */
    double top1, top5, loss, train_loss, best_top1; /* of the last evaluation; the best test accuracy of all */
} compare_run;

typedef struct compare_cell {
    const char *label;                 /* the values that distinguish it from the others */
    size_t count;                      /* of runs */
    double mean, deviation, low, high; /* of top1: sample deviation and 95 % t interval, NaN for one run */
    double best, loss;                 /* means */
} compare_cell;

/* A setting that is not the same everywhere, and its value in each cell. */
typedef struct compare_key {
    const char *key;
    const char **values;
} compare_key;

typedef struct compare {
    size_t runs, cells, keys;
    compare_run *run;
    compare_cell *cell; /* in the order given */
    compare_key *key;
    arena memory;
} compare;

berlu_status compare_read(compare *out, const char *const *paths, size_t count);
void compare_free(compare *c);

/* A curve of a cell: the mean of a column over its runs, and the least and the greatest, at every
 * epoch at which each of them has a value. Memory of the compare. */
typedef struct compare_curve {
    size_t count;
    double *epoch, *mean, *least, *most;
} compare_curve;
berlu_status compare_column(compare_curve *out, compare *c, size_t cell, const char *column);

/* Test accuracy, test loss and training loss by epoch in one figure. */
berlu_status compare_draw(compare *c, const char *path);

#endif
