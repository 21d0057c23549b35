/* tables.c - fills every table of a report, row by row. SPDX-License-Identifier: MIT
 *
 * tables_list() names them, tables_make() fills them from the evidence. New columns are only added
 * at the end: other programs read these files by position. */
#include "report/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const claim_columns[] = {"id", "claim", "paper",   "direction", "size",   "figures",
                                            "n",  "rule",  "partial", "why",       "studies"};
static const char *const beside_columns[] = {"study",  "data",     "model",       "cell",     "n",
                                             "failed", "mean",     "sd",          "low",      "high",
                                             "paper",  "paper_sd", "minus_paper", "standing", "p_best"};
static const char *const cell_columns[] = {"study",
                                           "cell",
                                           "n",
                                           "failed",
                                           "waiting",
                                           "mean",
                                           "sd",
                                           "low",
                                           "high",
                                           "images_sd",
                                           "best",
                                           "loss",
                                           "top5",
                                           "images_per_s",
                                           "commits",
                                           "nonlinear_start",
                                           "nonlinear_1",
                                           "nonlinear_10",
                                           "nonlinear_last"};
static const char *const contrast_columns[] = {
    "study",      "name",       "a",           "b",       "n",          "mean_a",      "sd_a",       "mean_b",
    "sd_b",       "difference", "low",         "high",    "p",          "p_holm",      "test",       "p_equal",
    "p_flip",     "paired_low", "paired_high", "r",       "images_low", "images_high", "detectable", "paper",
    "registered", "failed_a",   "failed_b",    "verdict", "size",       "failures",    "metric",     "levene",
    "why",        "expect",     "limit",       "minus_a", "minus_b",    "p_held",      "p_not_held"};
static const char *const hypothesis_columns[] = {"study",       "hypothesis", "verdict",   "held",
                                                 "predictions", "why",        "registered"};
static const char *const run_columns[] = {"study",  "cell",    "seed",    "key",       "state",
                                          "top1",   "top5",    "loss",    "device",    "version",
                                          "commit", "message", "command", "sharpness", "eigenvalue"};
static const char *const aa_columns[] = {"study", "seeds", "n", "difference", "low", "high", "p", "identical"};
static const char *const machine_columns[] = {"version", "commit", "device", "host", "data", "data_sha256", "runs"};

/* ---- claims ---------------------------------------------------------------------------------- */

static void claim_row(table *t, const claim_result *c)
{
    table_word(t, c->of->id);
    table_word(t, c->of->claim);
    table_word(t, c->of->paper);
    table_word(t, c->direction);
    table_word(t, c->size);
    table_word(t, c->figures);
    table_number(t, (double)c->n, 0);
    table_word(t, c->of->rule);
    table_word(t, c->partial ? "partial" : "");
    table_word(t, c->why);
    table_word(t, c->studies);
}

/* ---- beside the paper's tables --------------------------------------------------------------- */

static const paper_row *paper_row_of(const view_cell *c)
{
    for (size_t i = 0; paper_row_at(i); i++) {
        const paper_row *p = paper_row_at(i);
        if (*c->act && !c->own_recipe && strcmp(p->data, c->data) == 0 && strcmp(p->model, c->family) == 0 &&
            strcmp(p->act, c->act) == 0)
            return p;
    }
    return NULL;
}

static int is_higher(const view_study *s, double a, double b)
{
    return strcmp(s->metric, "loss") == 0 ? a < b : a > b;
}

/* p of "as good as the best cell of the group", Holm over its cells; NaN for the best itself and
 * without runs. */
static berlu_status best_find(const view_study *s, size_t group, size_t *best, double *p, arena *memory)
{
    size_t count, n = 0;
    stats_sample *cells = view_group(memory, s, group, 0, &count);
    double *plain = ARENA_ARRAY(memory, double, 2 * s->cell_count + 1);
    if (!cells || !plain)
        return BERLU_ERR_MEMORY;
    *best = s->cell_count;
    for (size_t c = 0; c < s->cell_count; c++) {
        p[c] = NAN;
        if (s->cells[c].group == group && s->cells[c].done.count &&
            (*best == s->cell_count || is_higher(s, stats_mean(sample_values(&s->cells[c].done)),
                                                 stats_mean(sample_values(&s->cells[*best].done)))))
            *best = c;
    }
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && c != *best && s->cells[c].done.count)
            plain[n++] = stats_p(
                stats_difference(sample_values(&s->cells[*best].done), sample_values(&s->cells[c].done), cells, count));
    stats_holm(plain + s->cell_count, plain, n);
    n = 0;
    for (size_t c = 0; c < s->cell_count; c++)
        if (s->cells[c].group == group && c != *best && s->cells[c].done.count)
            p[c] = plain[s->cell_count + n++];
    return BERLU_OK;
}

