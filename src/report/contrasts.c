/* contrasts.c - differences of cells with their intervals, and Holm over the whole list.
 * SPDX-License-Identifier: MIT
 *
 * contrasts.h has the statistics. contrasts_judge() computes every contrast twice, for finished
 * runs and with failures at chance; holm_all() then corrects over all registered ones at once. */
#include "report/contrasts.h"

#include <math.h>
#include <string.h>

/* A copy of a sample whose values may be sorted; values are NULL without memory. */
static sample sample_copy(arena *memory, const sample *s)
{
    sample copy = *s;
    copy.values = ARENA_ARRAY(memory, double, s->count + 1);
    copy.seeds = ARENA_ARRAY(memory, int64_t, s->count + 1);
    if (!copy.values || !copy.seeds)
        return (sample){0};
    if (s->count) {
        memcpy(copy.values, s->values, s->count * sizeof *s->values);
        memcpy(copy.seeds, s->seeds, s->count * sizeof *s->seeds);
    }
    return copy;
}

static void swap(sample *s, size_t i, size_t k)
{
    double value = s->values[i];
    int64_t seed = s->seeds[i];
    s->values[i] = s->values[k], s->seeds[i] = s->seeds[k];
    s->values[k] = value, s->seeds[k] = seed;
}

/* Values of both samples at the seeds they share come first, in the same order. */
static size_t pairs_first(sample *a, sample *b)
{
    size_t pairs = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = pairs; k < b->count; k++)
            if (a->seeds[i] == b->seeds[k]) {
                swap(a, i, pairs);
                swap(b, k, pairs);
                pairs++;
                break;
            }
    return pairs;
}

static berlu_status compare(stats_contrast *out, const judged *j, int chance, size_t registered, arena *memory)
{
    size_t count;
    sample a = sample_copy(memory, chance ? &j->a->chance : &j->a->done),
           b = sample_copy(memory, chance ? &j->b->chance : &j->b->done);
    stats_sample *cells = view_group(memory, j->study, j->a->group, chance, &count);
    if (!a.values || !b.values || !cells)
        return BERLU_ERR_MEMORY;
    size_t pairs = pairs_first(&a, &b);
    *out = stats_contrast_make(&(stats_contrast_input){.a = sample_values(&a),
                                                       .b = sample_values(&b),
                                                       .cells = cells,
                                                       .count = count,
                                                       .pairs = pairs,
                                                       .contrasts = registered,
                                                       .margin = j->study->margin});
    return BERLU_OK;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static berlu_status judged_make(judged *j, const view_study *s, const store_contrast *c, size_t current, arena *memory)
{
    *j = (judged){.study = s, .of = c, .a = &s->cells[c->a], .b = &s->cells[c->b]};
    j->p_holm = j->chance_p_holm = NAN;
    j->n = least(j->a->done.count, j->b->done.count);
    j->chance_n = least(j->a->chance.count, j->b->chance.count);
    j->registered = least(j->a->of->count, j->b->of->count); /* a cell has as many members as seeds were registered */
    TRY(compare(&j->stats, j, 0, current, memory));
    TRY(compare(&j->chance, j, 1, current, memory));
    j->images =
        stats_range(stats_crossed(sample_images(&j->a->done), sample_images(&j->b->done), j->stats.judged), 0.95);
    return BERLU_OK;
}

/* Where less is better (loss) a positive difference is worse. */
static verdict_direction reversed(verdict_direction d)
{
    return d == VERDICT_BETTER ? VERDICT_WORSE : d == VERDICT_WORSE ? VERDICT_BETTER : d;
}

static void judge(judged *j)
{
    const char *differs = *j->a->differs ? j->a->differs : j->b->differs;
    j->verdict = verdict_of_contrast(&(verdict_input){.contrast = j->n ? &j->stats : NULL,
                                                      .p_holm = j->p_holm,
                                                      .margin = j->study->margin,
                                                      .paper = j->of->paper,
                                                      .n = j->n,
                                                      .registered = j->registered,
                                                      .differs = !isnan(j->of->paper) && *differs});
    if (strcmp(j->study->metric, "loss") == 0)
        j->verdict.direction = reversed(j->verdict.direction);
    if (!j->of->current && j->n) {
        j->verdict.direction = VERDICT_UNDECIDED;
        j->verdict.partial = 1;
        j->verdict.why = "of an earlier file: not judged";
    }
}

/* Holm over one list of all of them, for finished runs and again with failures at chance. */
static berlu_status holm_all(judgements *all, arena *memory)
{
    double *p = ARENA_ARRAY(memory, double, 4 * all->current + 1);
    if (!p)
        return BERLU_ERR_MEMORY;
    double *adjusted = p + 2 * all->current;
    size_t n = 0, count = all->current;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].of->current) {
            p[n] = all->items[i].stats.p;
            p[count + n++] = all->items[i].chance.p;
        }
    stats_holm(adjusted, p, count);
    stats_holm(adjusted + count, p + count, count);
    n = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].of->current) {
            all->items[i].p_holm = adjusted[n];
            all->items[i].chance_p_holm = adjusted[count + n++];
        }
    return BERLU_OK;
}

/* Costs are not compared by contrasts. */
static size_t contrast_count(const view_study *s)
{
    return s->cost ? 0 : s->of->contrast_count;
}

berlu_status contrasts_judge(judgements *out, const view *v, arena *memory)
{
    size_t most = 0;
    *out = (judgements){0};
    for (size_t i = 0; i < v->count; i++) {
        most += contrast_count(&v->studies[i]);
        for (size_t c = 0; c < contrast_count(&v->studies[i]); c++)
            out->current += v->studies[i].of->contrasts[c].current != 0;
    }
    out->items = ARENA_ARRAY(memory, judged, most + 1);
    if (!out->items)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < v->count; i++)
        for (size_t c = 0; c < contrast_count(&v->studies[i]); c++)
            TRY(judged_make(&out->items[out->count++], &v->studies[i], &v->studies[i].of->contrasts[c], out->current,
                            memory));
    TRY(holm_all(out, memory));
    for (size_t i = 0; i < out->count; i++)
        judge(&out->items[i]);
    return BERLU_OK;
}
