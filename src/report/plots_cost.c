/* plots_cost.c - the cost of a step: bars against the first cell, with the band of its second
 * measurement. SPDX-License-Identifier: MIT
 *
 * For every study, machine and policy a figure of the time and one of the memory, then all medians
 * as a table. A bar inside the band is not distinguishable from 0. */
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

/* The cells with the study, machine and policy of `row`; the second measurement is the band, not a
 * bar. */
static void bars_take(bars *b, const table *t, size_t row)
{
    size_t again = cost_again(t, row);
    b->count = 0;
    for (size_t i = 0; i < table_rows(t) && b->count < BARS; i++) {
        if (!cost_same(t, i, row) || i == again)
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

static berlu_status time_draw(figures *to, const evidence *e, const bars *b, size_t row)
{
    const table *t = e->cost;
    int any = 0;
    for (size_t i = 0; i < b->count; i++)
        any |= isfinite(b->forward[i]);
    if (!any) /* the first cell has no such policy */
        return BERLU_OK;
    double noise = fmax(cost_noise(t, row, "forward"), cost_noise(t, row, "backward")),
           ends[] = {-0.5, (double)b->count - 0.5}, low[] = {-noise, -noise}, high[] = {noise, noise};
    svg_series all[] = {
        {.label = "A/A",
         .x = ends,
         .y = low,
         .y2 = high,
         .count = isnan(noise) ? 0 : 2,
         .mark = SVG_BAND,
         .color = SVG_GREY},
        {.label = "forward", .x = b->x, .y = b->forward, .count = b->count, .mark = SVG_BARS},
        {.x = b->x, .y = b->forward_low, .y2 = b->forward_high, .count = b->count, .mark = SVG_ERRORS},
        {.label = "backward", .x = b->x, .y = b->backward, .count = b->count, .mark = SVG_BARS, .color = 1},
        {.x = b->x, .y = b->backward_low, .y2 = b->backward_high, .count = b->count, .mark = SVG_ERRORS, .color = 1},
    };
    const char *title = arena_printf(e->memory, "%s: keep %s", table_word_at(t, row, "study"),
                                     table_word_at(t, row, "keep")),
               *side = arena_printf(e->memory, "time against %s, %%", b->names[0]);
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

berlu_status plot_cost(figures *to, const evidence *e)
{
    for (size_t row = 0; e->cost && row < table_rows(e->cost); row++) {
        size_t first = 0;
        bars b;
        while (!cost_same(e->cost, first, row))
            first++;
        if (first != row)
            continue;
        bars_take(&b, e->cost, row);
        TRY(time_draw(to, e, &b, row));
        TRY(bytes_draw(to, e, &b, row));
    }
    if (e->cost && to->page)
        cost_table(to->page, e->cost);
    return BERLU_OK;
}
