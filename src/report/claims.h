/* claims.h - a verdict about each claim of the paper, from the theory and from the runs of a
 * report. SPDX-License-Identifier: MIT
 *
 * Two words per claim. Direction: better, worse, no difference, undecided, not tested for
 * comparisons (verdict.h); held, not held, undecided, not tested for claims that have a rule of
 * their own (claims.inc). Size: whether the paper's figures lie inside our intervals. A study is
 * evidence for a claim when its file names it, or when its data and settings are the paper's.
 * Files: claims.c (comparisons, and the list), claims_theory.c (C1 to C6), claims_widths.c (C11 to
 * C13), claims_runs.c (C17, C19), claims_landscape.c (C18), claims_cost.c (C14 to C16),
 * claims_json.c. */
#ifndef REPORT_CLAIMS_H
#define REPORT_CLAIMS_H

#include "base/text.h"
#include "report/contrasts.h"
#include "report/paper.h"
#include "report/sites.h"
#include "report/table.h"

enum { CLAIMS = 20 };

typedef struct claim_result {
    const paper_claim *of;
    const char *direction, *size; /* "held", "inside", ... */
    const char *figures;          /* ours and theirs, in words */
    const char *studies;          /* names, joined by ", " */
    const char *why;              /* of `partial`, or why it was not tested */
    size_t n;                     /* runs per side, or in total for claims without sides; 0: a computation, or none */
    int partial;
} claim_result;

typedef struct evidence {
    const view *v;
    const judgements *judged;
    cell_sites *const *sites; /* by study and cell */
    const table *cost;        /* costs.h; NULL: nothing was measured */
    arena *memory;
} evidence;

berlu_status claims_judge(claim_result out[CLAIMS], const evidence *e);

/* Whether a report is about the paper: its runs are evidence for a claim, or a study names claims
 * or a difference of the paper. */
int claims_concern(const claim_result claims[CLAIMS], const evidence *e);

/* ---- for the files of claims ----------------------------------------------------------------- */

typedef enum claim_word { CLAIM_NOT_TESTED, CLAIM_HELD, CLAIM_UNDECIDED, CLAIM_NOT_HELD } claim_word;
const char *claim_word_name(claim_word w);
claim_word claim_worst(claim_word a, claim_word b); /* of two parts of a claim; an untested part is ignored */

int claim_speaks(const view_study *s, const view_cell *c, const char *id);
/* The same for evidence from runs: 0 where another study with this claim has the same runs. */
int claim_counts(const view_study *s, const view_cell *c, const char *id);
/* For evidence from single cells: 0 also where a cell of another study that speaks has all finished
 * runs of this one, whatever else the two studies have. So no run counts twice. */
int claim_counts_cell(const evidence *e, const view_study *s, const view_cell *c, const char *id);
void claim_study(claim_result *r, const evidence *e,
                 const view_study *s); /* appends its name; studies becomes NULL without memory */

/* Each fills direction, size, figures, n, studies, partial and why of its claims. */
berlu_status claims_theory(claim_result out[CLAIMS], const evidence *e);
berlu_status claims_widths(claim_result out[CLAIMS], const evidence *e);
berlu_status claims_runs(claim_result out[CLAIMS], const evidence *e);
berlu_status claims_landscape(claim_result out[CLAIMS], const evidence *e);
berlu_status claims_cost(claim_result out[CLAIMS], const evidence *e);

/* All claims, contrasts and hypotheses as one JSON object; numbers read back to the same bits. */
berlu_status claims_json(text *out, const claim_result claims[CLAIMS], const judgements *all, const char *first_line);

#endif
