/* claims_runs.c - C17 and C19: dead units and gradients, as the runs measured them.
 * SPDX-License-Identifier: MIT
 *
 * Both claims are about the sites of trained networks (sites.h), not about accuracies: the share of
 * dead units by activation, and the growth of gradients from site to site. Read claims_runs(). */
#include <math.h>
#include <string.h>

#include "report/claims.h"

/* ---- C17 ------------------------------------------------------------------------------------- */

/* The share of dead units after training of each run of a cell. */
static stats_sample dead_of(const cell_sites *s, arena *memory)
{
    double *values = ARENA_ARRAY(memory, double, s->run_count + 1);
    size_t count = 0;
    for (size_t i = 0; values && i < s->run_count; i++)
        if (!isnan(s->runs[i].dead))
            values[count++] = 100 * s->runs[i].dead;
    return (stats_sample){values, count};
}

static const cell_sites *sites_of(const evidence *e, size_t at_study, size_t group, const char *act)
{
    const view_study *s = &e->v->studies[at_study];
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && strcmp(s->cells[c].act, act) == 0 &&
            sites_have(&e->sites[at_study][c], SITE_DEAD) && claim_counts(s, &s->cells[c], "C17"))
            return &e->sites[at_study][c];
    return NULL;
}

static berlu_status dead_judge(claim_result *r, const evidence *e, size_t at_study, size_t group, claim_word *word)
{
    const cell_sites *relu = sites_of(e, at_study, group, "relu"), *berlu = sites_of(e, at_study, group, "berlu");
    if (!relu || !berlu)
        return BERLU_OK;
    stats_sample of_relu = dead_of(relu, e->memory), of_berlu = dead_of(berlu, e->memory);
    if (!of_relu.values || !of_berlu.values)
        return BERLU_ERR_MEMORY;
    stats_estimate gap = stats_welch(of_relu, of_berlu);
    stats_interval at = stats_range(gap, 0.95);
    double of_r = stats_mean(of_relu), of_b = stats_mean(of_berlu);
    /* Two different constants have no interval; their difference is exact. */
    int more = at.low > 0 || (isnan(at.low) && of_r > of_b && of_relu.count > 1), less = at.high < 0 || of_r == of_b;
    claim_word here = more && of_b == 0 ? CLAIM_HELD : more || !less ? CLAIM_UNDECIDED : CLAIM_NOT_HELD;
    r->figures = arena_printf(e->memory, "%s%s%s: dead units after training, relu %.3f %%, berlu %.3f %%", r->figures,
                              *r->figures ? "; " : "", e->v->studies[at_study].of->name, of_r, of_b);
    size_t n = of_relu.count < of_berlu.count ? of_relu.count : of_berlu.count;
    if (!r->partial)
        r->why = "";
    r->n = r->n && r->n < n ? r->n : n;
    claim_study(r, e, &e->v->studies[at_study]);
    for (size_t c = 0; c < e->v->studies[at_study].cell_count; c++) {
        const view_cell *cell = &e->v->studies[at_study].cells[c];
        if (cell->group != group || (strcmp(cell->act, "relu") != 0 && strcmp(cell->act, "berlu") != 0))
            continue;
        if (cell->done.count != cell->of->count || *cell->differs) {
            r->partial = 1;
            r->why = *cell->differs ? cell->differs : "fewer seeds than registered";
        }
        if (cell->done.count != cell->of->count) /* as for contrasts, only the registered number of seeds decides */
            here = CLAIM_UNDECIDED;
    }
    *word = claim_worst(*word, here);
    r->direction = claim_word_name(*word);
    return r->figures ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* ---- C19 ------------------------------------------------------------------------------------- */

typedef struct growth {
    size_t layers, grew; /* steps from a layer to the one before it, and those that raised the norm */
    double factor;       /* first layer over last */
} growth;

static growth growth_at(const cell_sites *s, size_t epoch)
{
    growth g = {0, 0, NAN};
    for (size_t i = 0; i + 1 < s->sites; i++) {
        double here = sites_at(s, SITE_GRAD, i, epoch), after = sites_at(s, SITE_GRAD, i + 1, epoch);
        if (isnan(here) || isnan(after))
            continue;
        g.layers++;
        g.grew += here > after;
    }
    if (s->sites)
        g.factor = sites_at(s, SITE_GRAD, 0, epoch) / sites_at(s, SITE_GRAD, s->sites - 1, epoch);
    return g;
}

static berlu_status gradients_judge(claim_result *r, const evidence *e, size_t at_study, size_t c, claim_word *word)
{
    const view_study *s = &e->v->studies[at_study];
    const view_cell *cell = &s->cells[c];
    const cell_sites *sites = &e->sites[at_study][c];
    if (strcmp(cell->act, "berlu") != 0 || !claim_counts_cell(e, s, cell, "C19") || sites->epochs < 1 ||
        !sites_have(sites, SITE_GRAD))
        return BERLU_OK;
    growth first = growth_at(sites, 0), last = growth_at(sites, sites->epochs - 1);
    if (!first.layers)
        return BERLU_OK;
    int whole = cell->done.count == cell->of->count; /* one layer refutes; that none grows takes every run */
    *word = claim_worst(*word, first.grew + last.grew ? CLAIM_NOT_HELD : whole ? CLAIM_HELD : CLAIM_UNDECIDED);
    r->direction = claim_word_name(*word);
    int from_start = sites->epoch[0] == 0; /* else runs of a version that measured no start */
    const char *begin = from_start ? "at the start" : arena_printf(e->memory, "after epoch %g", sites->epoch[0]);
    r->figures = begin
                     ? arena_printf(e->memory,
                                    "%s%s%s, from the last layer to the first: %s the norm grows by %zu of %zu "
                                    "layers, in all by %.2f; after epoch %g by %zu of %zu, in all by %.2f",
                                    r->figures, *r->figures ? "; " : "", s->of->name, begin, first.grew, first.layers,
                                    first.factor, sites->epoch[sites->epochs - 1], last.grew, last.layers, last.factor)
                     : NULL;
    r->n += sites->run_count;
    const char *why = *cell->differs ? cell->differs
                      : !whole       ? "fewer seeds than registered"
                      : from_start   ? ""
                                     : "measured at the activations, first after epoch 1; not at the start";
    if (!r->partial || *why)
        r->why = why;
    r->partial |= *why != 0;
    claim_study(r, e, s);
    return r->figures ? BERLU_OK : BERLU_ERR_MEMORY;
}

berlu_status claims_runs(claim_result out[CLAIMS], const evidence *e)
{
    enum { C17 = 16, C19 = 18 };
    claim_word dead = CLAIM_NOT_TESTED, grown = CLAIM_NOT_TESTED;
    for (size_t i = 0; i < e->v->count; i++) {
        for (size_t g = 0; g < e->v->studies[i].group_count; g++)
            TRY(dead_judge(&out[C17], e, i, g, &dead));
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++)
            TRY(gradients_judge(&out[C19], e, i, c, &grown));
    }
    return BERLU_OK;
}
