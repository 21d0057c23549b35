/* cmd_act_plot.c - `berlu act plot`: functions with their first and second derivatives as one picture. SPDX-License-Identifier: MIT
 *
 * Three plots under each other, all activations overlaid, values from the oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "commands.h"
#include "io/act_text.h"
#include "io/svg.h"
#include "output.h"

static const option_row plot_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT, .help = "activations (default: all)"},
    {"svg", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "the picture"},
    {"from", OPTION_FLOAT, "A", .standard = "-4", .help = "left end"},
    {"to", OPTION_FLOAT, "B", .standard = "4", .help = "right end"},
    NO_COMPUTE_ROWS,
    {0}};

enum { POINTS = 1601, PANES = 3 };

typedef struct curve {
    berlu_act *act;
    double y[PANES][POINTS];
} curve;

typedef struct picture {
    curve *curves;
    size_t count;
    double *x;
    svg_series *series[PANES];
    svg_plot plots[PANES];
} picture;

/* Second derivatives of narrow knees would flatten all the others: what is far outside is left out. */
static double limited(double v, double most)
{
    return fabs(v) > most ? NAN : v;
}

static void curve_fill(curve *c, const double *x, double most)
{
    for (size_t i = 0; i < POINTS; i++) {
        berlu_act_point at = berlu_act_at(c->act, x[i], NULL);
        c->y[0][i] = at.value;
        c->y[1][i] = at.slope;
        c->y[2][i] = limited(at.second, most);
    }
}

static berlu_status plot_make(picture *p, const options *o)
{
    size_t given = options_count(o, "act");
    size_t count = given;
    while (!given && berlu_act_builtin(count))
        count++;
    p->curves = calloc(count, sizeof *p->curves);
    p->x = calloc(POINTS, sizeof *p->x);
    for (int pane = 0; pane < PANES; pane++)
        p->series[pane] = calloc(count, sizeof *p->series[pane]);
    if (!p->curves || !p->x || !p->series[0] || !p->series[1] || !p->series[2])
        return berlu_fail_memory(count * sizeof *p->curves, "the curves of a plot");
    double from = options_float(o, "from"), to = options_float(o, "to");
    if (!(from < to))
        return berlu_fail(BERLU_ERR_ARG, "option --from: %g is not below --to, %g", from, to);
    for (size_t i = 0; i < POINTS; i++)
        p->x[i] = from + (to - from) * (double)i / (POINTS - 1);
    for (; p->count < count; p->count++) {
        curve *c = &p->curves[p->count];
        const char *spec = given ? options_strings(o, "act")[p->count] : berlu_act_builtin(p->count);
        berlu_status status = act_from_text(&c->act, spec);
        if (status != BERLU_OK)
            return status;
        curve_fill(c, p->x, given ? INFINITY : 2);
    }
    return BERLU_OK;
}

static void plot_arrange(picture *p, const options *o)
{
    static const char *const titles[PANES] = {"f(x)", "f'(x)", "f''(x)"};
    for (int pane = 0; pane < PANES; pane++) {
        for (size_t i = 0; i < p->count; i++)
            p->series[pane][i] = (svg_series){
                .label =
                    pane == 0 ? (options_count(o, "act") ? options_strings(o, "act")[i] : berlu_act_builtin(i)) : NULL,
                .x = p->x,
                .y = p->curves[i].y[pane],
                .count = POINTS,
                .mark = SVG_LINE,
                .color = (int)i};
        p->plots[pane] =
            (svg_plot){.title = titles[pane], .x = {.title = "x"}, .series = p->series[pane], .count = p->count};
    }
}

static void plot_free(picture *p)
{
    for (size_t i = 0; p->curves && i < p->count; i++)
        berlu_act_free(p->curves[i].act);
    for (int pane = 0; pane < PANES; pane++)
        free(p->series[pane]);
    free(p->curves);
    free(p->x);
}

static berlu_status act_plot(options *o)
{
    picture p = {0};
    berlu_status status = plot_make(&p, o);
    if (status == BERLU_OK) {
        plot_arrange(&p, o);
        svg_figure figure = {
            .title = "Activations", .plots = p.plots, .count = PANES, .columns = 1, .width = 900, .height = 420};
        status = svg_save(options_string(o, "svg"), &figure);
    }
    if (status == BERLU_OK && options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "svg", options_string(o, "svg"));
        output_array(&out, "activations");
        for (size_t i = 0; i < p.count; i++)
            output_string(&out, NULL, berlu_act_spec(p.curves[i].act));
        status = output_print(&out);
    }
    plot_free(&p);
    return status;
}

const command cmd_act_plot = {"act plot", "function, first and second derivative as a picture",
                              "Overlays the activations (all of them when none is named) in three plots.\n\n"
                              "  berlu act plot relu gelu berlu:eps=0.5 berlu:eps=0.5,degree=6 --svg act.svg",
                              plot_rows, act_plot};
