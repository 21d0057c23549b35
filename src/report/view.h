/* view.h - studies as the report sees them: cells with their settings, samples and groups.
 * SPDX-License-Identifier: MIT
 *
 * The store has texts; tables, plots and verdicts need the function, model and data of a cell, the
 * paper's value for it, and the cells that may share a deviation. All of it is determined here,
 * once. A cell has the settings that its first run resolved, or those of its file before it has a
 * run. Samples exist twice: of the finished runs, and with failed runs at chance, for the second
 * line of every contrast. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "base/text.h"
#include "study/stats.h"
#include "study/store.h"

typedef struct sample {
    double *values;
    int64_t *seeds;
    const uint8_t **bits; /* one bit per test image, NULL where there is none */
    size_t count, images; /* images: 0 unless every run has its bits */
} sample;

typedef struct view_cell {
    const store_cell *of;
    const char *label;
    const char *model, *data; /* "" where unknown */
    const char *judged_on;    /* the data as shown; "held-out ..." where images kept from training judge */
    const char *family;       /* of the paper: vit, deit, tnt, convnext; "" for others */
    const char *act;          /* the activation's name when it has that name's defaults; else "" */
    double eps;               /* BerLU's half-width when all else is its default; else NaN */
    double epochs, classes;   /* NaN where unknown */
    const char *differs;      /* from the paper's data, model, epochs or settings; "" */
    int own_recipe;           /* a setting differs from one that the paper fixes: not a cell of its tables */
    const char *others;       /* `command` without the activation */
    const char *command;      /* arguments of `berlu train` but --seed and --run */
    size_t group;             /* cells of the same model, data and epochs share one */
    sample done, chance;
    size_t failed, waiting;
} view_cell;

typedef struct view_study {
    const store_study *of;
    const char *about, *metric; /* metric: top1, top5 or loss */
    const char *hypothesis;     /* the sentence its predictions are about; "": none */
    double margin;
    int pilots;    /* its description says that contrasts were chosen after pilot runs */
    int cost;      /* kind: cost */
    double rounds; /* in which its costs are measured */
    const char **claims;
    size_t claim_count;
    view_cell *cells;
    size_t cell_count, group_count;
    const char **factors;             /* by group: settings_factors() */
    const struct view_study **within; /* by group: the study that shows it, see view_make(); NULL: this one */
} view_study;

typedef struct view_run {
    const store_result *run;
    const view_cell *cell; /* the first that has it */
    size_t place;          /* in the order of the report */
} view_run;

typedef struct view {
    view_study *studies;
    size_t count;
    view_run *runs; /* each once, however many cells have it */
    size_t run_count;
    arena memory;
} view;

/* Studies share runs. A group all of whose cells are in one group of another study, with the same
 * finished runs under the same labels, would give the same plots and the same evidence twice:
 * `within` names the study that has more cells, of equals the first. */
berlu_status view_make(view *out, const store_contents *from);
void view_free(view *v);

int view_run_done(const store_result *r, const char *metric);
double view_run_value(const store_result *r, const char *metric); /* NaN where it has none */

/* Different versions and commits of the program among the finished runs of a cell. */
size_t view_commits(const view_cell *c, const char *metric);

/* "berlu (4), gelu (2)": cells whose runs come from several commits, of all studies that do not
 * show those of another one; "" for none. */
berlu_status view_mixed(text *out, const view *v);

stats_sample sample_values(const sample *s);
stats_images sample_images(const sample *s);

/* The samples of one group of a study, for pooling; `chance`: those with failures at chance. Cells
 * that lack runs do not count while others are whole: a verdict must not move with the seeds of
 * another cell as they come in. Arena memory, NULL without. */
stats_sample *view_group(arena *memory, const view_study *s, size_t group, int chance, size_t *count);

#endif
