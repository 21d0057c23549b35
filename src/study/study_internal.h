/* study_internal.h - shared by reading and expanding a study. SPDX-License-Identifier: MIT
 *
 * A study_reader goes through the YAML tree and collects problems with their places, so that one
 * pass reports all of them; a failed allocation only sets a flag. Read on: study_file.c reads,
 * study_axes.c its settings, study_expand.c makes cells and runs. */
#ifndef STUDY_STUDY_INTERNAL_H
#define STUDY_STUDY_INTERNAL_H

#include "study/study_file.h"

/* The placeholder for a teacher that the study trains itself. */
#define STUDY_TEACHER "(trained first)"

typedef struct study_complaint {
    int line, column;
    const char *words;
} study_complaint;

typedef struct study_reader {
    study *study;
    yaml_tree tree;
    study_complaint list[STUDY_PROBLEMS]; /* in the order of the file */
    size_t count;                         /* beyond STUDY_PROBLEMS they are only counted */
    int failed;                           /* an allocation failed */
} study_reader;

/* Notes a problem, unless the list has the same message for that place. */
void study_problem(study_reader *r, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *study_array(study_reader *r, size_t count, size_t size); /* zeroed; NULL marks the reader as failed */

/* The text of a scalar, a number, the expected kind of item, an unknown key. Each notes a problem
 * where there is one. */
const char *study_copy(study_reader *r, const char *words);
const char *study_scalar(study_reader *r, const yaml_item *item, const char *what);
double study_real(study_reader *r, const yaml_item *item, const char *what); /* NaN with a problem */
int study_is_list(study_reader *r, const yaml_item *item, const char *what);
int study_is_map(study_reader *r, const yaml_item *item, const char *what);
void study_unknown(study_reader *r, const yaml_item *item, const char *what, const char *const *names);

study_match study_match_read(study_reader *r, const yaml_item *item, const char *what);
/* above 0, or NaN with a problem */
double study_margin_read(study_reader *r, const yaml_item *item);
/* study_predict.c */
void study_contrasts_read(study_reader *r, const yaml_item *list, study_contrast **out, size_t *count);
void study_hypothesis_check(study_reader *r, const yaml_item *item);
void study_equivalence_read(study_reader *r, const yaml_item *item); /* study_equal.c */
void study_equivalence_expand(study_reader *r);

/* Cells that differ by a contrast alone; `out` may be NULL. Returns how many (study_contrasts.c).
 * */
typedef struct study_cells {
    size_t a, b, minus_a, minus_b; /* STUDY_NO_CELL: no second difference */
} study_cells;
size_t study_contrast_cells(const study *s, const study_contrast *c, study_cells *out);
int study_contrast_check(study_reader *r, const study_contrast *c); /* 1, or notes problems */
void study_pairs_make(study_reader *r);
int study_cell_matches(const study_cell *cell, const study_match *m);

void study_base_read(study_reader *r, const yaml_item *item);  /* base and its teacher (study_axes.c) */
void study_parts_read(study_reader *r, const yaml_item *root); /* parts, axes, seeds */
study_settings study_settings_read(study_reader *r, const yaml_item *map);
void study_seeds_read(study_reader *r, const yaml_item *item, study_part *part);
void study_stage_read(study_reader *r, const yaml_item *item); /* choose.c */
void study_stage_check(study_reader *r);                       /* after the grid is made */

/* `base` overridden by `over`. */
study_settings study_settings_merge(study_reader *r, const study_settings *base, const study_settings *over);

berlu_status study_settings_apply(const study_settings *list, train_settings *out);

/* Expands what has been read into cells, runs and pairs. */
void study_expand(study_reader *r);

#endif
