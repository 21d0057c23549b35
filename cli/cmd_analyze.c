/* cmd_analyze.c - `berlu analyze`: the theory of activations, computed.
 * SPDX-License-Identifier: MIT
 *
 * Each command prints a table, or `rows` with --json, and plots with --svg. The computations are in
 * src/analyze, the card in cmd_analyze_card.c, the plots in analyze_plot.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/card.h"
#include "analyze_out.h"
#include "analyze_plot.h"
#include "commands.h"
#include "io/act_text.h"
#include "output.h"
#include "progress.h"
#include "train/run_folder.h"

/* The activations of a command: those named, else `standard` (NULL-terminated), else all. */
static berlu_status acts_open(analyze_acts *list, const options *o, const char *const *standard)
{
    size_t given = options_count(o, "act"), count = given;
    while (!given && (standard ? standard[count] : berlu_act_builtin(count)))
        count++;
    list->acts = calloc(count, sizeof *list->acts);
    list->names = calloc(count, sizeof *list->names);
    if (!list->acts || !list->names)
        return berlu_fail_memory(count * sizeof *list->acts, "the activations");
    for (; list->count < count; list->count++) {
        size_t i = list->count;
        const char *words = given ? options_strings(o, "act")[i] : standard ? standard[i] : berlu_act_builtin(i);
        TRY(act_from_text(&list->acts[i], words));
        list->names[i] = words;
    }
    return BERLU_OK;
}

static void acts_close(analyze_acts *list)
{
    for (size_t i = 0; list->acts && i < list->count; i++)
        berlu_act_free(list->acts[i]);
    free(list->acts);
    free(list->names);
}

/* ---- lipschitz ------------------------------------------------------------------------------- */

static const option_row lipschitz_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT,
     .help = "activations (default: those the paper compares, then all others), or the folder of one run"},
    {"svg", OPTION_STRING, "FILE", .help = "draw the slopes, or the constants of the run by site"},
    {0}};

static void lipschitz_write(output *out, const char *name, const lipschitz *l, int json)
{
    char a[NUMBER_TEXT], b[NUMBER_TEXT], c[NUMBER_TEXT], d[NUMBER_TEXT], e[NUMBER_TEXT], f[NUMBER_TEXT];
    if (!json) {
        printf("%-20s %-20s %-20s %-20s %-23s %-22s %-6s %s\n", name, number_text(a, l->constant),
               number_text(b, l->at), number_text(c, l->found), number_text(d, l->found_at),
               number_text(e, l->curvature), number_or_dash(f, l->paper), l->verdict ? l->verdict : "");
        return;
    }
    output_object(out, NULL);
    output_string(out, "act", name);
    output_real(out, "lipschitz", l->constant);
    output_real(out, "at", l->at);
    output_real(out, "found", l->found);
    output_real(out, "found_at", l->found_at);
    output_real(out, "max_curvature", l->curvature);
    real_or_null(out, "paper", l->paper);
    output_string(out, "verdict", l->verdict);
    output_end(out);
}

/* The paper's activations in its order, then the others of the library. */
static const char *paper_first(size_t index)
{
    size_t paper = 0;
    while (lipschitz_paper_act(paper))
        paper++;
    if (index < paper)
        return lipschitz_paper_act(index);
    for (size_t i = 0, seen = paper; berlu_act_builtin(i); i++) {
        int again = 0;
        for (size_t k = 0; k < paper; k++)
            again |= strcmp(lipschitz_paper_act(k), berlu_act_builtin(i)) == 0;
        if (!again && seen++ == index)
            return berlu_act_builtin(i);
    }
    return NULL;
}

/* The folder of a run among the arguments; the name of an activation is never one. */
static const char *run_among(const options *o)
{
    for (size_t i = 0; i < options_count(o, "act"); i++) {
        const char *words = options_strings(o, "act")[i];
        int builtin = 0;
        for (size_t k = 0; berlu_act_builtin(k); k++)
            builtin |= strcmp(words, berlu_act_builtin(k)) == 0;
        if (!builtin && run_exists(words))
            return words;
    }
    return NULL;
}

