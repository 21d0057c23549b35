/* plots_cost.c - the cost of a step: bars against the first cell, with the band of its second
 * measurement. SPDX-License-Identifier: MIT
 *
 * For every study, machine and policy a figure of the time and one of the memory, then all medians
 * as a table. A bar inside the band of its colour is not distinguishable from 0. Memory that is the
 * same for all is a sentence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/costs.h"
#include "report/paper.h"
#include "report/plots.h"

enum { BARS = 64 };

typedef struct bars {
    const char *names[BARS];
    double x[BARS], forward[BARS], forward_low[BARS], forward_high[BARS], backward[BARS], backward_low[BARS],
        backward_high[BARS], bytes[BARS];
    size_t count;
} bars;

/* The cells with the study, machine and policy of `row`, without `left_out`; the second measurement
 * is the band, not a bar. */
static void bars_take(bars *b, const table *t, size_t row, const char *left_out)
{
    size_t again = cost_again(t, row);
    b->count = 0;
    for (size_t i = 0; i < table_rows(t) && b->count < BARS; i++) {
        if (!cost_same(t, i, row) || i == again || strcmp(table_word_at(t, i, "cell"), left_out) == 0)
            continue;
        size_t n = b->count++;
        b->names[n] = table_word_at(t, i, "cell");
        b->x[n] = (double)n;
        b->forward[n] = table_number_at(t, i, "forward_percent");
        b->forward_low[n] = table_number_at(t, i, "forward_low");
        b->forward_high[n] = table_number_at(t, i, "forward_high");
        b->backward[n] = table_number_at(t, i, "backward_percent");
        b->backward_low[n] = table_number_at(t, i, "backward_low");
        b->backward_high[n] = table_number_at(t, i, "backward_high");
        double peak = table_number_at(t, i, "peak_bytes");
        b->bytes[n] = (isnan(peak) ? table_number_at(t, i, "planned_bytes") : peak) / 1e6;
    }
}

/* Differences exist where the first cell has the policy. */
static int has_times(const bars *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (isfinite(b->forward[i]))
            return 1;
    return 0;
}

static int equal_bytes(const bars *b)
{
    for (size_t i = 1; i < b->count; i++)
        if (b->bytes[i] != b->bytes[0])
            return 0;
    return b->count > 1 && isfinite(b->bytes[0]);
}

/* The first cell is 0 by definition and has no bar. */
static berlu_status time_draw(figures *to, const evidence *e, const bars *b, size_t row, const char *first)
{
    const table *t = e->cost;
    double forward = cost_noise(t, row, "forward"), backward = cost_noise(t, row, "backward"),
           ends[] = {-0.5, (double)b->count - 0.5}, forward_low[] = {-forward, -forward},
           forward_high[] = {forward, forward}, backward_low[] = {-backward, -backward},
           backward_high[] = {backward, backward};
    svg_series all[] = {
        {.label = "A/A forward",
         .x = ends,
         .y = forward_low,
         .y2 = forward_high,
         .count = isnan(forward) ? 0 : 2,
         .mark = SVG_BAND},
        {.label = "A/A backward",
         .x = ends,
         .y = backward_low,
         .y2 = backward_high,
         .count = isnan(backward) ? 0 : 2,
         .mark = SVG_BAND,
         .color = 1},
        {.label = "forward", .x = b->x, .y = b->forward, .count = b->count, .mark = SVG_BARS},
        {.x = b->x, .y = b->forward_low, .y2 = b->forward_high, .count = b->count, .mark = SVG_ERRORS},
        {.label = "backward", .x = b->x, .y = b->backward, .count = b->count, .mark = SVG_BARS, .color = 1},
        {.x = b->x, .y = b->backward_low, .y2 = b->backward_high, .count = b->count, .mark = SVG_ERRORS, .color = 1},
    };
    const char *title = arena_printf(e->memory, "%s: keep %s", table_word_at(t, row, "study"),
                                     table_word_at(t, row, "keep")),
               *side = arena_printf(e->memory, "time against %s, %%", first);
    svg_plot plot = {.title = title,
                     .x = {.names = b->names, .name_count = b->count},
                     .y = {.title = side},
                     .series = all,
                     .count = COUNT(all)};
    return title && side ? figure_write(to, &plot, 0, 0, table_word_at(t, row, "machine")) : BERLU_ERR_MEMORY;
}

static berlu_status bytes_draw(figures *to, const evidence *e, const bars *b, size_t row)
{
    const table *t = e->cost;
    int any = 0;
    for (size_t i = 0; i < b->count; i++)
        any |= isfinite(b->bytes[i]);
    if (!any)
        return BERLU_OK;
    svg_series one = {.x = b->x, .y = b->bytes, .count = b->count, .mark = SVG_BARS, .color = 2};
    const char *title =
        arena_printf(e->memory, "%s: keep %s", table_word_at(t, row, "study"), table_word_at(t, row, "keep"));
    svg_plot plot = {.title = title,
                     .x = {.names = b->names, .name_count = b->count},
                     .y = {.title = "peak memory, MB"},
                     .series = &one,
                     .count = 1};
    return title ? figure_write(to, &plot, 0, 0, table_word_at(t, row, "machine")) : BERLU_ERR_MEMORY;
}

