/* cmd_act.c - `berlu act list` and `berlu act eval`. `berlu act plot` is in cmd_act_plot.c.
 * SPDX-License-Identifier: MIT
 *
 * eval has two modes: --x prints all derivatives of a few points in double; --in and --out run a
 * raw file of numbers through the vector kernels (or, as f64, through the reference), so that other
 * programs can compare their results with ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act_args.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/file_in.h"
#include "commands.h"
#include "io/act_text.h"
#include "output.h"

/* ---- list ------------------------------------------------------------------------------------ */

static void param_json(output *out, const berlu_act_param_info *p)
{
    output_object(out, NULL);
    output_string(out, "name", p->name);
    output_real(out, "default", p->initial);
    output_reals(out, "range", (double[]){p->low, p->high}, 2);
    output_bool(out, "learnable", p->learnable);
    output_bool(out, "learned", p->learned);
    output_end(out);
}

static void act_json(output *out, const berlu_act *act)
{
    output_object(out, NULL);
    output_string(out, "name", berlu_act_name(act));
    output_string(out, "spec", berlu_act_spec(act));
    output_string(out, "about", berlu_act_about(act));
    output_array(out, "parameters");
    for (size_t i = 0; i < berlu_act_param_count(act) + berlu_act_setting_count(act); i++) {
        berlu_act_param_info info;
        if (berlu_act_param(act, i, &info) == BERLU_OK)
            param_json(out, &info);
    }
    output_end(out);
    output_bool(out, "from_output", berlu_act_has_from_output(act));
    output_real(out, "lipschitz", berlu_act_lipschitz(act));
    output_real(out, "ulp", berlu_act_ulp(act));
    output_real(out, "slope_ulp", berlu_act_slope_ulp(act));
    output_end(out);
}

/* Columns of the list end before column 80; a longer activation gets a line of its own. */
enum { SPEC_WIDTH = 46 };

static void act_line(const berlu_act *act)
{
    const char *spec = berlu_act_spec(act);
    if (strlen(spec) > SPEC_WIDTH)
        printf("%s\n%*s", spec, SPEC_WIDTH, "");
    else
        printf("%-*s", SPEC_WIDTH, spec);
    printf("  %-9s  %-9.6g  %g\n    ", berlu_act_has_from_output(act) ? "yes" : "no", berlu_act_lipschitz(act),
           berlu_act_ulp(act));
    help_wrap(stdout, berlu_act_about(act), 4, 4, "");
}

/* The parameters of an activation that was given by name. */
static void params_print(const berlu_act *act)
{
    for (size_t i = 0; i < berlu_act_param_count(act) + berlu_act_setting_count(act); i++) {
        berlu_act_param_info p;
        if (berlu_act_param(act, i, &p) == BERLU_OK)
            printf("    %s = %.9g%s; %.3g to %.3g\n", p.name, p.value,
                   p.learned     ? ", learned"
                   : p.learnable ? ", can be learned"
                                 : "",
                   p.low, p.high);
    }
}

static berlu_status act_show(const options *o, output *out, const char *spec)
{
    berlu_act *act = NULL;
    TRY(act_from_text(&act, spec));
    if (options_json(o))
        act_json(out, act);
    else
        act_line(act);
    if (!options_json(o) && options_count(o, "act") > 0)
        params_print(act);
    berlu_act_free(act);
    return BERLU_OK;
}

static const option_row list_rows[] = {
    {"act", OPTION_STRINGS, "ACT", .flags = OPTION_ARGUMENT,
     .help = "NAME[:key=value,...], smooth(...) or a YAML file (default: all names)"},
    NO_COMPUTE_ROWS,
    {0}};

