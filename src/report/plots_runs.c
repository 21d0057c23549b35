/* plots_runs.c - contrasts as intervals, runs as dots. SPDX-License-Identifier: MIT
 *
 * plot_forest() draws each contrast with its interval beside the margin; plot_dots() each run of
 * each cell, so that a reader sees the sample behind a mean. Here are also the words that all plots
 * share. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/plots.h"
#include "report/table.h"

const char *metric_words(const view_study *s)
{
    return strcmp(s->metric, "loss") == 0   ? "test loss"
           : strcmp(s->metric, "top5") == 0 ? "test accuracy (top 5), %"
                                            : "test accuracy, %";
}

const char *group_words(const evidence *e, const view_study *s, size_t group)
{
    for (size_t c = 0; c < s->cell_count; c++) {
        const view_cell *cell = &s->cells[c];
        if (cell->group != group)
            continue;
        if (!*cell->model)
            return s->of->name;
        const char *by = s->factors[group];
        const char *epochs = isnan(cell->epochs) ? "" : arena_printf(e->memory, ", %g epochs", cell->epochs);
        return epochs ? arena_printf(e->memory, "%s: %s on %s%s%s%s", s->of->name, cell->model, cell->judged_on, epochs,
                                     *by ? ", by " : "", by)
                      : NULL;
    }
    return s->of->name;
}

/* ---- forest ---------------------------------------------------------------------------------- */

typedef struct forest {
    const char **names, **titles;
    double *y, *value, *low, *high, *below, *images_low, *images_high, *paper, *judged, *open;
    double *limit, *limit_below; /* of predictions: one, or both ends of "within" */
} forest;

static int forest_make(forest *f, size_t n, arena *memory)
{
    double **const arrays[] = {&f->y,           &f->value, &f->low,    &f->high, &f->below, &f->images_low,
                               &f->images_high, &f->paper, &f->judged, &f->open, &f->limit, &f->limit_below};
    f->names = ARENA_ARRAY(memory, const char *, n);
    f->titles = ARENA_ARRAY(memory, const char *, n);
    int good = f->names && f->titles;
    for (size_t i = 0; i < COUNT(arrays) && good; i++)
        good = (*arrays[i] = ARENA_ARRAY(memory, double, n)) != NULL;
    return good;
}

static int forest_row(forest *f, size_t i, const evidence *e)
{
    const judged *j = &e->judged->items[i];
    f->names[i] = e->v->count > 1 ? arena_printf(e->memory, "%s: %s", j->study->of->name, j->of->name) : j->of->name;
    text words = {0};
    contrast_words(&words, j->study->of, j->of);
    f->titles[i] = text_status(&words) == BERLU_OK
                       ? arena_printf(e->memory, "%s: %.2f [%.2f, %.2f], n = %zu of %zu, %s", words.data,
                                      j->stats.judged.value, j->stats.low, j->stats.high, j->n, j->registered,
                                      verdict_direction_name(j->verdict.direction))
                       : NULL;
    text_free(&words);
    f->y[i] = (double)i;
    f->below[i] = (double)i + 0.22;
    f->value[i] = j->n ? j->stats.judged.value : NAN;
    f->judged[i] = j->verdict.partial ? NAN : f->value[i];
    f->open[i] = j->verdict.partial ? f->value[i] : NAN;
    f->low[i] = j->stats.low, f->high[i] = j->stats.high;
    f->images_low[i] = j->images.low, f->images_high[i] = j->images.high;
    f->paper[i] = j->of->paper;
    f->limit[i] = j->of->expected.what ? j->of->expected.limit : NAN;
    f->limit_below[i] = j->of->expected.what == STATS_WITHIN ? -j->of->expected.limit : NAN;
    return f->names[i] && f->titles[i];
}

static int any(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            return 1;
    return 0;
}

