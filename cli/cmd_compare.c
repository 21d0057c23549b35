/* cmd_compare.c - `berlu compare RUN...`: settings that differ, results, curves.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze_out.h"
#include "commands.h"
#include "report/compare.h"

static const option_row rows[] = {
    {"run", OPTION_STRINGS, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "folders of runs"},
    {"svg", OPTION_STRING, "FILE", .help = "draw accuracy and losses by epoch, the range over seeds as a band"},
    NO_COMPUTE_ROWS,
    {0}};

/* ---- JSON ------------------------------------------------------------------------------------ */

static void differences_json(output *out, const compare *c)
{
    output_array(out, "differs");
    for (size_t k = 0; k < c->keys; k++) {
        output_object(out, NULL);
        output_string(out, "key", c->key[k].key);
        output_array(out, "values");
        for (size_t i = 0; i < c->cells; i++)
            output_string(out, NULL, c->key[k].values[i]);
        output_end(out);
        output_end(out);
    }
    output_end(out);
}

static void cells_json(output *out, const compare *c)
{
    output_array(out, "cells");
    for (size_t i = 0; i < c->cells; i++) {
        const compare_cell *cell = &c->cell[i];
        output_object(out, NULL);
        output_string(out, "label", cell->label);
        output_int(out, "runs", (int64_t)cell->count);
        real_or_null(out, "top1", cell->mean);
        real_or_null(out, "deviation", cell->deviation);
        real_or_null(out, "low", cell->low);
        real_or_null(out, "high", cell->high);
        real_or_null(out, "best_top1", cell->best);
        real_or_null(out, "loss", cell->loss);
        output_end(out);
    }
    output_end(out);
}

static berlu_status compare_json(const compare *c)
{
    output out;
    output_start(&out);
    differences_json(&out, c);
    cells_json(&out, c);
    output_array(&out, "rows");
    for (size_t i = 0; i < c->runs; i++) {
        const compare_run *r = &c->run[i];
        output_object(&out, NULL);
        output_string(&out, "run", r->path);
        output_string(&out, "cell", c->cell[r->cell].label);
        output_int(&out, "seed", r->seed);
        output_int(&out, "epochs", (int64_t)r->epochs);
        output_bool(&out, "complete", r->complete);
        output_string(&out, "repeats", r->repeats);
        real_or_null(&out, "top1", r->top1);
        real_or_null(&out, "top5", r->top5);
        real_or_null(&out, "loss", r->loss);
        real_or_null(&out, "train_loss", r->train_loss);
        real_or_null(&out, "best_top1", r->best_top1);
        output_end(&out);
    }
    return rows_end(&out, 1);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *percent(char out[NUMBER_TEXT], double value)
{
    if (isnan(value))
        return "-";
    snprintf(out, NUMBER_TEXT, "%.2f", value);
    return out;
}

static void differences_print(const compare *c)
{
    int seeds = 0;
    for (size_t i = 1; i < c->runs; i++)
        seeds |= c->run[i].seed != c->run[0].seed;
    if (c->keys == 0 && c->runs > 1)
        printf("settings: all the same%s\n", seeds ? " but the seed" : "");
    for (size_t k = 0; k < c->keys; k++) {
        printf("%-18s", c->key[k].key);
        for (size_t i = 0; i < c->cells; i++)
            printf("%s%s", i ? " | " : " ", *c->key[k].values[i] ? c->key[k].values[i] : "-");
        putchar('\n');
    }
    putchar('\n');
}

/* The width of the longest text, up to a limit. */
static int width_of(const compare *c, int of_cells)
{
    enum { LEAST = 12, MOST = 72 };
    size_t most = LEAST;
    for (size_t i = 0; i < (of_cells ? c->cells : c->runs); i++) {
        size_t length = strlen(of_cells ? c->cell[i].label : c->run[i].path);
        most = length > most ? length : most;
    }
    return most > MOST ? MOST : (int)most;
}

static void cells_print(const compare *c)
{
    int width = width_of(c, 1);
    printf("%-*s %4s %8s %8s %17s %8s %8s\n", width, "", "runs", "top-1", "+-", "95 % interval", "best", "loss");
    for (size_t i = 0; i < c->cells; i++) {
        const compare_cell *cell = &c->cell[i];
        char mean[NUMBER_TEXT], deviation[NUMBER_TEXT], low[NUMBER_TEXT], high[NUMBER_TEXT], best[NUMBER_TEXT],
            loss[NUMBER_TEXT], range[2 * NUMBER_TEXT + 8] = "-";
        if (!isnan(cell->low))
            snprintf(range, sizeof range, "%s to %s", percent(low, cell->low), percent(high, cell->high));
        printf("%-*s %4zu %8s %8s %17s %8s %8s\n", width, cell->label, cell->count, percent(mean, cell->mean),
               percent(deviation, cell->deviation), range, percent(best, cell->best),
               digits_or_dash(loss, 4, cell->loss));
    }
}

static void runs_print(const compare *c)
{
    int width = width_of(c, 0);
    printf("\n%-*s %4s %6s %8s %8s %8s %8s\n", width, "run", "seed", "epochs", "top-1", "best", "loss", "train");
    for (size_t i = 0; i < c->runs; i++) {
        const compare_run *r = &c->run[i];
        char top1[NUMBER_TEXT], best[NUMBER_TEXT], loss[NUMBER_TEXT], train[NUMBER_TEXT];
        printf("%-*s %4lld %6llu %8s %8s %8s %8s  %s%s", width, r->path, (long long)r->seed,
               (unsigned long long)r->epochs, percent(top1, r->top1), percent(best, r->best_top1),
               digits_or_dash(loss, 4, r->loss), digits_or_dash(train, 4, r->train_loss), c->cell[r->cell].label,
               r->complete ? "" : " (not complete)");
        if (r->repeats)
            printf(" (of the seed of %s: not counted)", r->repeats);
        putchar('\n');
    }
    printf("\nbest is chosen on the test images and flatters; +- is the deviation over seeds.\n");
}

static berlu_status compare_run_command(options *o)
{
    compare c;
    berlu_status status = BERLU_OK;
    TRY(compare_read(&c, options_strings(o, "run"), options_count(o, "run")));
    if (options_given(o, "svg"))
        TRY_DONE(compare_draw(&c, options_string(o, "svg")));
    if (options_json(o))
        status = compare_json(&c);
    else {
        differences_print(&c);
        cells_print(&c);
        runs_print(&c);
    }
done:
    compare_free(&c);
    return status;
}

const command cmd_compare = {
    "compare", "runs side by side: settings that differ, results, curves",
    "Runs that differ in their seed alone are one row: mean and deviation of the last test accuracy, its 95 % t "
    "interval, the mean of the best. A seed that comes twice is counted once. Runs that still train are shown as far "
    "as they are.\n\n"
    "  berlu compare runs/relu runs/berlu --svg compare.svg\n"
    "  berlu compare runs/*/ --json",
    rows, compare_run_command};
