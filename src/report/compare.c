/* compare.c - reads runs, finds the settings that differ, groups runs into cells, draws curves.
 * SPDX-License-Identifier: MIT
 *
 * compare.h says what counts as a difference. compare_read() reads all runs first, then keys_find()
 * keeps the settings that are not equal everywhere and cells_make() joins runs that differ in the
 * seed alone. */
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "io/svg.h"
#include "study/stats.h"
#include "train/run_folder.h"
#include "train/run_missing.h"

/* ---- reading a run --------------------------------------------------------------------------- */

/* The last value of a column that is there; NaN. */
static double last_of(const csv_table *t, const char *column)
{
    double value = NAN;
    for (size_t i = 0; i < t->rows; i++) {
        double here = csv_number(t, i, csv_column(t, column));
        value = isnan(here) ? value : here;
    }
    return value;
}

static double most_of(const csv_table *t, const char *column)
{
    double most = NAN;
    for (size_t i = 0; i < t->rows; i++)
        most = fmax(most, csv_number(t, i, csv_column(t, column)));
    return most;
}

static berlu_status run_read(compare_run *out, const char *path)
{
    char file[RUN_PATH];
    out->path = path;
    if (!run_exists(path))
        return run_missing(path);
    if (snprintf(file, sizeof file, "%s/metrics.csv", path) >= (int)sizeof file)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", path);
    TRY(run_settings(&out->settings, NULL, path));
    if (file_exists(file))
        TRY(csv_read(&out->metrics, file));
    double epochs = last_of(&out->metrics, "epoch");
    out->seed = out->settings.seed;
    out->epochs = epochs >= 0 && epochs < 0x1p53 ? (uint64_t)epochs : 0;
    out->complete = out->epochs >= (uint64_t)out->settings.epochs;
    out->top1 = last_of(&out->metrics, "test_top1");
    out->top5 = last_of(&out->metrics, "test_top5");
    out->loss = last_of(&out->metrics, "test_loss");
    out->train_loss = last_of(&out->metrics, "train_loss");
    out->best_top1 = most_of(&out->metrics, "test_top1");
    return BERLU_OK;
}

/* ---- settings that differ -------------------------------------------------------------------- */

static int is_compared(const setting *row)
{
    if (strcmp(row->key, "seed") == 0 || strcmp(row->key, "max_steps") == 0)
        return 0;
    return row->role == SETTING_FIXED || row->role == SETTING_LATER || row->role == SETTING_LENGTH ||
           strcmp(row->key, "data") == 0;
}

static const char *value_of(compare *c, const compare_run *r, const setting *row)
{
    text value = {0};
    recipe_values(&r->settings, row, &value);
    const char *copy = text_status(&value) == BERLU_OK ? arena_strdup(&c->memory, value.data ? value.data : "") : NULL;
    text_free(&value);
    return copy;
}

