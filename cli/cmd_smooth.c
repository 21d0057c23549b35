/* cmd_smooth.c - `berlu smooth`: smooths a function and tells what came out. SPDX-License-Identifier: MIT
 *
 * The function comes from one of four places: the catalogue, the text smooth(...), a YAML file, or --kinks and
 * --slopes. All output is made from the public interface. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands.h"
#include "io/smooth_yaml.h"
#include "output.h"
#include "smooth/settings.h"
#include "smooth_plot.h"

static const option_row rows[] = {
    {"name", OPTION_STRING, "NAME", .flags = OPTION_ARGUMENT,
     .help = "of the catalogue, or a text smooth(...), or a YAML file; else give --kinks and --slopes"},
    {"kinks", OPTION_STRING, "A,B,...", .flags = OPTION_MANY, .help = "where the slope changes, increasing"},
    {"slopes", OPTION_STRING, "S0,S1,...", .flags = OPTION_MANY,
     .help = "one more than kinks: left of the first, between, right of the last"},
    {"eps", OPTION_STRING, "E", .flags = OPTION_MANY,
     .help = "half-width of the transitions, or one per kink (default 0.01)"},
    {"eps-right", OPTION_STRING, "E", .flags = OPTION_MANY,
     .help = "the same right of the kinks, for kinks off the centre"},
    {"degree", OPTION_STRING, "N", .help = "2 to 16; half of it is the number of continuous derivatives (default 2)"},
    {"at", OPTION_STRING, "X=Y", .help = "a point of the function before smoothing (default 0=0)"},
    {"form", OPTION_CHOICE, .choices = "bernstein|collinear", .help = "of off-centre transitions (default bernstein)"},
    {"alpha", OPTION_FLOAT, "A", .help = "the parameter of leaky_relu, prelu, elu"},
    {"lambda", OPTION_FLOAT, "L", .help = "the parameter of soft_shrink"},
    {"svg", OPTION_STRING, "FILE", .help = "draw function, control polygon and slope"},
    {"emit", OPTION_CHOICE, .choices = "c|json", .help = "print the pieces as C source or as JSON instead of a table"},
    NO_COMPUTE_ROWS,
    {0}};

/* -- which function ----------------------------------------------------------------------------------------------- */

static const char *const setting_options[] = {"kinks", "slopes", "eps", "eps-right", "degree", "at", "form"};

static berlu_status refuse_beside(const options *o, const char *const *names, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (options_given(o, names[i]))
            return berlu_fail(BERLU_ERR_ARG, "option --%s does not go with %s", names[i], what);
    return BERLU_OK;
}

static berlu_status from_options(const options *o, berlu_smooth **out)
{
    smooth_settings settings;
    berlu_status status = BERLU_OK;
    if (!options_given(o, "kinks") && !options_given(o, "slopes"))
        return berlu_fail(BERLU_ERR_ARG,
                          "say which function: a name of the catalogue, for example `berlu smooth leaky_relu "
                          "--eps 0.5`, or --kinks 0 --slopes 0,1");
    settings_start(&settings);
    for (size_t i = 0; i < COUNT(setting_options) && status == BERLU_OK; i++) {
        const char *option = setting_options[i], *key = strcmp(option, "eps-right") == 0 ? "eps_right" : option;
        if (options_given(o, option))
            status = settings_set(&settings, key, options_string(o, option));
    }
    if (status == BERLU_OK)
        status = settings_make(&settings, out);
    settings_free(&settings);
    return status;
}

/* A single number among the options of a catalogue's function. */
static berlu_status number_option(const options *o, const char *name, double *out)
{
    if (!options_given(o, name) || number_parse(options_string(o, name), out))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG, "option --%s: '%s' is not one number", name, options_string(o, name));
}

static berlu_status from_catalogue(const options *o, const char *name, berlu_smooth **out)
{
    static const char *const own[] = {"kinks", "slopes", "eps-right", "at", "form"};
    double eps = 0.01, degree = 2, parameter = NAN;
    berlu_status status = refuse_beside(o, own, COUNT(own), "a function of the catalogue");
    if (status != BERLU_OK || (status = number_option(o, "eps", &eps)) != BERLU_OK ||
        (status = number_option(o, "degree", &degree)) != BERLU_OK)
        return status;
    if (!(fabs(degree) < 1000) || degree != floor(degree))
        return berlu_fail(BERLU_ERR_ARG, "option --degree: '%s' is not a whole number from 2 to 16",
                          options_string(o, "degree"));
    const char *option = strcmp(name, "soft_shrink") == 0 ? "lambda" : "alpha";
    const char *const other[] = {strcmp(name, "soft_shrink") == 0 ? "alpha" : "lambda"};
    if ((status = refuse_beside(o, other, 1, name)) != BERLU_OK)
        return status;
    if (options_given(o, option))
        parameter = options_float(o, option);
    return berlu_smooth_named(out, name, options_given(o, option) ? &parameter : NULL, eps, (int)degree);
}

