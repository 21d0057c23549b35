/* claims.c - see claims.h. SPDX-License-Identifier: MIT
 *
 * Comparisons: BerLU against each rival of the paper's tables, by registered contrasts alone.
 * Without a registered contrast a rival is not tested, and the verdict is partial. */
#include "report/claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const rivals[] = {"gelu", "elu", "prelu", "celu", "silu", "mish"};

const char *claim_word_name(claim_word w)
{
    static const char *const names[] = {"not tested", "held", "undecided", "not held"};
    return names[w];
}

claim_word claim_worst(claim_word a, claim_word b)
{
    return a > b ? a : b;
}

static int is_paper_data(const char *data)
{
    return strcmp(data, "cifar10") == 0 || strcmp(data, "cifar100") == 0 || strcmp(data, "imagenet") == 0;
}

int claim_speaks(const view_study *s, const view_cell *c, const char *id)
{
    for (size_t i = 0; i < s->claim_count; i++)
        if (strcmp(s->claims[i], id) == 0)
            return 1;
    return is_paper_data(c->data) && !c->own_recipe;
}

int claim_counts(const view_study *s, const view_cell *c, const char *id)
{
    const view_study *other = s->within[c->group];
    return claim_speaks(s, c, id) && !(other && claim_speaks(other, c, id));
}

static int has_done_runs_of(const view_cell *c, const view_cell *other, const char *metric)
{
    for (size_t i = 0; i < other->of->count; i++) {
        size_t k = 0;
        if (!view_run_done(&other->of->runs[i], metric))
            continue;
        while (k < c->of->count && strcmp(c->of->runs[k].key, other->of->runs[i].key) != 0)
            k++;
        if (k == c->of->count)
            return 0;
    }
    return 1;
}

int claim_counts_cell(const evidence *e, const view_study *s, const view_cell *c, const char *id)
{
    for (size_t i = 0; i < e->v->count; i++) {
        const view_study *t = &e->v->studies[i];
        for (size_t k = 0; t != s && k < t->cell_count; k++) {
            const view_cell *other = &t->cells[k];
            if (strcmp(t->metric, s->metric) == 0 && claim_speaks(t, other, id) &&
                has_done_runs_of(other, c, s->metric) && (other->done.count > c->done.count || t < s))
                return 0;
        }
    }
    return claim_speaks(s, c, id);
}