static berlu_status act_list(options *o)
{
    output out;
    size_t given = options_count(o, "act");
    const char *const *asked = options_strings(o, "act");
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < given; i++) { /* all are parsed before anything is printed */
        berlu_act *act;
        TRY(act_from_text(&act, asked[i]));
        berlu_act_free(act);
    }
    output_start(&out);
    output_array(&out, "activations");
    if (!options_json(o))
        printf("%-*s  %-9s  %-9s  %s\n", SPEC_WIDTH, given ? "activation" : "activation with its defaults", "dy from y",
               "Lipschitz", "ULP");
    for (size_t i = 0; given ? i < given : berlu_act_builtin(i) != NULL; i++)
        TRY_DONE(act_show(o, &out, given ? asked[i] : berlu_act_builtin(i)));
    if (options_json(o))
        return output_print(&out);
    if (!given)
        puts("\ndy from y: the slope can be computed from the output alone. ULP: bound of the\n"
             "value's error. learn= says what training changes; scale=k means f(kx)/k and\n"
             "center=1 means f - f(0), for every activation. smooth(kinks=...; slopes=...)\n"
             "makes more of them.");
done:
    text_free(&out.json);
    return status;
}

const command cmd_act_list = {"act list", "activations, their parameters and bounds",
                              "All activations with their defaults, or those that are named with any parameters.\n\n"
                              "  berlu act list\n"
                              "  berlu act list berlu:alpha=2 gelu:scale=1.7",
                              list_rows, act_list};

/* ---- eval: points ---------------------------------------------------------------------------- */

static const option_row eval_rows[] = {
    {"act", OPTION_STRING, "ACT", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "NAME[:key=value,...], smooth(...) or a YAML file"},
    {"x", OPTION_FLOATS, "V", .flags = OPTION_MANY, .help = "points"},
    {"in", OPTION_STRING, "FILE", .help = "raw little-endian numbers of --dtype"},
    {"out", OPTION_STRING, "FILE", .help = "where the results go, in the same form"},
    {"what", OPTION_STRING, "W", .standard = "y", .help = "y, dy, d2y or d_PARAMETER, for --in"},
    {"dtype", OPTION_CHOICE, .standard = "f32", .choices = "f32|bf16|f16|f64", .help = "of --in and --out"},
    {0}};

static void point_json(output *out, const berlu_act *act, double x, const berlu_act_point *at)
{
    output_object(out, NULL);
    output_real(out, "x", x);
    output_real(out, "y", at->value);
    output_real(out, "dy", at->slope);
    output_real(out, "d2y", at->second);
    for (size_t p = 0; p < berlu_act_param_count(act); p++) {
        berlu_act_param_info info;
        char key[80];
        if (berlu_act_param(act, p, &info) == BERLU_OK && snprintf(key, sizeof key, "d_%s", info.name) > 0)
            output_real(out, key, at->param[p]);
    }
    output_end(out);
}

static void point_line(const berlu_act *act, double x, const berlu_act_point *at)
{
    const double columns[4] = {x, at->value, at->slope, at->second};
    char number[NUMBER_TEXT];
    for (int i = 0; i < 4; i++)
        printf("%-25s", number_text(number, columns[i]));
    for (size_t p = 0; p < berlu_act_param_count(act); p++)
        printf("%-25s", number_text(number, at->param[p]));
    putchar('\n');
}

static void point_head(const berlu_act *act)
{
    printf("%-25s%-25s%-25s%-25s", "x", "y", "dy", "d2y");
    for (size_t p = 0; p < berlu_act_param_count(act); p++) {
        berlu_act_param_info info;
        if (berlu_act_param(act, p, &info) == BERLU_OK)
            printf("d_%-23s", info.name);
    }
    putchar('\n');
}

static berlu_status eval_points(const options *o, const berlu_act *act)
{
    const double *x = options_floats(o, "x");
    size_t count = options_count(o, "x");
    output out;
    output_start(&out);
    output_array(&out, "rows");
    if (!options_json(o))
        point_head(act);
    for (size_t i = 0; i < count; i++) {
        berlu_act_point at = berlu_act_at(act, x[i], NULL);
        if (options_json(o))
            point_json(&out, act, x[i], &at);
        else
            point_line(act, x[i], &at);
    }
    if (options_json(o)) {
        output_end(&out);
        return output_print(&out);
    }
    text_free(&out.json);
    return BERLU_OK;
}

/* ---- eval: files ----------------------------------------------------------------------------- */

typedef struct question {
    berlu_act_op op;
    int param;
} question;

