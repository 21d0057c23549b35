/* estimate.h - what the runs of a study will need, before any of them began.
 * SPDX-License-Identifier: MIT
 *
 * Cells whose networks and images are the same size share an estimate: they differ in how they
 * learn alone. What this machine lacks (a device, the data) leaves out what cannot be known without
 * it: that is no mistake of the file. */
#ifndef STUDY_ESTIMATE_H
#define STUDY_ESTIMATE_H

#include "study/runs.h"

typedef struct study_estimate {
    int64_t parameters; /* of the largest cell */
    uint64_t bytes;     /* the largest plan of a training step; 0: not known (its device is not here) */
} study_estimate;

/* Over all cells; plans are made, no memory is taken. */
berlu_status study_estimate_make(study_estimate *out, const study *s);

typedef struct study_time {
    double seconds;     /* of all runs that are left, one after the other; 0: none of them is known */
    double seconds_run; /* the longest of them */
    size_t unknown;     /* runs left without an estimate */
    int measured;       /* a speed was measured here, not taken from finished runs */
} study_time;

/* From the speed of finished runs of the same size; where there is none, each size is trained for
 * its share of `budget` seconds with `threads` threads (0: the default). Nothing is written. */
berlu_status study_time_make(study_time *out, const study *s, const study_entries *runs, int threads, double budget);

#endif
