/* plots_curves.c - learning curves, accuracy by width, accuracy by measured nonlinearity.
 * SPDX-License-Identifier: MIT
 *
 * plot_learning() draws the mean of a cell by epoch with its interval, plot_widths() the ladder of
 * widths, plot_nonlinear() a point per run. Groups of cells (view.h) are a plot each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/ladder.h"
#include "report/plots.h"

enum { CURVE_POINTS = 50, CURVES = 2 * SVG_COLORS, EPOCHS_MOST = 100000 };

/* ---- learning -------------------------------------------------------------------------------- */

typedef enum curve_kind { CURVE_TOP1, CURVE_LOSS } curve_kind;

static double epoch_value(const store_epoch *e, curve_kind kind)
{
    return kind == CURVE_TOP1 ? e->test_top1 : e->train_loss;
}

typedef struct curve {
    double x[CURVE_POINTS + 1], mean[CURVE_POINTS + 1], low[CURVE_POINTS + 1], high[CURVE_POINTS + 1];
    size_t count;
} curve;

/* The values of a cell's finished runs after one epoch. */
static size_t values_at(double *out, const view_cell *c, const char *metric, double epoch, curve_kind kind)
{
    size_t n = 0;
    for (size_t r = 0; r < c->of->count; r++) {
        const store_result *run = &c->of->runs[r];
        if (!view_run_done(run, metric))
            continue;
        for (size_t k = 0; k < run->epoch_count; k++)
            if (run->epochs[k].epoch == epoch && isfinite(epoch_value(&run->epochs[k], kind)))
                out[n++] = epoch_value(&run->epochs[k], kind);
    }
    return n;
}

/* The band is the t interval of the mean from three runs on, below that the range. */
static void point_set(curve *c, size_t at, double epoch, double *values, size_t n)
{
    stats_sample s = {values, n};
    stats_interval i = stats_range(stats_of_mean(s), 0.95);
    c->x[at] = epoch;
    c->mean[at] = stats_mean(s);
    if (n < 3) {
        i = (stats_interval){INFINITY, -INFINITY};
        for (size_t k = 0; k < n; k++)
            i.low = fmin(i.low, values[k]), i.high = fmax(i.high, values[k]);
    }
    c->low[at] = i.low, c->high[at] = i.high;
}

static curve *curve_of(const view_cell *c, const char *metric, curve_kind kind, arena *memory)
{
    curve *out = ARENA_NEW(memory, curve);
    double *values = ARENA_ARRAY(memory, double, c->of->count + 1);
    const store_result *longest = NULL;
    for (size_t r = 0; r < c->of->count; r++)
        if (view_run_done(&c->of->runs[r], metric) && (!longest || c->of->runs[r].epoch_count > longest->epoch_count))
            longest = &c->of->runs[r];
    size_t measured = 0, seen = 0;
    for (size_t k = 0; longest && k < longest->epoch_count; k++)
        measured += isfinite(epoch_value(&longest->epochs[k], kind));
    for (size_t k = 0; out && values && longest && k < longest->epoch_count; k++) {
        if (!isfinite(epoch_value(&longest->epochs[k], kind)))
            continue;
        /* Thins evenly and always includes the last. */
        size_t step = (measured + CURVE_POINTS - 1) / CURVE_POINTS;
        if ((measured - 1 - seen++) % step == 0 && out->count <= CURVE_POINTS) {
            double epoch = longest->epochs[k].epoch;
            size_t n = values_at(values, c, metric, epoch, kind);
            point_set(out, out->count++, epoch, values, n);
        }
    }
    return values ? out : NULL;
}

static berlu_status learning_draw(figures *to, const evidence *e, const view_study *s, const view_cell *const *cells,
                                  size_t count, curve_kind kind, const char *title)
{
    svg_series all[2 * CURVES];
    size_t n = 0;
    for (int lines = 0; lines < 2; lines++) /* bands first, below all lines */
        for (size_t i = 0; i < count; i++) {
            curve *c = curve_of(cells[i], s->metric, kind, e->memory);
            if (!c)
                return BERLU_ERR_MEMORY;
            if (c->count < 2)
                continue;
            all[n++] = (svg_series){.label = lines ? cells[i]->label : NULL,
                                    .x = c->x,
                                    .y = lines ? c->mean : c->low,
                                    .y2 = c->high,
                                    .count = c->count,
                                    .mark = lines ? SVG_LINE : SVG_BAND,
                                    .color = (int)i,
                                    .width = 1.6};
        }
    if (!n)
        return BERLU_OK;
    svg_plot plot = {.title = title,
                     .x = {.title = "epoch"},
                     .y = {.title = kind == CURVE_TOP1 ? "test accuracy, %" : "training loss"},
                     .series = all,
                     .count = n};
    return figure_write(to, &plot, 0, 0, NULL);
}

