/* verdict.h - from contrasts to a verdict about a claim. SPDX-License-Identifier: MIT
 *
 * Two verdicts, because "better" and "better by as much" are two claims. The direction is the first
 * that applies: better or worse (Holm's p below 0.05), no difference (the 90 % interval lies inside
 * the margin on both sides: two one-sided tests), undecided. The size tells whether the paper's
 * difference lies inside our 95 % interval. A prediction (a difference within a margin, above or
 * below a number) has words of its own: held where its one-sided tests show it, not held where they
 * show the contrary, else undecided. Only registered contrasts are judged, at the registered
 * number of seeds: adding seeds after each look until something shows turns 5 % into 16 %. */
#ifndef REPORT_VERDICT_H
#define REPORT_VERDICT_H

#include <stddef.h>

#include "study/stats.h"

typedef enum verdict_direction {
    VERDICT_NOT_TESTED,
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_NO_DIFFERENCE,
    VERDICT_UNDECIDED,
    VERDICT_HELD, /* of predictions and hypotheses */
    VERDICT_NOT_HELD,
    VERDICT_DIRECTIONS
} verdict_direction;

typedef enum verdict_size { VERDICT_NO_SIZE, VERDICT_INSIDE, VERDICT_OUTSIDE } verdict_size;

const char *verdict_direction_name(verdict_direction d); /* "not tested", "better", ... */
const char *verdict_size_name(verdict_size s);           /* "", "inside", "outside" */

/* One contrast, a against b; for a metric where less is better, swap the sides before. */
typedef struct verdict_input {
    const stats_contrast *contrast; /* NULL: no runs */
    double p_holm, margin;
    double paper;         /* the paper's a - b; NaN: it gives none */
    size_t n, registered; /* seeds of the smaller side, and how many were registered */
    size_t missing;       /* registered runs of any side without a result */
    stats_expected expected;
    double p_held, p_not_held; /* of the prediction, corrected where that belongs (contrasts.h) */
    int differs;               /* other models, epochs or sizes than the paper's */
} verdict_input;

typedef struct verdict {
    verdict_direction direction;
    verdict_size size;
    int partial;     /* less than was claimed or registered */
    const char *why; /* the reason of `partial`; "" without */
} verdict;

verdict verdict_of_contrast(const verdict_input *in);

/* A claim over several rivals holds only against each of them. Worse than one is worse; better than
 * all is better; one undecided leaves it undecided; the rest is no difference. A rival without runs
 * makes it partial. */
verdict verdict_of_claim(const verdict *rivals, size_t count);

/* Predictions of one hypothesis: it holds only if each of them does. One that does not hold refutes
 * it; else one without a verdict leaves it open. */
verdict verdict_of_hypothesis(const verdict *predictions, size_t count);

#endif
