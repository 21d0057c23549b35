/* csv.h - tables of comma-separated values: metrics, timings, results. SPDX-License-Identifier: MIT
 *
 * The first line names the columns. Cells are texts; numbers are written so that they read back to
 * the same bits, and an empty cell means "not known". Quotes follow RFC 4180. A row that a crash
 * truncated has too few cells, and the reader reports its line. */
#ifndef IO_CSV_H
#define IO_CSV_H

#include <stddef.h>

#include "base/arena.h"
#include "base/text.h"

/* ---- writing: cells are appended to a text, csv_end() ends the line -------------------------- */
void csv_text(text *out, const char *cell); /* quoted where necessary */
void csv_f64(text *out, double value);      /* "nan", "inf", "-inf" */
void csv_int(text *out, long long value);
void csv_empty(text *out);
void csv_end(text *out);

/* ---- reading --------------------------------------------------------------------------------- */
enum { CSV_BYTES = 256 << 20, CSV_COLUMNS = 1 << 16 };

typedef struct csv_table {
    size_t columns, rows; /* without the line of names */
    const char **names;
    const char **cells; /* row by row */
    arena memory;
} csv_table;

berlu_status csv_parse(csv_table *out, const char *bytes, size_t count, const char *name);
berlu_status csv_read(csv_table *out, const char *path);
void csv_free(csv_table *table);

int csv_column(const csv_table *table, const char *name); /* -1: no such column */
const char *csv_cell(const csv_table *table, size_t row, int column);
double csv_number(const csv_table *table, size_t row, int column); /* NaN for an empty or unknown cell */

#endif
