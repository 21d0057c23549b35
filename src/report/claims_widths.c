/* claims_widths.c - C11 to C13: BerLU by the width of its transition. SPDX-License-Identifier: MIT
 *
 * The paper's curve has nine widths on two sets. Every group of runs that differ in eps alone and
 * has at least three of them, or whose study names the claim, is judged by these widths alone; a
 * claim holds if it holds in each of them. Nothing is decided before all registered runs of these
 * widths are done. */
#include <math.h>
#include <string.h>

#include "report/claims.h"
#include "report/ladder.h"

static const double paper_widths[] = {1e-4, 1e-3, 1e-2, 1e-1, 0.2, 0.5, 1, 5, 10};

static int is_paper_width(const view_cell *c)
{
    for (size_t i = 0; i < COUNT(paper_widths); i++)
        if (fabs(c->eps - paper_widths[i]) <= 1e-7 * paper_widths[i])
            return 1;
    return 0;
}

static int same_ladder(const view_cell *a, const view_cell *b)
{
    return !isnan(a->eps) && !isnan(b->eps) && a->group == b->group && strcmp(a->others, b->others) == 0;
}

berlu_status ladder_find(ladder *out, const view_study *s, size_t first, arena *memory)
{
    *out = (ladder){.study = s, .group = s->cells[first].group};
    for (size_t c = 0; c < first; c++)
        if (same_ladder(&s->cells[c], &s->cells[first]))
            return BERLU_OK;
    for (size_t c = first; c < s->cell_count && out->count < COUNT(out->cells); c++) {
        const view_cell *cell = &s->cells[c];
        if (!same_ladder(&s->cells[first], cell) || !cell->done.count)
            continue;
        size_t at = out->count++;
        for (; at > 0 && out->cells[at - 1]->eps > cell->eps; at--)
            out->cells[at] = out->cells[at - 1];
        out->cells[at] = cell;
    }
    out->pool = view_group(memory, s, out->group, 0, &out->pool_count);
    return out->pool ? BERLU_OK : BERLU_ERR_MEMORY;
}

const view_cell *ladder_at(const ladder *l, double eps)
{
    for (size_t i = 0; i < l->count; i++)
        if (fabs(l->cells[i]->eps - eps) <= 1e-7 * eps)
            return l->cells[i];
    return NULL;
}

stats_estimate ladder_difference(const ladder *l, const view_cell *a, const view_cell *b)
{
    return stats_difference(sample_values(&a->done), sample_values(&b->done), l->pool, l->pool_count);
}

static double mean_of(const view_cell *c)
{
    return stats_mean(sample_values(&c->done));
}

/* ---- one ladder ------------------------------------------------------------------------------ */

typedef struct rung_result {
    claim_word word;
    const char *size, *figures;
    int partial; /* widths of the paper are missing */
} rung_result;

/* C11: 1e-2 is better than each other width, Holm over them; one that beats it beyond its interval
 * refutes. */
static rung_result best_at_hundredth(const ladder *l, const evidence *e)
{
    rung_result r = {.size = "", .figures = ""};
    const view_cell *own = ladder_at(l, 1e-2), *best = own;
    double p[COUNT(l->cells)], adjusted[COUNT(l->cells)];
    size_t better = 0, others = 0;
    if (!own || l->count < 2)
        return r;
    for (size_t i = 0; i < l->count; i++) {
        if (l->cells[i] == own || !is_paper_width(l->cells[i]))
            continue;
        stats_estimate gain = ladder_difference(l, own, l->cells[i]);
        p[others++] = gain.value > 0 ? stats_p(gain) : 1; /* as bad or worse shows nothing */
        if (mean_of(l->cells[i]) > mean_of(best))
            best = l->cells[i];
    }
    if (!others)
        return r;
    stats_holm(adjusted, p, others);
    for (size_t i = 0; i < others; i++)
        better += adjusted[i] < 0.05;
    stats_estimate gap = ladder_difference(l, best, own);
    stats_interval at = stats_range(gap, 1 - 0.05 / (double)others); /* the best of several was selected */
    r.word = best != own && at.low > 0 ? CLAIM_NOT_HELD : better == others ? CLAIM_HELD : CLAIM_UNDECIDED;
    for (size_t i = 0; i < COUNT(paper_widths); i++)
        r.partial |= !ladder_at(l, paper_widths[i]);
    r.figures = best == own
                    ? arena_printf(e->memory, "the highest mean is that of 0.01, %.2f; it is better than %zu of %zu",
                                   mean_of(own), better, others)
                    : arena_printf(e->memory, "eps = %g has %.2f, 0.01 has %.2f: %.2f [%.2f, %.2f]", best->eps,
                                   mean_of(best), mean_of(own), gap.value, at.low, at.high);
    return r;
}

/* C12. */
static rung_result flat_below_tenth(const ladder *l, const evidence *e)
{
    rung_result r = {.size = "", .figures = ""};
    const view_cell *best = NULL, *worst = NULL;
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const view_cell *c = l->cells[i];
        if (c->eps > 1.01e-1 || !is_paper_width(c))
            continue;
        count++;
        best = !best || mean_of(c) > mean_of(best) ? c : best;
        worst = !worst || mean_of(c) < mean_of(worst) ? c : worst;
    }
    if (count < 2 || best == worst)
        return r;
    stats_estimate gap = ladder_difference(l, best, worst);
    stats_interval at = stats_range(gap, 0.95), /* the two were selected as the farthest apart of all pairs */
        wide = stats_range(gap, 1 - 0.05 / ((double)count * (double)(count - 1) / 2));
    r.word = at.high < 1.5 ? CLAIM_HELD : wide.low > 1.5 ? CLAIM_NOT_HELD : CLAIM_UNDECIDED;
    r.size = gap.value < 1.5 ? "inside" : "outside";
    r.partial = count < 4;
    r.figures = arena_printf(e->memory, "%zu widths: %g minus %g is %.2f [%.2f, %.2f], paper below 1.5", count,
                             best->eps, worst->eps, gap.value, at.low, at.high);
    return r;
}