static berlu_status group_learning(figures *to, const evidence *e, const view_study *s, size_t group)
{
    const char *title = group_words(e, s, group);
    if (!title)
        return BERLU_ERR_MEMORY;
    for (size_t next = 0; next < s->cell_count;) {
        const view_cell *cells[CURVES];
        size_t count = 0;
        for (; next < s->cell_count && count < CURVES; next++)
            if (s->cells[next].group == group && s->cells[next].done.count)
                cells[count++] = &s->cells[next];
        for (int kind = CURVE_TOP1; kind <= CURVE_LOSS && count; kind++)
            TRY(learning_draw(to, e, s, cells, count, (curve_kind)kind, title));
    }
    return BERLU_OK;
}

berlu_status plot_learning(figures *to, const evidence *e)
{
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t g = 0; g < e->v->studies[i].group_count; g++)
            if (!e->v->studies[i].within[g])
                TRY(group_learning(to, e, &e->v->studies[i], g));
    return BERLU_OK;
}

/* ---- the width of the transition ------------------------------------------------------------- */

/* Points of the paper's curve that its text gives: the peak and the end. */
static const struct {
    const char *data;
    double eps[2], top1[2];
} paper_curve[] = {{"cifar10", {1e-2, 10}, {78.5, 50.5}}, {"cifar100", {1e-2, 10}, {45.5, 21.3}}};

static berlu_status ladder_draw(figures *to, const evidence *e, const ladder *l)
{
    double x[64], mean[64], low[64], high[64];
    size_t runs = 0, n = 0, count = 0;
    for (size_t i = 0; i < l->count; i++) {
        stats_sample s = sample_values(&l->cells[i]->done);
        stats_interval at = stats_range(stats_of_mean(s), 0.95);
        x[i] = l->cells[i]->eps, mean[i] = stats_mean(s), low[i] = at.low, high[i] = at.high;
        runs += s.count;
    }
    double *run_x = ARENA_ARRAY(e->memory, double, runs + 1), *run_y = ARENA_ARRAY(e->memory, double, runs + 1);
    if (!run_x || !run_y)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < l->cells[i]->done.count; k++)
            run_x[n] = x[i], run_y[n++] = l->cells[i]->done.values[k];
    svg_series all[4];
    all[count++] =
        (svg_series){.label = "run", .x = run_x, .y = run_y, .count = n, .mark = SVG_HOLLOW, .color = SVG_GREY};
    all[count++] = (svg_series){.label = "mean, 95 %", .x = x, .y = mean, .count = l->count, .mark = SVG_POLYGON};
    all[count++] = (svg_series){.x = x, .y = low, .y2 = high, .count = l->count, .mark = SVG_ERRORS};
    for (size_t i = 0; i < COUNT(paper_curve); i++)
        if (strcmp(paper_curve[i].data, l->cells[0]->data) == 0 && strcmp(l->cells[0]->family, "vit") == 0 &&
            !l->cells[0]->own_recipe)
            all[count++] = (svg_series){.label = "paper",
                                        .x = paper_curve[i].eps,
                                        .y = paper_curve[i].top1,
                                        .count = 2,
                                        .mark = SVG_POINTS,
                                        .color = 3};
    const char *title = group_words(e, l->study, l->group);
    svg_plot plot = {.title = title,
                     .x = {.title = "eps, half-width of BerLU's transition", .log = 1},
                     .y = {.title = metric_words(l->study)},
                     .series = all,
                     .count = count};
    return title ? figure_write(to, &plot, 0, 0, NULL) : BERLU_ERR_MEMORY;
}

berlu_status plot_widths(figures *to, const evidence *e)
{
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++) {
            ladder l;
            TRY(ladder_find(&l, &e->v->studies[i], c, e->memory));
            if (l.count > 1 && !l.study->within[l.group])
                TRY(ladder_draw(to, e, &l));
        }
    return BERLU_OK;
}

/* ---- nonlinearity ---------------------------------------------------------------------------- */

enum { CLOUDS = 2 * SVG_COLORS }; /* filled, then hollow in the same colours */

/* A plot at one moment: a cloud per cell that was measured then. */
typedef struct clouds {
    svg_series all[CLOUDS];
    size_t count, places; /* places: cells of any moment, so that a cell has one colour in all plots */
    size_t runs, without; /* runs that are shown, and finished ones of these cells that were not measured */
    double last_epoch;
} clouds;

typedef struct extent2 {
    double x_low, x_high, y_low, y_high;
} extent2;