/* Finds the rows that are not the same for all runs; values[k * runs + i] is that of run i. */
static berlu_status keys_find(compare *c, const char ***values)
{
    c->key = ARENA_ARRAY(&c->memory, compare_key, train_settings_count);
    *values = ARENA_ARRAY(&c->memory, const char *, train_settings_count * c->runs);
    if (!c->key || !*values)
        return BERLU_ERR_MEMORY;
    for (size_t k = 0; k < train_settings_count; k++) {
        const setting *row = &train_settings_table[k];
        const char **mine = *values + c->keys * c->runs;
        int differ = 0;
        for (size_t i = 0; is_compared(row) && i < c->runs; i++) {
            if (!(mine[i] = value_of(c, &c->run[i], row)))
                return BERLU_ERR_MEMORY;
            differ |= strcmp(mine[i], mine[0]) != 0;
        }
        if (differ)
            c->key[c->keys++].key = row->key;
    }
    return BERLU_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int same_cell(const compare *c, const char **values, size_t a, size_t b)
{
    for (size_t k = 0; k < c->keys; k++)
        if (strcmp(values[k * c->runs + a], values[k * c->runs + b]) != 0)
            return 0;
    return 1;
}

/* The values alone where one setting differs: "gelu"; else "act gelu, lr 0.001". */
static const char *label_make(compare *c, const char **values, size_t run)
{
    text label = {0};
    for (size_t k = 0; k < c->keys; k++)
        text_add(&label, "%s%s%s%s", k ? ", " : "", c->keys > 1 ? c->key[k].key : "", c->keys > 1 ? " " : "",
                 values[k * c->runs + run]);
    const char *copy = text_status(&label) == BERLU_OK
                           ? arena_strdup(&c->memory, label.data && *label.data ? label.data : "all runs")
                           : NULL;
    text_free(&label);
    return copy;
}

/* The first run of the same cell and seed before run `i`; NULL. */
static const char *repeated(const compare *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (c->run[k].cell == c->run[i].cell && c->run[k].seed == c->run[i].seed)
            return c->run[k].path;
    return NULL;
}

static berlu_status cells_make(compare *c, const char **values)
{
    c->cell = ARENA_ARRAY(&c->memory, compare_cell, c->runs);
    for (size_t k = 0; k < c->keys; k++)
        if (!(c->key[k].values = ARENA_ARRAY(&c->memory, const char *, c->runs)))
            return BERLU_ERR_MEMORY;
    if (!c->cell)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < c->runs; i++) {
        size_t first = 0;
        while (!same_cell(c, values, first, i))
            first++;
        if (first < i) {
            c->run[i].cell = c->run[first].cell;
        } else {
            c->run[i].cell = c->cells;
            for (size_t k = 0; k < c->keys; k++)
                c->key[k].values[c->cells] = values[k * c->runs + i];
            if (!(c->cell[c->cells++].label = label_make(c, values, i)))
                return BERLU_ERR_MEMORY;
        }
        c->run[i].repeats = repeated(c, i);
        c->cell[c->run[i].cell].count += !c->run[i].repeats;
    }
    return BERLU_OK;
}

static berlu_status cells_measure(compare *c)
{
    double *top1 = ARENA_ARRAY(&c->memory, double, 3 * c->runs), *best = top1 + c->runs, *loss = best + c->runs;
    if (!top1)
        return BERLU_ERR_MEMORY;
    for (size_t k = 0; k < c->cells; k++) {
        compare_cell *cell = &c->cell[k];
        size_t count = 0;
        for (size_t i = 0; i < c->runs; i++)
            if (c->run[i].cell == k && !c->run[i].repeats && !isnan(c->run[i].top1)) {
                top1[count] = c->run[i].top1;
                best[count] = c->run[i].best_top1;
                loss[count++] = c->run[i].loss;
            }
        const stats_sample sample = {top1, count};
        stats_interval range = stats_range(stats_of_mean(sample), 0.95);
        cell->mean = stats_mean(sample);
        cell->deviation = stats_deviation(sample);
        cell->low = range.low, cell->high = range.high;
        cell->best = stats_mean((stats_sample){best, count});
        cell->loss = stats_mean((stats_sample){loss, count});
    }
    return BERLU_OK;
}

