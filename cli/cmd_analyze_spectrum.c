/* cmd_analyze_spectrum.c - `berlu analyze spectrum RUN|MODEL`: singular values and gradients by
 * depth. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/spectrum.h"
#include "analyze_out.h"
#include "commands.h"
#include "io/svg.h"
#include "model_args.h"
#include "network_args.h"
#include "progress.h"

static const option_row rows[] = {
    {"network", OPTION_STRING, "RUN|MODEL", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "a run's folder, or the name of a model, whose start is then shown alone"},
    NETWORK_ROWS,
    {"act", OPTION_STRINGS, "ACT", .help = "activation of a model (default gelu); so are the next seven"},
    {"data", OPTION_STRING, "DATA", .help = "images of a model (default synthetic)"},
    {"seed", OPTION_STRING, "N", .help = "of a model's initial weights (default 0)"},
    MODEL_SHAPE_ROWS,
    {"svg", OPTION_STRING, "FILE", .help = "draw norms, spectra and gradients by depth"},
    {0}};

/* ---- JSON and table -------------------------------------------------------------------------- */

static void matrix_json(output *out, const spectrum_matrix *m, int state)
{
    output_object(out, NULL);
    output_string(out, "name", m->name);
    output_string(out, "state", spectrum_states[state]);
    output_int(out, "rows", (int64_t)m->rows);
    output_int(out, "columns", (int64_t)m->columns);
    output_real(out, "largest", m->singular[state][0]);
    output_real(out, "smallest", m->singular[state][m->count - 1]);
    output_real(out, "stable_rank", stable_rank(m->singular[state], m->count));
    output_real(out, "gradient", m->gradient[state]);
    output_reals(out, "singular", m->singular[state], m->count);
    output_end(out);
}

static berlu_status spectrum_json(const char *name, const spectrum *s)
{
    output out;
    output_start(&out);
    output_string(&out, "network", name);
    for (int state = 0; state < s->states; state++) {
        output_object(&out, spectrum_states[state]);
        output_real(&out, "loss", s->loss[state]);
        real_or_null(&out, "growth", s->growth[state]);
        output_array(&out, "sites");
        for (size_t i = 0; i < s->sites; i++) {
            output_object(&out, NULL);
            output_string(&out, "site", s->site[i].name);
            real_or_null(&out, "gradient", s->site[i].gradient[state]);
            output_end(&out);
        }
        output_end(&out);
        output_end(&out);
    }
    output_array(&out, "rows");
    for (int state = 0; state < s->states; state++)
        for (size_t i = 0; i < s->matrices; i++)
            matrix_json(&out, &s->matrix[i], state);
    return rows_end(&out, 1);
}

static void sites_print(const spectrum *s)
{
    if (s->sites == 0)
        return;
    printf("\n%-30s", "gradient at the site");
    for (int state = 0; state < s->states; state++)
        printf(" %12s", spectrum_states[state]);
    putchar('\n');
    for (size_t i = 0; i < s->sites; i++) {
        printf("%-30s", s->site[i].name);
        for (int state = 0; state < s->states; state++)
            printf(" %12.5g", s->site[i].gradient[state]);
        putchar('\n');
    }
    printf("%-30s", "growth a site, last to first");
    for (int state = 0; state < s->states; state++)
        printf(" %12.5g", s->growth[state]);
    printf("\n%-30s", "loss");
    for (int state = 0; state < s->states; state++)
        printf(" %12.5g", s->loss[state]);
    putchar('\n');
}

static void spectrum_print(const spectrum *s)
{
    printf("%-30s %-11s", "", "");
    for (int state = 0; state < s->states; state++)
        printf(" | %-39s", spectrum_states[state]);
    printf("\n%-30s %-11s", "matrix", "size");
    for (int state = 0; state < s->states; state++)
        printf(" | %-10s %-10s %-6s %-10s", "largest", "smallest", "rank", "gradient");
    putchar('\n');
    for (size_t i = 0; i < s->matrices; i++) {
        const spectrum_matrix *m = &s->matrix[i];
        char size[48];
        snprintf(size, sizeof size, "%zux%zu", m->rows, m->columns);
        printf("%-30s %-11s", m->name, size);
        for (int state = 0; state < s->states; state++)
            printf(" | %-10.5g %-10.4g %-6.4g %-10.4g", m->singular[state][0], m->singular[state][m->count - 1],
                   stable_rank(m->singular[state], m->count), m->gradient[state]);
        putchar('\n');
    }
    sites_print(s);
}

/* ---- plot ------------------------------------------------------------------------------------ */

static int is_fc1(const spectrum_matrix *m)
{
    const char *end = strrchr(m->name, '.');
    return end && end - m->name >= 4 && strncmp(end - 4, ".fc1", 4) == 0;
}

/* A value of every matrix or site over its place in the network, a curve for each state. */
static berlu_status by_depth(arena *memory, svg_series *out, const spectrum *s, int of_sites)
{
    size_t count = of_sites ? s->sites : s->matrices;
    for (int state = 0; state < s->states; state++) {
        double *x = ARENA_ARRAY(memory, double, 2 * count + 1), *y = x + count;
        if (!x)
            return BERLU_ERR_MEMORY;
        for (size_t i = 0; i < count; i++) {
            x[i] = (double)i + 1;
            y[i] = of_sites ? s->site[i].gradient[state] : s->matrix[i].singular[state][0];
        }
        out[state] = (svg_series){
            .label = spectrum_states[state], .x = x, .y = y, .count = count, .mark = SVG_POLYGON, .color = state};
    }
    return BERLU_OK;
}

