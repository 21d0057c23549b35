/* sites.h - measurements at the activation sites of a cell's runs, layer by layer.
 * SPDX-License-Identifier: MIT
 *
 * metrics.csv has a column per site and measurement (train/metrics.h); its row of epoch 0, where a
 * run has one, is from before the first update. A report needs their mean over the runs of a cell
 * at a few dozen epochs, and some values of each run. Runs are inflated and read one at a time.
 * Runs without such columns (imported results, other versions) have no sites. */
#ifndef REPORT_SITES_H
#define REPORT_SITES_H

#include "report/view.h"
#include "train/metrics.h"

enum { TRACK_EPOCHS = 24 }; /* the first, the last and evenly between */

/* When 1 - R^2 is looked at: hypothesis H is about what a start gives and what becomes of it. */
typedef enum moment { MOMENT_START, MOMENT_FIRST, MOMENT_TENTH, MOMENT_LAST, MOMENTS } moment;

typedef struct run_sites {
    const store_result *run;
    double nonlinear[MOMENTS]; /* 1 - R^2, mean over the sites: before the first update, after epochs 1 and 10, and
                                * after the last; NaN where it was not measured, or is that of a later moment */
    double last_epoch;
    double alpha; /* the largest |alpha| of a site after the last epoch */
    double dead;  /* mean over the sites after the last epoch, a share */
} run_sites;

typedef struct cell_sites {
    size_t sites, epochs;
    double *epoch;
    double *sum[SITE_METRICS], *count[SITE_METRICS]; /* [site * epochs + epoch] */
    run_sites *runs;
    size_t run_count;
} cell_sites;

berlu_status sites_read(cell_sites *out, const view_cell *c, const char *metric, arena *memory);

/* 1 - R^2 of a cell: the mean over those of its runs that have it, and how many these are. */
double sites_nonlinear(const cell_sites *s, moment when, size_t *runs);

/* The mean over the runs; NaN where nothing was measured. */
double sites_at(const cell_sites *s, site_metric what, size_t site, size_t epoch);
int sites_have(const cell_sites *s, site_metric what);

#endif
