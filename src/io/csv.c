/* csv.c - writes cells, and reads a table in two passes. SPDX-License-Identifier: MIT
 *
 * csv.h has the format. The first pass (shape_read) counts cells and checks that all rows have as
 * many as the header, the second (cells_read) extracts them. */
#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static int line_starts(const text *out)
{
    return out->length == 0 || out->data[out->length - 1] == '\n';
}

static void comma(text *out)
{
    if (!line_starts(out))
        text_string(out, ",");
}

void csv_text(text *out, const char *cell)
{
    if (!*cell) {
        csv_empty(out);
        return;
    }
    comma(out);
    if (!cell[strcspn(cell, ",\"\r\n")]) {
        text_string(out, cell);
        return;
    }
    text_string(out, "\"");
    for (; *cell; cell++)
        text_bytes(out, *cell == '"' ? "\"\"" : cell, *cell == '"' ? 2 : 1);
    text_string(out, "\"");
}

void csv_f64(text *out, double value)
{
    char digits[NUMBER_TEXT];
    comma(out);
    text_string(out, number_text(digits, value));
}

void csv_int(text *out, long long value)
{
    comma(out);
    text_add(out, "%lld", value);
}

void csv_empty(text *out)
{
    text_string(out, line_starts(out) ? "\"\"" : ","); /* an empty first cell must still be visible */
}

void csv_end(text *out)
{
    text_string(out, "\n");
}

/* Reads the cell at *at: its end is a comma, a line's end or the end of the bytes. With `out`, the
 * cell's text without quotes is stored there (it is never longer than its source). */
static berlu_status cell_read(const char *bytes, size_t count, size_t *at, char *out, size_t *length)
{
    size_t i = *at, n = 0;
    if (i < count && bytes[i] == '"') {
        for (i++;; i++) {
            if (i >= count)
                return BERLU_ERR_INPUT;
            if (bytes[i] == '"' && !(i + 1 < count && bytes[i + 1] == '"'))
                break;
            i += bytes[i] == '"';
            if (out)
                out[n] = bytes[i];
            n++;
        }
        i++;
        if (i < count && bytes[i] != ',' && bytes[i] != '\n' && bytes[i] != '\r')
            return BERLU_ERR_INPUT;
    } else {
        for (; i < count && bytes[i] != ',' && bytes[i] != '\n' && bytes[i] != '\r'; i++, n++)
            if (out)
                out[n] = bytes[i];
    }
    *at = i;
    *length = n;
    return BERLU_OK;
}

/* Past a line's end, "\n" or "\r\n"; false when there is none (a comma follows, or the bytes
 * end). */
static int line_end(const char *bytes, size_t count, size_t *at)
{
    size_t i = *at;
    i += i + 1 < count && bytes[i] == '\r' && bytes[i + 1] == '\n';
    if (i >= count || bytes[i] != '\n')
        return 0;
    *at = i + 1;
    return 1;
}

static berlu_status shape_read(csv_table *table, const char *bytes, size_t count, const char *name)
{
    size_t lines = 0, cells = 0;
    for (size_t at = 0; at < count;) {
        size_t length;
        if (cell_read(bytes, count, &at, NULL, &length) != BERLU_OK)
            return berlu_fail(BERLU_ERR_INPUT, "%s:%zu: a quoted cell that does not end well", name, lines + 1);
        cells++;
        int ended = line_end(bytes, count, &at);
        if (!ended && at < count && bytes[at] == ',') {
            at++;
            if (at < count)
                continue;
            cells++; /* an empty cell after the file's last comma */
        } else if (!ended && at < count) {
            return berlu_fail(BERLU_ERR_INPUT, "%s:%zu: a carriage return inside a line", name, lines + 1);
        }
        if (lines == 0)
            table->columns = cells;
        if (cells != table->columns || cells > CSV_COLUMNS)
            return berlu_fail(BERLU_ERR_INPUT, "%s:%zu: %zu cells, but the first line names %zu columns", name,
                              lines + 1, cells, table->columns);
        lines++;
        cells = 0;
    }
    table->rows = lines > 0 ? lines - 1 : 0;
    return BERLU_OK;
}

static berlu_status cells_read(csv_table *table, const char *bytes, size_t count)
{
    size_t cells = (table->rows + 1) * table->columns, at = 0;
    const char **out = ARENA_ARRAY(&table->memory, const char *, cells + 1);
    char *texts = arena_alloc(&table->memory, count + cells + 1, 1); /* every cell and its NUL */
    if (!out || !texts)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < cells; i++) {
        size_t length = 0;
        cell_read(bytes, count, &at, texts, &length);
        out[i] = texts;
        texts[length] = 0;
        texts += length + 1;
        if (!line_end(bytes, count, &at))
            at++;
    }
    table->names = out;
    table->cells = out + table->columns;
    return BERLU_OK;
}

berlu_status csv_parse(csv_table *out, const char *bytes, size_t count, const char *name)
{
    csv_table table = {0};
    berlu_status status = BERLU_OK;
    if (count > CSV_BYTES)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %zu bytes is too long for a table", name, count));
    else if (count == 0 || memchr(bytes, 0, count))
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %s", name, count ? "a NUL byte in a table" : "an empty table"));
    TRY_DONE(shape_read(&table, bytes, count, name));
    TRY_DONE(cells_read(&table, bytes, count));
done:
    if (status != BERLU_OK) {
        csv_free(&table);
        return status;
    }
    *out = table;
    return BERLU_OK;
}

berlu_status csv_read(csv_table *out, const char *path)
{
    char *bytes;
    size_t count;
    TRY(file_read_all(&bytes, &count, path, CSV_BYTES));
    berlu_status status = csv_parse(out, bytes, count, path);
    free(bytes);
    return status;
}

void csv_free(csv_table *table)
{
    arena_free(&table->memory);
    *table = (csv_table){0};
}

int csv_column(const csv_table *table, const char *name)
{
    for (size_t i = 0; i < table->columns; i++)
        if (strcmp(table->names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *csv_cell(const csv_table *table, size_t row, int column)
{
    if (row >= table->rows || column < 0 || (size_t)column >= table->columns)
        return "";
    return table->cells[row * table->columns + (size_t)column];
}

double csv_number(const csv_table *table, size_t row, int column)
{
    double value;
    return number_parse(csv_cell(table, row, column), &value) ? value : NAN;
}