/* The singular values of every fc1, in order, at the newest state; the start in grey behind
 * them. */
static berlu_status spectra(arena *memory, svg_series *out, size_t *count, const spectrum *s)
{
    for (int state = 0; state < s->states; state++)
        for (size_t i = 0, site = 0; i < s->matrices; i++) {
            const spectrum_matrix *m = &s->matrix[i];
            if (!is_fc1(m))
                continue;
            double *x = ARENA_ARRAY(memory, double, m->count);
            if (!x)
                return BERLU_ERR_MEMORY;
            for (size_t k = 0; k < m->count; k++)
                x[k] = m->count > 1 ? (double)k / (double)(m->count - 1) : 0;
            out[(*count)++] = (svg_series){.x = x,
                                           .y = m->singular[state],
                                           .count = m->count,
                                           .color = state + 1 < s->states ? SVG_GREY : (int)site};
            site++;
        }
    return BERLU_OK;
}

static berlu_status spectrum_draw(const char *path, const char *name, const spectrum *s)
{
    arena memory = {0};
    svg_series norms[SPECTRUM_STATES], gradients[SPECTRUM_STATES];
    svg_series *curves = ARENA_ARRAY(&memory, svg_series, 2 * s->matrices + 1);
    size_t count = 0;
    berlu_status status;
    TRY_DONE(curves ? by_depth(&memory, norms, s, 0) : BERLU_ERR_MEMORY);
    TRY_DONE(by_depth(&memory, gradients, s, 1));
    TRY_DONE(spectra(&memory, curves, &count, s));
    const svg_plot plots[] = {
        {.title = "largest singular value of each matrix",
         .x = {.title = "matrix, in the order of the network"},
         .series = norms,
         .count = (size_t)s->states},
        {.title = s->states > 1 ? "singular values of every fc1 (grey: at the start)" : "singular values of every fc1",
         .x = {.title = "place, from the largest (0) to the smallest (1)"},
         .series = curves,
         .count = count},
        {.title = "gradient norm at the activation sites",
         .x = {.title = "site"},
         .y = {.log = 1},
         .series = gradients,
         .count = (size_t)s->states}};
    status = svg_save(path, &(svg_figure){.title = "Spectra and gradients by depth",
                                          .subtitle = name,
                                          .plots = plots,
                                          .count = s->sites ? 3 : 1});
done:
    arena_free(&memory);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

enum { SETTINGS_MOST = 136 };

/* Options of a model; none of them affects a run. */
static size_t settings_given(const options *o, const char *out[SETTINGS_MOST][2])
{
    static const char *const keys[] = {"data", "seed", "image-size", "patch", "stride", "stem", "act-params"};
    size_t count = 0;
    for (size_t i = 0; i < options_count(o, "act") && count < SETTINGS_MOST - COUNT(keys); i++, count++)
        out[count][0] = "act", out[count][1] = options_strings(o, "act")[i];
    for (size_t i = 0; i < COUNT(keys); i++)
        if (options_given(o, keys[i]))
            out[count][0] = keys[i], out[count++][1] = options_string(o, keys[i]);
    return count;
}

static void tick(void *context, size_t passes)
{
    progress_step(context, passes);
}

static berlu_status analyze_spectrum(options *o)
{
    const char *settings[SETTINGS_MOST][2], *name = options_string(o, "network");
    opened net;
    spectrum s = {0};
    progress bar;
    opened_options wanted = network_from_options(o, name);
    wanted.settings = (const char *const(*)[2])settings;
    wanted.setting_count = settings_given(o, settings);
    TRY(opened_make(&net, &wanted));
    size_t batches = (net.count + (size_t)net.batch - 1) / (size_t)net.batch;
    progress_start(&bar, "spectrum", "passes", (net.is_run ? SPECTRUM_STATES : 1) * batches, 0);
    net.tick = tick;
    net.context = &bar;
    berlu_status status = spectrum_find(&s, &net, options_threads(o));
    progress_clear(&bar);
    if (status != BERLU_OK)
        goto done;
    if (options_given(o, "svg"))
        TRY_DONE(spectrum_draw(options_string(o, "svg"), name, &s));
    if (options_json(o))
        status = spectrum_json(name, &s);
    else
        spectrum_print(&s);
done:
    spectrum_free(&s);
    opened_free(&net);
    return status;
}

const command cmd_analyze_spectrum = {
    "analyze spectrum", "singular values of all weights and gradient norms by depth",
    "For a run at the start (its seed draws the weights again) and after training; for a model at the start alone. "
    "rank is the stable rank, the sum of squares over the largest square. The gradient is that of the cross entropy "
    "on some images without augmentation; at a site it is the norm of fc1's bias gradient. growth is the factor by "
    "which it grows from one site to the one before.\n\n"
    "  berlu analyze spectrum runs/first --svg spectrum.svg\n"
    "  berlu analyze spectrum vit_tiny_cifar --act berlu --images 64",
    rows, analyze_spectrum};
