/* analyze_plot.c - see analyze_plot.h. SPDX-License-Identifier: MIT */
#include "analyze_plot.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/linearity.h"
#include "base/arena.h"
#include "io/svg.h"

enum { POINTS = 1201, CURVE = 97, WIDTH = 900, HEIGHT = 520, OVERLAID = 8 };

static berlu_status draw(const char *path, const char *title, const svg_plot *plot)
{
    return svg_save(path, &(svg_figure){.title = title, .plots = plot, .count = 1, .width = WIDTH, .height = HEIGHT});
}

/* More curves than OVERLAID would be unreadable, so each gets a small plot. */
static berlu_status draw_small(const char *path, const char *title, svg_series *series, size_t count, arena *memory)
{
    svg_plot *plots = ARENA_ARRAY(memory, svg_plot, count);
    if (!plots)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        plots[i] = (svg_plot){.title = series[i].label, .series = &series[i], .count = 1};
        series[i].color = 0;
        series[i].label = NULL;
    }
    return svg_save(
        path, &(svg_figure){.title = title, .plots = plots, .count = count, .columns = 4, .width = 300, .height = 200});
}

berlu_status analyze_plot_slopes(const analyze_acts *list, const char *path)
{
    arena memory = {0};
    berlu_status status = BERLU_ERR_MEMORY;
    double *x = ARENA_ARRAY(&memory, double, POINTS);
    svg_series *series = ARENA_ARRAY(&memory, svg_series, list->count);
    if (!x || !series)
        goto done;
    for (size_t i = 0; i < POINTS; i++)
        x[i] = -4 + 8 * (double)i / (POINTS - 1);
    for (size_t k = 0; k < list->count; k++) {
        double *y = ARENA_ARRAY(&memory, double, POINTS);
        if (!y)
            goto done;
        for (size_t i = 0; i < POINTS; i++)
            y[i] = berlu_act_at(list->acts[k], x[i], NULL).slope;
        series[k] = (svg_series){.label = list->names[k], .x = x, .y = y, .count = POINTS, .color = (int)k};
    }
    if (list->count > OVERLAID)
        status = draw_small(path, "Slopes f'(x)", series, list->count, &memory);
    else
        status =
            draw(path, "Slopes",
                 &(svg_plot){.x = {.title = "x"}, .y = {.title = "f'(x)"}, .series = series, .count = list->count});
done:
    arena_free(&memory);
    return status;
}

/* Theory as a line, the simulated network as dots of the same colour. */
berlu_status analyze_plot_depth(const depth_list *list, const char *path)
{
    arena memory = {0};
    berlu_status status = BERLU_ERR_MEMORY;
    size_t count = 0;
    svg_series *series = ARENA_ARRAY(&memory, svg_series, 2 * list->count);
    for (size_t k = 0; k < list->count && series; k++) {
        const depth *d = &list->depth[k];
        double *x = ARENA_ARRAY(&memory, double, 3 * DEPTH_POINTS);
        if (!x)
            goto done;
        double *theory = x + DEPTH_POINTS, *simulated = theory + DEPTH_POINTS;
        for (size_t i = 0; i < d->count; i++) {
            x[i] = d->curve[i].layer;
            theory[i] = d->curve[i].gap;
            simulated[i] = d->curve[i].simulated;
        }
        series[count++] = (svg_series){.label = list->name[k], .x = x, .y = theory, .count = d->count, .color = (int)k};
        if (d->count && !isnan(simulated[0]))
            series[count++] =
                (svg_series){.x = x, .y = simulated, .count = d->count, .mark = SVG_POINTS, .color = (int)k};
    }
    if (series)
        status = draw(path, "Correlation of two inputs by depth",
                      &(svg_plot){.x = {.title = "layer", .log = 1},
                                  .y = {.title = "1 - c", .log = 1},
                                  .series = series,
                                  .count = count});
done:
    arena_free(&memory);
    return status;
}

berlu_status analyze_plot_linearity(const analyze_acts *list, const double *scales, size_t count, const char *path)
{
    arena memory = {0};
    berlu_status status = BERLU_ERR_MEMORY;
    double low = 0.01, high = 10;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, scales[i]);
        high = fmax(high, scales[i]);
    }
    double *x = ARENA_ARRAY(&memory, double, CURVE);
    linearity *found = ARENA_ARRAY(&memory, linearity, CURVE);
    svg_series *series = ARENA_ARRAY(&memory, svg_series, list->count + 1);
    if (!x || !found || !series)
        goto done;
    for (size_t i = 0; i < CURVE; i++)
        x[i] = low * pow(high / low, (double)i / (CURVE - 1));
    for (size_t k = 0; k < list->count; k++) {
        double *y = ARENA_ARRAY(&memory, double, CURVE);
        if (!y)
            goto done;
        linearity_find(found, list->acts[k], x, CURVE);
        for (size_t i = 0; i < CURVE; i++)
            y[i] = found[i].nonlinear;
        series[k] = (svg_series){.label = list->names[k], .x = x, .y = y, .count = CURVE, .color = (int)k};
    }
    series[list->count] = (svg_series){.x = scales, .count = count, .mark = SVG_VERTICALS, .color = SVG_GREY};
    status = draw(path, "Nonlinearity by scale of the input",
                  &(svg_plot){.x = {.title = "deviation of the input", .log = 1},
                              .y = {.title = "1 - R\u00b2"},
                              .series = series,
                              .count = list->count + 1});
done:
    arena_free(&memory);
    return status;
}
