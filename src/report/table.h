/* table.h - a table of a report, and its forms: CSV, Markdown, HTML, LaTeX. SPDX-License-Identifier: MIT
 *
 * A cell is a word or a number with the digits people want to see. All forms carry the same cells; CSV has every digit. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "base/arena.h"
#include "base/text.h"

typedef struct table_cell {
    const char *word; /* NULL: a number */
    double value;
    int digits; /* behind the point, for people; 6 significant ones where negative */
} table_cell;

typedef struct table {
    const char *name, *title; /* name: of the CSV file */
    const char *const *columns;
    size_t column_count, row_count, capacity;
    table_cell *cells; /* row by row */
    arena *memory;
} table;

/* A row is added cell by cell, exactly column_count of them. Out of memory: nothing is added, table_status() says so. */
table table_make(arena *memory, const char *name, const char *title, const char *const *columns, size_t column_count);
void table_word(table *t, const char *word); /* copied */
void table_number(table *t, double value, int digits);
berlu_status table_status(const table *t);

void table_csv(const table *t, text *out);
void table_markdown(const table *t, text *out);
void table_html(const table *t, text *out);
void table_latex(const table *t, text *out);

void html_text(text *out, const char *value); /* & < > " written as entities */

#endif