static berlu_status analyze_lipschitz(options *o)
{
    const char *order[64] = {NULL}, *run = run_among(o);
    if (run && options_count(o, "act") > 1)
        return berlu_fail(BERLU_ERR_ARG, "%s is a run; give one run alone, or activations", run);
    if (run)
        return analyze_lipschitz_run(o, run);
    for (size_t i = 0; i + 1 < COUNT(order) && paper_first(i); i++)
        order[i] = paper_first(i);
    analyze_acts list = {0};
    int json = options_json(o);
    berlu_status status;
    TRY_DONE(acts_open(&list, o, order));
    if (options_given(o, "svg"))
        TRY_DONE(analyze_plot_slopes(&list, options_string(o, "svg")));
    output out;
    output_start(&out);
    output_array(&out, "rows");
    if (!json)
        printf("%-20s %-20s %-20s %-20s %-23s %-22s %-6s %s\n", "activation", "Lipschitz constant", "at", "found",
               "found at", "largest curvature", "paper", "verdict");
    for (size_t i = 0; i < list.count; i++) {
        lipschitz l;
        lipschitz_find(&l, list.acts[i]);
        lipschitz_write(&out, list.names[i], &l, json);
    }
    status = rows_end(&out, json);
done:
    acts_close(&list);
    return status;
}

const command cmd_analyze_lipschitz = {
    "analyze lipschitz", "the largest slope of activations, or the bounds of a trained network",
    "The constant that the library states, and the largest slope that a search over the double-precision reference "
    "finds\n"
    "without knowing it. Without arguments: the four activations of the paper's comparison first, then all others.\n"
    "With a run: alpha, eps and the constant at each site, the largest singular values of fc1 and fc2, and the bound "
    "of "
    "the MLP branch.\n\n"
    "  berlu analyze lipschitz\n"
    "  berlu analyze lipschitz gelu berlu:alpha=1.2 my.yaml --json\n"
    "  berlu analyze lipschitz runs/first",
    lipschitz_rows, analyze_lipschitz};

/* ---- depth ----------------------------------------------------------------------------------- */

static const option_row depth_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT,
     .help = "activations (default: relu leaky_relu gelu berlu)"},
    {"q", OPTION_FLOAT, "Q", .standard = "1", .least = 1e-6, .most = 1e6, .help = "variance of the pre-activations"},
    {"c0", OPTION_FLOAT, "C", .standard = "0.5", .least = -1, .most = 1, .help = "correlation of the two inputs"},
    {"layers", OPTION_INT, "N", .standard = "1000", .least = 1, .most = 100000, .help = "how deep"},
    {"simulate", OPTION_INT, "WIDTH", .least = 2, .most = 65536, .help = "also run one random network of this width"},
    {"seed", OPTION_INT, "N", .standard = "0", .least = 0, .most = 9007199254740992.0, .help = "of its weights"},
    {"svg", OPTION_STRING, "FILE", .help = "draw 1 - c by layer"},
    {0}};

static void curve_write(output *out, const depth *d, int simulated)
{
    output_array(out, "curve");
    for (size_t i = 0; i < d->count; i++) {
        output_object(out, NULL);
        output_int(out, "layer", d->curve[i].layer);
        output_real(out, "gap", d->curve[i].gap);
        output_real(out, "q", d->curve[i].q);
        output_real(out, "chi", d->curve[i].chi);
        if (simulated)
            output_real(out, "simulated", d->curve[i].simulated);
        output_end(out);
    }
    output_end(out);
}

static void depth_json(output *out, const char *name, const depth *d, int simulated)
{
    output_object(out, NULL);
    output_string(out, "act", name);
    output_string(out, "edge", d->edge ? "exists" : "none");
    output_real(out, "sw2", d->sw2);
    output_real(out, "sb2", d->sb2);
    output_real(out, "beta_q", d->beta_q);
    output_int(out, "exponent", d->exponent);
    real_or_null(out, "coefficient", d->coefficient);
    real_or_null(out, "crossover", d->crossover);
    output_real(out, "chi", d->chi);
    curve_write(out, d, simulated);
    output_end(out);
}

