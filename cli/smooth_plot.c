/* smooth_plot.c - draws what `berlu smooth --svg` shows. SPDX-License-Identifier: MIT
 *
 * One pane is a range of x: its points, the kinked and the smoothed function over them, and the control points that
 * fall into it. A figure has the pane of the whole function and, when a transition would be a speck there, one around a
 * kink. */
#include "smooth_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "io/svg.h"

enum { POINTS = 800 };

typedef struct pane {
    double low, high;
    double *x, *value, *slope, *kinked, *kinked_slope; /* POINTS of each */
    double *control_x, *control_y, *turn_x, *turn_y;   /* with a NaN after each transition */
    double *joins;
    size_t controls, turns, join_count;
    svg_series value_series[4], slope_series[4];
} pane;

static berlu_transition transition_at(const berlu_smooth *f, size_t i)
{
    berlu_transition t = {0};
    berlu_smooth_transition(f, i, &t);
    return t;
}

/* The slope before smoothing, by a difference that never reaches over a kink (there: NaN, the pen is lifted). */
static double kinked_slope(const berlu_smooth *f, double x, double h)
{
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++)
        if (fabs(x - transition_at(f, i).x) <= 2 * h)
            return NAN;
    return (berlu_smooth_kinked(f, x + h) - berlu_smooth_kinked(f, x - h)) / (2 * h);
}

static void curves_fill(pane *p, const berlu_smooth *f)
{
    double step = (p->high - p->low) / (POINTS - 1);
    for (size_t i = 0; i < POINTS; i++) {
        double x = p->low + step * (double)i;
        p->x[i] = x;
        p->value[i] = berlu_smooth_value(f, x);
        p->slope[i] = berlu_smooth_slope(f, x);
        p->kinked[i] = berlu_smooth_kinked(f, x);
        p->kinked_slope[i] = kinked_slope(f, x, step / 4);
    }
}

/* Control points of the function, and of its slope: the differences, one fewer. */
static void controls_fill(pane *p, const berlu_smooth *f)
{
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t = transition_at(f, i);
        if (t.to < p->low || t.from > p->high)
            continue;
        int n = t.degree;
        double width = t.to - t.from;
        for (int k = 0; k <= n; k++) {
            p->control_x[p->controls] = t.from + width * k / n;
            p->control_y[p->controls++] = t.control[k];
        }
        for (int k = 0; k < n; k++) {
            p->turn_x[p->turns] = n == 1 ? t.from : t.from + width * k / (n - 1);
            p->turn_y[p->turns++] = n * (t.control[k + 1] - t.control[k]) / width;
        }
        p->control_x[p->controls] = p->control_y[p->controls] = NAN;
        p->turn_x[p->turns] = p->turn_y[p->turns] = NAN;
        p->controls++;
        p->turns++;
        p->joins[p->join_count++] = t.from;
        p->joins[p->join_count++] = t.to;
    }
}

static berlu_status pane_make(pane *p, arena *memory, const berlu_smooth *f, double low, double high)
{
    size_t most = berlu_smooth_kink_count(f) * (BERLU_SMOOTH_MAX_DEGREE + 2) + 1;
    *p = (pane){.low = low, .high = high};
    double **const curves[] = {&p->x, &p->value, &p->slope, &p->kinked, &p->kinked_slope};
    double **const lists[] = {&p->control_x, &p->control_y, &p->turn_x, &p->turn_y, &p->joins};
    for (size_t i = 0; i < COUNT(curves); i++)
        if (!(*curves[i] = ARENA_ARRAY(memory, double, POINTS)))
            return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!(*lists[i] = ARENA_ARRAY(memory, double, most)))
            return BERLU_ERR_MEMORY;
    curves_fill(p, f);
    controls_fill(p, f);
    return BERLU_OK;
}

