/* table.c - cells of a table, and its four formats. SPDX-License-Identifier: MIT
 *
 * Cells are appended row by row (table_word, table_number); a failed allocation is kept and
 * reported once, by table_status(). Then one writer per format: CSV, Markdown, HTML, LaTeX. */
#include "report/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/csv.h"

table table_make(arena *memory, const char *name, const char *title, const char *const *columns, size_t column_count)
{
    return (table){.name = name, .title = title, .columns = columns, .column_count = column_count, .memory = memory};
}

/* row_count counts cells while a table grows; a table is only printed when its rows are whole. */
static void cell_add(table *t, table_cell cell)
{
    if (t->row_count == t->capacity) {
        size_t more = t->capacity ? t->capacity * 2 : 64;
        table_cell *cells = ARENA_ARRAY(t->memory, table_cell, more);
        if (!cells) {
            t->column_count = 0; /* table_status() reports it */
            return;
        }
        if (t->row_count)
            memcpy(cells, t->cells, t->row_count * sizeof *cells);
        t->cells = cells;
        t->capacity = more;
    }
    t->cells[t->row_count++] = cell;
}

void table_word(table *t, const char *word)
{
    const char *copy = arena_strdup(t->memory, word ? word : "");
    cell_add(t, (table_cell){.word = copy ? copy : ""});
    if (!copy)
        t->column_count = 0; /* as in cell_add() */
}

void table_number(table *t, double value, int digits)
{
    cell_add(t, (table_cell){.value = value, .digits = digits});
}

void table_mark(table *t, const char *mark)
{
    if (t->row_count)
        t->cells[t->row_count - 1].mark = mark;
}

void table_mark_row(table *t, const char *mark)
{
    for (size_t i = 1; i <= t->column_count && i <= t->row_count; i++)
        t->cells[t->row_count - i].mark = mark;
}

size_t table_rows(const table *t)
{
    return t->column_count ? t->row_count / t->column_count : 0;
}

static const table_cell *cell_at(const table *t, size_t row, const char *column)
{
    for (size_t c = 0; row < table_rows(t) && c < t->column_count; c++)
        if (strcmp(t->columns[c], column) == 0)
            return &t->cells[row * t->column_count + c];
    return NULL;
}

double table_number_at(const table *t, size_t row, const char *column)
{
    const table_cell *c = cell_at(t, row, column);
    return c && !c->word ? c->value : NAN;
}

const char *table_word_at(const table *t, size_t row, const char *column)
{
    const table_cell *c = cell_at(t, row, column);
    return c && c->word ? c->word : "";
}

berlu_status table_status(const table *t)
{
    assert(!t->column_count || t->row_count % t->column_count == 0);
    return t->column_count ? BERLU_OK : berlu_fail_memory(t->row_count * sizeof *t->cells, "a table");
}

static const char *cell_text(const table_cell *c, char out[64])
{
    if (c->word)
        return c->word;
    if (isnan(c->value))
        return "";
    if (c->digits < 0)
        snprintf(out, 64, "%.*g", -c->digits, c->value);
    else
        snprintf(out, 64, "%.*f", c->digits, c->value);
    return out;
}

static int has_values(const table *t, size_t column)
{
    char number[64];
    for (size_t i = column; i < t->row_count; i += t->column_count)
        if (*cell_text(&t->cells[i], number))
            return 1;
    return 0;
}

table table_compact(const table *t)
{
    size_t *from = ARENA_ARRAY(t->memory, size_t, t->column_count + 1), count = 0;
    const char **names = ARENA_ARRAY(t->memory, const char *, t->column_count + 1);
    if (!from || !names)
        return (table){.name = t->name, .title = t->title, .memory = t->memory};
    for (size_t c = 0; c < t->column_count; c++)
        if (has_values(t, c)) {
            names[count] = t->columns[c];
            from[count++] = c;
        }
    table out = table_make(t->memory, t->name, t->title, names, count);
    for (size_t row = 0; row < table_rows(t); row++)
        for (size_t c = 0; c < count; c++)
            cell_add(&out, t->cells[row * t->column_count + from[c]]);
    return out;
}

void table_csv(const table *t, text *out)
{
    for (size_t c = 0; c < t->column_count; c++)
        csv_text(out, t->columns[c]);
    csv_end(out);
    for (size_t i = 0; i < t->row_count; i++) {
        const table_cell *cell = &t->cells[i];
        if (cell->word)
            csv_text(out, cell->word);
        else if (isnan(cell->value))
            csv_empty(out);
        else
            csv_f64(out, cell->value);
        if ((i + 1) % t->column_count == 0)
            csv_end(out);
    }
}

