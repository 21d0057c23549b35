/* cmd_analyze_landscape.c - `berlu analyze landscape RUN`: the loss around trained weights.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "analyze/contour.h"
#include "analyze/landscape.h"
#include "analyze/landscape_file.h"
#include "analyze_out.h"
#include "base/file.h"
#include "commands.h"
#include "io/svg.h"
#include "network_args.h"
#include "plot_target.h"
#include "progress.h"

static const option_row rows[] = {
    {"run", OPTION_STRING, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "a run's folder"},
    NETWORK_ROWS,
    {"directions", OPTION_INT, "N", .standard = "2", .least = 1, .most = 64, .help = "lines of the loss"},
    {"points", OPTION_INT, "N", .standard = "21", .least = 1, .most = 1001, .help = "of a line, an odd number"},
    {"grid", OPTION_INT, "N", .standard = "11", .least = 0, .most = 201,
     .help = "points of a side of the plane, an odd number; 0: no plane"},
    {"radius", OPTION_FLOAT, "R", .standard = "1", .least = 1e-6, .most = 100,
     .help = "of lines and plane; at 1 every filter has moved by its own length"},
    {"eigenvalues", OPTION_INT, "N", .standard = "3", .least = 0, .most = 32, .help = "of the Hessian; 0: none"},
    {"steps", OPTION_INT, "N", .standard = "20", .least = 1, .most = 256,
     .help = "of Lanczos; each takes two gradients and holds one vector of all weights"},
    {"step", OPTION_FLOAT, "H", .least = 1e-12, .most = 1e6,
     .help = "of differences of gradients (default 1e-4 of the length of all weights)"},
    {"rho", OPTION_FLOAT, "R", .standard = "0.05", .least = 1e-9, .most = 1e3,
     .help = "length of the step up the gradient that measures sharpness"},
    {"seed", OPTION_INT, "N", .standard = "0", .least = 0, .most = 9007199254740992.0, .help = "of directions"},
    {"svg", OPTION_STRING, "FILE", .help = "draw the lines and the plane's level lines"},
    {"save", OPTION_FLAG, .help = "write sharpness and eigenvalue into RUN/landscape.json, for studies (claim C18)"},
    {0}};

/* ---- output ---------------------------------------------------------------------------------- */

static void eigen_json(output *out, const landscape *l)
{
    output_array(out, "eigenvalues");
    for (size_t i = 0; i < l->found; i++) {
        output_object(out, NULL);
        output_real(out, "value", l->eigen[i].value);
        output_real(out, "error", l->eigen[i].error);
        output_end(out);
    }
    output_end(out);
}

static void point_json(output *out, double a, double b, int direction, double loss)
{
    output_object(out, NULL);
    output_string(out, "kind", direction < 0 ? "plane" : "line");
    if (direction >= 0)
        output_int(out, "direction", direction);
    output_real(out, "a", a);
    if (direction < 0)
        output_real(out, "b", b);
    output_real(out, "loss", loss);
    output_end(out);
}

static berlu_status landscape_json(const options *o, const landscape *l)
{
    output out;
    output_start(&out);
    output_string(&out, "run", options_string(o, "run"));
    output_real(&out, "loss", l->loss);
    output_real(&out, "gradient", l->gradient);
    output_real(&out, "rho", options_float(o, "rho"));
    output_real(&out, "sharpness", l->sharpness);
    eigen_json(&out, l);
    output_reals(&out, "curvature", l->curvature, l->directions);
    output_array(&out, "rows");
    for (size_t d = 0; d < l->directions; d++)
        for (size_t i = 0; i < l->points; i++)
            point_json(&out, l->t[i], 0, (int)d, l->line[d * l->points + i]);
    for (size_t b = 0; b < l->grid; b++)
        for (size_t a = 0; a < l->grid; a++)
            point_json(&out, l->side[a], l->side[b], -1, l->plane[b * l->grid + a]);
    return rows_end(&out, 1);
}

