/* choose.h - the second stage of a study: each function at its own best setting.
 * SPDX-License-Identifier: MIT
 *
 * A study that tries settings on held-out images chooses among them by its results. So that nobody
 * chooses by hand, its file says beforehand what will be made of them:
 *
 *     choose: {study: rates_test, axis: lr, base: {holdout: 0}, seeds: [10, 11], contrasts: [...]}
 *
 * and study_choose() writes that second file: one axis, whose values are those of the first study's
 * other axis, each with the value of `axis` that has the best mean. The rule: all registered runs
 * have a result; a value with a failed run is not chosen; of equal means the first in the file is.
 * The same results give the same bytes. study_stage_read() and study_stage_check()
 * (study_internal.h) read the section and make sure that the second file will be right whatever is
 * chosen. */
#ifndef STUDY_CHOOSE_H
#define STUDY_CHOOSE_H

#include "study/store.h"

/* The second study's file, from the results in `from`, which has the study as `s` is (`yaml`).
 * BERLU_ERR_INPUT where there is no section, the store has another file of this name, runs had
 * other settings than the file's, a run has no result, or a value has no choice. `chosen`
 * (s->cell_count entries) gets the cells, `count` how many. */
berlu_status study_choose(text *out, const study *s, const char *yaml, const store_study *from, size_t *chosen,
                          size_t *count);

#endif
