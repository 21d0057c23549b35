/* study_file.h - a study as people write it: cells, seeds and contrasts from one YAML file.
 * SPDX-License-Identifier: MIT
 *
 * A study is a grid of training runs and the comparisons that were fixed before the first of them.
 * Keys of the file:
 *
 *     study       its name, a plain word
 *     about       a text
 *     base        settings of every run: the words of `berlu train --config`. `teacher` may be a
 *                 map: a run that is trained first
 *     axes        AXIS: [VALUE, ...]. VALUE is a value of the setting AXIS, or a map
 *                 {label: TEXT, SETTING: VALUE, ...}
 *     seeds       a number n for 0 to n - 1, or a list
 *     parts       several grids, each with axes and seeds of its own, instead of axes
 *     skip        cells to leave out, each as {AXIS: LABEL, ...}
 *     contrasts   {name, a: {AXIS: LABEL}, b: {AXIS: LABEL}, minus: {a, b}, paper: NUMBER,
 *                 expect: less|greater|equal, than: NUMBER, margin: NUMBER}: `minus` is a second
 *                 difference to subtract; `than` (with less, greater) and `equal` (within `margin`)
 *                 make it a prediction
 *     hypothesis  a sentence that holds only if every contrast of the file does, each a prediction
 *     margin      of equivalence, in points (0.5)
 *     metric      top1 (default), top5 or loss
 *     claims      [C7, ...]: claims of the paper that it feeds
 *     equivalence {source: NAME, margin: 0.5, differences: [{a, b, margin}]}: cells, and
 *                 differences of cells, that are to equal those of another program (study import)
 *     choose      {study, about, axis, base, seeds, contrasts}: a second study, each value of the
 *                 other axis at the value of `axis` that was best for it (choose.h)
 *     kind        train (default) or cost; rounds: how often a cost is measured (7)
 *
 * study_read() checks all of it, expands the grid and resolves every cell as `berlu train`
 * would, and reports every problem at once with line and column. Nothing runs and no data is
 * looked for here. Files: study_file.c (the file), study_axes.c (settings, axes, seeds),
 * study_expand.c (the grid), study_predict.c (contrasts as written), study_contrasts.c (which cells
 * are compared). */
#ifndef STUDY_STUDY_FILE_H
#define STUDY_STUDY_FILE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "study/stats.h"
#include "train/recipe.h"

enum { STUDY_CELLS = 4096, STUDY_RUNS = 65536, STUDY_SEEDS = 4096, STUDY_AXES = 16, STUDY_PROBLEMS = 64 };
#define STUDY_NO_CELL SIZE_MAX

/* One setting as written. A list (`act` per site) has several values. */
typedef struct study_setting {
    const char *key;
    const char **values;
    size_t count;
    int line, column;
} study_setting;

typedef struct study_settings {
    study_setting *items;
    size_t count;
} study_settings;

typedef struct study_value {
    const char *label;
    study_settings settings;
    int line, column;
} study_value;

typedef struct study_axis {
    const char *name;
    study_value *values;
    size_t count;
} study_axis;

typedef struct study_part {
    study_axis *axes;
    size_t axis_count;
    int64_t *seeds;
    size_t seed_count;
    int line, column;
} study_part;

/* Cells by their labels: all those that have labels[i] on axes[i]. */
typedef struct study_match {
    const char **axes, **labels;
    size_t count;
    int line, column;
} study_match;

typedef struct study_contrast {
    const char *name;
    study_match a, b;
    study_match minus_a, minus_b; /* empty: no second difference */
    const char *expect;           /* "less", "greater", "equal"; "": none given */
    stats_expected expected;      /* the prediction; without one the difference is judged against 0 */
    double paper;                 /* the paper's a - b, in points; NaN: none */
    int line, column;
} study_contrast;

/* A cell of the grid. Its settings are those of base overridden by those of its axes, without those
 * that have no effect there. */
typedef struct study_cell {
    const char *label; /* the labels of its axes, joined by ", "; the study's name when there are no axes */
    const char **axes, **labels;
    size_t axis_count, part;
    study_settings settings;
    int line, column;
} study_cell;

typedef struct study_run {
    size_t cell;
    int64_t seed;
} study_run;

/* A contrast at one value of each axis that it leaves open. */
typedef struct study_pair {
    size_t contrast, a, b;   /* places in contrasts[] and cells[] */
    size_t minus_a, minus_b; /* the same; STUDY_NO_CELL: no second difference */
    const char *name;        /* the contrast's, followed by the labels of the open axes */
} study_pair;

/* An equivalence to another program's results: of a cell's mean, or of a difference of two. */
typedef struct study_equal {
    size_t a, b; /* places in cells[]; b is STUDY_NO_CELL for a single cell */
    double margin;
    const char *name;
} study_equal;

/* The section `equivalence` as written. */
typedef struct study_equivalence {
    const char *source; /* NULL: there is none */
    double margin;
    study_contrast *differences; /* `paper` is the margin */
    size_t difference_count;
    int line, column;
} study_equivalence;

/* The section `choose`: the study that is made from the results of this one (choose.h). */
typedef struct study_stage {
    const char *name, *about; /* name NULL: there is none */
    const char *axis;         /* whose values are chosen among */
    study_settings base;      /* over the study's */
    int64_t *seeds;
    size_t seed_count;
    study_contrast *contrasts;
    size_t contrast_count;
    int line, column;
} study_stage;

typedef enum study_kind { STUDY_TRAIN, STUDY_COST } study_kind;

typedef struct study {
    const char *name, *about, *metric;
    const char *hypothesis; /* "": none */
    study_kind kind;
    int64_t rounds;
    double margin;
    study_settings base, teacher; /* the teacher's include the data of base; empty: none is trained */
    study_part *parts;
    study_match *skip;
    study_contrast *contrasts;
    const char **claims;
    study_cell *cells;   /* a teacher that is trained first is the last, without axes */
    size_t teacher_cell; /* STUDY_NO_CELL: there is none */
    study_run *runs;     /* seed by seed, so that a study interrupted anywhere is balanced */
    study_pair *pairs;
    study_equivalence equivalence;
    study_equal *equals;
    study_stage stage;
    const char **notes; /* settings that were dropped in a cell, and why */
    size_t part_count, skip_count, contrast_count, claim_count, cell_count, run_count, pair_count, equal_count,
        note_count;
    arena memory;
} study;

/* BERLU_ERR_INPUT when there is any problem: the message names the first and how many more there
 * are, and `problems` (may be NULL) gets a line "FILE:LINE:COLUMN: ..." for each. `out` is then
 * empty. */
berlu_status study_read(study *out, const char *path, text *problems);
berlu_status study_parse(study *out, const char *bytes, size_t count, const char *name, text *problems);
void study_free(study *s);

/* The settings of a run, resolved; the caller frees them. The teacher of a student is a placeholder
 * (runs.h has its key). */
berlu_status study_run_settings(const study *s, const study_run *run, train_settings *out);

/* Whether its `claims` name one; STUDY_FLATNESS is the claim that needs the weights of every
 * run. */
#define STUDY_FLATNESS "C18"
int study_names_claim(const study *s, const char *id);

/* The first value of a setting as the file has it; NULL where it has none. */
const char *study_setting_of(const study_cell *cell, const char *key);

#endif
