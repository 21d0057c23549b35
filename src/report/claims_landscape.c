/* claims_landscape.c - C18: is the loss flatter around BerLU's weights than around those of
 * piecewise-linear functions? SPDX-License-Identifier: MIT
 *
 * Two figures of every finished run, measured while its weights existed (analyze/landscape_file.h):
 * sharpness and the largest eigenvalue of the Hessian. BerLU is compared with each piecewise-linear
 * function of its group in both figures by Welch's interval. The claim holds when BerLU lies below
 * all of them: every comparison must hold, so 95 % each is enough. It fails when BerLU lies above
 * any: one of several is picked there, so the level is corrected for their number. Eigenvalues come
 * with an error, large where a difference of gradients crosses a kink; each test takes both sides
 * at the ends of their errors that speak against it. */
#include <math.h>
#include <string.h>

#include "report/claims.h"

static const char *const rivals[] = {"relu", "leaky_relu", "prelu"};
static const char *const figure_names[] = {"sharpness", "largest eigenvalue"};
enum { FIGURES = COUNT(figure_names) };

/* The figures of a cell's finished runs, and the ends of their errors. */
typedef struct flatness {
    const view_cell *cell;
    stats_sample figures[FIGURES], low[FIGURES], high[FIGURES];
    const char *how; /* of the first run; "" when runs were measured in different ways */
} flatness;

static const view_cell *cell_of(const view_study *s, size_t group, const char *act)
{
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && strcmp(s->cells[c].act, act) == 0 && claim_counts(s, &s->cells[c], "C18"))
            return &s->cells[c];
    return NULL;
}

static berlu_status flatness_read(flatness *out, const view_study *s, size_t group, const char *act, arena *memory)
{
    *out = (flatness){.cell = cell_of(s, group, act)};
    if (!out->cell)
        return BERLU_OK;
    const store_cell *of = out->cell->of;
    double *values[3 * FIGURES];
    for (size_t i = 0; i < COUNT(values); i++)
        if (!(values[i] = ARENA_ARRAY(memory, double, of->count + 1)))
            return BERLU_ERR_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < of->count; i++) {
        const landscape_summary *l = of->runs[i].landscape;
        if (!l || !view_run_done(&of->runs[i], s->metric) || isnan(l->eigenvalue))
            continue;
        const double each[FIGURES] = {l->sharpness, l->eigenvalue}, errors[FIGURES] = {0, l->error};
        for (size_t f = 0; f < FIGURES; f++) {
            values[3 * f][n] = each[f];
            values[3 * f + 1][n] = each[f] - errors[f];
            values[3 * f + 2][n] = each[f] + errors[f];
        }
        n++;
        out->how = !out->how || strcmp(out->how, l->how) == 0 ? l->how : "";
    }
    for (size_t f = 0; f < FIGURES; f++) {
        out->figures[f] = (stats_sample){values[3 * f], n};
        out->low[f] = (stats_sample){values[3 * f + 1], n};
        out->high[f] = (stats_sample){values[3 * f + 2], n};
    }
    return BERLU_OK;
}

/* BerLU against a rival in figure f. */
static claim_word compare(const flatness *berlu, const flatness *rival, size_t f, size_t comparisons)
{
    stats_estimate at_most = stats_welch(berlu->high[f], rival->low[f]),
                   at_least = stats_welch(berlu->low[f], rival->high[f]);
    return stats_range(at_most, 0.95).high < 0                             ? CLAIM_HELD
           : stats_range(at_least, 1 - 0.05 / (double)comparisons).low > 0 ? CLAIM_NOT_HELD
                                                                           : CLAIM_UNDECIDED;
}

/* Why the verdict is partial, the gravest reason last; `decides` becomes 0 where the registered
 * runs were not all measured in one way. */
static const char *partial_why(const flatness *berlu, const flatness *others, size_t count, int *decides)
{
    const char *why = *berlu->cell->differs   ? berlu->cell->differs
                      : count < COUNT(rivals) ? "not all of relu, leaky_relu and prelu"
                                              : "";
    for (size_t i = 0; i <= count; i++) {
        const flatness *f = i < count ? &others[i] : berlu;
        if (f->figures[0].count != f->cell->of->count)
            why = "not every registered run has a landscape", *decides = 0;
        if (strcmp(f->how, berlu->how) != 0 || !*f->how)
            why = "landscapes were measured in different ways", *decides = 0;
    }
    return why;
}

static berlu_status figures_add(claim_result *r, const evidence *e, const view_study *s, const flatness *berlu,
                                const flatness *others, size_t count)
{
    const char *words = arena_printf(e->memory, "%s%s%s (%s)", r->figures, *r->figures ? "; " : "", s->of->name,
                                     *berlu->how ? berlu->how : "measured in different ways");
    for (size_t f = 0; f < FIGURES && words; f++) {
        words = arena_printf(e->memory, "%s%s %s berlu %.4g", words, f ? ";" : ":", figure_names[f],
                             stats_mean(berlu->figures[f]));
        for (size_t i = 0; i < count && words; i++) {
            stats_interval gap = stats_range(stats_welch(berlu->figures[f], others[i].figures[f]), 0.95);
            words =
                arena_printf(e->memory, "%s, %s %.4g", words, others[i].cell->act, stats_mean(others[i].figures[f]));
            if (words && !isnan(gap.low))
                words = arena_printf(e->memory, "%s (berlu minus it [%.3g, %.3g])", words, gap.low, gap.high);
        }
    }
    r->figures = words;
    return words ? BERLU_OK : BERLU_ERR_MEMORY;
}

static berlu_status group_judge(claim_result *r, const evidence *e, const view_study *s, size_t group, claim_word *word)
{
    flatness berlu, others[COUNT(rivals)];
    size_t count = 0;
    TRY(flatness_read(&berlu, s, group, "berlu", e->memory));
    for (size_t i = 0; i < COUNT(rivals) && berlu.how; i++) {
        TRY(flatness_read(&others[count], s, group, rivals[i], e->memory));
        count += others[count].how != NULL;
    }
    if (!count)
        return BERLU_OK;
    int decides = 1;
    const char *why = partial_why(&berlu, others, count, &decides);
    claim_word here = decides ? CLAIM_HELD : CLAIM_UNDECIDED;
    size_t n = berlu.figures[0].count;
    for (size_t i = 0; i < count; i++) {
        for (size_t f = 0; f < FIGURES && decides; f++)
            here = claim_worst(here, compare(&berlu, &others[i], f, FIGURES * count));
        n = others[i].figures[0].count < n ? others[i].figures[0].count : n;
    }
    *word = claim_worst(*word, here);
    r->direction = claim_word_name(*word);
    r->n = r->n == 0 || n < r->n ? n : r->n;
    r->partial |= *why != 0;
    r->why = why;
    claim_study(r, e, s);
    return figures_add(r, e, s, &berlu, others, count);
}

berlu_status claims_landscape(claim_result out[CLAIMS], const evidence *e)
{
    enum { C18 = 17 };
    claim_word word = CLAIM_NOT_TESTED;
    out[C18].why =
        "no runs of berlu and of a piecewise-linear function have a landscape (berlu analyze landscape --save)";
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t g = 0; g < e->v->studies[i].group_count; g++)
            TRY(group_judge(&out[C18], e, &e->v->studies[i], g, &word));
    return BERLU_OK;
}
