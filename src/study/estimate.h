/* estimate.h - memory and time of a study's runs, before they begin. SPDX-License-Identifier: MIT
 *
 * Cells that differ only in how they learn have networks and images of the same size and share an
 * estimate. Quantities that need something this machine lacks (a device, the data) are left out,
 * without an error: the study file is not at fault. */
#ifndef STUDY_ESTIMATE_H
#define STUDY_ESTIMATE_H

#include "study/runs.h"

typedef struct study_estimate {
    int64_t parameters; /* of the largest cell */
    uint64_t bytes;     /* the largest plan of a training step; 0: unknown (its device is missing here) */
} study_estimate;

/* Over all cells; plans memory without allocating it. */
berlu_status study_estimate_make(study_estimate *out, const study *s);

typedef struct study_time {
    double seconds;     /* of all remaining runs, one after the other; 0: unknown */
    double seconds_run; /* the longest of them */
    size_t unknown;     /* remaining runs without an estimate */
    int measured;       /* a speed was measured here instead of taken from finished runs */
} study_time;

/* From the speed of finished runs of the same size; where there is none, each size is trained for
 * its share of `budget` seconds with `threads` threads (0: the default). Nothing is written. */
berlu_status study_time_make(study_time *out, const study *s, const study_entries *runs, int threads, double budget);

#endif