static void landscape_print(const options *o, const landscape *l)
{
    printf("loss %.6g, length of its gradient %.4g\n", l->loss, l->gradient);
    printf("sharpness %.4g: the rise after a step of %g up the gradient\n", l->sharpness, options_float(o, "rho"));
    for (size_t i = 0; i < l->found; i++)
        printf("eigenvalue %zu of the Hessian %.5g, error %.2g\n", i + 1, l->eigen[i].value, l->eigen[i].error);
    printf("\n%-10s", "direction");
    for (size_t d = 0; d < l->directions; d++)
        printf(" %11zu", d);
    printf("\n%-10s", "curvature");
    for (size_t d = 0; d < l->directions; d++)
        printf(" %11.5g", l->curvature[d]);
    printf("\nloss at\n");
    for (size_t i = 0; i < l->points; i++) {
        printf("%10.4g", l->t[i]);
        for (size_t d = 0; d < l->directions; d++)
            printf(" %11.5g", l->line[d * l->points + i]);
        putchar('\n');
    }
    if (l->grid)
        printf("The plane of directions 0 and 1, %zu x %zu points: --json or --svg\n", l->grid, l->grid);
}

/* ---- plot ------------------------------------------------------------------------------------ */

enum { LEVELS = 8 };

/* Level lines, denser towards the smallest loss. */
static berlu_status levels_make(svg_series series[LEVELS], char labels[LEVELS][NUMBER_TEXT], arena *memory,
                                const landscape *l)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < l->grid * l->grid; i++)
        if (isfinite(l->plane[i])) {
            low = fmin(low, l->plane[i]);
            high = fmax(high, l->plane[i]);
        }
    for (int k = 0; k < LEVELS; k++) {
        double share = (k + 1.0) / (LEVELS + 1), level = low + (high - low) * share * share;
        contour c;
        TRY(contour_find(&c, memory, l->plane, l->side, l->grid, level));
        snprintf(labels[k], NUMBER_TEXT, "%.4g", level);
        series[k] = (svg_series){.label = labels[k], .x = c.x, .y = c.y, .count = c.count, .color = k};
    }
    return BERLU_OK;
}

