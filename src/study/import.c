/* import.c - reads another program's results from CSV and checks them. SPDX-License-Identifier: MIT
 *
 * import.h has the columns. Rows are parsed one by one, then sorted and checked together
 * (rows_check): a seed twice, or a summary beside runs, is refused. Read import_parse(). */
#include "study/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/csv.h"

void import_free(import_rows *r)
{
    arena_free(&r->memory);
    *r = (import_rows){0};
}

typedef struct import_columns {
    int study, source, cell, seed, value, n, mean, sd;
} import_columns;

static berlu_status columns_find(import_columns *out, const csv_table *t, const char *name)
{
    *out = (import_columns){.study = csv_column(t, "study"),
                            .source = csv_column(t, "source"),
                            .cell = csv_column(t, "cell"),
                            .seed = csv_column(t, "seed"),
                            .value = csv_column(t, "value"),
                            .n = csv_column(t, "n"),
                            .mean = csv_column(t, "mean"),
                            .sd = csv_column(t, "sd")};
    if (out->study < 0 || out->source < 0 || out->cell < 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: columns study, source and cell are needed", name);
    if ((out->seed < 0 || out->value < 0) && (out->n < 0 || out->mean < 0 || out->sd < 0))
        return berlu_fail(BERLU_ERR_INPUT, "%s: columns seed and value, or n, mean and sd, are needed", name);
    return BERLU_OK;
}

/* A number in a range; 0 for anything else. A cell of a column that is not there is empty. */
static int number_take(double *out, const csv_table *t, size_t row, int column, double least, double most)
{
    const char *cell = column >= 0 ? csv_cell(t, row, column) : "";
    return number_parse(cell, out) && isfinite(*out) && *out >= least && *out <= most;
}

static berlu_status row_fail(const char *name, size_t row, const char *what)
{
    return berlu_fail(BERLU_ERR_INPUT, "%s: row %zu: %s", name, row + 1, what);
}

static berlu_status row_read(import_row *out, const csv_table *t, const import_columns *c, size_t row, const char *name)
{
    double seed, n, value, sd;
    *out = (import_row){
        .study = csv_cell(t, row, c->study), .source = csv_cell(t, row, c->source), .cell = csv_cell(t, row, c->cell)};
    if (!*out->study || !*out->source || !*out->cell)
        return row_fail(name, row, "study, source and cell are needed");
    if (c->seed >= 0 && *csv_cell(t, row, c->seed)) {
        if (!number_take(&seed, t, row, c->seed, 0, 9e15) || seed != floor(seed))
            return row_fail(name, row, "seed: a whole number from 0 on is needed");
        if (!number_take(&value, t, row, c->value, -1e12, 1e12))
            return row_fail(name, row, "value: a number is needed");
        out->seed = (int64_t)seed, out->n = 1, out->mean = value, out->sd = NAN;
        return BERLU_OK;
    }
    if (!number_take(&n, t, row, c->n, 2, 1e6) || n != floor(n))
        return row_fail(name, row, "n: a whole number from 2 on is needed where there is no seed");
    if (!number_take(&value, t, row, c->mean, -1e12, 1e12))
        return row_fail(name, row, "mean: a number is needed");
    if (!number_take(&sd, t, row, c->sd, 0, 1e12))
        return row_fail(name, row, "sd: a number from 0 on is needed");
    out->seed = -1, out->n = (int64_t)n, out->mean = value, out->sd = sd;
    return BERLU_OK;
}

static int same_cell(const import_row *a, const import_row *b)
{
    return strcmp(a->study, b->study) == 0 && strcmp(a->source, b->source) == 0 && strcmp(a->cell, b->cell) == 0;
}

static int by_place(const void *x, const void *y)
{
    const import_row *a = x, *b = y;
    int order = strcmp(a->study, b->study);
    order = order ? order : strcmp(a->source, b->source);
    order = order ? order : strcmp(a->cell, b->cell);
    return order ? order : a->seed < b->seed ? -1 : a->seed > b->seed;
}

/* Sorts first: a repeated seed, or a summary next to runs, would be counted twice. */
static berlu_status rows_check(const import_rows *r, const char *name)
{
    for (size_t i = 1; i < r->count; i++) {
        const import_row *a = &r->items[i - 1], *b = &r->items[i];
        if (same_cell(a, b) && (a->seed == b->seed || a->seed < 0))
            return berlu_fail(BERLU_ERR_INPUT, "%s: %.60s, %.60s, %.60s: %s", name, b->study, b->source, b->cell,
                              a->seed == b->seed ? "one seed stands there twice"
                                                 : "a mean beside single runs counts them twice");
    }
    return BERLU_OK;
}

static int strings_keep(import_row *row, arena *memory)
{
    row->study = arena_strdup(memory, row->study);
    row->source = arena_strdup(memory, row->source);
    row->cell = arena_strdup(memory, row->cell);
    return row->study && row->source && row->cell;
}

berlu_status import_parse(import_rows *out, const char *bytes, size_t count, const char *name)
{
    csv_table t;
    import_columns columns;
    import_rows r = {0};
    *out = (import_rows){0};
    TRY(csv_parse(&t, bytes, count, name));
    berlu_status status;
    TRY_DONE(columns_find(&columns, &t, name));
    if (!t.rows || t.rows > IMPORT_ROWS)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %s", name, t.rows ? "too many rows" : "no rows"));
    if (!(r.items = ARENA_ARRAY(&r.memory, import_row, t.rows)))
        TRY_DONE(berlu_fail_memory(t.rows * sizeof *r.items, name));
    for (size_t i = 0; i < t.rows; i++) {
        TRY_DONE(row_read(&r.items[r.count], &t, &columns, i, name));
        if (!strings_keep(&r.items[r.count++], &r.memory))
            TRY_DONE(berlu_fail_memory(0, name));
    }
    qsort(r.items, r.count, sizeof *r.items, by_place);
    status = rows_check(&r, name);
done:
    csv_free(&t);
    if (status == BERLU_OK)
        *out = r;
    else
        import_free(&r);
    return status;
}

berlu_status import_read(import_rows *out, const char *path)
{
    char *bytes = NULL;
    size_t count = 0;
    *out = (import_rows){0};
    TRY(file_read_all(&bytes, &count, path, CSV_BYTES));
    berlu_status status = import_parse(out, bytes, count, path);
    free(bytes);
    return status;
}

import_cell import_cell_of(const import_rows *rows, const char *study_name, const char *source, const char *cell)
{
    import_cell out = {.n = 0, .mean = NAN, .sd = NAN};
    double sum = 0, squares = 0;
    const import_row like = {.study = study_name, .source = source, .cell = cell};
    for (size_t i = 0; i < rows->count; i++) {
        if (!same_cell(&rows->items[i], &like))
            continue;
        if (rows->items[i].seed < 0)
            return (import_cell){(double)rows->items[i].n, rows->items[i].mean, rows->items[i].sd};
        sum += rows->items[i].mean;
        out.n++;
    }
    if (out.n)
        out.mean = sum / out.n;
    for (size_t i = 0; i < rows->count; i++)
        if (same_cell(&rows->items[i], &like))
            squares += (rows->items[i].mean - out.mean) * (rows->items[i].mean - out.mean);
    if (out.n > 1)
        out.sd = sqrt(squares / (out.n - 1));
    return out;
}
