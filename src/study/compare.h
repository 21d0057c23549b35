/* compare.h - two cells of a study, compared after the fact. SPDX-License-Identifier: MIT
 *
 * The estimate, intervals and tests of a registered contrast (stats_contrast_make()) without a
 * verdict: a comparison chosen after the runs were seen is not registered, and is marked so. */
#ifndef STUDY_COMPARE_H
#define STUDY_COMPARE_H

#include "study/stats.h"
#include "study/store.h"

typedef struct study_comparison {
    size_t a, b, n_a, n_b, pairs; /* cells; finished runs; seeds that both have */
    size_t failed_a, failed_b;
    stats_contrast of;
} study_comparison;

/* Cells a and b of a study in a store, by `metric` (top1, top5, loss). Needs two finished runs on
 * each side. */
berlu_status study_compare(study_comparison *out, const store_study *s, size_t a, size_t b, const char *metric,
                           double margin);

#endif