static berlu_status landscape_draw(const char *path, const char *run, const landscape *l)
{
    static const double zero = 0;
    arena memory = {0};
    char labels[LEVELS][NUMBER_TEXT], names[64][NUMBER_TEXT], subtitle[256];
    svg_series plane[LEVELS + 1], *lines = ARENA_ARRAY(&memory, svg_series, l->directions);
    if (!lines)
        return BERLU_ERR_MEMORY;
    for (size_t d = 0; d < l->directions; d++) {
        snprintf(names[d], sizeof names[d], "direction %zu", d);
        lines[d] = (svg_series){.label = names[d],
                                .x = l->t,
                                .y = l->line + d * l->points,
                                .count = l->points,
                                .mark = SVG_POLYGON,
                                .color = (int)d};
    }
    berlu_status status = l->grid ? levels_make(plane, labels, &memory, l) : BERLU_OK;
    plane[LEVELS] = (svg_series){.x = &zero, .y = &zero, .count = 1, .mark = SVG_POINTS, .color = SVG_GREY};
    const svg_plot plots[] = {{.title = "loss along filter-normalised directions",
                               .x = {.title = "distance"},
                               .y = {.title = "cross entropy"},
                               .series = lines,
                               .count = l->directions},
                              {.title = "level lines of the loss",
                               .x = {.title = "direction 0"},
                               .y = {.title = "direction 1"},
                               .series = plane,
                               .count = LEVELS + 1}};
    int length = snprintf(subtitle, sizeof subtitle, "%.120s: loss %.4g, sharpness %.3g", run, l->loss, l->sharpness);
    if (l->found)
        snprintf(subtitle + length, sizeof subtitle - (size_t)length, ", largest eigenvalue %.4g (error %.1g)",
                 l->eigen[0].value, l->eigen[0].error);
    if (status == BERLU_OK)
        status = svg_save(path, &(svg_figure){.title = "Loss around the weights",
                                              .subtitle = subtitle,
                                              .plots = plots,
                                              .count = l->grid ? 2 : 1,
                                              .columns = 2,
                                              .width = 520,
                                              .height = 420});
    arena_free(&memory);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void tick(void *context, size_t done, size_t total)
{
    (void)total;
    progress_step(context, done);
}

static berlu_status settings_check(const options *o, landscape_options *s)
{
    *s = (landscape_options){.directions = (size_t)options_int(o, "directions"),
                             .points = (size_t)options_int(o, "points"),
                             .grid = (size_t)options_int(o, "grid"),
                             .radius = options_float(o, "radius"),
                             .eigenvalues = (size_t)options_int(o, "eigenvalues"),
                             .steps = (size_t)options_int(o, "steps"),
                             .step = options_given(o, "step") ? options_float(o, "step") : 0,
                             .rho = options_float(o, "rho"),
                             .seed = (uint64_t)options_int(o, "seed"),
                             .tick = tick};
    if (s->points % 2 == 0 || (s->grid && s->grid % 2 == 0))
        return berlu_fail(BERLU_ERR_ARG,
                          "option --%s: %zu is even; an odd number has the weights themselves in the middle",
                          s->points % 2 ? "grid" : "points", s->points % 2 ? s->grid : s->points);
    if (s->grid && s->directions < 2)
        return berlu_fail(BERLU_ERR_ARG, "option --directions: a plane needs 2; or give --grid 0");
    if (s->steps < s->eigenvalues)
        return berlu_fail(BERLU_ERR_ARG, "option --steps: %zu steps find no more than as many eigenvalues (%zu)",
                          s->steps, s->eigenvalues);
    return BERLU_OK;
}

static berlu_status summary_save(const options *o, const landscape *l, size_t images)
{
    landscape_summary s = {.loss = l->loss,
                           .gradient = l->gradient,
                           .sharpness = l->sharpness,
                           .eigenvalue = l->found ? l->eigen[0].value : NAN,
                           .error = l->found ? l->eigen[0].error : NAN};
    snprintf(s.how, sizeof s.how, "%zu %s images, %s%s weights, rho %g", images,
             options_choice(o, "split") == 1 ? "test" : "training", options_string(o, "which"),
             options_flag(o, "ema") ? " averaged" : "", options_float(o, "rho"));
    return landscape_save(options_string(o, "run"), &s);
}

static berlu_status analyze_landscape(options *o)
{
    landscape_options settings;
    const char *run = options_string(o, "run");
    opened net;
    landscape l;
    progress bar;
    TRY(settings_check(o, &settings));
    if (options_flag(o, "save") && folder_exists(run))
        TRY(target_writable("save", run));
    opened_options wanted = network_from_options(o, run);
    TRY(opened_make(&net, &wanted));
    berlu_status status = net.is_run ? opened_checkpoint(&net)
                                     : berlu_fail(BERLU_ERR_INPUT, "%s is a model; give the folder of a run", run);
    progress_start(&bar, "landscape", "passes", landscape_passes(&settings), 0);
    settings.context = &bar;
    if (status == BERLU_OK)
        status = landscape_find(&l, &net, &settings);
    progress_clear(&bar);
    size_t images = net.count;
    opened_free(&net);
    TRY(status);
    if (options_flag(o, "save"))
        TRY_DONE(summary_save(o, &l, images));
    if (options_given(o, "svg"))
        TRY_DONE(landscape_draw(options_string(o, "svg"), run, &l));
    if (options_json(o))
        status = landscape_json(o, &l);
    else
        landscape_print(o, &l);
done:
    landscape_free(&l);
    return status;
}

const command cmd_analyze_landscape = {
    "analyze landscape", "the loss around trained weights: lines, a plane, Hessian, sharpness",
    "Moves the weights along random directions in which every filter has its own length, and shows the loss there, "
    "the largest eigenvalues of the Hessian (Lanczos over differences of gradients, each with its error) "
    "and the sharpness. The loss is plain cross entropy on some images without augmentation.\n\n"
    "  berlu analyze landscape runs/first --svg landscape.svg\n"
    "  berlu analyze landscape runs/first --images 1000 --grid 0 --eigenvalues 5 --steps 40\n"
    "  berlu analyze landscape runs/first --grid 0 --save",
    rows, analyze_landscape};
