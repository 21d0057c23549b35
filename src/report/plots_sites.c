/* plots_sites.c - alpha, occupancy and dead units by layer and epoch: small plots, a row per cell.
 * SPDX-License-Identifier: MIT
 *
 * By epoch there is a line per layer, from amber (the first) to violet (the last). Occupancy is the
 * share of pre-activations left of, inside and right of the transition. */
#include <math.h>
#include <string.h>

#include "report/plots.h"
#include "report/table.h"

enum { CELLS_MOST = 24, LAYERS_MOST = 12 }; /* limits the size of the page; layers are thinned evenly */

typedef struct lines {
    svg_series series[LAYERS_MOST];
    size_t count;
} lines;

/* A line per layer over the epochs. */
static berlu_status lines_make(lines *out, const cell_sites *s, site_metric what, double unit, arena *memory)
{
    size_t layers = s->sites < LAYERS_MOST ? s->sites : LAYERS_MOST;
    *out = (lines){.count = 0};
    for (size_t k = 0; k < layers; k++) {
        size_t site = layers > 1 ? k * (s->sites - 1) / (layers - 1) : 0;
        double *y = ARENA_ARRAY(memory, double, s->epochs + 1);
        if (!y)
            return BERLU_ERR_MEMORY;
        for (size_t i = 0; i < s->epochs; i++)
            y[i] = unit * sites_at(s, what, site, i);
        int shade = layers > 1 ? (int)(k * (SVG_SHADES - 1) / (layers - 1)) : 0;
        out->series[out->count++] = (svg_series){.label = k == 0                          ? "first layer"
                                                          : k + 1 == layers && layers > 1 ? "last"
                                                                                          : NULL,
                                                 .x = s->epoch,
                                                 .y = y,
                                                 .count = s->epochs,
                                                 .color = SVG_SHADE + shade,
                                                 .width = 1.2};
    }
    return BERLU_OK;
}

/* The least and the greatest mean of a measurement. */
static stats_interval extent(const cell_sites *s, site_metric what)
{
    stats_interval all = {INFINITY, -INFINITY};
    for (size_t site = 0; site < s->sites; site++)
        for (size_t i = 0; i < s->epochs; i++) {
            double value = sites_at(s, what, site, i);
            if (!isnan(value))
                all.low = fmin(all.low, value), all.high = fmax(all.high, value);
        }
    return all;
}

/* Skips constant measurements: a slope that is not learned, sites without dead units. */
static berlu_status by_epoch(figures *to, const cell_sites *s, site_metric what, const char *title, double unit,
                             arena *memory)
{
    lines l;
    stats_interval all = extent(s, what);
    if (!(all.low < all.high))
        return BERLU_OK;
    TRY(lines_make(&l, s, what, unit, memory));
    svg_plot plot = {.title = title, .x = {.title = "epoch"}, .series = l.series, .count = l.count};
    if (what == SITE_DEAD)
        plot.y = (svg_axis){.low = 0, .high = fmax(1, 1.05 * unit * all.high)};
    return figure_write(to, &plot, SVG_SMALL_WIDTH, SVG_SMALL_HEIGHT, NULL);
}

/* Shares as stacked areas: over the layers after the last epoch, or over the epochs as the mean of
 * the layers. */
static berlu_status occupancy(figures *to, const cell_sites *s, int over_epochs, arena *memory)
{
    static const site_metric parts[] = {SITE_LEFT, SITE_INSIDE, SITE_RIGHT};
    static const char *const names[] = {"left", "inside", "right"};
    size_t n = over_epochs ? s->epochs : s->sites;
    svg_series all[COUNT(parts)];
    double *x = ARENA_ARRAY(memory, double, n + 1);
    if (n < 2 || !sites_have(s, SITE_LEFT))
        return BERLU_OK;
    for (size_t p = 0; p < COUNT(parts); p++) {
        double *y = ARENA_ARRAY(memory, double, n + 1);
        if (!x || !y)
            return BERLU_ERR_MEMORY;
        for (size_t i = 0; i < n; i++) {
            x[i] = over_epochs ? s->epoch[i] : (double)i;
            for (size_t k = 0; over_epochs && k < s->sites; k++)
                y[i] += 100 * sites_at(s, parts[p], k, i) / (double)s->sites;
            if (!over_epochs)
                y[i] = 100 * sites_at(s, parts[p], i, s->epochs - 1);
        }
        all[p] = (svg_series){.label = names[p],
                              .x = x,
                              .y = y,
                              .count = n,
                              .mark = SVG_STACK,
                              .color = p == 1   ? 1
                                       : p == 2 ? 0
                                                : SVG_GREY};
    }
    svg_plot plot = {.title = over_epochs ? "inputs, %, mean of layers" : "inputs, %, after the last epoch",
                     .x = {.title = over_epochs ? "epoch" : "layer"},
                     .y = {.low = 0, .high = 100},
                     .series = all,
                     .count = COUNT(all)};
    return figure_write(to, &plot, SVG_SMALL_WIDTH, SVG_SMALL_HEIGHT, NULL);
}

static berlu_status cell_draw(figures *to, const view_study *s, const view_cell *c, const cell_sites *sites,
                              arena *memory)
{
    if (!(to->heading = arena_printf(memory, "%s: %s", s->of->name, c->label)))
        return BERLU_ERR_MEMORY;
    if (to->page) {
        text_string(to->page, "<h3>");
        html_text(to->page, to->heading);
        if (extent(sites, SITE_DEAD).high == 0)
            text_string(to->page, " <span class=\"soft\">(no dead unit in any epoch)</span>");
        text_string(to->page, "</h3>\n<div class=\"row\">\n");
    }
    TRY(by_epoch(to, sites, SITE_ALPHA, "slope alpha", 1, memory));
    TRY(occupancy(to, sites, 0, memory));
    TRY(occupancy(to, sites, 1, memory));
    TRY(by_epoch(to, sites, SITE_DEAD, "dead units, %", 100, memory));
    if (to->page)
        text_string(to->page, "</div>\n");
    return BERLU_OK;
}

berlu_status plot_sites(figures *to, const evidence *e)
{
    size_t cells = 0, left_out = 0;
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++) {
            const cell_sites *s = &e->sites[i][c];
            const view_study *of = &e->v->studies[i];
            if (!s->sites || s->epochs < 2 || !sites_have(s, SITE_LEFT) || of->within[of->cells[c].group])
                continue;
            if (cells++ < CELLS_MOST)
                TRY(cell_draw(to, of, &of->cells[c], s, e->memory));
            else
                left_out++;
        }
    if (left_out && to->page)
        text_add(to->page, "<p>%zu more cells have these measurements; the page shows the first %d.</p>\n", left_out,
                 CELLS_MOST);
    return BERLU_OK;
}
