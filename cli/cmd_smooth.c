/* cmd_smooth.c - `berlu smooth`: smooths a function and shows the result.
 * SPDX-License-Identifier: MIT
 *
 * Which function: smooth_args.h. As a text for other programs: smooth_emit.h. As a plot:
 * smooth_plot.h. Here are the table and the JSON object. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "commands.h"
#include "output.h"
#include "smooth/smooth.h"
#include "smooth_args.h"
#include "smooth_emit.h"
#include "smooth_plot.h"

static const option_row rows[] = {
    SMOOTH_ROWS,
    {"svg", OPTION_STRING, "FILE", .help = "draw the function, its slope and further derivatives"},
    {"overlay", OPTION_STRING, "KEY=V,V,...", .flags = OPTION_MANY,
     .help = "in the plot: the same function with several eps or degrees, for example degree=2,4,8"},
    {"emit", OPTION_CHOICE, .choices = SMOOTH_EMIT_CHOICES,
     .help = "print it for another program instead of a table; spec is the text that berlu_act_make() takes"},
    {"name", OPTION_STRING, "WORD", .help = "what the function is called in --emit (default: its name)"},
    NO_COMPUTE_ROWS,
    {0}};

/* ---- output ---------------------------------------------------------------------------------- */

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

/* 1 if the function never falls, -1 if it never rises, else 0; a constant counts as rising. */
static int direction(const berlu_smooth *f)
{
    double low, high;
    slope_range(f, &low, &high);
    return low >= 0 ? 1 : high <= 0 ? -1 : 0;
}

static berlu_status json_print(const berlu_smooth *f, const char *name)
{
    output out;
    char warning[SMOOTH_WARNING];
    output_start(&out);
    output_string(&out, "name", name);
    output_int(&out, "degree", berlu_smooth_degree(f));
    contact_write(&out, "contact_order", berlu_smooth_contact_order(f));
    output_real(&out, "lipschitz", berlu_smooth_lipschitz(f));
    output_real(&out, "max_gap", berlu_smooth_max_gap(f));
    output_int(&out, "monotone", berlu_smooth_monotone(f));
    output_bool(&out, "rising", direction(f) > 0);
    output_bool(&out, "falling", direction(f) < 0);
    output_bool(&out, "strictly", berlu_smooth_monotone(f) != 0);
    if (*smooth_warning(warning, f))
        output_string(&out, "warning", warning);
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

/* "0.25 + 0.5 c - 2 c^2", without terms that are 0. */
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

static void table_print(const berlu_smooth *f, const char *title)
{
    static const char *const ways[] = {"falling", "no", "rising"};
    int order = berlu_smooth_contact_order(f);
    size_t kinks = berlu_smooth_kink_count(f);
    printf("%s (%zu kink%s)\n\n", title, kinks, kinks == 1 ? "" : "s");
    if (order < BERLU_SMOOTH_ANALYTIC)
        printf("  contact order       %d (derivatives that are continuous at every join)\n", order);
    else
        printf("  contact order       any (%s)\n", kinks ? "no kink bends the function" : "there is no kink");
    printf("  Lipschitz constant  %.10g\n", berlu_smooth_lipschitz(f));
    printf("  largest gap         %.10g (to the function before smoothing)\n", berlu_smooth_max_gap(f));
    printf("  monotone            %s%s\n\n", ways[direction(f) + 1],
           direction(f) == 0          ? ""
           : berlu_smooth_monotone(f) ? ", strictly"
                                      : ", not strictly: it has a level piece");
    printf("  %12s %12s  %-10s  polynomial\n", "from", "to", "piece");
    for (size_t i = 0; i < berlu_smooth_piece_count(f); i++) {
        berlu_piece p;
        berlu_smooth_piece(f, i, &p);
        piece_print(&p);
    }
}

static berlu_status emit_check(const options *o)
{
    int emit = options_choice(o, "emit");
    if (options_json(o) && emit >= 0 && emit != EMIT_JSON)
        return berlu_fail(BERLU_ERR_ARG, "option --json does not go with --emit %s", options_string(o, "emit"));
    if (options_given(o, "name") && (emit < 0 || emit == EMIT_SPEC))
        return berlu_fail(BERLU_ERR_ARG, "option --name has no effect %s",
                          emit < 0 ? "without --emit" : "on --emit spec, which has no name");
    if (options_given(o, "overlay") && !options_given(o, "svg"))
        return berlu_fail(BERLU_ERR_ARG, "option --overlay has no effect without --svg");
    return BERLU_OK;
}

static berlu_status shown(const options *o, const smooth_made *made)
{
    int emit = options_choice(o, "emit");
    const char *word = options_given(o, "name") ? options_string(o, "name") : made->name;
    if (options_json(o) || emit == EMIT_JSON)
        return json_print(made->f, word);
    if (emit >= 0)
        return smooth_emit_print(made->f, (smooth_emit)emit, options_given(o, "name") ? "" : "smooth_", word);
    table_print(made->f, made->title);
    return BERLU_OK;
}

static berlu_status smooth(options *o)
{
    smooth_made made = {0};
    char warning[SMOOTH_WARNING];
    berlu_status status;
    TRY_DONE(emit_check(o));
    TRY_DONE(smooth_make(o, &made));
    if (options_given(o, "svg"))
        TRY_DONE(smooth_plot_save(&made, options_given(o, "overlay") ? options_string(o, "overlay") : NULL,
                                  options_string(o, "svg")));
    TRY_DONE(shown(o, &made));
    if (*smooth_warning(warning, made.f))
        fprintf(stderr, "warning: %s\n", warning);
done:
    berlu_smooth_free(made.f);
    return status;
}

const command cmd_smooth = {
    "smooth", "smooth a function with kinks: pieces, order, Lipschitz constant, plot",
    "Puts a Bernstein polynomial around each kink of a piecewise-linear function and prints what came out.\n"
    "The catalogue: relu leaky_relu prelu relu6 hard_tanh hard_sigmoid abs soft_shrink, and by Hermite\n"
    "polynomials (degree 2 to 5) hard_swish elu.\n\n"
    "  berlu smooth leaky_relu --eps 0.5 --degree 4          a BerLU of degree 4\n"
    "  berlu smooth --kinks -3,3 --slopes 0,1,0 --eps 1      a function of one's own\n"
    "  berlu smooth --points -1:0,0:0,2:1 --eps 0.5          another, by its corners\n"
    "  berlu smooth relu6 --eps 1 --degree 6 --svg relu6.svg  and its plot\n"
    "  berlu smooth relu --eps 1 --overlay degree=2,4,8 --svg degrees.svg\n"
    "  berlu smooth hard_swish --eps 0.5 --emit c --name swish  as C source\n\n"
    "`berlu smooth check` evaluates what is promised for the function that is given.",
    rows, smooth};
