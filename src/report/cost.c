/* cost.c - medians of the rounds of each cell, and paired differences to the first cell.
 * SPDX-License-Identifier: MIT
 *
 * cost.h explains the design. report_cost_add() groups the rows of a store by cell and policy and
 * finds the reference of each group; percent_add() pairs the rounds that both have. */
#include "report/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/median.h"
#include "report/files.h"
#include "study/stats.h"

enum { ROUNDS = 1000 }; /* the most a study file may set */

static const char *const columns[] = {
    "study",        "machine",          "cell",         "keep",          "rounds",     "forward_ms",      "backward_ms",
    "update_ms",    "images_per_s",     "kept_bytes",   "planned_bytes", "peak_bytes", "forward_percent", "forward_low",
    "forward_high", "backward_percent", "backward_low", "backward_high"};

void report_cost_start(report_cost *r)
{
    *r = (report_cost){0};
    r->table =
        table_make(&r->memory, "cost", "Cost of a training step; percent: against the first cell, round by round",
                   columns, COUNT(columns));
}

void report_cost_free(report_cost *r)
{
    arena_free(&r->memory);
    *r = (report_cost){0};
}

/* Rows of one cell and policy: rows[0] to rows[count - 1], by round. */
typedef struct cost_group {
    const store_cost *rows;
    size_t count;
} cost_group;

static int same_group(const store_cost *a, const store_cost *b)
{
    return strcmp(a->study, b->study) == 0 && strcmp(a->row.machine, b->row.machine) == 0 &&
           strcmp(a->row.cell, b->row.cell) == 0 && a->row.again == b->row.again &&
           strcmp(a->row.keep, b->row.keep) == 0;
}

/* A column of a row, by its offset in cost_row. */
static double value_of(const cost_row *r, size_t offset)
{
    double value;
    memcpy(&value, (const char *)r + offset, sizeof value);
    return value;
}

static double median_of(cost_group g, size_t offset)
{
    double values[ROUNDS];
    size_t count = 0;
    for (size_t i = 0; i < g.count && count < ROUNDS; i++)
        if (!isnan(value_of(&g.rows[i].row, offset)))
            values[count++] = value_of(&g.rows[i].row, offset);
    return count ? median(values, count) : NAN;
}

/* Percent over the reference, from the rounds that both have. */
static void percent_add(table *t, cost_group g, cost_group reference, size_t offset)
{
    double values[ROUNDS];
    size_t count = 0;
    for (size_t i = 0; i < g.count; i++)
        for (size_t k = 0; k < reference.count && count < ROUNDS; k++)
            if (g.rows[i].row.round == reference.rows[k].row.round)
                values[count++] =
                    100 * (value_of(&g.rows[i].row, offset) / value_of(&reference.rows[k].row, offset) - 1);
    stats_estimate mean = stats_of_mean((stats_sample){values, count});
    stats_interval range = stats_range(mean, 0.95);
    table_number(t, mean.value, 2);
    table_number(t, range.low, 2);
    table_number(t, range.high, 2);
}

static void group_add(table *t, cost_group g, cost_group reference)
{
    const store_cost *first = g.rows;
    char label[512];
    snprintf(label, sizeof label, "%s%s", first->row.cell, first->row.again ? " (again)" : "");
    table_word(t, first->study);
    table_word(t, first->row.machine);
    table_word(t, label);
    table_word(t, first->row.keep);
    table_number(t, (double)g.count, 0);
    table_number(t, median_of(g, offsetof(cost_row, forward_ms)), 3);
    table_number(t, median_of(g, offsetof(cost_row, backward_ms)), 3);
    table_number(t, median_of(g, offsetof(cost_row, update_ms)), 3);
    table_number(t, median_of(g, offsetof(cost_row, images_per_s)), 0);
    table_number(t, median_of(g, offsetof(cost_row, kept_bytes)), 0);
    table_number(t, median_of(g, offsetof(cost_row, planned_bytes)), 0);
    table_number(t, median_of(g, offsetof(cost_row, peak_bytes)), 0);
    percent_add(t, g, reference, offsetof(cost_row, forward_ms));
    percent_add(t, g, reference, offsetof(cost_row, backward_ms));
}

/* The first cell of the same study and machine, at the same policy; no rows where it has none of
 * that policy. Rows come in the order of the file. */
static cost_group reference_of(const store_cost *rows, size_t count, const store_cost *like)
{
    cost_group g = {0};
    const char *cell = NULL;
    for (size_t i = 0; i < count; i++) {
        const store_cost *r = &rows[i];
        if (strcmp(r->study, like->study) != 0 || strcmp(r->row.machine, like->row.machine) != 0)
            continue;
        cell = cell ? cell : r->row.cell;
        if (strcmp(r->row.cell, cell) != 0 || r->row.again || strcmp(r->row.keep, like->row.keep) != 0)
            continue;
        g.rows = g.count ? g.rows : r;
        g.count++;
    }
    return g;
}

berlu_status report_cost_add(report_cost *r, store *from)
{
    store_cost *rows;
    size_t count;
    TRY(store_read_cost(from, &r->memory, &rows, &count));
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && same_group(&rows[i], &rows[i + n]);)
            n++;
        group_add(&r->table, (cost_group){&rows[i], n}, reference_of(rows, count, &rows[i]));
    }
    return table_status(&r->table);
}

berlu_status report_cost_write(const report_cost *r, const char *folder, unsigned formats)
{
    return table_files_write(&r->table, folder, formats);
}
