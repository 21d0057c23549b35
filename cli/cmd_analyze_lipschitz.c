/* cmd_analyze_lipschitz.c - `berlu analyze lipschitz RUN`: the bounds of a trained network's MLP
 * branches. SPDX-License-Identifier: MIT
 *
 * The command itself, over activations alone, is in cmd_analyze.c. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/branch.h"
#include "analyze_out.h"
#include "base/arena.h"
#include "io/svg.h"

static void branch_json(output *out, const branch *b)
{
    output_object(out, NULL);
    output_string(out, "site", b->site);
    real_or_null(out, "alpha", b->alpha);
    real_or_null(out, "eps", b->eps);
    output_real(out, "lipschitz", b->lipschitz);
    output_real(out, "fc1", b->fc1);
    output_real(out, "fc2", b->fc2);
    output_real(out, "scale", b->scale);
    output_real(out, "bound", b->bound);
    output_end(out);
}

static berlu_status branches_json(const opened *net, const char *run, const branch *branches, size_t count)
{
    output out;
    output_start(&out);
    output_string(&out, "run", run);
    output_string(&out, "model", net->model->config.name);
    output_null(&out, "attention"); /* no bound exists */
    output_null(&out, "norm");
    output_array(&out, "rows");
    for (size_t i = 0; i < count; i++)
        branch_json(&out, &branches[i]);
    return rows_end(&out, 1);
}

static void branches_print(const branch *branches, size_t count)
{
    int scaled = 0;
    for (size_t i = 0; i < count; i++)
        scaled |= branches[i].scale != 1;
    printf("%-26s %-11s %-9s %-10s %-10s %-10s%s %s\n", "site", "alpha", "eps", "lipschitz", "||fc1||", "||fc2||",
           scaled ? " |gamma|   " : "", "bound of the MLP branch");
    for (size_t i = 0; i < count; i++) {
        const branch *b = &branches[i];
        char alpha[NUMBER_TEXT], eps[NUMBER_TEXT];
        printf("%-26s %-11s %-9s %-10.6g %-10.6g %-10.6g", b->site, digits_or_dash(alpha, 6, b->alpha),
               digits_or_dash(eps, 6, b->eps), b->lipschitz, b->fc1, b->fc2);
        if (scaled)
            printf(" %-10.6g", b->scale);
        printf(" %.6g\n", b->bound);
    }
    printf(
        "\nDot-product attention and layer norms have no Lipschitz constant, so neither has the network; the bounds\n"
        "are of the branches x -> fc2(f(fc1(x))), and no product of them bounds the whole.\n");
}

static berlu_status branches_draw(const char *path, const char *run, const branch *branches, size_t count)
{
    static const char *const labels[] = {"||fc1||", "||fc2||", "activation", "bound of the branch"};
    arena memory = {0};
    svg_series series[COUNT(labels)];
    double *x = ARENA_ARRAY(&memory, double, count *(COUNT(labels) + 1) + 1);
    if (!x)
        return BERLU_ERR_MEMORY;
    for (size_t k = 0; k < COUNT(labels); k++) {
        double *y = x + (k + 1) * count;
        for (size_t i = 0; i < count; i++) {
            const double values[] = {branches[i].fc1, branches[i].fc2, branches[i].lipschitz, branches[i].bound};
            x[i] = (double)i + 1;
            y[i] = values[k];
        }
        series[k] =
            (svg_series){.label = labels[k], .x = x, .y = y, .count = count, .mark = SVG_POLYGON, .color = (int)k};
    }
    const svg_plot plot = {.x = {.title = "activation site"},
                           .y = {.title = "Lipschitz constant", .log = 1},
                           .series = series,
                           .count = COUNT(labels)};
    berlu_status status = svg_save(
        path, &(svg_figure){.title = "Lipschitz constants by site", .subtitle = run, .plots = &plot, .count = 1});
    arena_free(&memory);
    return status;
}

berlu_status analyze_lipschitz_run(const options *o, const char *run)
{
    opened net;
    branch *branches = NULL;
    size_t count = 0;
    TRY(opened_make(&net, &(opened_options){.name = run, .which = "last", .batch = 1, .threads = options_threads(o)}));
    berlu_status status;
    TRY_DONE(opened_checkpoint(&net));
    TRY_DONE(branches_find(&branches, &count, &net, options_threads(o)));
    if (count == 0)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %s has no activation", run, net.model->config.name));
    if (options_given(o, "svg"))
        TRY_DONE(branches_draw(options_string(o, "svg"), run, branches, count));
    if (options_json(o))
        status = branches_json(&net, run, branches, count);
    else
        branches_print(branches, count);
done:
    free(branches);
    opened_free(&net);
    return status;
}
