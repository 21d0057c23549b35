/* regions.c - reads the columns of the sites from start.csv and metrics.csv.
 * SPDX-License-Identifier: MIT
 *
 * The names of the sites come from the header of the table; rows of both files are joined in the
 * order of epochs. Read regions_read(). */
#include "analyze/regions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "io/csv.h"
#include "train/metrics.h"
#include "train/run_folder.h"
#include "train/run_missing.h"

static const char marker[] = "inside."; /* every site has this column, and no other begins so */

static double cell(const csv_table *t, size_t row, site_metric metric, const char *site)
{
    char name[512];
    snprintf(name, sizeof name, "%s.%s", site_metric_names[metric], site);
    return csv_number(t, row, csv_column(t, name));
}

static region region_of(const csv_table *t, size_t row, const char *site)
{
    return (region){.alpha = cell(t, row, SITE_ALPHA, site),
                    .left = cell(t, row, SITE_LEFT, site),
                    .inside = cell(t, row, SITE_INSIDE, site),
                    .right = cell(t, row, SITE_RIGHT, site),
                    .dead = cell(t, row, SITE_DEAD, site),
                    .scale = sqrt(cell(t, row, SITE_VAR, site)),
                    .nonlinear = cell(t, row, SITE_NONLINEAR, site)};
}

static berlu_status sites_find(regions *out, const csv_table *t, const char *path)
{
    out->names = ARENA_ARRAY(&out->memory, const char *, t->columns);
    if (!out->names)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < t->columns; i++)
        if (strncmp(t->names[i], marker, sizeof marker - 1) == 0) {
            out->names[out->sites] = arena_strdup(&out->memory, t->names[i] + sizeof marker - 1);
            if (!out->names[out->sites++])
                return BERLU_ERR_MEMORY;
        }
    return out->sites ? BERLU_OK : berlu_fail(BERLU_ERR_INPUT, "%s: has no activation site", path);
}

/* Appends the rows of a table. */
static berlu_status rows_add(regions *out, const csv_table *t, const char *path)
{
    for (size_t row = 0; row < t->rows; row++) {
        double epoch = csv_number(t, row, csv_column(t, "epoch"));
        if (!(epoch >= 0 && epoch < 0x1p53))
            return berlu_fail(BERLU_ERR_INPUT, "%s: row %zu has no epoch", path, row + 1);
        out->epoch[out->epochs] = (uint64_t)epoch;
        for (size_t s = 0; s < out->sites; s++)
            out->values[out->epochs * out->sites + s] = region_of(t, row, out->names[s]);
        out->epochs++;
    }
    return BERLU_OK;
}

static berlu_status tables_join(regions *out, const csv_table *start, const csv_table *metrics, const char *path)
{
    size_t rows = start->rows + metrics->rows, all;
    TRY(sites_find(out, metrics, path));
    if (rows == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no epoch is over yet", path);
    out->epoch = ARENA_ARRAY(&out->memory, uint64_t, rows);
    out->values = size_mul(rows, out->sites, &all) ? ARENA_ARRAY(&out->memory, region, all) : NULL;
    if (!out->epoch || !out->values)
        return BERLU_ERR_MEMORY;
    out->has_start = start->rows > 0;
    TRY(rows_add(out, start, path));
    return rows_add(out, metrics, path);
}

berlu_status regions_read(regions *out, const char *run)
{
    char path[RUN_PATH], first[RUN_PATH];
    csv_table start = {0}, metrics = {0};
    *out = (regions){0};
    if (!run_exists(run))
        return run_missing(run);
    if (snprintf(path, sizeof path, "%s/metrics.csv", run) >= (int)sizeof path ||
        snprintf(first, sizeof first, "%s/start.csv", run) >= (int)sizeof first)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", run);
    berlu_status status;
    TRY_DONE(csv_read(&metrics, path));
    if (file_exists(first))
        TRY_DONE(csv_read(&start, first));
    status = tables_join(out, &start, &metrics, path);
done:
    csv_free(&start);
    csv_free(&metrics);
    if (status != BERLU_OK)
        regions_free(out);
    return status;
}

void regions_free(regions *r)
{
    arena_free(&r->memory);
    *r = (regions){0};
}
