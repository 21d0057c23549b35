/* contrasts.c - differences of cells with their intervals, and Holm over the whole list.
 * SPDX-License-Identifier: MIT
 *
 * contrasts.h has the statistics. contrasts_judge() computes every contrast twice, for finished
 * runs and with failures at chance; holm_all() then corrects over all registered ones at once,
 * predictions_correct() over predictions. */
#include "report/contrasts.h"

#include <math.h>
#include <stdint.h>
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

/* The cells of a contrast; returns how many, two or four. */
static size_t cells_of(const judged *j, const view_cell *out[4])
{
    out[0] = j->a, out[1] = j->b, out[2] = j->minus_a, out[3] = j->minus_b;
    return j->minus_a ? 4 : 2;
}

/* The samples that share a deviation: those of the group, or where the contrast joins several
 * groups its own. */
static stats_sample *pool_of(const judged *j, int chance, size_t *count, arena *memory)
{
    const view_cell *cells[4];
    size_t sides = cells_of(j, cells), apart = 0;
    for (size_t i = 1; i < sides; i++)
        apart |= cells[i]->group != j->a->group;
    if (!apart)
        return view_group(memory, j->study, j->a->group, chance, count);
    stats_sample *own = ARENA_ARRAY(memory, stats_sample, sides);
    for (size_t i = 0; own && i < sides; i++)
        own[i] = sample_values(chance ? &cells[i]->chance : &cells[i]->done);
    *count = sides;
    return own;
}

static berlu_status compare(stats_contrast *out, const judged *j, int chance, size_t registered, arena *memory)
{
    size_t count, pairs = 0;
    const sample *own_a = chance ? &j->a->chance : &j->a->done, *own_b = chance ? &j->b->chance : &j->b->done;
    sample a = sample_copy(memory, own_a), b = sample_copy(memory, own_b);
    stats_sample *cells = pool_of(j, chance, &count, memory), minus[2];
    if (!a.values || !b.values || !cells)
        return BERLU_ERR_MEMORY;
    if (j->minus_a) {
        minus[0] = sample_values(chance ? &j->minus_a->chance : &j->minus_a->done);
        minus[1] = sample_values(chance ? &j->minus_b->chance : &j->minus_b->done);
        a = *own_a, b = *own_b; /* themselves: the same cell twice is one sample */
    } else {
        pairs = pairs_first(&a, &b);
    }
    *out = stats_contrast_make(&(stats_contrast_input){.a = sample_values(&a),
                                                       .b = sample_values(&b),
                                                       .cells = cells,
                                                       .count = count,
                                                       .minus = j->minus_a ? minus : NULL,
                                                       .pairs = pairs,
                                                       .contrasts = registered,
                                                       .margin = j->study->margin,
                                                       .expected = j->of->expected});
    return BERLU_OK;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static berlu_status judged_make(judged *j, const view_study *s, const store_contrast *c, size_t current, arena *memory)
{
    const view_cell *cells[4];
    *j = (judged){.study = s, .of = c, .a = &s->cells[c->a], .b = &s->cells[c->b]};
    if (c->second)
        j->minus_a = &s->cells[c->minus_a], j->minus_b = &s->cells[c->minus_b];
    j->p_holm = j->chance_p_holm = j->p_held = j->p_not_held = NAN;
    j->n = j->chance_n = j->registered = SIZE_MAX;
    for (size_t i = 0, sides = cells_of(j, cells); i < sides; i++) {
        j->n = least(j->n, cells[i]->done.count);
        j->chance_n = least(j->chance_n, cells[i]->chance.count);
        j->registered = least(j->registered, cells[i]->of->count); /* as many members as seeds were registered */
        j->missing += cells[i]->of->count - cells[i]->done.count;
    }
    TRY(compare(&j->stats, j, 0, current, memory));
    TRY(compare(&j->chance, j, 1, current, memory));
    j->images = (stats_interval){NAN, NAN};
    if (!c->second)
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
                                                      .missing = j->missing,
                                                      .expected = j->of->expected,
                                                      .p_held = j->p_held,
                                                      .p_not_held = j->p_not_held,
                                                      .differs = !isnan(j->of->paper) && *differs});
    if (strcmp(j->study->metric, "loss") == 0)
        j->verdict.direction = reversed(j->verdict.direction);
    if (!j->of->current && j->n) {
        j->verdict.direction = VERDICT_UNDECIDED;
        j->verdict.partial = 1;
        j->verdict.why = "of an earlier file: not judged";
    }
}

size_t contrast_begun(const store_study *s, const store_contrast *c, size_t *runs)
{
    const size_t cells[] = {c->a, c->b, c->minus_a, c->minus_b};
    size_t begun = 0;
    *runs = 0;
    for (size_t i = 0; i < (c->second ? 4u : 2u); i++)
        for (size_t r = 0; r < s->cells[cells[i]].count; r++) {
            const char *began = s->cells[cells[i]].runs[r].began;
            begun += *began && strcmp(began, c->registered) < 0;
            ++*runs;
        }
    return begun;
}

/* ---- lists of tests -------------------------------------------------------------------------- */

static int is_current(const judged *j)
{
    return j->of->current && !j->of->expected.what;
}

