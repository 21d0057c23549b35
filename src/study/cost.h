/* cost.h - studies of kind `cost`: time and memory of a step, cell by cell.
 * SPDX-License-Identifier: MIT
 *
 * Each cell is measured by `bench step` (forward, backward and update at each `keep` policy) in
 * `rounds` rounds, and once by `bench memory`, each in a process of its own. The cells of a round
 * are measured one after the other and each round begins with another cell, so that a slow phase of
 * the machine affects all of them; the first cell is measured twice a round, half a round apart,
 * and the difference of its two rows (A/A) is the noise that every other difference must exceed.
 * Rows are written to the table `cost` one measurement at a time, so an interrupted study continues
 * where it was. Rows of different machines or settings are never mixed. */
#ifndef STUDY_COST_H
#define STUDY_COST_H

#include <stdatomic.h>

#include "study/store.h"

typedef struct cost_row {
    const char *cell, *keep, *machine;
    int again; /* the second measurement of the first cell */
    int round;
    double forward_ms, backward_ms, update_ms, images_per_s;
    double kept_bytes, planned_bytes, peak_bytes; /* NaN but in the first round */
} cost_row;

typedef struct study_cost {
    const char *program;
    int threads;            /* 0: the default */
    int device;             /* GPU; -1: the default */
    double seconds;         /* time limit; 0: none */
    const char *only;       /* cells whose label holds this; NULL: all */
    const atomic_int *stop; /* may be NULL */
    void (*tick)(void *context, const char *cell, int64_t round, size_t done, size_t all);
    void *context;
} study_cost;

size_t study_cost_count(const study *s); /* measurements in all: (cells + 1) x rounds */

/* The number of them that a store has. */
berlu_status study_cost_done(size_t *out, store *index, const study *s);

/* BERLU_ERR_STOPPED after a stop or at the time limit; finished measurements are in the store. */
berlu_status study_cost_run(const study_cost *how, const study *s, store *index);

/* ---- the table ------------------------------------------------------------------------------- */

/* Refuses a study whose cells were measured with other settings than they have now. */
berlu_status store_check_cost(store *s, const study *from);
berlu_status store_count_cost(store *s, size_t *out); /* measurements of all studies */
berlu_status store_put_cost(store *s, const char *name, const cost_row *rows, size_t count);

typedef struct store_cost {
    const char *study;
    cost_row row;
} store_cost;
/* All rows, by study, machine, cell in the order of the file, again, keep and round. `out` lives in
 * `memory`. */
berlu_status store_read_cost(store *s, arena *memory, store_cost **out, size_t *count);

#endif