static berlu_status function_make(const options *o, berlu_smooth **out, char title[SMOOTH_NAME])
{
    static const char *const parameters[] = {"alpha", "lambda"};
    const char *name = options_string(o, "name");
    size_t path = name ? smooth_yaml_path(name) : 0;
    strcpy(title, "smoothed");
    if (name && !path && strncmp(name, "smooth(", 7) != 0) {
        snprintf(title, SMOOTH_NAME, "%s", name);
        return from_catalogue(o, name, out);
    }
    berlu_status status = refuse_beside(o, parameters, COUNT(parameters), "a function that is not of the catalogue");
    if (status != BERLU_OK || !name)
        return status == BERLU_OK ? from_options(o, out) : status;
    status = refuse_beside(o, setting_options, COUNT(setting_options), "a text or file that says it already");
    if (status != BERLU_OK || !path)
        return status == BERLU_OK ? berlu_smooth_parse(out, name) : status;
    if (name[path])
        return berlu_fail(BERLU_ERR_ARG, "'%s' belongs to an activation; name the file alone", name + path + 1);
    status = smooth_yaml_read(out, title, name);
    if (status == BERLU_OK && !*title)
        strcpy(title, "smoothed");
    return status;
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

static void piece_write(output *out, const berlu_piece *p)
{
    size_t count = (size_t)p->degree + 1;
    output_object(out, NULL);
    output_real(out, "from", p->from);
    output_real(out, "to", p->to);
    output_string(out, "kind", p->transition ? "transition" : "given");
    if (p->bounded && p->polynomial)
        output_reals(out, "bernstein", p->bernstein, count);
    else
        output_null(out, "bernstein");
    if (p->polynomial) {
        output_reals(out, "monomial", p->monomial, count);
    } else { /* polynomial + scale (exp(rate x) - 1) */
        output_null(out, "monomial");
        output_reals(out, "polynomial", p->monomial, count);
        output_real(out, "exp_scale", p->scale);
        output_real(out, "exp_rate", p->rate);
    }
    output_end(out);
}

static void contact_write(output *out, const char *key, int order)
{
    if (order < BERLU_SMOOTH_ANALYTIC)
        output_int(out, key, order);
    else
        output_real(out, key, INFINITY);
}

static void joins_write(output *out, const berlu_smooth *f)
{
    output_array(out, "transitions");
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        berlu_smooth_transition(f, i, &t);
        output_object(out, NULL);
        output_real(out, "kink", t.x);
        output_real(out, "eps", t.eps_left);
        output_real(out, "eps_right", t.eps_right);
        output_real(out, "jump", t.right - t.left);
        output_reals(out, "control", t.control, (size_t)t.degree + 1);
        contact_write(out, "contact_left", t.contact_left);
        contact_write(out, "contact_right", t.contact_right);
        output_end(out);
    }
    output_end(out);
}

static berlu_status json_print(const berlu_smooth *f, const char *name)
{
    output out;
    output_start(&out);
    output_string(&out, "name", name);
    output_int(&out, "degree", berlu_smooth_degree(f));
    contact_write(&out, "contact_order", berlu_smooth_contact_order(f));
    output_real(&out, "lipschitz", berlu_smooth_lipschitz(f));
    output_real(&out, "max_gap", berlu_smooth_max_gap(f));
    output_int(&out, "monotone", berlu_smooth_monotone(f));
    joins_write(&out, f);
    output_array(&out, "pieces");
    for (size_t i = 0; i < berlu_smooth_piece_count(f); i++) {
        berlu_piece p;
        berlu_smooth_piece(f, i, &p);
        piece_write(&out, &p);
    }
    output_end(&out);
    return output_print(&out);
}

