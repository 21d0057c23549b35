/* cmd_analyze_regions.c - `berlu analyze regions RUN`: where pre-activations lie, by site and
 * epoch. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "analyze/regions.h"
#include "analyze_out.h"
#include "commands.h"
#include "io/svg.h"

static const option_row rows[] = {
    {"run", OPTION_STRING, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "a run's folder"},
    {"epochs", OPTION_INTS, "N", .flags = OPTION_MANY, .least = 0, .most = 1e9,
     .help = "which ones; 0 is the start (default 0, 1, 10, 100 and the last)"},
    {"svg", OPTION_STRING, "FILE", .help = "draw all epochs: shares, dead units, scale and 1 - R^2 by site"},
    NO_COMPUTE_ROWS,
    {0}};

static int is_shown(const options *o, const regions *r, size_t row)
{
    static const int64_t usual[] = {0, 1, 10, 100};
    size_t given = options_count(o, "epochs");
    const int64_t *list = given ? options_ints(o, "epochs") : usual;
    for (size_t i = 0; i < (given ? given : COUNT(usual)); i++)
        if ((uint64_t)list[i] == r->epoch[row])
            return 1;
    return !given && row + 1 == r->epochs;
}

static void region_json(output *out, const char *site, uint64_t epoch, const region *v)
{
    output_object(out, NULL);
    output_string(out, "site", site);
    output_int(out, "epoch", (int64_t)epoch);
    real_or_null(out, "alpha", v->alpha);
    real_or_null(out, "left", v->left);
    real_or_null(out, "inside", v->inside);
    real_or_null(out, "right", v->right);
    real_or_null(out, "dead", v->dead);
    real_or_null(out, "scale", v->scale);
    real_or_null(out, "nonlinear", v->nonlinear);
    output_end(out);
}

static void region_print(const char *site, uint64_t epoch, const region *v)
{
    const double values[] = {v->left, v->inside, v->right, v->dead, v->scale, v->nonlinear};
    printf("%-26s %6llu", site, (unsigned long long)epoch);
    for (size_t i = 0; i < COUNT(values); i++) {
        char digits[NUMBER_TEXT];
        printf(" %9s", digits_or_dash(digits, 4, values[i]));
    }
    putchar('\n');
}

/* A plot for each of these, a curve for each site. */
static const struct {
    const char *title;
    size_t offset;
} curves[] = {{"share inside the transition", offsetof(region, inside)},
              {"share of dead units", offsetof(region, dead)},
              {"scale of the pre-activations", offsetof(region, scale)},
              {"nonlinearity 1 - R\u00b2", offsetof(region, nonlinear)}};

static berlu_status regions_draw(const char *path, const char *run, const regions *r)
{
    arena memory = {0};
    svg_plot plots[COUNT(curves)];
    berlu_status status = BERLU_ERR_MEMORY;
    double *x = ARENA_ARRAY(&memory, double, r->epochs);
    svg_series *series = ARENA_ARRAY(&memory, svg_series, COUNT(curves) * r->sites);
    if (!x || !series)
        goto done;
    for (size_t i = 0; i < r->epochs; i++)
        x[i] = (double)r->epoch[i];
    for (size_t k = 0; k < COUNT(curves); k++) {
        svg_series *mine = series + k * r->sites;
        for (size_t s = 0; s < r->sites; s++) {
            double *y = ARENA_ARRAY(&memory, double, r->epochs);
            if (!y)
                goto done;
            for (size_t i = 0; i < r->epochs; i++)
                y[i] = *(const double *)((const char *)&r->values[i * r->sites + s] + curves[k].offset);
            mine[s] = (svg_series){.label = k == 0 ? r->names[s] : NULL,
                                   .x = x,
                                   .y = y,
                                   .count = r->epochs,
                                   .mark = r->epochs < 12 ? SVG_POLYGON : SVG_LINE,
                                   .color = (int)s};
        }
        plots[k] = (svg_plot){.title = curves[k].title, .x = {.title = "epoch"}, .series = mine, .count = r->sites};
    }
    status = svg_save(path, &(svg_figure){.title = "Activation sites by epoch",
                                          .subtitle = run,
                                          .plots = plots,
                                          .count = COUNT(curves),
                                          .columns = 2,
                                          .width = 560});
done:
    arena_free(&memory);
    return status;
}

static berlu_status regions_show(const options *o, const regions *r)
{
    int json = options_json(o);
    size_t shown = 0;
    output out;
    for (size_t i = 0; i < r->epochs; i++)
        shown += (size_t)is_shown(o, r, i);
    if (!shown)
        return berlu_fail(BERLU_ERR_ARG, "option --epochs: the run recorded none of them");
    output_start(&out);
    output_string(&out, "run", options_string(o, "run"));
    output_array(&out, "rows");
    if (!json)
        printf("%-26s %6s %9s %9s %9s %9s %9s %9s\n", "site", "epoch", "left", "inside", "right", "dead", "scale",
               "1 - R^2");
    for (size_t i = 0; i < r->epochs; i++)
        for (size_t s = 0; is_shown(o, r, i) && s < r->sites; s++)
            if (json)
                region_json(&out, r->names[s], r->epoch[i], &r->values[i * r->sites + s]);
            else
                region_print(r->names[s], r->epoch[i], &r->values[i * r->sites + s]);
    if (!json && !r->has_start)
        printf("\nThe start (epoch 0) was not recorded: the run is of an earlier version.\n");
    return rows_end(&out, json);
}

static berlu_status analyze_regions(options *o)
{
    regions r;
    const char *run = options_string(o, "run");
    berlu_status status;
    TRY(regions_read(&r, run));
    if (options_given(o, "svg"))
        TRY_DONE(regions_draw(options_string(o, "svg"), run, &r));
    status = regions_show(o, &r);
done:
    regions_free(&r);
    return status;
}

const command cmd_analyze_regions = {
    "analyze regions", "where the pre-activations of a run lie, by site and epoch",
    "Shares of pre-activations left of, inside and right of the transition |x| <= eps (the point 0 for an activation "
    "without eps), the share of dead units, the scale (deviation of the pre-activations) and the measured 1 - R^2, "
    "the share of the output's variance that no straight line explains. Recorded by training on one batch: epoch 0 "
    "is that of the initial weights, later ones are those of the last batch of the epoch.\n\n"
    "  berlu analyze regions runs/first\n"
    "  berlu analyze regions runs/first --epochs 0 5 10 --svg regions.svg",
    rows, analyze_regions};
