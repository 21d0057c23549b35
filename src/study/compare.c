/* compare.c - takes the values of two cells and compares them. SPDX-License-Identifier: MIT
 *
 * Values of seeds that both cells have come first and in the same order, so that a paired estimate
 * needs no index; all cells of the study together give the pooled deviation. */
#include "study/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double value_of(const store_result *r, const char *metric)
{
    if (strcmp(r->state, "done") != 0)
        return NAN;
    return strcmp(metric, "top5") == 0 ? r->top5 : strcmp(metric, "loss") == 0 ? r->loss : r->top1;
}

static int has_seed(const store_cell *c, int64_t seed, const char *metric)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->runs[i].seed == seed && !isnan(value_of(&c->runs[i], metric)))
            return 1;
    return 0;
}

/* The values of a cell, those whose seeds `other` has too first; runs are sorted by seed, so pairs
 * are in the same order. */
static size_t values_take(double *out, const store_cell *c, const store_cell *other, const char *metric, size_t *pairs)
{
    size_t count = 0;
    for (int shared = 1; shared >= 0; shared--) {
        for (size_t i = 0; i < c->count; i++)
            if (!isnan(value_of(&c->runs[i], metric)) && has_seed(other, c->runs[i].seed, metric) == shared)
                out[count++] = value_of(&c->runs[i], metric);
        if (shared)
            *pairs = count;
    }
    return count;
}

static size_t failed_count(const store_cell *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += strcmp(c->runs[i].state, "failed") == 0;
    return count;
}

berlu_status study_compare(study_comparison *out, const store_study *s, size_t a, size_t b, const char *metric,
                           double margin)
{
    size_t most = 2, at = 0, pairs;
    for (size_t c = 0; c < s->cell_count; c++)
        most += s->cells[c].count;
    most += s->cells[a].count + s->cells[b].count;
    double *values = calloc(most, sizeof *values);
    stats_sample *cells = calloc(s->cell_count + 1, sizeof *cells);
    if (!values || !cells) {
        free(values);
        free(cells);
        return berlu_fail_memory(most * sizeof *values, "cells");
    }
    for (size_t c = 0; c < s->cell_count; c++) {
        cells[c] = (stats_sample){values + at, values_take(values + at, &s->cells[c], &s->cells[c], metric, &pairs)};
        at += cells[c].count;
    }
    stats_sample of_a = {values + at, values_take(values + at, &s->cells[a], &s->cells[b], metric, &pairs)};
    at += of_a.count;
    stats_sample of_b = {values + at, values_take(values + at, &s->cells[b], &s->cells[a], metric, &pairs)};
    *out = (study_comparison){.a = a,
                              .b = b,
                              .n_a = of_a.count,
                              .n_b = of_b.count,
                              .pairs = pairs,
                              .failed_a = failed_count(&s->cells[a]),
                              .failed_b = failed_count(&s->cells[b])};
    out->of = stats_contrast_make(&(stats_contrast_input){.a = of_a,
                                                          .b = of_b,
                                                          .cells = cells,
                                                          .count = s->cell_count,
                                                          .pairs = pairs,
                                                          .contrasts = 1,
                                                          .margin = margin});
    free(values);
    free(cells);
    return of_a.count > 1 && of_b.count > 1
               ? BERLU_OK
               : berlu_fail(BERLU_ERR_INPUT,
                            "%s has %zu finished %s and %s has %zu: a difference needs two or more on each side",
                            s->cells[a].label, of_a.count, of_a.count == 1 ? "run" : "runs", s->cells[b].label,
                            of_b.count);
}
