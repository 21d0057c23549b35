/* equivalence.c - two one-sided tests of our cells against another program's.
 * SPDX-License-Identifier: MIT
 *
 * equivalence.h has the rule. report_equivalence_add() takes the registered rows of a store, each a
 * cell or a difference of two; side_add() summarises one side of it. */
#include "report/equivalence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/files.h"
#include "study/stats.h"

static const char *const columns[] = {"study",    "source",      "name",      "n",          "mean",  "sd",
                                      "source_n", "source_mean", "source_sd", "difference", "low90", "high90",
                                      "margin",   "p",           "verdict",   "registered"};

void report_equivalence_start(report_equivalence *r)
{
    *r = (report_equivalence){0};
    r->table = table_make(&r->memory, "equivalence", "Ours minus another program's: two one-sided tests", columns,
                          COUNT(columns));
}

void report_equivalence_free(report_equivalence *r)
{
    arena_free(&r->memory);
    *r = (report_equivalence){0};
}

/* Summarises our cell without its failed runs; the source's failures are unknown too. */
static berlu_status ours_of(stats_summary *out, int *partial, const store_contents *from, const char *name,
                            const char *label)
{
    *out = (stats_summary){0, NAN, NAN};
    for (size_t i = 0; i < from->count; i++)
        for (size_t c = 0; strcmp(from->studies[i].name, name) == 0 && c < from->studies[i].cell_count; c++) {
            const store_cell *cell = &from->studies[i].cells[c];
            if (strcmp(cell->label, label) != 0)
                continue;
            double *values = calloc(cell->count + 1, sizeof *values);
            size_t count = 0;
            if (!values)
                return berlu_fail_memory(cell->count * sizeof *values, "a cell");
            for (size_t k = 0; k < cell->count; k++)
                if (strcmp(cell->runs[k].state, "done") == 0 && !isnan(cell->runs[k].top1))
                    values[count++] = cell->runs[k].top1;
            stats_sample s = {values, count};
            *out = (stats_summary){(double)count, stats_mean(s), stats_deviation(s)};
            free(values);
            *partial |= count < cell->count; /* fewer than were registered */
            return BERLU_OK;
        }
    return BERLU_OK;
}

static stats_summary theirs_of(const import_rows *rows, const store_equal *e, const char *label)
{
    import_cell cell = import_cell_of(rows, e->study, e->source, label);
    return (stats_summary){cell.n, cell.mean, cell.sd};
}

static void side_add(table *t, const stats_summary *s, int difference)
{
    table_number(t, difference && s[1].n < s[0].n ? s[1].n : s[0].n, 0);
    table_number(t, difference ? s[0].mean - s[1].mean : s[0].mean, 2);
    table_number(t, difference ? NAN : s[0].deviation, 2);
}

static berlu_status row_add(table *t, const store_equal *e, const import_rows *rows, const store_contents *from)
{
    static const double weights[] = {1, -1, -1, 1};
    stats_summary all[4]; /* ours a, ours b, theirs a, theirs b */
    int two = *e->b != 0, partial = 0;
    TRY(ours_of(&all[0], &partial, from, e->study, e->a));
    if (two)
        TRY(ours_of(&all[1], &partial, from, e->study, e->b));
    all[2] = theirs_of(rows, e, e->a);
    if (two)
        all[3] = theirs_of(rows, e, e->b);
    const stats_summary plain[] = {all[0], all[2]};
    stats_estimate d = two ? stats_combined(all, weights, 4) : stats_combined(plain, weights, 2);
    stats_interval range = stats_range(d, 0.90);
    double p = stats_p_equivalent(d, e->margin);
    table_word(t, e->study);
    table_word(t, e->source);
    table_word(t, e->name);
    side_add(t, &all[0], two);
    side_add(t, &all[2], two);
    table_number(t, d.value, 3);
    table_number(t, range.low, 3);
    table_number(t, range.high, 3);
    table_number(t, e->margin, 2);
    table_number(t, p, 4);
    table_word(t, isnan(p)   ? "not tested"
                  : partial  ? p < 0.05 ? "equivalent (partial)" : "not shown (partial)"
                  : p < 0.05 ? "equivalent"
                             : "not shown");
    table_word(t, e->current ? e->registered : "earlier file");
    return BERLU_OK;
}

berlu_status report_equivalence_add(report_equivalence *r, store *s, const store_contents *from)
{
    import_rows rows;
    store_equal *equals;
    size_t count;
    TRY(store_read_import(s, &rows));
    berlu_status status;
    TRY_DONE(store_read_equals(s, &r->memory, &equals, &count));
    for (size_t i = 0; i < count; i++)
        TRY_DONE(row_add(&r->table, &equals[i], &rows, from));
    status = table_status(&r->table);
done:
    import_free(&rows);
    return status;
}

berlu_status report_equivalence_write(const report_equivalence *r, const char *folder, unsigned formats)
{
    return table_files_write(&r->table, folder, formats);
}