static berlu_status cloud_add(clouds *k, const evidence *e, const view_study *s, size_t c, const cell_sites *sites,
                              moment when, extent2 *at)
{
    double *x = ARENA_ARRAY(e->memory, double, sites->run_count + 1),
           *y = ARENA_ARRAY(e->memory, double, sites->run_count + 1);
    const char **titles = ARENA_ARRAY(e->memory, const char *, sites->run_count + 1);
    size_t count = 0;
    if (!x || !y || !titles)
        return BERLU_ERR_MEMORY;
    for (size_t r = 0; r < sites->run_count; r++) {
        const run_sites *run = &sites->runs[r];
        if (!(run->nonlinear[when] > 0))
            continue;
        x[count] = run->nonlinear[when];
        y[count] = view_run_value(run->run, s->metric);
        titles[count] = arena_printf(e->memory, "%s, seed %lld: 1 - R\u00b2 = %.3g, %.2f", s->cells[c].label,
                                     (long long)run->run->seed, x[count], y[count]);
        if (!titles[count])
            return BERLU_ERR_MEMORY;
        at->x_low = fmin(at->x_low, x[count]), at->x_high = fmax(at->x_high, x[count]);
        at->y_low = fmin(at->y_low, y[count]), at->y_high = fmax(at->y_high, y[count]);
        k->last_epoch = fmax(k->last_epoch, run->last_epoch);
        count++;
    }
    k->runs += count;
    k->without += s->cells[c].done.count - count;
    if (count)
        k->all[k->count++] = (svg_series){.label = s->cells[c].label,
                                          .x = x,
                                          .y = y,
                                          .count = count,
                                          .mark = k->places < SVG_COLORS ? SVG_POINTS : SVG_HOLLOW,
                                          .color = (int)k->places % SVG_COLORS,
                                          .titles = titles};
    k->places++;
    return BERLU_OK;
}

static berlu_status clouds_make(clouds *k, const evidence *e, size_t at_study, size_t group, moment when, extent2 *at)
{
    const view_study *s = &e->v->studies[at_study];
    *k = (clouds){.last_epoch = NAN};
    for (size_t c = 0; c < s->cell_count && k->places < CLOUDS; c++) {
        const cell_sites *sites = &e->sites[at_study][c];
        if (s->cells[c].group == group && sites_have(sites, SITE_NONLINEAR))
            TRY(cloud_add(k, e, s, c, sites, when, at));
    }
    return BERLU_OK;
}

static const char *moment_words(const evidence *e, moment when, const clouds *k)
{
    static const double epochs[] = {[MOMENT_FIRST] = 1, [MOMENT_TENTH] = 10};
    if (when == MOMENT_START)
        return "at the start, before the first update";
    if (when == MOMENT_LAST)
        return arena_printf(e->memory, "after the last epoch, %g", k->last_epoch);
    return arena_printf(e->memory, "after epoch %g", epochs[when]);
}

/* Up to four plots of one group with the same axes: accuracy of the last epoch, 1 - R^2 of each
 * moment. */
static berlu_status group_nonlinear(figures *to, const evidence *e, size_t at_study, size_t group)
{
    const view_study *s = &e->v->studies[at_study];
    clouds *all = ARENA_ARRAY(e->memory, clouds, MOMENTS);
    svg_plot plots[MOMENTS];
    size_t count = 0, runs = 0, without = 0;
    extent2 at = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    if (!all)
        return BERLU_ERR_MEMORY;
    for (int m = 0; m < MOMENTS; m++) {
        TRY(clouds_make(&all[m], e, at_study, group, (moment)m, &at));
        if (all[m].count < 2) /* one function is no comparison */
            continue;
        if (m == MOMENT_START)
            runs = all[m].runs, without = all[m].without;
        plots[count] = (svg_plot){.title = moment_words(e, (moment)m, &all[m]),
                                  .x = {.title = "1 \u2212 R\u00b2, mean over the sites", .log = 1},
                                  .y = {.title = metric_words(s)},
                                  .series = all[m].all,
                                  .count = all[m].count};
        if (!plots[count++].title)
            return BERLU_ERR_MEMORY;
    }
    if (!count)
        return BERLU_OK;
    double padding = at.y_high > at.y_low ? 0.06 * (at.y_high - at.y_low) : 1;
    for (size_t i = 0; i < count; i++) {
        plots[i].x.low = at.x_low / 1.3, plots[i].x.high = at.x_high * 1.3;
        plots[i].y.low = at.y_low - padding, plots[i].y.high = at.y_high + padding;
    }
    const char *caption = to->heading = group_words(e, s, group);
    if (caption && without)
        caption = arena_printf(e->memory,
                               "%s. At the start %zu of %zu runs were measured: the others are of versions "
                               "that did not.",
                               caption, runs, runs + without);
    return caption ? figures_write(to, plots, count, 2, caption) : BERLU_ERR_MEMORY;
}

berlu_status plot_nonlinear(figures *to, const evidence *e)
{
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t g = 0; g < e->v->studies[i].group_count; g++)
            if (!e->v->studies[i].within[g])
                TRY(group_nonlinear(to, e, i, g));
    return BERLU_OK;
}
