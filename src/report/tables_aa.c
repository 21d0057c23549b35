/* tables_aa.c - elu against celu, one function under two names: the effect of noise alone.
 * SPDX-License-Identifier: MIT
 *
 * With disjoint seeds (elu on even seeds, celu on odd ones) they differ as any two runs do. With
 * equal seeds they differ by rounding at most, which training amplifies; runs of one program, GPU
 * and record of algorithms may be the same to the bit, and such pairs are counted: they say nothing
 * about noise. Intervals without 0 in more than one of twenty rows with disjoint seeds would mean
 * that the statistics are wrong. */
#include <math.h>
#include <string.h>

#include "report/tables.h"

static const view_cell *cell_of(const view_study *s, size_t group, const char *act)
{
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && strcmp(s->cells[c].act, act) == 0 && s->cells[c].done.count)
            return &s->cells[c];
    return NULL;
}

static int has_seed(const sample *s, int64_t seed)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->seeds[i] == seed)
            return 1;
    return 0;
}

/* The values at seeds that `other` has too; runs may be missing on either side. */
static stats_sample shared_of(const sample *s, const sample *other, arena *memory)
{
    double *values = ARENA_ARRAY(memory, double, s->count + 1);
    size_t count = 0;
    for (size_t i = 0; values && i < s->count; i++)
        if (has_seed(other, s->seeds[i]))
            values[count++] = s->values[i];
    return (stats_sample){values, count};
}

/* The values at even or at odd seeds. */
static stats_sample half_of(const sample *s, int odd, arena *memory)
{
    double *values = ARENA_ARRAY(memory, double, s->count + 1);
    size_t count = 0;
    for (size_t i = 0; values && i < s->count; i++)
        if ((s->seeds[i] & 1) == odd)
            values[count++] = s->values[i];
    return (stats_sample){values, count};
}

static int same_answers(const sample *a, size_t i, const sample *b, size_t k)
{
    size_t bytes = (a->images + 7) / 8;
    return a->values[i] == b->values[k] && a->images == b->images && memcmp(a->bits[i], b->bits[k], bytes) == 0;
}

/* Pairs of runs of one seed that are right about the same test images. */
static size_t identical_pairs(const sample *a, const sample *b)
{
    size_t count = 0;
    for (size_t i = 0; i < a->count && a->images; i++)
        for (size_t k = 0; k < b->count; k++)
            count += a->seeds[i] == b->seeds[k] && same_answers(a, i, b, k);
    return count;
}

static void row_add(table *t, const view_study *s, const char *seeds, stats_sample a, stats_sample b,
                    const stats_sample *pool, size_t count, double identical)
{
    stats_estimate d = stats_difference(a, b, pool, count);
    stats_interval range = stats_range(d, 0.95);
    table_word(t, s->of->name);
    table_word(t, seeds);
    table_number(t, (double)(a.count < b.count ? a.count : b.count), 0);
    table_number(t, d.value, 2);
    table_number(t, range.low, 2);
    table_number(t, range.high, 2);
    table_number(t, stats_p(d), -2);
    table_number(t, identical, 0);
}

berlu_status tables_aa(table *t, const view_study *s, arena *memory)
{
    for (size_t g = 0; g < s->group_count; g++) {
        const view_cell *elu = cell_of(s, g, "elu"), *celu = cell_of(s, g, "celu");
        size_t count;
        if (!elu || !celu)
            continue;
        stats_sample *pool = view_group(memory, s, g, 0, &count);
        stats_sample x = shared_of(&elu->done, &celu->done, memory), y = shared_of(&celu->done, &elu->done, memory);
        stats_sample a = half_of(&elu->done, 0, memory), b = half_of(&celu->done, 1, memory);
        if (!pool || !x.values || !y.values || !a.values || !b.values)
            return BERLU_ERR_MEMORY;
        if (x.count)
            row_add(t, s, "equal", x, y, pool, count, (double)identical_pairs(&elu->done, &celu->done));
        if (a.count && b.count)
            row_add(t, s, "disjoint", a, b, pool, count, NAN);
    }
    return BERLU_OK;
}
