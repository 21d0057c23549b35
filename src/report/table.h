/* table.h - a table of a report, and its formats: CSV, Markdown, HTML, LaTeX.
 * SPDX-License-Identifier: MIT
 *
 * A cell is a word or a number with the digits to display. All formats carry the same cells; CSV
 * has every digit. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "base/arena.h"
#include "base/text.h"

typedef struct table_cell {
    const char *word; /* NULL: a number */
    double value;
    int digits;       /* after the decimal point, for display; 6 significant ones if negative */
    const char *mark; /* NULL, or how it is displayed: "best", "near" (not distinguishable from the best), "soft" */
} table_cell;

typedef struct table {
    const char *name, *title; /* name: of the CSV file */
    const char *const *columns;
    size_t column_count, row_count, capacity;
    table_cell *cells; /* row by row */
    arena *memory;
} table;

/* Adds a row cell by cell, exactly column_count of them. Without memory nothing is added, and
 * table_status() reports it. */
table table_make(arena *memory, const char *name, const char *title, const char *const *columns, size_t column_count);
void table_word(table *t, const char *word); /* copied */
void table_number(table *t, double value, int digits);
void table_mark(table *t, const char *mark);     /* marks the cell that was added last */
void table_mark_row(table *t, const char *mark); /* all cells of the last row, which must be whole */
size_t table_rows(const table *t);
berlu_status table_status(const table *t);

/* The same table without the columns that have no value in any row, sharing its words; without
 * memory as table_make(). */
table table_compact(const table *t);

/* A cell by its column's name; NaN or "" where there is none of that kind. */
double table_number_at(const table *t, size_t row, const char *column);
const char *table_word_at(const table *t, size_t row, const char *column);

void table_csv(const table *t, text *out);
void table_markdown(const table *t, text *out);
void table_html(const table *t, text *out);

/* A selection of columns and rows with display names; all of them where `columns` is NULL. */
typedef struct table_part {
    const char *id, *caption;
    const char *const *columns; /* names of the table's columns */
    const char *const *heads;   /* display names; NULL: the same */
    size_t column_count;
    size_t first, rows; /* rows 0: all */
} table_part;
void table_html_part(const table *t, text *out, const table_part *part);
void table_latex(const table *t, text *out);

#endif