/* C13. */
static rung_result falls_beyond_fifth(const ladder *l, const evidence *e)
{
    rung_result r = {.size = "", .figures = ""};
    const view_cell *wide = ladder_at(l, 10), *own = ladder_at(l, 1e-2), *before = NULL;
    if (!wide || !own)
        return r;
    stats_interval fall = stats_range(ladder_difference(l, wide, own), 0.95),
                   at = stats_range(stats_of_mean(sample_values(&wide->done)), 0.95);
    double paper = strcmp(wide->data, "cifar100") == 0 ? 21.3 : strcmp(wide->data, "cifar10") == 0 ? 50.5 : NAN;
    int monotone = 1, rises = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->cells[i]->eps >= 0.199 && is_paper_width(l->cells[i])) {
            stats_estimate step = before ? ladder_difference(l, l->cells[i], before) : (stats_estimate){0, 0, 1};
            monotone &= !(step.value > 0);
            /* four steps; one within noise refutes nothing */
            rises |= before && stats_range(step, 1 - 0.05 / 4).low > 0;
            before = l->cells[i];
        }
    r.word = fall.high < 0 && monotone ? CLAIM_HELD : fall.low > 0 || rises ? CLAIM_NOT_HELD : CLAIM_UNDECIDED;
    r.size = isnan(paper) || isnan(at.low) ? "" : at.low <= paper && paper <= at.high ? "inside" : "outside";
    for (size_t i = 4; i < COUNT(paper_widths); i++)
        r.partial |= !ladder_at(l, paper_widths[i]);
    r.figures = arena_printf(e->memory, "eps = 10 has %.2f [%.2f, %.2f], 0.01 has %.2f: a fall of [%.2f, %.2f]%s",
                             mean_of(wide), at.low, at.high, mean_of(own), fall.low, fall.high,
                             monotone ? "" : "; the means do not fall throughout");
    return r;
}

/* ---- all ladders ----------------------------------------------------------------------------- */

/* All registered runs of the paper's widths are done, those of cells without any run included. */
static int is_whole(const ladder *l)
{
    for (size_t c = 0; c < l->study->cell_count; c++) {
        const view_cell *cell = &l->study->cells[c];
        if (same_ladder(cell, l->cells[0]) && is_paper_width(cell) && cell->done.count < cell->of->count)
            return 0;
    }
    return 1;
}

static size_t paper_count(const ladder *l)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += (size_t)is_paper_width(l->cells[i]);
    return count;
}

/* Two widths are no curve, unless the study says that they are about the claim. */
static int is_evidence(const ladder *l, const char *id)
{
    enum { LEAST = 3 };
    int named = 0;
    for (size_t i = 0; i < l->study->claim_count; i++)
        named |= strcmp(l->study->claims[i], id) == 0;
    return claim_speaks(l->study, l->cells[0], id) && (named || paper_count(l) >= LEAST);
}

static berlu_status result_add(claim_result *out, const rung_result *r, const ladder *l, const evidence *e,
                               claim_word *word)
{
    if (!r->figures)
        return BERLU_ERR_MEMORY;
    if (r->word == CLAIM_NOT_TESTED)
        return BERLU_OK;
    int whole = is_whole(l);
    *word = claim_worst(*word, whole ? r->word : CLAIM_UNDECIDED);
    out->direction = claim_word_name(*word);
    out->size = strcmp(out->size, "outside") == 0 ? out->size : r->size;
    if (!out->n)
        out->why = "";
    const char *differs = l->cells[0]->differs;
    if (r->partial || *differs || !whole) {
        out->partial = 1;
        out->why = *differs ? differs : whole ? "not all of the paper's widths" : "fewer seeds than registered";
    }
    out->figures =
        arena_printf(e->memory, "%s%s%s: %s", out->figures, *out->figures ? "; " : "", l->cells[0]->data, r->figures);
    for (size_t i = 0; i < l->count; i++)
        if (is_paper_width(l->cells[i]))
            out->n = out->n == 0 || l->cells[i]->done.count < out->n ? l->cells[i]->done.count : out->n;
    claim_study(out, e, l->study);
    return out->figures ? BERLU_OK : BERLU_ERR_MEMORY;
}

berlu_status claims_widths(claim_result out[CLAIMS], const evidence *e)
{
    static rung_result (*const rules[])(const ladder *, const evidence *) = {best_at_hundredth, flat_below_tenth,
                                                                             falls_beyond_fifth};
    enum { FIRST = 10 }; /* C11 */
    claim_word words[COUNT(rules)] = {CLAIM_NOT_TESTED};
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++) {
            ladder l;
            TRY(ladder_find(&l, &e->v->studies[i], c, e->memory));
            for (size_t k = 0; k < COUNT(rules) && l.count; k++) {
                if (!is_evidence(&l, out[FIRST + k].of->id))
                    continue;
                rung_result r = rules[k](&l, e);
                TRY(result_add(&out[FIRST + k], &r, &l, e, &words[k]));
            }
        }
    return BERLU_OK;
}
