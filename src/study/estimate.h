/* estimate.h - what the runs of a study will need, before any of them began.
 * SPDX-License-Identifier: MIT */
#ifndef STUDY_ESTIMATE_H
#define STUDY_ESTIMATE_H

#include "study/runs.h"

typedef struct study_estimate {
    int64_t parameters; /* of the largest cell */
    uint64_t bytes;     /* the largest plan of a training step; 0: not known (its device is not here) */
    double seconds;     /* of a run: the mean of those that are done; NaN before one is */
} study_estimate;

/* Over all cells (of those that follow each other and differ in how they learn alone, the first);
 * plans are made, no memory is taken. A cell whose network or device cannot be made here leaves out
 * what is not known of it: lacking something is no mistake of the file. */
berlu_status study_estimate_make(study_estimate *out, const study *s, const study_entries *runs);

#endif
