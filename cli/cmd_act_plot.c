/* cmd_act_plot.c - `berlu act plot`: functions with their derivatives as one figure.
 * SPDX-License-Identifier: MIT
 *
 * A few activations are overlaid in three plots: f, f', f''. More than eight would be unreadable,
 * so each gets a small plot of f and f'. Without --from and --to a plot shows -4 to 4, or, where
 * all its functions have a knee of half-width eps, four times that: at a larger scale an eps of
 * 0.01 looks like a corner. Values are the reference's, in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "io/act_text.h"
#include "io/svg.h"
#include "output.h"

static const option_row plot_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT, .help = "activations (default: all)"},
    {"svg", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "the plot; - for standard output"},
    {"from", OPTION_FLOAT, "A", .help = "left end (default -4, or by eps)"},
    {"to", OPTION_FLOAT, "B", .help = "right end (default 4, or by eps)"},
    NO_COMPUTE_ROWS,
    {0}};

enum { POINTS = 1601, PANES = 3, OVERLAID = 8, SIDE = 3 };

typedef struct curve {
    berlu_act *act;
    const char *label;
    double x[POINTS], y[PANES][POINTS];
} curve;

typedef struct drawing {
    curve *curves;
    size_t count;
    svg_series *series; /* PANES for each curve */
    svg_plot *plots;
    char title[160], second_title[64];
} drawing;

/* The half-width of the knee; NaN where there is none. */
static double knee(const berlu_act *act)
{
    static const char *const names[] = {"eps", "beta"};
    berlu_act_param_info info;
    for (size_t i = 0; i < COUNT(names); i++) {
        int index = berlu_act_param_find(act, names[i]);
        if (index >= 0 && berlu_act_param(act, (size_t)index, &info) == BERLU_OK)
            return info.value;
    }
    return NAN;
}

/* Half of the range of x for curves [first, first + count). */
static double reach(const drawing *d, size_t first, size_t count)
{
    double widest = 0;
    for (size_t i = first; i < first + count; i++) {
        double eps = knee(d->curves[i].act);
        if (isnan(eps))
            return 4;
        widest = fmax(widest, eps);
    }
    return widest > 0 ? fmin(4, 4 * widest) : 4;
}

static void curve_fill(curve *c, double from, double to)
{
    for (size_t i = 0; i < POINTS; i++) {
        c->x[i] = from + (to - from) * (double)i / (POINTS - 1);
        berlu_act_point at = berlu_act_at(c->act, c->x[i], NULL);
        c->y[0][i] = at.value;
        c->y[1][i] = at.slope;
        c->y[2][i] = at.second;
    }
}

static berlu_status curves_make(drawing *d, const options *o)
{
    size_t given = options_count(o, "act"), count = given;
    while (!given && berlu_act_builtin(count))
        count++;
    d->curves = calloc(count, sizeof *d->curves);
    d->series = calloc(count * PANES, sizeof *d->series);
    d->plots = calloc(count + PANES, sizeof *d->plots);
    if (!d->curves || !d->series || !d->plots)
        return berlu_fail_memory(count * sizeof *d->curves, "the curves of a plot");
    for (; d->count < count; d->count++) {
        curve *c = &d->curves[d->count];
        c->label = given ? options_strings(o, "act")[d->count] : berlu_act_builtin(d->count);
        TRY(act_from_text(&c->act, c->label));
    }
    return BERLU_OK;
}

static berlu_status curves_fill(drawing *d, const options *o)
{
    for (size_t i = 0; i < d->count; i++) {
        double most = reach(d, 0, d->count);
        double from = options_given(o, "from") ? options_float(o, "from") : -most;
        double to = options_given(o, "to") ? options_float(o, "to") : most;
        if (!(from < to))
            return berlu_fail(BERLU_ERR_ARG, "option --from: %g is not below --to, %g", from, to);
        curve_fill(&d->curves[i], from, to);
    }
    return BERLU_OK;
}

static double largest(const curve *c)
{
    double most = 0;
    for (size_t i = 0; i < POINTS; i++)
        most = fmax(most, fabs(c->y[2][i]));
    return most;
}

/* The second derivative of a narrow knee (49.5 for an eps of 0.01) would flatten all others: where
 * some curves are far above the rest, the plot shows the rest, and its title names the highest
 * value. */
