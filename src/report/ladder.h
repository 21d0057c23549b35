/* ladder.h - cells that differ in BerLU's eps alone, by width. SPDX-License-Identifier: MIT */
#ifndef REPORT_LADDER_H
#define REPORT_LADDER_H

#include "report/view.h"

typedef struct ladder {
    const view_study *study;
    size_t group;
    const view_cell *cells[64]; /* with runs, by increasing eps */
    size_t count;
    const stats_sample *pool; /* of the whole group */
    size_t pool_count;
} ladder;

/* The ladder that begins with cell `first` of a study: all cells of its group with its other
 * settings. No cells when the first is not BerLU, or not the first of its ladder. */
berlu_status ladder_find(ladder *out, const view_study *s, size_t first, arena *memory);

/* The cell at a width, to seven digits; NULL. */
const view_cell *ladder_at(const ladder *l, double eps);

/* mean of a - mean of b, judged as contrasts are over the group. */
stats_estimate ladder_difference(const ladder *l, const view_cell *a, const view_cell *b);

#endif
