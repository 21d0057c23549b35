/* regions.h - where the pre-activations of a run's sites lie, epoch by epoch.
 * SPDX-License-Identifier: MIT
 *
 * Read from the files of training (train/diagnose.h): start.csv for the initial weights, which runs
 * of earlier versions lack, and metrics.csv for the end of every epoch. `nonlinear` is the measured
 * 1 - R^2, to compare with `berlu analyze linearity` at the same scale. */
#ifndef ANALYZE_REGIONS_H
#define ANALYZE_REGIONS_H

#include <stdint.h>

#include "base/arena.h"

/* Unknown values are NaN. */
typedef struct region {
    double alpha, left, inside, right, dead;
    double scale; /* deviation of the pre-activations */
    double nonlinear;
} region;

typedef struct regions {
    size_t sites, epochs; /* epochs: rows, the start included */
    int has_start;        /* row 0 is that of the initial weights */
    const char **names;   /* of the sites */
    uint64_t *epoch;      /* of each row; 0 is the start */
    region *values;       /* row by row, `sites` each */
    arena memory;
} regions;

/* BERLU_ERR_INPUT for a folder that is not a run, or without recorded epochs. */
berlu_status regions_read(regions *out, const char *run);
void regions_free(regions *r);

#endif