static void depth_print(const char *name, const depth *d, int simulated)
{
    printf("%s\n", name);
    if (d->edge)
        printf("  edge of chaos at sw2 = %.12g, sb2 = %.12g; 1 - c falls as %.10g / l%s\n", d->sw2, d->sb2,
               d->coefficient, d->exponent == 2 ? "^2" : "");
    else
        printf("  no edge of chaos: sb2 would have to be negative. Shown with sw2 = %.12g, sb2 = 0, where chi = %.10g "
               "and\n"
               "  1 - c falls exponentially\n",
               d->sw2, d->chi);
    if (!isnan(d->crossover))
        printf("  smooth behaviour begins at a depth of about %.0f layers; before, it is the kinked function\n",
               d->crossover);
    printf("  %8s  %-22s %-18s%s\n", "layer", "1 - c", "q", simulated ? "simulated 1 - c" : "");
    for (size_t i = 0; i < d->count; i++) {
        printf("  %8d  %-22.14g %-18.10g", d->curve[i].layer, d->curve[i].gap, d->curve[i].q);
        if (simulated)
            printf("%.6g", d->curve[i].simulated);
        putchar('\n');
    }
    putchar('\n');
}

/* One activation, and f - f(0) after it where only that has an edge. Appends to `found`. */
static berlu_status depth_of(const berlu_act *act, const char *name, const depth_settings *s, depth_list *found)
{
    depth *d = &found->depth[found->count];
    snprintf(found->name[found->count], sizeof found->name[0], "%s", name);
    TRY(depth_find(d, act, s));
    found->count++;
    if (d->edge)
        return BERLU_OK;
    berlu_act *centred = NULL;
    TRY(act_centred(&centred, act));
    const char *keys = strrchr(name, ')');
    snprintf(found->name[found->count], sizeof found->name[0], "%s%ccenter=1", name,
             strchr(keys ? keys : name, ':') ? ',' : ':');
    berlu_status status = depth_find(&found->depth[found->count], centred, s);
    found->count += status == BERLU_OK;
    berlu_act_free(centred);
    return status;
}

static berlu_status depth_print_all(const depth_list *found, int json, int simulated)
{
    output out;
    output_start(&out);
    output_array(&out, "rows");
    for (size_t i = 0; i < found->count; i++)
        if (json)
            depth_json(&out, found->name[i], &found->depth[i], simulated);
        else
            depth_print(found->name[i], &found->depth[i], simulated);
    return rows_end(&out, json);
}

static berlu_status analyze_depth(options *o)
{
    static const char *const usual[] = {"relu", "leaky_relu", "gelu", "berlu", NULL};
    const depth_settings settings = {.q = options_float(o, "q"),
                                     .c0 = options_float(o, "c0"),
                                     .layers = (int)options_int(o, "layers"),
                                     .threads = options_threads(o),
                                     .width = (size_t)options_int(o, "simulate"),
                                     .seed = (uint64_t)options_int(o, "seed")};
    analyze_acts list = {0};
    depth_list found = {0};
    progress bar;
    berlu_status status;
    TRY_DONE(acts_open(&list, o, usual));
    found.depth = calloc(2 * list.count, sizeof *found.depth);
    found.name = calloc(2 * list.count, sizeof *found.name);
    if (!found.depth || !found.name)
        TRY_DONE(berlu_fail_memory(2 * list.count * sizeof *found.depth, "the curves"));
    progress_start(&bar, "depth", "activations", list.count, 0);
    for (size_t i = 0; i < list.count && status == BERLU_OK; i++) {
        status = depth_of(list.acts[i], list.names[i], &settings, &found);
        progress_step(&bar, i + 1);
    }
    progress_clear(&bar);
    TRY_DONE(status);
    if (options_given(o, "svg"))
        TRY_DONE(analyze_plot_depth(&found, options_string(o, "svg")));
    status = depth_print_all(&found, options_json(o), settings.width > 0);
done:
    free(found.depth);
    free(found.name);
    acts_close(&list);
    return status;
}