static void pane_plot(pane *p, svg_plot *value, svg_plot *slope, const char *title, const char *slope_title)
{
    svg_series joins = {.x = p->joins, .count = p->join_count, .mark = SVG_VERTICALS, .color = SVG_GREY};
    p->value_series[0] = joins;
    p->value_series[1] = (svg_series){.label = "given",
                                      .x = p->x,
                                      .y = p->kinked,
                                      .count = POINTS,
                                      .mark = SVG_DASHED,
                                      .color = SVG_GREY,
                                      .width = 1.5};
    p->value_series[3] = (svg_series){.label = "control polygon",
                                      .x = p->control_x,
                                      .y = p->control_y,
                                      .count = p->controls,
                                      .mark = SVG_POLYGON,
                                      .color = 1};
    p->value_series[2] = (svg_series){.label = "smoothed", .x = p->x, .y = p->value, .count = POINTS, .width = 2.4};
    p->slope_series[0] = joins;
    p->slope_series[1] = (svg_series){.label = "given",
                                      .x = p->x,
                                      .y = p->kinked_slope,
                                      .count = POINTS,
                                      .mark = SVG_DASHED,
                                      .color = SVG_GREY,
                                      .width = 1.5};
    p->slope_series[3] = (svg_series){
        .label = "control polygon", .x = p->turn_x, .y = p->turn_y, .count = p->turns, .mark = SVG_POLYGON, .color = 1};
    p->slope_series[2] =
        (svg_series){.label = "slope", .x = p->x, .y = p->slope, .count = POINTS, .color = 2, .width = 2.4};
    svg_axis x = {.low = p->low, .high = p->high};
    *value = (svg_plot){.title = title, .x = x, .series = p->value_series, .count = 4};
    *slope = (svg_plot){.title = slope_title, .x = x, .series = p->slope_series, .count = 4};
    slope->x.title = "x";
}

/* The range that shows all kinks with some of the outer lines. */
static void range_find(const berlu_smooth *f, double *low, double *high)
{
    size_t count = berlu_smooth_kink_count(f);
    if (count == 0) {
        *low = -1, *high = 1;
        return;
    }
    berlu_transition first = transition_at(f, 0), last = transition_at(f, count - 1);
    double room = fmax(0.35 * (last.x - first.x), fmax(first.x - first.from, last.to - last.x));
    *low = first.from - room;
    *high = last.to + room;
}

static const char *order_words(char *out, size_t room, int order)
{
    if (order >= BERLU_SMOOTH_ANALYTIC)
        return "all derivatives continuous";
    snprintf(out, room, "%d continuous derivative%s", order, order == 1 ? "" : "s");
    return out;
}

berlu_status smooth_plot_save(const berlu_smooth *f, const char *name, const char *path)
{
    arena memory = {0};
    double low, high;
    char subtitle[160], order[64], close[64];
    pane *panes = ARENA_ARRAY(&memory, pane, 2);
    svg_plot plots[4];
    svg_figure figure = {.title = name, .subtitle = subtitle, .plots = plots, .count = 2, .columns = 1, .width = 720};
    range_find(f, &low, &high);
    berlu_status status = panes ? pane_make(&panes[0], &memory, f, low, high) : BERLU_ERR_MEMORY;
    if (status != BERLU_OK)
        goto done;
    snprintf(subtitle, sizeof subtitle, "degree %d, %s, Lipschitz constant %.6g, largest gap %.6g",
             berlu_smooth_degree(f), order_words(order, sizeof order, berlu_smooth_contact_order(f)),
             berlu_smooth_lipschitz(f), berlu_smooth_max_gap(f));
    pane_plot(&panes[0], &plots[0], &plots[1], "function", "slope");
    berlu_transition first = transition_at(f, 0);
    double width = first.to - first.from;
    if (width > 0 && width < (high - low) / 12) {
        snprintf(close, sizeof close, "around the kink at %.6g", first.x);
        if ((status = pane_make(&panes[1], &memory, f, first.from - width / 2, first.to + width / 2)) != BERLU_OK)
            goto done;
        plots[2] = plots[1]; /* row by row: function, function close, slope, slope close */
        pane_plot(&panes[1], &plots[1], &plots[3], close, "slope there");
        figure.count = 4;
        figure.columns = 2;
        figure.width = 560;
    }
    status = svg_save(path, &figure);
done:
    arena_free(&memory);
    return status;
}
