/* contrasts.h - the contrasts of a report, judged in one list. SPDX-License-Identifier: MIT
 *
 * The difference of means with the deviation pooled over the cells of the same model, data and
 * epochs; Holm over all registered contrasts of the report; next to it the paired and the per-image
 * interval, and all of it again with failed runs at chance. Contrasts of an earlier version of a
 * study's file are shown, not judged.
 *
 * Predictions (expect: equal, or than: a number) are tested one-sided at their own limits and are
 * not in that list. A hypothesis holds only if all its predictions do, which needs no correction:
 * each at 5 % keeps a false "held" below 5 %. One of them refutes it, which does: p of "not held"
 * is Holm's over the predictions of the hypothesis. Predictions without a hypothesis are one list
 * for both. */
#ifndef REPORT_CONTRASTS_H
#define REPORT_CONTRASTS_H

#include "base/text.h"
#include "report/verdict.h"
#include "report/view.h"

typedef struct judged {
    const view_study *study;
    const store_contrast *of;
    const view_cell *a, *b, *minus_a, *minus_b; /* minus: NULL without a second difference */
    stats_contrast stats;                       /* of the runs that are done */
    stats_contrast chance;                      /* with failures at chance */
    double p_holm, chance_p_holm;
    stats_interval images;
    double p_held, p_not_held;      /* of a prediction; NaN for others */
    size_t n, chance_n, registered; /* seeds of the smallest side */
    size_t missing;                 /* registered runs of its cells without a result */
    verdict verdict;
} judged;

/* The hypothesis of a study, by its predictions. */
typedef struct hypothesis {
    const view_study *study;
    size_t predictions, held;
    verdict verdict;
} hypothesis;

typedef struct judgements {
    judged *items;
    size_t count, current; /* current: Holm's list, those of the present files that are judged against 0 */
    hypothesis *hypotheses;
    size_t hypothesis_count;
} judgements;

berlu_status contrasts_judge(judgements *out, const view *v, arena *memory);

/* Runs of a contrast's cells, and how many of them had begun when it was registered; those of other
 * studies may have. */
size_t contrast_begun(const store_study *s, const store_contrast *c, size_t *runs);

/* "berlu minus gelu, less (x minus y), predicted within 0.5". */
void contrast_words(text *out, const store_study *s, const store_contrast *c);

#endif