/* "0.25 + 0.5 c - 2 c^2", terms that are 0 left out. */
static void polynomial_print(const berlu_piece *p)
{
    const char *variable = p->bounded ? "c" : "x";
    int any = 0;
    for (int j = 0; j <= p->degree; j++) {
        double a = p->monomial[j];
        if (a == 0)
            continue;
        printf("%s", any ? a < 0 ? " - " : " + " : a < 0 ? "-" : "");
        if (j == 0 || fabs(a) != 1)
            printf("%.7g%s", fabs(a), j ? " " : "");
        if (j > 0)
            printf("%s", variable);
        if (j > 1)
            printf("^%d", j);
        any = 1;
    }
    if (!p->polynomial) {
        printf("%s%.7g (exp(", any ? " + " : "", p->scale);
        if (p->rate != 1)
            printf("%.7g ", p->rate);
        printf("x) - 1)");
    } else if (!any) {
        putchar('0');
    }
    if (p->bounded && p->from + p->to != 0)
        printf(",  c = x %c %.7g", p->from + p->to < 0 ? '+' : '-', fabs(p->from / 2 + p->to / 2));
    else if (p->bounded)
        printf(",  c = x");
    putchar('\n');
}

static void piece_print(const berlu_piece *p)
{
    printf("  %12.7g %12.7g  %-10s  ", p->from, p->to, p->transition ? "transition" : "given");
    polynomial_print(p);
    if (!p->transition)
        return;
    printf("%41scontrol", "");
    for (int k = 0; k <= p->degree; k++)
        printf("%s%.7g", k ? ", " : " ", p->bernstein[k]);
    putchar('\n');
}

static void table_print(const berlu_smooth *f, const char *name)
{
    static const char *const ways[] = {"falling", "no", "rising"};
    int order = berlu_smooth_contact_order(f);
    size_t kinks = berlu_smooth_kink_count(f);
    printf("%s: %zu kink%s, degree %d\n\n", name, kinks, kinks == 1 ? "" : "s", berlu_smooth_degree(f));
    if (order < BERLU_SMOOTH_ANALYTIC)
        printf("  contact order       %d (derivatives that are continuous at every join)\n", order);
    else
        printf("  contact order       any (%s)\n", kinks ? "no kink bends the function" : "there is no kink");
    printf("  Lipschitz constant  %.10g\n", berlu_smooth_lipschitz(f));
    printf("  largest gap         %.10g (to the function before smoothing)\n", berlu_smooth_max_gap(f));
    printf("  strictly monotone   %s\n\n", ways[berlu_smooth_monotone(f) + 1]);
    printf("  %12s %12s  %-10s  polynomial\n", "from", "to", "piece");
    for (size_t i = 0; i < berlu_smooth_piece_count(f); i++) {
        berlu_piece p;
        berlu_smooth_piece(f, i, &p);
        piece_print(&p);
    }
}

static berlu_status source_print(const berlu_smooth *f, const char *name)
{
    char *source;
    berlu_status status = berlu_smooth_source(f, name, &source);
    if (status != BERLU_OK)
        return status;
    fputs(source, stdout);
    free(source);
    return BERLU_OK;
}

static berlu_status smooth(options *o)
{
    berlu_smooth *f = NULL;
    char name[SMOOTH_NAME];
    int emit_c = options_choice(o, "emit") == 0, json = options_json(o) || options_choice(o, "emit") == 1;
    if (emit_c && json)
        return berlu_fail(BERLU_ERR_ARG, "option --json does not go with --emit c");
    berlu_status status = function_make(o, &f, name);
    if (status == BERLU_OK && options_given(o, "svg"))
        status = smooth_plot_save(f, name, options_string(o, "svg"));
    if (status == BERLU_OK && emit_c)
        status = source_print(f, name);
    else if (status == BERLU_OK && json)
        status = json_print(f, name);
    else if (status == BERLU_OK)
        table_print(f, name);
    berlu_smooth_free(f);
    return status;
}

const command cmd_smooth = {
    "smooth", "smooth a function with kinks: pieces, order, Lipschitz constant, picture",
    "Puts a Bernstein polynomial around each kink of a piecewise-linear function and prints what came out.\n"
    "The catalogue: relu leaky_relu prelu relu6 hard_tanh hard_sigmoid abs soft_shrink, and by Hermite\n"
    "polynomials (degree 2 to 5) hard_swish elu.\n\n"
    "  berlu smooth leaky_relu --eps 0.5 --degree 4          a BerLU of degree 4\n"
    "  berlu smooth --kinks -3,3 --slopes 0,1,0 --eps 1      a function of one's own\n"
    "  berlu smooth relu6 --eps 1 --degree 6 --svg relu6.svg  and its picture\n"
    "  berlu smooth hard_swish --eps 0.5 --emit c            as C source",
    rows, smooth};