static void cut_second(drawing *d)
{
    const double far = 8;
    double low = 0, high = 0, limit = 0, most = 0;
    for (size_t i = 0; i < d->count; i++)
        most = fmax(most, largest(&d->curves[i]));
    for (size_t i = 0; i < d->count; i++)
        if (largest(&d->curves[i]) * far < most)
            limit = fmax(limit, largest(&d->curves[i]));
    if (limit == 0)
        return;
    for (size_t i = 0; i < d->count; i++)
        for (size_t k = 0; k < POINTS && largest(&d->curves[i]) <= limit; k++) {
            low = fmin(low, d->curves[i].y[2][k]);
            high = fmax(high, d->curves[i].y[2][k]);
        }
    snprintf(d->second_title, sizeof d->second_title, "f''(x), cut off: the highest value is %.4g", most);
    d->plots[2].title = d->second_title;
    d->plots[2].y.low = low - 0.1 * limit;
    d->plots[2].y.high = high + 0.1 * limit;
}

/* Three plots with all curves in each. */
static void overlay(drawing *d, svg_figure *figure)
{
    static const char *const titles[PANES] = {"f(x)", "f'(x)", "f''(x)"};
    for (int pane = 0; pane < PANES; pane++) {
        svg_series *series = d->series + (size_t)pane * d->count;
        for (size_t i = 0; i < d->count; i++)
            series[i] = (svg_series){.label = pane == 0 && d->count > 1 ? d->curves[i].label : NULL,
                                     .x = d->curves[i].x,
                                     .y = d->curves[i].y[pane],
                                     .count = POINTS,
                                     .color = (int)i,
                                     .width = 2};
        d->plots[pane] = (svg_plot){.title = titles[pane], .x = {.title = "x"}, .series = series, .count = d->count};
    }
    figure->count = PANES;
    figure->columns = d->count <= SIDE ? PANES : 1;
    figure->width = d->count <= SIDE ? 430 : 900;
    figure->height = d->count <= SIDE ? 340 : 420;
    cut_second(d);
    size_t length = 0;
    for (size_t i = 0; i < d->count && length < sizeof d->title; i++)
        length +=
            (size_t)snprintf(d->title + length, sizeof d->title - length, "%s%s", i ? ", " : "", d->curves[i].label);
    if (length > (d->count <= SIDE ? 120u : 80u))
        snprintf(d->title, sizeof d->title, "%zu activations", d->count);
}

/* A small plot for each. */
static void multiples(drawing *d, svg_figure *figure)
{
    for (size_t i = 0; i < d->count; i++) {
        svg_series *series = d->series + PANES * i;
        for (int pane = 0; pane < 2; pane++)
            series[pane] = (svg_series){.label = i      ? NULL
                                                 : pane ? "f'(x)"
                                                        : "f(x)",
                                        .x = d->curves[i].x,
                                        .y = d->curves[i].y[pane],
                                        .count = POINTS,
                                        .color = pane};
        d->plots[i] = (svg_plot){.title = d->curves[i].label, .series = series, .count = 2};
    }
    figure->count = d->count;
    figure->columns = 4;
    figure->width = 300;
    figure->height = 200;
    snprintf(d->title, sizeof d->title, "%zu activations and their slopes", d->count);
}

static void drawing_free(drawing *d)
{
    for (size_t i = 0; d->curves && i < d->count; i++)
        berlu_act_free(d->curves[i].act);
    free(d->series);
    free(d->plots);
    free(d->curves);
}

static berlu_status json_print(const drawing *d, const char *path)
{
    output out;
    output_start(&out);
    output_string(&out, "svg", path);
    output_array(&out, "activations");
    for (size_t i = 0; i < d->count; i++)
        output_string(&out, NULL, berlu_act_spec(d->curves[i].act));
    return output_print(&out);
}

static berlu_status act_plot(options *o)
{
    drawing d = {.title = "activations"};
    berlu_status status;
    TRY_DONE(curves_make(&d, o));
    TRY_DONE(curves_fill(&d, o));
    svg_figure figure = {.title = d.title, .plots = d.plots};
    (d.count > OVERLAID ? multiples : overlay)(&d, &figure);
    TRY_DONE(svg_save(options_string(o, "svg"), &figure));
    if (options_json(o))
        status = json_print(&d, options_string(o, "svg"));
done:
    drawing_free(&d);
    return status;
}

const command cmd_act_plot = {
    "act plot", "function, first and second derivative as a plot",
    "Overlays up to eight activations in three plots; more of them (all when none is named) get\n"
    "a small plot each.\n\n"
    "  berlu act plot relu gelu berlu:eps=0.5 berlu:eps=0.5,degree=6 --svg act.svg",
    plot_rows, act_plot};
