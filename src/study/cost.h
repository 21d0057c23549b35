/* cost.h - studies of kind `cost`: time and memory of a step, cell by cell.
 * SPDX-License-Identifier: MIT
 *
 * Each cell is measured by `bench step` (forward, backward and update at each `keep` policy) in
 * `rounds` rounds, and once by `bench memory`, each in a process of its own. The cells of a round
 * follow each other and every round begins with another one, so that a machine that slows down
 * slows all of them; the first cell is measured twice a round, and what its two rows differ by
 * (A/A) is the noise that every other difference must exceed. Rows land in the table `cost` one
 * measurement at a time: a study that was cut goes on where it was. Rows of two machines never
 * mix. */
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
    int threads;            /* 0: not said */
    int device;             /* GPU; -1: not said */
    double seconds;         /* stop after so long; 0: never */
    const char *only;       /* cells whose label holds this; NULL: all */
    const atomic_int *stop; /* may be NULL */
    void (*tick)(void *context, const char *cell, int64_t round, size_t done, size_t all);
    void *context;
} study_cost;

size_t study_cost_count(const study *s); /* measurements in all: (cells + 1) x rounds */

/* How many of them a store has. */
berlu_status study_cost_done(size_t *out, store *index, const study *s);

/* BERLU_ERR_STOPPED: a stop or the time limit came; what was measured is in the store. */
berlu_status study_cost_run(const study_cost *how, const study *s, store *index);

/* The command of one measurement, NULL-terminated; `verb` is "step" or "memory". */
char **study_cost_command(arena *memory, const study *s, size_t cell, const study_cost *how, const char *verb);

/* ---- the table ------------------------------------------------------------------------------- */

berlu_status store_put_cost(store *s, const char *name, const cost_row *rows, size_t count);

typedef struct store_cost {
    const char *study;
    cost_row row;
} store_cost;
/* All rows, by study, machine, cell in the order of the file, again, keep and round. `out` lives in
 * `memory`. */
berlu_status store_read_cost(store *s, arena *memory, store_cost **out, size_t *count);

#endif