/* The first cell of the study on this machine, which has not every policy. */
static const char *first_cell(const table *t, size_t like)
{
    size_t row = 0;
    while (strcmp(table_word_at(t, row, "study"), table_word_at(t, like, "study")) != 0 ||
           strcmp(table_word_at(t, row, "machine"), table_word_at(t, like, "machine")) != 0)
        row++;
    return table_word_at(t, row, "cell");
}

static berlu_status policy_draw(figures *to, const evidence *e, size_t row)
{
    const char *first = first_cell(e->cost, row);
    bars timed, cells;
    bars_take(&timed, e->cost, row, first);
    bars_take(&cells, e->cost, row, "");
    if (has_times(&timed))
        TRY(time_draw(to, e, &timed, row, first));
    return equal_bytes(&cells) ? BERLU_OK : bytes_draw(to, e, &cells, row);
}

/* What no figure shows: memory that is equal, times that have none of the first cell beside
 * them. */
static void remarks_write(text *out, const table *t, size_t row)
{
    const char *first = first_cell(t, row);
    bars timed, cells;
    bars_take(&timed, t, row, first);
    bars_take(&cells, t, row, "");
    int no_times = timed.count && !has_times(&timed), equal = equal_bytes(&cells);
    if (!no_times && !equal)
        return;
    text_string(out, "<p class=\"soft wide\">");
    html_text(out, table_word_at(t, row, "study"));
    text_string(out, ", keep ");
    html_text(out, table_word_at(t, row, "keep"));
    text_string(out, ", ");
    html_text(out, table_word_at(t, row, "machine"));
    text_string(out, ": ");
    if (equal)
        text_add(out, "peak memory is the same for all %zu cells, %.1f MB", cells.count, cells.bytes[0]);
    if (no_times) {
        text_string(out, equal ? "; no times of " : "no times of ");
        html_text(out, first);
        text_string(out, " to compare with, the table has the medians");
    }
    text_string(out, ".</p>\n");
}

/* The medians next to the paper's table III. */
static void cost_table(text *out, const table *t)
{
    static const char *const columns[] = {"forward_ms", "backward_ms", "peak_bytes"};
    text_string(out, "<div class=\"scroll\"><table id=\"cost-table\">\n<caption>Medians over the rounds, beside the "
                     "paper's table III (another machine: compare ratios)</caption>\n<thead><tr><th>study</th>"
                     "<th>machine</th><th>activation</th><th>keep</th><th class=\"n\">forward, ms</th><th class=\"n\">"
                     "backward, ms</th><th class=\"n\">peak, MB</th><th class=\"n\">paper: forward</th><th class=\"n\">"
                     "backward</th><th class=\"n\">peak, GB</th></tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < table_rows(t); row++) {
        const char *words[] = {table_word_at(t, row, "study"), table_word_at(t, row, "machine"),
                               table_word_at(t, row, "cell"), table_word_at(t, row, "keep")};
        const paper_cost *paper = NULL;
        for (size_t i = 0; paper_cost_at(i); i++)
            if (strcmp(paper_cost_at(i)->act, words[2]) == 0)
                paper = paper_cost_at(i);
        text_string(out, "<tr>");
        for (size_t i = 0; i < COUNT(words); i++) {
            text_string(out, "<td>");
            html_text(out, words[i]);
            text_string(out, "</td>");
        }
        for (size_t i = 0; i < COUNT(columns); i++) {
            double value = table_number_at(t, row, columns[i]) / (i == 2 ? 1e6 : 1);
            text_string(out, "<td class=\"n\">");
            if (isfinite(value))
                text_add(out, i == 2 ? "%.1f" : "%.3f", value);
            text_string(out, "</td>");
        }
        if (paper)
            text_add(out, "<td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"n\">%.2f</td></tr>\n",
                     paper->forward, paper->backward, paper->memory);
        else
            text_string(out, "<td></td><td></td><td></td></tr>\n");
    }
    text_string(out, "</tbody></table></div>\n");
}

static int opens_policy(const table *t, size_t row)
{
    size_t first = 0;
    while (!cost_same(t, first, row))
        first++;
    return first == row;
}

berlu_status plot_cost(figures *to, const evidence *e)
{
    size_t rows = e->cost ? table_rows(e->cost) : 0;
    for (size_t row = 0; row < rows; row++)
        if (opens_policy(e->cost, row))
            TRY(policy_draw(to, e, row));
    for (size_t row = 0; row < rows && to->page; row++)
        if (opens_policy(e->cost, row))
            remarks_write(to->page, e->cost, row);
    if (e->cost && to->page)
        cost_table(to->page, e->cost);
    return BERLU_OK;
}