static void markdown_text(text *out, const table_cell *c)
{
    char number[64];
    const char *value = cell_text(c, number), *around = !*value || !c->mark            ? ""
                                                        : strcmp(c->mark, "best") == 0 ? "**"
                                                        : strcmp(c->mark, "near") == 0 ? "*"
                                                                                       : "";
    text_string(out, around);
    for (; *value; value++)
        text_add(out, *value == '|' ? "\\%c" : "%c", *value == '\n' ? ' ' : *value);
    text_string(out, around);
}

void table_markdown(const table *t, text *out)
{
    text_add(out, "### %s\n\n", t->title);
    for (size_t c = 0; c < t->column_count; c++)
        text_add(out, "| %s ", t->columns[c]);
    text_string(out, "|\n");
    for (size_t c = 0; c < t->column_count; c++)
        text_string(out, "|---");
    text_string(out, "|\n");
    for (size_t i = 0; i < t->row_count; i++) {
        text_string(out, "| ");
        markdown_text(out, &t->cells[i]);
        text_string(out, (i + 1) % t->column_count ? " " : " |\n");
    }
    text_string(out, "\n");
}

/* Long labels and messages are wrapped; a command stays one line that can be copied. */
static void html_cell(text *out, const table_cell *c)
{
    enum { LINE = 40 };
    char number[64];
    const char *mark = c->mark ? c->mark : "";
    const char *kind = !c->word ? "n" : strlen(c->word) > LINE && strcmp(mark, "code") != 0 ? "wrap" : "";
    if (!*kind && !*mark)
        text_string(out, "<td>");
    else
        text_add(out, "<td class=\"%s%s%s\">", kind, *mark && *kind ? " " : "", mark);
    html_text(out, cell_text(c, number));
    text_string(out, "</td>");
}

static size_t column_of(const table *t, const char *name)
{
    size_t c = 0;
    while (c < t->column_count && strcmp(t->columns[c], name) != 0)
        c++;
    assert(c < t->column_count);
    return c;
}

void table_html_part(const table *t, text *out, const table_part *part)
{
    size_t count = part->columns ? part->column_count : t->column_count,
           end = part->rows ? part->first + part->rows : table_rows(t);
    text_add(out, "<div class=\"scroll\"><table id=\"%s\">\n<caption>", part->id);
    html_text(out, part->caption);
    text_string(out, "</caption>\n<thead><tr>");
    for (size_t k = 0; k < count; k++) {
        size_t c = part->columns ? column_of(t, part->columns[k]) : k;
        int number = part->first < end && !t->cells[part->first * t->column_count + c].word;
        text_add(out, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
        html_text(out, part->heads ? part->heads[k] : t->columns[c]);
        text_string(out, "</th>");
    }
    text_string(out, "</tr></thead>\n<tbody>\n");
    for (size_t row = part->first; row < end; row++) {
        text_string(out, "<tr>");
        for (size_t k = 0; k < count; k++)
            html_cell(out, &t->cells[row * t->column_count + (part->columns ? column_of(t, part->columns[k]) : k)]);
        text_string(out, "</tr>\n");
    }
    text_string(out, "</tbody></table></div>\n");
}

void table_html(const table *t, text *out)
{
    table_html_part(t, out, &(table_part){.id = t->name, .caption = t->title});
}

static void latex_text(text *out, const char *value)
{
    for (; *value; value++)
        if (strchr("&%$#_{}", *value))
            text_add(out, "\\%c", *value);
        else if (*value == '~' || *value == '^' || *value == '\\')
            text_add(out, "\\char`\\%c{}", *value);
        else
            text_bytes(out, value, 1);
}

void table_latex(const table *t, text *out)
{
    char number[64];
    text_string(out, "\\begin{tabular}{");
    for (size_t c = 0; c < t->column_count; c++)
        text_string(out, t->row_count && !t->cells[c].word ? "r" : "l");
    text_string(out, "}\n\\hline\n");
    for (size_t c = 0; c < t->column_count; c++) {
        text_string(out, c ? " & " : "");
        latex_text(out, t->columns[c]);
    }
    text_string(out, " \\\\\n\\hline\n");
    for (size_t i = 0; i < t->row_count; i++) {
        const char *mark = t->cells[i].mark ? t->cells[i].mark : "";
        int marked = strcmp(mark, "best") == 0 || strcmp(mark, "near") == 0;
        text_string(out, !marked ? "" : strcmp(mark, "best") == 0 ? "\\textbf{" : "\\textit{");
        latex_text(out, cell_text(&t->cells[i], number));
        text_string(out, marked ? "}" : "");
        text_string(out, (i + 1) % t->column_count ? " & " : " \\\\\n");
    }
    text_string(out, "\\hline\n\\end{tabular}\n");
}
