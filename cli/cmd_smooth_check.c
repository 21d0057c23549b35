/* cmd_smooth_check.c - `berlu smooth check`: evaluates the guarantees of docs/math.md for a
 * function. SPDX-License-Identifier: MIT
 *
 * The checks are in smooth_checks.c; here are the table and the JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "output.h"
#include "smooth_args.h"
#include "smooth_checks.h"

static const char *verdict(const check_row *r)
{
    return !r->promised ? r->holds ? "holds, not promised" : "no, not promised" : r->holds ? "holds" : "VIOLATED";
}

static const char *amount(char out[32], double value)
{
    if (value >= BERLU_SMOOTH_ANALYTIC)
        return "all";
    snprintf(out, 32, "%.9g", value);
    return out;
}

static void table_print(const smooth_checks *c, const char *title)
{
    char expected[32], found[32];
    printf("%s\n\n  %-55s %-7s %12s %14s  %s\n", title, "guarantee (docs/math.md)", "section", "expected", "found",
           "verdict");
    for (const check_row *r = c->rows; r < c->rows + c->count; r++)
        printf("  %-55s %-7s %12s %14s  %s\n", r->name, r->section, amount(expected, r->expected),
               amount(found, r->found), verdict(r));
}

static berlu_status json_print(const smooth_checks *c, const char *title, int all)
{
    output out;
    output_start(&out);
    output_string(&out, "function", title);
    output_bool(&out, "all", all);
    output_array(&out, "checks");
    for (const check_row *r = c->rows; r < c->rows + c->count; r++) {
        output_object(&out, NULL);
        output_string(&out, "name", r->name);
        output_string(&out, "section", r->section);
        output_bool(&out, "promised", r->promised);
        output_bool(&out, "holds", r->holds);
        output_real(&out, "expected", r->expected >= BERLU_SMOOTH_ANALYTIC ? INFINITY : r->expected);
        output_real(&out, "found", r->found >= BERLU_SMOOTH_ANALYTIC ? INFINITY : r->found);
        output_end(&out);
    }
    output_end(&out);
    return output_print(&out);
}

static berlu_status check(options *o)
{
    smooth_made made = {0};
    smooth_checks *c = calloc(1, sizeof *c);
    int violated = 0;
    if (!c)
        return berlu_fail_memory(sizeof *c, "the checks");
    berlu_status status;
    TRY_DONE(smooth_make(o, &made));
    smooth_checks_make(c, made.f);
    for (size_t i = 0; i < c->count; i++)
        violated += c->rows[i].promised && !c->rows[i].holds;
    if (options_json(o))
        TRY_DONE(json_print(c, made.title, !violated));
    else
        table_print(c, made.title);
    if (violated)
        TRY_DONE(berlu_fail(BERLU_ERR_NUMERIC, "%d of the guarantees did not hold within rounding errors", violated));
done:
    berlu_smooth_free(made.f);
    free(c);
    return status;
}

static const option_row rows[] = {SMOOTH_ROWS, NO_COMPUTE_ROWS, {0}};

const command cmd_smooth_check = {
    "smooth check", "evaluate every guarantee of docs/math.md for a function",
    "Takes a function as `berlu smooth` does and compares, for each guarantee, the closed form with the values of the\n"
    "function at sampled points, up to rounding errors. What is not promised for this function (curves, kinks off the\n"
    "centre) is computed all the same. Exit 1 if something that is promised does not hold.\n\n"
    "  berlu smooth check leaky_relu --alpha 0.1 --eps 0.5 --degree 6\n"
    "  berlu smooth check --kinks 0 --slopes 0,1 --eps 0.5 --eps-right 0.2 --degree 4\n",
    rows, check};