static void beside_row(table *t, const view_study *s, const view_cell *c, int is_best, double p)
{
    stats_sample v = sample_values(&c->done);
    stats_interval i = stats_range(stats_of_mean(v), 0.95);
    const paper_row *paper = strcmp(s->metric, "top1") == 0 ? paper_row_of(c) : NULL;
    const char *standing = !c->done.count ? "" : is_best ? "best" : p >= 0.05 ? "near" : ""; /* NaN: not tested */
    table_word(t, s->of->name);
    table_word(t, c->judged_on);
    table_word(t, c->model);
    table_word(t, c->label);
    table_mark(t, *standing ? standing : NULL);
    table_number(t, (double)c->done.count, 0);
    table_number(t, (double)c->failed, 0);
    table_number(t, stats_mean(v), 2);
    table_mark(t, *standing ? standing : NULL);
    table_number(t, stats_deviation(v), 2);
    table_number(t, i.low, 2);
    table_number(t, i.high, 2);
    table_number(t, paper ? paper->mean : NAN, 1);
    table_number(t, paper ? paper->deviation : NAN, 1);
    table_number(t, paper ? stats_mean(v) - paper->mean : NAN, 2);
    table_word(t, strcmp(standing, "near") == 0 ? "not distinguishable" : standing);
    table_number(t, p, -2);
}

static berlu_status beside_fill(table *t, const view_study *s, arena *memory)
{
    double *p = ARENA_ARRAY(memory, double, s->cell_count + 1);
    if (!p)
        return BERLU_ERR_MEMORY;
    for (size_t g = 0; g < s->group_count; g++) {
        size_t best;
        TRY(best_find(s, g, &best, p, memory));
        for (size_t c = 0; c < s->cell_count; c++)
            if (s->cells[c].group == g)
                beside_row(t, s, &s->cells[c], c == best, p[c]);
    }
    return BERLU_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static double mean_over(const view_cell *c, const char *metric, size_t offset)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->of->count; i++) {
        double v = *(const double *)((const char *)&c->of->runs[i] + offset);
        if (view_run_done(&c->of->runs[i], metric) && !isnan(v))
            sum += v, n++;
    }
    return n ? sum / (double)n : NAN;
}

static void cell_row(table *t, const view_study *s, const view_cell *c, const cell_sites *sites)
{
    stats_sample v = sample_values(&c->done);
    stats_interval i = stats_range(stats_of_mean(v), 0.95);
    table_word(t, s->of->name);
    table_word(t, c->label);
    table_number(t, (double)c->done.count, 0);
    table_number(t, (double)c->failed, 0);
    table_number(t, (double)c->waiting, 0);
    table_number(t, stats_mean(v), 2);
    table_number(t, stats_deviation(v), 2);
    table_number(t, i.low, 2);
    table_number(t, i.high, 2);
    table_number(t, stats_images_deviation(sample_images(&c->done)), 2);
    table_number(t, mean_over(c, s->metric, offsetof(store_result, best_top1)), 2);
    table_number(t, mean_over(c, s->metric, offsetof(store_result, loss)), 4);
    table_number(t, mean_over(c, s->metric, offsetof(store_result, top5)), 2);
    table_number(t, mean_over(c, s->metric, offsetof(store_result, images_per_s)), 0);
    table_number(t, (double)view_commits(c, s->metric), 0);
    for (int m = 0; m < MOMENTS; m++) {
        size_t runs;
        table_number(t, sites_nonlinear(sites, (moment)m, &runs), 4);
    }
}

/* ---- contrasts ------------------------------------------------------------------------------- */

