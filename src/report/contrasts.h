/* contrasts.h - the contrasts of a report, judged in one list. SPDX-License-Identifier: MIT
 *
 * The difference of means with the deviation pooled over the cells of the same model, data and
 * epochs; Holm over all registered contrasts of the report; next to it the paired and the per-image
 * interval, and all of it again with failed runs at chance. Contrasts of an earlier version of a
 * study's file are shown, not judged. */
#ifndef REPORT_CONTRASTS_H
#define REPORT_CONTRASTS_H

#include "report/verdict.h"
#include "report/view.h"

typedef struct judged {
    const view_study *study;
    const store_contrast *of;
    const view_cell *a, *b;
    stats_contrast stats;  /* of the runs that are done */
    stats_contrast chance; /* with failures at chance */
    double p_holm, chance_p_holm;
    stats_interval images;
    size_t n, chance_n, registered; /* seeds of the smaller side */
    verdict verdict;
} judged;

typedef struct judgements {
    judged *items;
    size_t count, current; /* current: registered in the present files, Holm's list */
} judgements;

berlu_status contrasts_judge(judgements *out, const view *v, arena *memory);

#endif