void claim_study(claim_result *r, const evidence *e, const view_study *s)
{
    const char *at = r->studies;
    if (!at)
        return;
    size_t length = strlen(s->of->name);
    for (; *at; at += strcspn(at, ","), at += strspn(at, ", "))
        if (strcspn(at, ",") == length && strncmp(at, s->of->name, length) == 0)
            return;
    r->studies = arena_printf(e->memory, "%s%s%s", r->studies, *r->studies ? ", " : "", s->of->name);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* BerLU against one rival in one table row: the contrast, with BerLU on side a. */
typedef struct duel {
    const judged *j; /* NULL: not registered */
    stats_contrast stats;
    double p_holm, paper;
    size_t n, registered, missing;
    int own; /* not the paper's settings; its study names the claim */
    const char *differs;
} duel;

static void duel_flip(stats_contrast *s)
{
    double low = s->low, low90 = s->low90;
    s->judged.value = -s->judged.value;
    s->low = -s->high, s->high = -low;
    s->low90 = -s->high90, s->high90 = -low90;
}

static duel duel_find(const evidence *e, const char *id, const char *data, const char *family, const char *rival)
{
    duel d = {.p_holm = NAN, .paper = paper_difference(data, family, "berlu", rival), .differs = ""};
    for (size_t i = 0; i < e->judged->count; i++) {
        const judged *j = &e->judged->items[i];
        int straight = strcmp(j->a->act, "berlu") == 0 && strcmp(j->b->act, rival) == 0,
            flipped = strcmp(j->b->act, "berlu") == 0 && strcmp(j->a->act, rival) == 0;
        int asks = j->of->current && !j->of->expected.what && !j->of->second; /* whether the two differ */
        if (!asks || !(straight || flipped) || strcmp(j->a->data, data) != 0 || strcmp(j->a->family, family) != 0 ||
            strcmp(j->study->metric, "top1") != 0 || !claim_speaks(j->study, j->a, id) ||
            !claim_speaks(j->study, j->b, id))
            continue;
        int own = j->a->own_recipe || j->b->own_recipe;
        if (d.j && (own > d.own || (own == d.own && d.n >= j->n))) /* the paper's settings first, then more seeds */
            continue;
        d.own = own;
        d.j = j, d.stats = j->stats, d.p_holm = j->p_holm, d.n = j->n, d.registered = j->registered;
        d.missing = j->missing;
        d.differs = *j->a->differs ? j->a->differs : j->b->differs;
        if (flipped)
            duel_flip(&d.stats);
    }
    return d;
}

static verdict duel_verdict(const duel *d)
{
    return verdict_of_contrast(&(verdict_input){.contrast = d->j && d->n ? &d->stats : NULL,
                                                .p_holm = d->p_holm,
                                                .margin = d->j ? d->j->study->margin : 0.5,
                                                .paper = d->paper,
                                                .n = d->n,
                                                .registered = d->registered,
                                                .missing = d->missing,
                                                .differs = *d->differs != 0});
}

static void duel_words(text *out, const duel *d, const char *data, const char *model, const char *rival)
{
    text_add(out, "%s%s %s: berlu - %s ", out->length ? "; " : "", data, model, rival);
    if (d->n)
        text_add(out, "%.2f [%.2f, %.2f], n = %zu", d->stats.judged.value, d->stats.low, d->stats.high, d->n);
    else
        text_string(out, "has no runs");
    if (!isnan(d->paper))
        text_add(out, ", paper %.1f", d->paper);
}

typedef struct bout {
    verdict verdicts[72]; /* eleven rows, six rivals */
    size_t count, missing;
    text words;
    const char *differs;
    int one_model; /* where the claim is about several */
} bout;

static void bout_add(bout *b, claim_result *r, const evidence *e, const duel *d, const char *data, const char *model,
                     const char *rival)
{
    verdict v = duel_verdict(d);
    if (b->count < COUNT(b->verdicts))
        b->verdicts[b->count++] = v;
    b->missing += !d->j;
    if (d->j)
        duel_words(&b->words, d, data, model, rival);
    if (!d->j || !d->n)
        return;
    claim_study(r, e, d->j->study);
    r->n = r->n == 0 || d->n < r->n ? d->n : r->n;
    if (*d->differs)
        b->differs = d->differs;
}

static berlu_status bout_end(bout *b, claim_result *r, const evidence *e)
{
    verdict v = verdict_of_claim(b->verdicts, b->count);
    if (b->one_model && v.direction == VERDICT_BETTER)
        v = (verdict){.direction = VERDICT_UNDECIDED, .size = v.size, .partial = 1, .why = "one model alone was run"};
    r->direction = verdict_direction_name(v.direction);
    r->size = verdict_size_name(v.size);
    r->partial = v.partial;
    r->why = v.direction == VERDICT_NOT_TESTED ? "no registered contrast of it has runs"
             : b->differs                      ? b->differs
                                               : v.why;
    if (b->missing)
        text_add(&b->words, "; %zu of %zu comparisons have no registered contrast", b->missing, b->count);
    berlu_status status = text_status(&b->words);
    r->figures = arena_strdup(e->memory, v.direction != VERDICT_NOT_TESTED && b->words.data ? b->words.data : "");
    text_free(&b->words);
    return status == BERLU_OK && !r->figures ? BERLU_ERR_MEMORY : status;
}

/* Rows of the paper's tables that a claim is about. */
typedef struct place {
    const char *data, *model;
} place;

static int place_ran(const evidence *e, const place *p)
{
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++) {
            const view_cell *cell = &e->v->studies[i].cells[c];
            if (cell->done.count && strcmp(cell->act, "berlu") == 0 && strcmp(cell->data, p->data) == 0 &&
                strcmp(cell->family, p->model) == 0)
                return 1;
        }
    return 0;
}

/* Better than every rival in each row; `ran`: of the rows that have runs, which must be of two
 * models at least. */
static berlu_status each_place(claim_result *r, const evidence *e, const place *places, size_t count, int ran)
{
    const char *model = NULL;
    bout b = {.one_model = ran};
    for (size_t p = 0; p < count; p++) {
        if (ran && !place_ran(e, &places[p]))
            continue;
        if (model && strcmp(model, places[p].model) != 0)
            b.one_model = 0;
        model = places[p].model;
        for (size_t i = 0; i < COUNT(rivals); i++) {
            duel d = duel_find(e, r->of->id, places[p].data, places[p].model, rivals[i]);
            bout_add(&b, r, e, &d, places[p].data, places[p].model, rivals[i]);
        }
    }
    return bout_end(&b, r, e);
}