berlu_status plot_forest(figures *to, const evidence *e)
{
    size_t n = e->judged->count, count = 0;
    forest f;
    if (!n)
        return BERLU_OK;
    if (!forest_make(&f, n, e->memory))
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!forest_row(&f, i, e))
            return BERLU_ERR_MEMORY;
    if (!any(f.value, n))
        return BERLU_OK;
    double margin = e->judged->items[0].study->margin, band_x[] = {-margin, margin}, top[] = {-0.5, -0.5},
           bottom[] = {(double)n - 0.5, (double)n - 0.5};
    char words[64];
    snprintf(words, sizeof words, "within \u00b1%g", margin);
    svg_series all[8];
    all[count++] = (svg_series){
        .label = words, .x = band_x, .y = top, .y2 = bottom, .count = 2, .mark = SVG_BAND, .color = SVG_GREY};
    all[count++] = (svg_series){
        .label = "95 %", .x = f.low, .x2 = f.high, .y = f.y, .count = n, .mark = SVG_INTERVALS, .width = 2.4};
    if (any(f.images_low, n))
        all[count++] = (svg_series){.label = "seeds and images",
                                    .x = f.images_low,
                                    .x2 = f.images_high,
                                    .y = f.below,
                                    .count = n,
                                    .mark = SVG_INTERVALS,
                                    .color = SVG_GREY,
                                    .width = 1};
    if (any(f.judged, n))
        all[count++] = (svg_series){
            .label = "judged", .x = f.judged, .y = f.y, .count = n, .mark = SVG_POINTS, .titles = f.titles};
    if (any(f.open, n))
        all[count++] =
            (svg_series){.label = "partial", .x = f.open, .y = f.y, .count = n, .mark = SVG_HOLLOW, .titles = f.titles};
    if (any(f.paper, n))
        all[count++] =
            (svg_series){.label = "paper", .x = f.paper, .y = f.y, .count = n, .mark = SVG_POINTS, .color = 3};
    if (any(f.limit, n)) {
        all[count++] = (svg_series){
            .label = "predicted limit", .x = f.limit, .y = f.y, .count = n, .mark = SVG_HOLLOW, .color = 4};
        all[count++] = (svg_series){.x = f.limit_below, .y = f.y, .count = n, .mark = SVG_HOLLOW, .color = 4};
    }
    const char *unit = strcmp(e->judged->items[0].study->metric, "loss") == 0 ? "a minus b" : "a minus b, points";
    svg_plot plot = {.x = {.title = unit}, .y = {.names = f.names, .name_count = n}, .series = all, .count = count};
    return figure_write(to, &plot, 0, 110 + 40 * (int)n,
                        "Difference of means with its 95 % interval; below it the interval over new seeds and new test "
                        "images. The band is the margin of equivalence. Hollow: not at the registered number of seeds, "
                        "so not judged.");
}

/* ---- dots ------------------------------------------------------------------------------------ */

typedef struct dots {
    const char **names, **titles;
    double *x, *y, *low, *high, *mean, *row;
    size_t cells, runs;
} dots;

static int dots_make(dots *d, const view_study *s, arena *memory)
{
    size_t runs = 1, cells = s->cell_count + 1;
    for (size_t c = 0; c < s->cell_count; c++)
        runs += s->cells[c].done.count;
    *d = (dots){.names = ARENA_ARRAY(memory, const char *, cells),
                .titles = ARENA_ARRAY(memory, const char *, runs),
                .x = ARENA_ARRAY(memory, double, runs),
                .y = ARENA_ARRAY(memory, double, runs),
                .low = ARENA_ARRAY(memory, double, cells),
                .high = ARENA_ARRAY(memory, double, cells),
                .mean = ARENA_ARRAY(memory, double, cells),
                .row = ARENA_ARRAY(memory, double, cells)};
    return d->names && d->titles && d->x && d->y && d->low && d->high && d->mean && d->row;
}

static int dots_add(dots *d, const view_cell *c, arena *memory)
{
    size_t n = c->done.count, at = d->cells++;
    stats_interval i = stats_range(stats_of_mean(sample_values(&c->done)), 0.95);
    d->names[at] = c->failed ? arena_printf(memory, "%s (%zu failed)", c->label, c->failed) : c->label;
    d->low[at] = i.low, d->high[at] = i.high;
    d->mean[at] = n > 1 ? stats_mean(sample_values(&c->done)) : NAN; /* a ring would cover the only run */
    d->row[at] = (double)at;
    int good = d->names[at] != NULL;
    for (size_t k = 0; k < n && good; k++) {
        d->x[d->runs] = c->done.values[k];
        d->y[d->runs] = (double)at + ((double)k - (double)(n - 1) / 2) * 0.5 / (double)n;
        d->titles[d->runs] =
            arena_printf(memory, "%s, seed %lld: %.2f", c->label, (long long)c->done.seeds[k], c->done.values[k]);
        good = d->titles[d->runs++] != NULL;
    }
    return good;
}

static berlu_status group_dots(figures *to, const evidence *e, const view_study *s, size_t group)
{
    dots d;
    if (!dots_make(&d, s, e->memory))
        return BERLU_ERR_MEMORY;
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && s->cells[c].done.count && !dots_add(&d, &s->cells[c], e->memory))
            return BERLU_ERR_MEMORY;
    if (!d.runs)
        return BERLU_OK;
    svg_series all[] = {{.label = "95 % of the mean",
                         .x = d.low,
                         .x2 = d.high,
                         .y = d.row,
                         .count = d.cells,
                         .mark = SVG_INTERVALS,
                         .color = SVG_GREY,
                         .width = 1.6},
                        {.label = "run", .x = d.x, .y = d.y, .count = d.runs, .mark = SVG_POINTS, .titles = d.titles},
                        {.label = "mean", .x = d.mean, .y = d.row, .count = d.cells, .mark = SVG_HOLLOW, .color = 1}};
    const char *title = group_words(e, s, group);
    svg_plot plot = {.title = title,
                     .x = {.title = metric_words(s)},
                     .y = {.names = d.names, .name_count = d.cells},
                     .series = all,
                     .count = COUNT(all)};
    return title ? figure_write(to, &plot, 0, 120 + 30 * (int)d.cells, NULL) : BERLU_ERR_MEMORY;
}

berlu_status plot_dots(figures *to, const evidence *e)
{
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t g = 0; g < e->v->studies[i].group_count; g++)
            if (!e->v->studies[i].within[g])
                TRY(group_dots(to, e, &e->v->studies[i], g));
    return BERLU_OK;
}