/* A repeated run would look like two seeds that agree. */
static berlu_status repeats_refuse(const char *const *paths, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            struct stat a, b;
            if (stat(paths[i], &a) == 0 && stat(paths[k], &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
                return berlu_fail(BERLU_ERR_ARG, "%s is given twice (as %s); once is enough", paths[i], paths[k]);
        }
    return BERLU_OK;
}

berlu_status compare_read(compare *out, const char *const *paths, size_t count)
{
    const char **values = NULL;
    *out = (compare){0};
    out->run = ARENA_ARRAY(&out->memory, compare_run, count + 1);
    berlu_status status;
    TRY_DONE(out->run ? repeats_refuse(paths, count) : BERLU_ERR_MEMORY);
    for (size_t i = 0; i < count; i++) {
        out->runs++; /* is freed even when reading it failed */
        TRY_DONE(run_read(&out->run[i], paths[i]));
    }
    TRY_DONE(keys_find(out, &values));
    TRY_DONE(cells_make(out, values));
    status = cells_measure(out);
done:
    if (status != BERLU_OK)
        compare_free(out);
    return status;
}

void compare_free(compare *c)
{
    for (size_t i = 0; c->run && i < c->runs; i++) {
        csv_free(&c->run[i].metrics);
        recipe_free(&c->run[i].settings);
    }
    arena_free(&c->memory);
    *c = (compare){0};
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* The value of a run's column at an epoch; NaN. */
static double at_epoch(const compare_run *r, const char *column, double epoch)
{
    int epochs = csv_column(&r->metrics, "epoch"), values = csv_column(&r->metrics, column);
    for (size_t i = 0; i < r->metrics.rows; i++)
        if (csv_number(&r->metrics, i, epochs) == epoch)
            return csv_number(&r->metrics, i, values);
    return NAN;
}

berlu_status compare_column(compare_curve *out, compare *c, size_t cell, const char *column)
{
    const compare_run *first = c->run;
    while (first->cell != cell)
        first++;
    size_t rows = first->metrics.rows;
    double *memory = ARENA_ARRAY(&c->memory, double, 4 * rows + 1);
    *out = (compare_curve){.epoch = memory, .mean = memory + rows, .least = memory + 2 * rows};
    out->most = memory + 3 * rows;
    if (!memory)
        return BERLU_ERR_MEMORY;
    for (size_t row = 0; row < rows; row++) {
        double epoch = csv_number(&first->metrics, row, csv_column(&first->metrics, "epoch"));
        double sum = 0, least = INFINITY, most = -INFINITY;
        for (const compare_run *r = first; r < c->run + c->runs; r++)
            if (r->cell == cell && !r->repeats) {
                double value = at_epoch(r, column, epoch);
                sum += value; /* a NaN stays one */
                least = fmin(least, value);
                most = fmax(most, value);
            }
        if (isnan(sum))
            continue;
        out->epoch[out->count] = epoch;
        out->mean[out->count] = sum / (double)c->cell[cell].count;
        out->least[out->count] = least;
        out->most[out->count++] = most;
    }
    return BERLU_OK;
}

/* Bands first, below the lines. */
static berlu_status curves_add(compare *c, const char *column, svg_series *out, size_t *count, int labels)
{
    size_t lines = 0;
    svg_series *line = ARENA_ARRAY(&c->memory, svg_series, c->cells);
    if (!line)
        return BERLU_ERR_MEMORY;
    for (size_t k = 0; k < c->cells; k++) {
        compare_curve curve;
        TRY(compare_column(&curve, c, k, column));
        if (c->cell[k].count > 1)
            out[(*count)++] = (svg_series){.x = curve.epoch,
                                           .y = curve.least,
                                           .y2 = curve.most,
                                           .count = curve.count,
                                           .mark = SVG_BAND,
                                           .color = (int)k};
        line[lines++] = (svg_series){.label = labels ? c->cell[k].label : NULL,
                                     .x = curve.epoch,
                                     .y = curve.mean,
                                     .count = curve.count,
                                     .mark = curve.count < 12 ? SVG_POLYGON : SVG_LINE,
                                     .color = (int)k};
    }
    memcpy(out + *count, line, lines * sizeof *line);
    *count += lines;
    return BERLU_OK;
}

berlu_status compare_draw(compare *c, const char *path)
{
    static const struct {
        const char *column, *title, *unit;
    } curves[] = {{"test_top1", "test accuracy", "top-1, %"},
                  {"test_loss", "test loss", "cross entropy"},
                  {"train_loss", "training loss", "cross entropy"}};
    svg_plot plots[COUNT(curves)];
    char subtitle[96];
    snprintf(subtitle, sizeof subtitle, "%zu runs; lines are means, bands the range over seeds", c->runs);
    for (size_t i = 0; i < COUNT(curves); i++) {
        svg_series *series = ARENA_ARRAY(&c->memory, svg_series, 2 * c->cells);
        size_t count = 0;
        TRY(series ? curves_add(c, curves[i].column, series, &count, i == 0) : BERLU_ERR_MEMORY);
        plots[i] = (svg_plot){.title = curves[i].title,
                              .x = {.title = "epoch"},
                              .y = {.title = curves[i].unit},
                              .series = series,
                              .count = count};
    }
    return svg_save(path, &(svg_figure){.title = "Runs compared",
                                        .subtitle = subtitle,
                                        .plots = plots,
                                        .count = COUNT(curves),
                                        .width = SVG_WIDTH});
}