/* One line of a contrast: of the runs that are done, or with failures at chance. */
static void contrast_row(table *t, const judged *j, int chance)
{
    const stats_contrast *c = chance ? &j->chance : &j->stats;
    char words[64];
    table_word(t, j->study->of->name);
    table_word(t, j->of->name);
    table_word(t, j->a->label);
    table_word(t, j->b->label);
    table_number(t, (double)(chance ? j->chance_n : j->n), 0);
    const double twos[] = {c->mean_a, c->sd_a, c->mean_b, c->sd_b, c->judged.value, c->low, c->high};
    for (size_t i = 0; i < COUNT(twos); i++)
        table_number(t, twos[i], 2);
    table_number(t, c->p, -2);
    table_number(t, chance ? j->chance_p_holm : j->p_holm, -2);
    table_word(t, stats_test_name(c->test));
    table_number(t, c->p_equal, -2);
    table_number(t, c->p_flip, -2);
    table_number(t, c->paired_low, 2);
    table_number(t, c->paired_high, 2);
    table_number(t, c->r, 2);
    table_number(t, chance ? NAN : j->images.low, 2);
    table_number(t, chance ? NAN : j->images.high, 2);
    table_number(t, c->detectable, 2);
    table_number(t, j->of->paper, 2);
    table_word(t, j->of->current ? j->of->registered : "earlier file");
    table_number(t, (double)j->a->failed, 0);
    table_number(t, (double)j->b->failed, 0);
    snprintf(words, sizeof words, "%s%s", verdict_direction_name(j->verdict.direction),
             j->verdict.partial && j->verdict.direction != VERDICT_NOT_TESTED ? " (partial)" : "");
    table_word(t, chance ? "" : words);
    table_word(t, chance ? "" : verdict_size_name(j->verdict.size));
    table_word(t, chance ? "as chance" : "left out");
    table_word(t, j->study->metric);
    table_number(t, c->levene, -2);
    table_word(t, chance ? "" : j->verdict.why);
    table_word(t, j->of->expect);
    table_number(t, j->of->expected.what ? j->of->expected.limit : NAN, 2);
    table_word(t, j->minus_a ? j->minus_a->label : "");
    table_word(t, j->minus_b ? j->minus_b->label : "");
    table_number(t, chance ? NAN : j->p_held, -2);
    table_number(t, chance ? NAN : j->p_not_held, -2);
    if (chance)
        table_mark_row(t, "soft");
}

static void hypothesis_row(table *t, const hypothesis *h)
{
    char words[64];
    snprintf(words, sizeof words, "%s%s", verdict_direction_name(h->verdict.direction),
             h->verdict.partial ? " (partial)" : "");
    table_word(t, h->study->of->name);
    table_word(t, h->study->hypothesis);
    table_word(t, words);
    table_number(t, (double)h->held, 0);
    table_number(t, (double)h->predictions, 0);
    table_word(t, h->verdict.why);
    table_word(t, h->study->of->registered);
}

/* ---- runs and machines ----------------------------------------------------------------------- */

static berlu_status run_row(table *t, const view_study *s, const view_cell *c, const store_result *r)
{
    table_word(t, s->of->name);
    table_word(t, c->label);
    table_number(t, (double)r->seed, 0);
    table_word(t, r->key);
    table_word(t, r->state);
    table_mark(t, strcmp(r->state, "failed") == 0 ? "bad" : NULL);
    table_number(t, r->top1, 2);
    table_number(t, r->top5, 2);
    table_number(t, r->loss, 4);
    table_word(t, r->device);
    table_word(t, r->version);
    table_word(t, r->commit);
    table_word(t, r->error);
    const char *command = *c->command ? arena_printf(t->memory, "berlu train%s --seed %lld --run runs/%s", c->command,
                                                     (long long)r->seed, r->key)
                                      : "";
    table_word(t, command);
    table_mark(t, "code");
    table_number(t, r->landscape ? r->landscape->sharpness : NAN, 4);
    table_number(t, r->landscape ? r->landscape->eigenvalue : NAN, 4);
    return command ? BERLU_OK : BERLU_ERR_MEMORY;
}

typedef struct machine {
    const store_result *run;
    const char *data;
    size_t runs;
} machine;

static int same_machine(const store_result *a, const store_result *b)
{
    return strcmp(a->version, b->version) == 0 && strcmp(a->commit, b->commit) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->host, b->host) == 0 && strcmp(a->data, b->data) == 0;
}