const command cmd_analyze_depth = {"analyze depth", "how two inputs merge in a deep random network",
                                   "Mean-field theory of wide fully connected networks without residuals: whether an "
                                   "activation has an edge of chaos, the\n"
                                   "variances sw2 and sb2 on it, and 1 - c (c: the correlation of two inputs) by "
                                   "layer. Where there is no edge, f - f(0)\n"
                                   "is shown as well. --simulate runs a real network of that width beside it.\n\n"
                                   "  berlu analyze depth relu gelu berlu berlu:eps=1 --svg depth.svg\n"
                                   "  berlu analyze depth silu --layers 100 --simulate 1000",
                                   depth_rows, analyze_depth};

/* ---- linearity ------------------------------------------------------------------------------- */

static const option_row linearity_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT, .help = "activations (default: all)"},
    {"scales", OPTION_FLOATS, "S", .flags = OPTION_MANY, .least = 1e-6, .most = 1e6,
     .help = "deviations of the input (default 0.1, 0.02 sqrt 192, 0.3, 1, 3)"},
    {"svg", OPTION_STRING, "FILE", .help = "draw 1 - R^2 over the scale"},
    {0}};

static void linearity_write(output *out, const char *name, const linearity *rows, size_t count, int json)
{
    if (!json)
        printf("%-24s", name);
    for (size_t i = 0; i < count; i++) {
        if (!json) {
            printf(" %-12.5g", rows[i].nonlinear);
            continue;
        }
        output_object(out, NULL);
        output_string(out, "act", name);
        output_real(out, "scale", rows[i].scale);
        output_real(out, "nonlinear", rows[i].nonlinear);
        output_real(out, "slope", rows[i].slope);
        output_real(out, "mean", rows[i].mean);
        output_real(out, "deviation", rows[i].deviation);
        output_end(out);
    }
    if (!json)
        putchar('\n');
}

static berlu_status analyze_linearity(options *o)
{
    analyze_acts list = {0};
    int json = options_json(o), given = options_count(o, "scales") > 0;
    size_t count = given ? options_count(o, "scales") : CARD_SCALES;
    const double *scales = given ? options_floats(o, "scales") : linearity_scales;
    linearity *rows = calloc(count, sizeof *rows);
    berlu_status status;
    TRY_DONE(rows ? acts_open(&list, o, NULL) : berlu_fail_memory(count * sizeof *rows, "the table"));
    if (options_given(o, "svg"))
        TRY_DONE(analyze_plot_linearity(&list, scales, count, options_string(o, "svg")));
    output out;
    output_start(&out);
    output_array(&out, "rows");
    if (!json)
        printf("%-24s", "1 - R^2 at scale");
    for (size_t i = 0; i < count && !json; i++)
        printf(" %-12.5g", scales[i]);
    if (!json)
        putchar('\n');
    for (size_t i = 0; i < list.count; i++) {
        linearity_find(rows, list.acts[i], scales, count);
        linearity_write(&out, list.names[i], rows, count, json);
    }
    status = rows_end(&out, json);
done:
    acts_close(&list);
    free(rows);
    return status;
}

const command cmd_analyze_linearity = {
    "analyze linearity", "how much of an activation a straight line explains, by scale",
    "For inputs of deviation s the best line explains R^2 of the variance of f; 1 - R^2 is the nonlinearity that a "
    "layer can\n"
    "use at that scale. 0.02 sqrt 192 = 0.277 is what a layer of width 192 starts with.\n\n"
    "  berlu analyze linearity\n"
    "  berlu analyze linearity berlu berlu:eps=10 gelu --scales 0.1 1 10 --svg linearity.svg",
    linearity_rows, analyze_linearity};
