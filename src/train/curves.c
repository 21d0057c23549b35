/* curves.c - loss and accuracy of a run by epoch, side by side. SPDX-License-Identifier: MIT
 *
 * The columns of metrics.csv become two plots of one SVG (io/svg.h), training and test in each; a
 * short run is drawn with marks, because a line of one point would be invisible. */
#include "train/curves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/csv.h"
#include "io/svg.h"
#include "train/run_folder.h"

/* A column of the table; NULL when there is no memory for it. */
static double *column_of(const csv_table *t, const char *name, arena *memory)
{
    double *values = ARENA_ARRAY(memory, double, t->rows + 1);
    int column = csv_column(t, name);
    for (size_t i = 0; values && i < t->rows; i++)
        values[i] = csv_number(t, i, column);
    return values;
}

/* "vit_micro with berlu:alpha=0.01,... on synthetic"; the folder's name where run.json cannot be
 * read. */
static void title_make(text *out, const char *run)
{
    train_settings s;
    if (run_settings(&s, NULL, run) != BERLU_OK) {
        text_string(out, run);
        return;
    }
    text_string(out, s.model);
    if (s.acts)
        text_add(out, " with %.*s%s", (int)strcspn(s.act[0], ":"), s.act[0], s.acts > 1 ? ", ..." : "");
    text_add(out, " on %s", s.data);
    recipe_free(&s);
}

static berlu_status curves_draw(const char *svg, const char *run, const csv_table *t, arena *memory)
{
    enum { SHORT = 20, SUBTITLE = 90 };
    svg_mark mark = t->rows <= SHORT ? SVG_POLYGON : SVG_LINE; /* a line of one point would be invisible */
    const char *end = strlen(run) > SUBTITLE ? run + strlen(run) - SUBTITLE : run;
    static const char *const names[] = {"epoch", "train_loss", "test_loss", "train_top1", "test_top1"};
    const double *columns[COUNT(names)];
    for (size_t i = 0; i < COUNT(names); i++) {
        if (csv_column(t, names[i]) < 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s: metrics.csv has no column %s", run, names[i]);
        if (!(columns[i] = column_of(t, names[i], memory)))
            return BERLU_ERR_MEMORY;
    }
    const svg_series loss[] = {
        {.label = "training", .x = columns[0], .y = columns[1], .count = t->rows, .mark = mark, .color = 0},
        {.label = "test", .x = columns[0], .y = columns[2], .count = t->rows, .mark = mark, .color = 1}};
    const svg_series top1[] = {
        {.label = "training", .x = columns[0], .y = columns[3], .count = t->rows, .mark = mark, .color = 0},
        {.label = "test", .x = columns[0], .y = columns[4], .count = t->rows, .mark = mark, .color = 1}};
    svg_axis epochs = {.title = "epoch"};
    if (t->rows == 1) /* the axis needs an interval */
        epochs.low = columns[0][0] - 1, epochs.high = columns[0][0] + 1;
    const svg_plot plots[] = {
        {.title = "loss", .x = epochs, .y = {.title = "cross entropy"}, .series = loss, .count = 2},
        {.title = "accuracy", .x = epochs, .y = {.title = "top-1, %"}, .series = top1, .count = 2}};
    text title = {0};
    title_make(&title, run);
    berlu_status status = text_status(&title);
    if (status == BERLU_OK)
        status = svg_save(
            svg, &(svg_figure){
                     .title = title.data, .subtitle = end, .plots = plots, .count = 2, .columns = 2, .width = 480});
    text_free(&title);
    return status;
}

berlu_status curves_save(const char *svg, const char *run)
{
    char path[RUN_PATH];
    csv_table t;
    arena memory = {0};
    int length = snprintf(path, sizeof path, "%s/metrics.csv", run);
    if (length < 0 || length >= (int)sizeof path)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", run);
    berlu_status status = csv_read(&t, path);
    if (status != BERLU_OK)
        return status;
    status = t.rows ? curves_draw(svg, run, &t, &memory)
                    : berlu_fail(BERLU_ERR_INPUT, "%s: no epoch is over yet, so there is no curve", path);
    arena_free(&memory);
    csv_free(&t);
    return status;
}