static berlu_status read_question(const berlu_act *act, const char *what, question *out)
{
    static const struct {
        const char *name;
        berlu_act_op op;
    } names[] = {{"y", BERLU_ACT_FORWARD}, {"dy", BERLU_ACT_SLOPE}, {"d2y", BERLU_ACT_SECOND}};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(what, names[i].name) == 0) {
            *out = (question){names[i].op, 0};
            return BERLU_OK;
        }
    *out = (question){BERLU_ACT_PARAM_SLOPE, strncmp(what, "d_", 2) == 0 ? berlu_act_param_find(act, what + 2) : -1};
    if (out->param < 0)
        return berlu_fail(BERLU_ERR_ARG, "option --what: '%s' is not y, dy, d2y or d_ and a parameter of %s", what,
                          berlu_act_name(act));
    return BERLU_OK;
}

static berlu_status eval_bytes(const options *o, const berlu_act *act, question q, void *y, const void *x, size_t n)
{
    int dtype = options_choice(o, "dtype");
    if (dtype == 3)
        return berlu_act_eval_f64(act, q.op, q.param, y, x, n, options_threads(o));
    berlu_act_call call = {.dtype = (berlu_dtype)dtype, .rows = n, .channels = 1, .x = x, .y = y};
    call.param_index = q.param;
    berlu_exec exec = {act_isa_of(options_isa(o)), options_threads(o)};
    return berlu_act_run(act, q.op, &call, &exec);
}

static berlu_status eval_file(const options *o, const berlu_act *act)
{
    static const size_t sizes[] = {4, 2, 2, 8};
    size_t size = sizes[options_choice(o, "dtype")];
    question q;
    unsigned char *x = NULL;
    size_t bytes = 0;
    void *y = NULL;
    berlu_status status;
    TRY_DONE(read_question(act, options_string(o, "what"), &q));
    TRY_DONE(file_in_all(&x, &bytes, options_string(o, "in")));
    if (bytes % size)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %zu bytes are not a whole number of %s values",
                            options_string(o, "in"), bytes, options_string(o, "dtype")));
    TRY_DONE((y = memory_aligned(bytes + 64, "the results")) ? BERLU_OK : BERLU_ERR_MEMORY);
    TRY_DONE(eval_bytes(o, act, q, y, x, bytes / size));
    TRY_DONE(file_write_atomic(options_string(o, "out"), y, bytes));
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_int(&out, "n", (int64_t)(bytes / size));
        TRY_DONE(output_print(&out));
    }
done:
    free(y);
    free(x);
    return status;
}

static berlu_status act_eval(options *o)
{
    static const char *const of_files[] = {"what", "dtype", "isa", "threads"};
    int points = options_count(o, "x") > 0, files = options_given(o, "in") || options_given(o, "out");
    if (points == files)
        return berlu_fail(BERLU_ERR_ARG, "give either --x with points, or --in and --out with files");
    if (files && (!options_given(o, "in") || !options_given(o, "out")))
        return berlu_fail(BERLU_ERR_ARG, "option --%s is missing", options_given(o, "in") ? "out" : "in");
    for (size_t i = 0; points && i < COUNT(of_files); i++)
        if (options_given(o, of_files[i]))
            return berlu_fail(BERLU_ERR_ARG, "option --%s: goes with --in and --out; --x shows everything, in double",
                              of_files[i]);
    berlu_act *act = NULL;
    berlu_status status = act_from_text(&act, options_string(o, "act"));
    if (status == BERLU_OK)
        status = points ? eval_points(o, act) : eval_file(o, act);
    berlu_act_free(act);
    return status;
}

const command cmd_act_eval = {
    "act eval", "values and derivatives of an activation",
    "With --x: value, slope, second derivative and parameter slopes at each point, in double.\n"
    "With --in and --out: one of them for a raw file of numbers, through the vector kernels (f64: through the "
    "reference).\n\n"
    "  berlu act eval berlu:alpha=0.01,eps=0.1 --x -0.1 0 0.1\n"
    "  berlu act eval gelu --in x.f32 --out y.f32 --what dy --isa avx2",
    eval_rows, act_eval};