static int is_prediction(const judged *j)
{
    return j->of->current && j->of->expected.what;
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
        if (is_current(&all->items[i])) {
            p[n] = all->items[i].stats.p;
            p[count + n++] = all->items[i].chance.p;
        }
    stats_holm(adjusted, p, count);
    stats_holm(adjusted + count, p + count, count);
    n = 0;
    for (size_t i = 0; i < all->count; i++)
        if (is_current(&all->items[i])) {
            all->items[i].p_holm = adjusted[n];
            all->items[i].chance_p_holm = adjusted[count + n++];
        }
    return BERLU_OK;
}

/* The predictions of a study's hypothesis are a list of their own; those of all studies without one
 * are another (`of` NULL). */
static int is_in_list(const judged *j, const view_study *of)
{
    return is_prediction(j) && (*j->study->hypothesis ? j->study == of : !of);
}

static berlu_status predictions_correct(judgements *all, const view_study *of, arena *memory)
{
    double *p = ARENA_ARRAY(memory, double, 4 * all->count + 1);
    if (!p)
        return BERLU_ERR_MEMORY;
    double *not_held = p + all->count, *adjusted = not_held + all->count, *adjusted_not = adjusted + all->count;
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++)
        if (is_in_list(&all->items[i], of)) {
            p[n] = all->items[i].stats.p_wrong;
            not_held[n++] = all->items[i].stats.p_right;
        }
    stats_holm(adjusted, p, n);
    stats_holm(adjusted_not, not_held, n);
    n = 0;
    for (size_t i = 0; i < all->count; i++)
        if (is_in_list(&all->items[i], of)) {
            all->items[i].p_held = of ? p[n] : adjusted[n];
            all->items[i].p_not_held = adjusted_not[n++];
        }
    return BERLU_OK;
}

/* A prediction that stood in an earlier file of the study and is gone, or was changed when all its
 * runs had begun, leaves the hypothesis partial: results may have been the reason. */
static const char *changed_after_a_look(const judgements *all, const view_study *of)
{
    for (size_t i = 0; i < all->count; i++) {
        const judged *j = &all->items[i];
        size_t runs, begun;
        if (j->study != of || !j->of->expected.what)
            continue;
        begun = contrast_begun(of->of, j->of, &runs);
        if (!j->of->current)
            return "a prediction of an earlier file is gone";
        if (runs && begun == runs)
            return "a prediction was registered after its runs";
    }
    return NULL;
}

static berlu_status hypothesis_judge(judgements *all, const view_study *of, arena *memory)
{
    hypothesis *h = &all->hypotheses[all->hypothesis_count];
    verdict *each = ARENA_ARRAY(memory, verdict, all->count + 1);
    if (!each)
        return BERLU_ERR_MEMORY;
    *h = (hypothesis){.study = of};
    for (size_t i = 0; i < all->count; i++)
        if (is_in_list(&all->items[i], of)) {
            each[h->predictions++] = all->items[i].verdict;
            h->held += all->items[i].verdict.direction == VERDICT_HELD;
        }
    h->verdict = verdict_of_hypothesis(each, h->predictions);
    const char *changed = changed_after_a_look(all, of);
    if (changed && h->verdict.direction != VERDICT_NOT_TESTED)
        h->verdict.partial = 1, h->verdict.why = changed;
    all->hypothesis_count += h->predictions > 0;
    return BERLU_OK;
}

/* Costs are not compared by contrasts. */
static size_t contrast_count(const view_study *s)
{
    return s->cost ? 0 : s->of->contrast_count;
}

static berlu_status judge_all(judgements *all, const view *v, arena *memory)
{
    TRY(holm_all(all, memory));
    TRY(predictions_correct(all, NULL, memory));
    for (size_t i = 0; i < v->count; i++)
        if (*v->studies[i].hypothesis)
            TRY(predictions_correct(all, &v->studies[i], memory));
    for (size_t i = 0; i < all->count; i++)
        judge(&all->items[i]);
    for (size_t i = 0; i < v->count; i++)
        if (*v->studies[i].hypothesis)
            TRY(hypothesis_judge(all, &v->studies[i], memory));
    return BERLU_OK;
}

berlu_status contrasts_judge(judgements *out, const view *v, arena *memory)
{
    size_t most = 0;
    *out = (judgements){0};
    for (size_t i = 0; i < v->count; i++) {
        most += contrast_count(&v->studies[i]);
        for (size_t c = 0; c < contrast_count(&v->studies[i]); c++) {
            const store_contrast *k = &v->studies[i].of->contrasts[c];
            out->current += k->current && !k->expected.what;
        }
    }
    out->items = ARENA_ARRAY(memory, judged, most + 1);
    out->hypotheses = ARENA_ARRAY(memory, hypothesis, v->count + 1);
    if (!out->items || !out->hypotheses)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < v->count; i++)
        for (size_t c = 0; c < contrast_count(&v->studies[i]); c++)
            TRY(judged_make(&out->items[out->count++], &v->studies[i], &v->studies[i].of->contrasts[c], out->current,
                            memory));
    return judge_all(out, v, memory);
}

/* ---- words ----------------------------------------------------------------------------------- */

void contrast_words(text *out, const store_study *s, const store_contrast *c)
{
    static const char *const bounds[] = {"", "within \u00b1", "below ", "above "};
    text_add(out, "%s minus %s", s->cells[c->a].label, s->cells[c->b].label);
    if (c->second)
        text_add(out, ", less (%s minus %s)", s->cells[c->minus_a].label, s->cells[c->minus_b].label);
    if (c->expected.what)
        text_add(out, ", predicted %s%g", bounds[c->expected.what], c->expected.limit);
}
