/* import.h - results of another program, next to ours and never mixed with them.
 * SPDX-License-Identifier: MIT
 *
 * A CSV file with a header line. Columns: study, source (the program), cell (its label in the
 * study), and either seed and value (a row per run) or n, mean and sd (a row per cell, when no more
 * is known). Values are those of the study's metric. Other columns are ignored. The rows of a
 * source have a table of their own; importing a source again replaces its rows for those studies.
 * */
#ifndef STUDY_IMPORT_H
#define STUDY_IMPORT_H

#include "study/store.h"

enum { IMPORT_ROWS = 1 << 20 };

typedef struct import_row {
    const char *study, *source, *cell;
    int64_t seed;    /* -1: a row of n, mean and sd */
    int64_t n;       /* 1 with a seed */
    double mean, sd; /* the value; NaN with a seed */
} import_row;

typedef struct import_rows {
    import_row *items;
    size_t count;
    arena memory;
} import_rows;

/* BERLU_ERR_INPUT names the line and what is wrong with it; `out` is then empty. `name` is for
 * messages. */
berlu_status import_parse(import_rows *out, const char *bytes, size_t count, const char *name);
berlu_status import_read(import_rows *out, const char *path);
void import_free(import_rows *r);

berlu_status store_put_import(store *s, const import_rows *rows); /* one transaction */
/* All imported rows of a store, by study, source, cell and seed. */
berlu_status store_read_import(store *s, import_rows *out);

/* A cell of a source, in numbers. n is 0 where the source has none. */
typedef struct import_cell {
    double n, mean, sd;
} import_cell;
import_cell import_cell_of(const import_rows *rows, const char *study_name, const char *source, const char *cell);

/* ---- what a study registers as equal --------------------------------------------------------- */

typedef struct store_equal {
    const char *study, *source, *name, *a, *b; /* b: "" for a single cell */
    double margin;
    const char *registered;
    int current;
} store_equal;
berlu_status store_read_equals(store *s, arena *memory, store_equal **out, size_t *count);

#endif