/* The mean of the differences over the models: errors add in squares, degrees of freedom by Welch
 * and Satterthwaite. A mean over models is not a registered contrast, so its p is multiplied by the
 * number of all contrasts of the report. */
static duel duel_mean(const duel *each, size_t count, size_t contrasts, double paper)
{
    duel m = {.p_holm = NAN, .paper = paper, .differs = ""};
    double value = 0, square = 0, fourth = 0, k = 0;
    for (size_t i = 0; i < count; i++) {
        if (!each[i].j || !each[i].n)
            continue;
        double e2 = each[i].stats.judged.error * each[i].stats.judged.error;
        value += each[i].stats.judged.value, square += e2, fourth += e2 * e2 / each[i].stats.judged.df, k++;
        m.n = m.n == 0 || each[i].n < m.n ? each[i].n : m.n;
        m.registered = m.registered == 0 || each[i].registered < m.registered ? each[i].registered : m.registered;
        m.missing += each[i].missing;
        m.j = each[i].j;
        if (*each[i].differs)
            m.differs = each[i].differs;
    }
    if (k < (double)count && m.j)
        m.differs = "not all of the models";
    m.stats.judged = (stats_estimate){value / k, sqrt(square) / k, square * square / fourth};
    stats_interval wide = stats_range(m.stats.judged, 0.95), narrow = stats_range(m.stats.judged, 0.90);
    m.stats.low = wide.low, m.stats.high = wide.high, m.stats.low90 = narrow.low, m.stats.high90 = narrow.high;
    m.p_holm = fmin(1, stats_p(m.stats.judged) * (double)contrasts);
    return m;
}

static berlu_status mean_place(claim_result *r, const evidence *e, const place *places, size_t count)
{
    bout b = {0};
    for (size_t i = 0; i < COUNT(rivals); i++) {
        duel each[4];
        for (size_t p = 0; p < count; p++)
            each[p] = duel_find(e, r->of->id, places[p].data, places[p].model, rivals[i]);
        duel mean =
            duel_mean(each, count, e->judged->current, paper_difference(places[0].data, "average", "berlu", rivals[i]));
        bout_add(&b, r, e, &mean, places[0].data, "average", rivals[i]);
    }
    return bout_end(&b, r, e);
}

static const place all_places[] = {
    {"cifar10", "vit"},      {"cifar10", "deit"},      {"cifar10", "tnt"},       {"cifar100", "vit"},
    {"cifar100", "deit"},    {"cifar100", "tnt"},      {"imagenet", "vit"},      {"imagenet", "deit"},
    {"cifar10", "convnext"}, {"cifar100", "convnext"}, {"imagenet", "convnext"},
};

static berlu_status comparisons(claim_result out[CLAIMS], const evidence *e)
{
    TRY(each_place(&out[6], e, all_places, 3, 0));                    /* C7 */
    TRY(mean_place(&out[7], e, all_places + 3, 3));                   /* C8 */
    TRY(mean_place(&out[8], e, all_places + 6, 2));                   /* C9 */
    TRY(each_place(&out[9], e, all_places + 8, 3, 0));                /* C10 */
    return each_place(&out[19], e, all_places, COUNT(all_places), 1); /* C20 */
}

int claims_concern(const claim_result claims[CLAIMS], const evidence *e)
{
    for (size_t i = 0; i < CLAIMS; i++)
        if (*claims[i].studies)
            return 1;
    for (size_t i = 0; i < e->v->count; i++)
        if (e->v->studies[i].claim_count)
            return 1;
    for (size_t i = 0; i < e->judged->count; i++)
        if (!isnan(e->judged->items[i].of->paper))
            return 1;
    return 0;
}

berlu_status claims_judge(claim_result out[CLAIMS], const evidence *e)
{
    for (size_t i = 0; i < CLAIMS; i++)
        out[i] = (claim_result){.of = paper_claim_at(i),
                                .direction = claim_word_name(CLAIM_NOT_TESTED),
                                .size = "",
                                .figures = "",
                                .studies = "",
                                .why = "no runs of it in this report"};
    TRY(comparisons(out, e));
    TRY(claims_theory(out, e));
    TRY(claims_widths(out, e));
    TRY(claims_runs(out, e));
    TRY(claims_landscape(out, e));
    TRY(claims_cost(out, e));
    for (size_t i = 0; i < CLAIMS; i++)
        if (!out[i].studies)
            return BERLU_ERR_MEMORY;
    return BERLU_OK;
}