/* Groups runs by version, commit, device, host and data: a reader must see when results mix them.
 * */
static void machines_fill(table *t, const view *v)
{
    machine all[64];
    size_t count = 0;
    for (size_t r = 0; r < v->run_count; r++) {
        const store_result *run = v->runs[r].run;
        size_t i = 0;
        if (!*run->version && !*run->device)
            continue;
        while (i < count && !same_machine(all[i].run, run))
            i++;
        if (i == count && count < COUNT(all))
            all[count++] = (machine){run, v->runs[r].cell->data, 0};
        if (i < count)
            all[i].runs++;
    }
    for (size_t i = 0; i < count; i++) {
        table_word(t, all[i].run->version);
        table_word(t, all[i].run->commit);
        table_word(t, all[i].run->device);
        table_word(t, all[i].run->host);
        table_word(t, all[i].data);
        table_word(t, all[i].run->data);
        table_number(t, (double)all[i].runs, 0);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

void tables_list(const report_tables *t, const table *out[TABLES])
{
    const table *const all[TABLES] = {&t->claims, &t->hypotheses, &t->beside, &t->contrasts,
                                      &t->aa,     &t->cells,      &t->runs,   &t->machines};
    memcpy(out, all, sizeof all);
}

berlu_status tables_own(const report_tables *t, table out[TABLES], size_t *count)
{
    const table *const all[] = {&t->hypotheses, &t->contrasts, &t->beside, &t->aa, &t->cells, &t->runs, &t->machines};
    *count = 0;
    for (size_t i = 0; i < COUNT(all); i++) {
        if (!table_rows(all[i]))
            continue;
        out[*count] = table_compact(all[i]);
        if (all[i] == &t->beside)
            out[*count].title = "Accuracy of the last epoch; the best, and what is not distinguishable from it";
        TRY(table_status(&out[(*count)++]));
    }
    return BERLU_OK;
}

berlu_status tables_make(report_tables *out, const evidence *e, const claim_result claims[CLAIMS])
{
    arena *memory = e->memory;
    out->claims = table_make(memory, "claims", "The paper's claims", claim_columns, COUNT(claim_columns));
    out->hypotheses = table_make(memory, "hypotheses", "Hypotheses: each holds only if all its predictions do",
                                 hypothesis_columns, COUNT(hypothesis_columns));
    out->beside = table_make(memory, "beside", "Beside the paper's tables", beside_columns, COUNT(beside_columns));
    out->contrasts = table_make(memory, "contrasts", "Registered contrasts, a minus b in points", contrast_columns,
                                COUNT(contrast_columns));
    out->aa = table_make(memory, "aa", "Noise: elu minus celu, which are one function", aa_columns, COUNT(aa_columns));
    out->cells = table_make(memory, "cells", "Accuracy of the last epoch by cell", cell_columns, COUNT(cell_columns));
    out->runs = table_make(memory, "runs", "All runs", run_columns, COUNT(run_columns));
    out->machines = table_make(memory, "machines", "Versions, data, machines", machine_columns, COUNT(machine_columns));
    for (size_t i = 0; i < CLAIMS; i++)
        claim_row(&out->claims, &claims[i]);
    for (size_t i = 0; i < e->judged->hypothesis_count; i++)
        hypothesis_row(&out->hypotheses, &e->judged->hypotheses[i]);
    for (size_t i = 0; i < e->judged->count; i++)
        for (int chance = 0; chance < 2; chance++)
            contrast_row(&out->contrasts, &e->judged->items[i], chance);
    for (size_t i = 0; i < e->v->count; i++) {
        const view_study *s = &e->v->studies[i];
        TRY(beside_fill(&out->beside, s, memory));
        TRY(tables_aa(&out->aa, s, memory));
        for (size_t c = 0; c < s->cell_count; c++) {
            cell_row(&out->cells, s, &s->cells[c], &e->sites[i][c]);
            for (size_t r = 0; r < s->cells[c].of->count; r++)
                TRY(run_row(&out->runs, s, &s->cells[c], &s->cells[c].of->runs[r]));
        }
    }
    machines_fill(&out->machines, e->v);
    const table *all[TABLES];
    tables_list(out, all);
    for (size_t i = 0; i < TABLES; i++)
        TRY(table_status(all[i]));
    return BERLU_OK;
}
