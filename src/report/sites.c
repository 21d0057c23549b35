/* sites.c - means over a cell's runs of the columns of metrics.csv, site by site.
 * SPDX-License-Identifier: MIT
 *
 * sites.h says what a site's metrics are. sites_read() inflates one run at a time, takes epochs
 * that all runs have (shape_take) and adds the run to the means of its cell. */
#include "report/sites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/csv.h"

/* Column numbers of one measurement, site by site. */
static size_t columns_find(const csv_table *t, site_metric what, int *out, size_t most)
{
    char prefix[32];
    size_t count = 0, length = (size_t)snprintf(prefix, sizeof prefix, "%s.", site_metric_names[what]);
    for (size_t c = 0; c < t->columns && count < most; c++)
        if (strncmp(t->names[c], prefix, length) == 0)
            out[count++] = (int)c;
    return count;
}

/* Takes the epochs of a cell from its shortest table: runs of slim stores have few, and each must
 * be in all of them. */
static berlu_status shape_take(cell_sites *s, const csv_table *t, const store_result *run, arena *memory)
{
    (void)run;
    int columns[1 << 10];
    s->sites = columns_find(t, SITE_LEFT, columns, COUNT(columns));
    s->epochs = t->rows < TRACK_EPOCHS ? t->rows : TRACK_EPOCHS;
    s->epoch = ARENA_ARRAY(memory, double, s->epochs + 1);
    if (!s->epoch)
        return BERLU_ERR_MEMORY;
    for (size_t e = 0; e < s->epochs; e++) {
        size_t row = s->epochs > 1 ? (e * (t->rows - 1) + (s->epochs - 1) / 2) / (s->epochs - 1) : 0;
        s->epoch[e] = csv_number(t, row, csv_column(t, "epoch"));
    }
    for (int m = 0; m < SITE_METRICS; m++) {
        s->sum[m] = ARENA_ARRAY(memory, double, s->sites * s->epochs + 1);
        s->count[m] = ARENA_ARRAY(memory, double, s->sites * s->epochs + 1);
        if (!s->sum[m] || !s->count[m])
            return BERLU_ERR_MEMORY;
    }
    return BERLU_OK;
}

static size_t row_of(const csv_table *t, double epoch)
{
    int column = csv_column(t, "epoch");
    for (size_t row = 0; row < t->rows; row++)
        if (csv_number(t, row, column) == epoch)
            return row;
    return t->rows;
}

static double mean_over(const csv_table *t, size_t row, const int *columns, size_t count)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < count && row < t->rows; i++) {
        double value = csv_number(t, row, columns[i]);
        if (isfinite(value))
            sum += value, n++;
    }
    return n ? sum / (double)n : NAN;
}

/* Epochs that a slim store keeps, too. */
static void nonlinear_take(run_sites *r, const csv_table *t, const int *columns, size_t sites)
{
    static const double epochs[MOMENTS] = {[MOMENT_START] = 0, [MOMENT_FIRST] = 1, [MOMENT_TENTH] = 10};
    r->last_epoch = csv_number(t, t->rows - 1, csv_column(t, "epoch"));
    for (int m = 0; m < MOMENTS; m++) {
        size_t row = m == MOMENT_LAST ? t->rows - 1 : row_of(t, epochs[m]);
        int later = m != MOMENT_LAST && epochs[m] >= r->last_epoch; /* the last one has it */
        r->nonlinear[m] = later ? NAN : mean_over(t, row, columns, sites);
    }
}

static berlu_status run_add(cell_sites *s, const csv_table *t, const store_result *run, arena *memory)
{
    (void)memory;
    int columns[1 << 10];
    run_sites *r = &s->runs[s->run_count++];
    *r = (run_sites){.run = run, .alpha = NAN, .nonlinear = {NAN, NAN, NAN, NAN}, .last_epoch = NAN};
    for (int m = 0; m < SITE_METRICS; m++) {
        size_t sites = columns_find(t, (site_metric)m, columns, COUNT(columns));
        for (size_t e = 0; e < s->epochs && sites == s->sites; e++) {
            size_t row = row_of(t, s->epoch[e]);
            for (size_t i = 0; i < sites && row < t->rows; i++) {
                double value = csv_number(t, row, columns[i]);
                if (isfinite(value))
                    s->sum[m][i * s->epochs + e] += value, s->count[m][i * s->epochs + e] += 1;
            }
        }
        if (m == SITE_NONLINEAR)
            nonlinear_take(r, t, columns, sites);
        if (m == SITE_DEAD)
            r->dead = mean_over(t, t->rows - 1, columns, sites);
        for (size_t i = 0; m == SITE_ALPHA && i < sites; i++)
            r->alpha = fmax(r->alpha, fabs(csv_number(t, t->rows - 1, columns[i])));
    }
    return BERLU_OK;
}

typedef berlu_status (*metrics_use)(cell_sites *s, const csv_table *t, const store_result *run, arena *memory);

/* Inflates and parses one run's metrics.csv for `use`; runs without rows are left out. */
static berlu_status metrics_with(cell_sites *s, const store_result *run, metrics_use use, arena *memory)
{
    char *content = NULL;
    csv_table t = {0};
    berlu_status status;
    TRY_DONE(store_metrics(&content, run));
    if (content)
        TRY_DONE(csv_parse(&t, content, strlen(content), "metrics.csv"));
    if (t.rows)
        status = use(s, &t, run, memory);
done:
    csv_free(&t);
    free(content);
    return status;
}

berlu_status sites_read(cell_sites *out, const view_cell *c, const char *metric, arena *memory)
{
    const store_result *shortest = NULL;
    *out = (cell_sites){.runs = ARENA_ARRAY(memory, run_sites, c->of->count + 1)};
    if (!out->runs)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < c->of->count; i++) {
        const store_result *r = &c->of->runs[i];
        if (view_run_done(r, metric) && r->metrics && (!shortest || r->metrics_bytes < shortest->metrics_bytes))
            shortest = r;
    }
    if (shortest)
        TRY(metrics_with(out, shortest, shape_take, memory));
    for (size_t i = 0; i < c->of->count; i++)
        if (view_run_done(&c->of->runs[i], metric))
            TRY(metrics_with(out, &c->of->runs[i], run_add, memory));
    return BERLU_OK;
}

double sites_nonlinear(const cell_sites *s, moment when, size_t *runs)
{
    double sum = 0;
    *runs = 0;
    for (size_t i = 0; i < s->run_count; i++)
        if (!isnan(s->runs[i].nonlinear[when]))
            sum += s->runs[i].nonlinear[when], ++*runs;
    return *runs ? sum / (double)*runs : NAN;
}

double sites_at(const cell_sites *s, site_metric what, size_t site, size_t epoch)
{
    size_t at = site * s->epochs + epoch;
    return s->sum[what] && s->count[what][at] > 0 ? s->sum[what][at] / s->count[what][at] : NAN;
}

int sites_have(const cell_sites *s, site_metric what)
{
    for (size_t i = 0; s->sum[what] && i < s->sites * s->epochs; i++)
        if (s->count[what][i] > 0)
            return 1;
    return 0;
}
