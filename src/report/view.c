/* view.c - from the rows of a store to studies, cells, samples and groups.
 * SPDX-License-Identifier: MIT
 *
 * view_make() goes through studies, then cells (cell_view), then joins cells into groups
 * (groups_find) and lists each run once. The settings of a cell are in settings.c. */
#include "report/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/yaml.h"
#include "report/settings.h"

#define MARGIN 0.5 /* points within which two functions count as equal, unless the study sets another */

/* ---- samples --------------------------------------------------------------------------------- */

double view_run_value(const store_result *r, const char *metric)
{
    return strcmp(metric, "loss") == 0 ? r->loss : strcmp(metric, "top5") == 0 ? r->top5 : r->top1;
}

int view_run_done(const store_result *r, const char *metric)
{
    return strcmp(r->state, "done") == 0 && !isnan(view_run_value(r, metric));
}

size_t view_commits(const view_cell *c, const char *metric)
{
    size_t count = 0;
    for (size_t i = 0; i < c->of->count; i++) {
        const store_result *r = &c->of->runs[i];
        size_t k = 0;
        while (k < i && !(view_run_done(&c->of->runs[k], metric) && strcmp(c->of->runs[k].commit, r->commit) == 0 &&
                          strcmp(c->of->runs[k].version, r->version) == 0))
            k++;
        count += k == i && view_run_done(r, metric);
    }
    return count;
}

berlu_status view_mixed(text *out, const view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const view_study *s = &v->studies[i];
        size_t here = 0;
        for (size_t c = 0; c < s->cell_count; c++) {
            size_t commits = view_commits(&s->cells[c], s->metric);
            if (commits < 2 || s->within[s->cells[c].group])
                continue;
            if (!here++)
                text_add(out, "%s%s: ", out->length ? "; " : "", s->of->name);
            text_add(out, "%s%s (%zu)", here > 1 ? ", " : "", s->cells[c].label, commits);
        }
    }
    return text_status(out);
}

/* The metric of a model that guesses. */
static double chance_of(double classes, const char *metric)
{
    if (!(classes > 0))
        return NAN;
    if (strcmp(metric, "loss") == 0)
        return log(classes);
    return fmin(100, (strcmp(metric, "top5") == 0 ? 500 : 100) / classes);
}

static berlu_status sample_fill(sample *s, arena *memory, const view_cell *c, const char *metric, int with_failed)
{
    const store_cell *of = c->of;
    *s = (sample){.values = ARENA_ARRAY(memory, double, of->count + 1),
                  .seeds = ARENA_ARRAY(memory, int64_t, of->count + 1),
                  .bits = ARENA_ARRAY(memory, const uint8_t *, of->count + 1),
                  .images = SIZE_MAX};
    if (!s->values || !s->seeds || !s->bits)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < of->count; i++) {
        const store_result *r = &of->runs[i];
        int done = view_run_done(r, metric), failed = strcmp(r->state, "failed") == 0;
        if (!done && !(failed && with_failed && !isnan(chance_of(c->classes, metric))))
            continue;
        size_t images = done && r->correct ? r->correct_bytes * 8 : 0;
        s->values[s->count] = done ? view_run_value(r, metric) : chance_of(c->classes, metric);
        s->seeds[s->count] = r->seed;
        s->bits[s->count++] = done ? r->correct : NULL;
        s->images = images < s->images ? images : s->images;
    }
    if (s->images == SIZE_MAX)
        s->images = 0;
    return BERLU_OK;
}

stats_sample sample_values(const sample *s)
{
    return (stats_sample){s->values, s->count};
}

stats_images sample_images(const sample *s)
{
    return (stats_images){s->bits, s->images ? s->count : 0, s->images};
}

/* All registered runs have a result. */
static int is_whole(const view_cell *c)
{
    return c->chance.count >= c->of->count;
}

stats_sample *view_group(arena *memory, const view_study *s, size_t group, int chance, size_t *count)
{
    stats_sample *all = ARENA_ARRAY(memory, stats_sample, s->cell_count + 1);
    int whole = 0;
    for (size_t c = 0; c < s->cell_count; c++)
        whole |= s->cells[c].group == group && is_whole(&s->cells[c]);
    *count = 0;
    for (size_t c = 0; all && c < s->cell_count; c++)
        if (s->cells[c].group == group && (!whole || is_whole(&s->cells[c])))
            all[(*count)++] = sample_values(chance ? &s->cells[c].chance : &s->cells[c].done);
    return all;
}

/* ---- cells ----------------------------------------------------------------------------------- */

#define NO_GROUP SIZE_MAX

static int fit_together(const view_cell *a, const view_cell *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->data, b->data) == 0 &&
           (a->epochs == b->epochs || isnan(a->epochs));
}

/* Cells with unknown epochs (no run has resolved them) come last and join the first group of their
 * model and data. */
static void groups_find(view_study *s)
{
    for (int unknown = 0; unknown < 2; unknown++)
        for (size_t i = 0; i < s->cell_count; i++) {
            view_cell *c = &s->cells[i];
            size_t k = 0;
            if ((isnan(c->epochs) != 0) != unknown)
                continue;
            while (k < s->cell_count && (s->cells[k].group == NO_GROUP || !fit_together(c, &s->cells[k])))
                k++;
            c->group = k < s->cell_count ? s->cells[k].group : s->group_count++;
        }
}

static berlu_status cell_view(view_cell *c, const store_cell *of, const view_study *s, arena *memory)
{
    *c = (view_cell){.of = of, .label = of->label, .group = NO_GROUP};
    for (size_t i = 0; i < of->count; i++) {
        int failed = strcmp(of->runs[i].state, "failed") == 0;
        c->failed += failed;
        c->waiting += !failed && !view_run_done(&of->runs[i], s->metric);
    }
    TRY(settings_read(c, memory));
    TRY(sample_fill(&c->done, memory, c, s->metric, 0));
    return sample_fill(&c->chance, memory, c, s->metric, 1);
}

/* ---- studies --------------------------------------------------------------------------------- */

static const char *word_of(const yaml_item *root, const char *key, const char *standard)
{
    const yaml_item *item = yaml_find(root, key);
    return item && item->kind == YAML_TEXT && *item->text ? item->text : standard;
}

/* Reads about, margin, metric, hypothesis, kind and claims. The file was checked when it was
 * registered; an unreadable one (an imported source has none) leaves the defaults. */
static berlu_status file_view(view_study *s, arena *memory)
{
    yaml_tree tree;
    s->about = s->hypothesis = "";
    s->margin = MARGIN;
    s->metric = "top1";
    berlu_status status = yaml_tree_parse(&tree, s->of->yaml, strlen(s->of->yaml), s->of->name);
    if (status != BERLU_OK)
        return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
    const yaml_item *root = tree.root, *claims = yaml_find(root, "claims");
    double margin;
    if (number_parse(word_of(root, "margin", ""), &margin) && margin > 0)
        s->margin = margin;
    if (!number_parse(word_of(root, "rounds", "7"), &s->rounds))
        s->rounds = 0;
    s->about = arena_strdup(memory, word_of(root, "about", ""));
    s->metric = arena_strdup(memory, word_of(root, "metric", "top1"));
    s->hypothesis = arena_strdup(memory, word_of(root, "hypothesis", ""));
    s->cost = strcmp(word_of(root, "kind", "train"), "cost") == 0;
    s->pilots = s->about && strstr(s->about, "pilot") != NULL;
    size_t most = claims ? claims->count : 0;
    s->claims = ARENA_ARRAY(memory, const char *, most + 1);
    for (const yaml_item *c = claims ? claims->first : NULL; s->claims && c; c = c->next)
        if (c->kind == YAML_TEXT)
            s->claims[s->claim_count++] = arena_strdup(memory, c->text);
    yaml_tree_free(&tree);
    return s->about && s->metric && s->hypothesis && s->claims ? BERLU_OK : BERLU_ERR_MEMORY;
}

static berlu_status study_view(view_study *s, const store_study *of, arena *memory)
{
    *s = (view_study){.of = of, .cells = ARENA_ARRAY(memory, view_cell, of->cell_count + 1)};
    if (!s->cells)
        return BERLU_ERR_MEMORY;
    TRY(file_view(s, memory));
    /* Cells of a cost study have no runs; the table of costs has them. */
    for (size_t c = 0; c < of->cell_count && !s->cost; c++) {
        TRY(cell_view(&s->cells[c], &of->cells[c], s, memory));
        s->cell_count++;
    }
    groups_find(s);
    s->factors = ARENA_ARRAY(memory, const char *, s->group_count + 1);
    for (size_t g = 0; s->factors && g < s->group_count; g++)
        TRY(settings_factors(&s->factors[g], s, g, memory));
    return s->factors ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* ---- runs that several studies have ---------------------------------------------------------- */

static int has_run(const view_cell *c, const char *key)
{
    for (size_t i = 0; i < c->of->count; i++)
        if (strcmp(c->of->runs[i].key, key) == 0)
            return 1;
    return 0;
}

static int same_runs(const view_study *s, const view_cell *a, const view_study *t, const view_cell *b)
{
    if (strcmp(a->label, b->label) != 0 || strcmp(s->metric, t->metric) != 0 || a->done.count != b->done.count)
        return 0;
    for (size_t i = 0; i < a->of->count; i++)
        if (view_run_done(&a->of->runs[i], s->metric) && !has_run(b, a->of->runs[i].key))
            return 0;
    return 1;
}

/* Whether group g of s is the whole or a part of one group of t; `more` when t's has more cells. */
static int is_within(const view_study *s, size_t g, const view_study *t, int *more)
{
    size_t cells = 0, others = 0, group = NO_GROUP;
    for (size_t c = 0; c < s->cell_count; c++) {
        size_t k = 0;
        if (s->cells[c].group != g || !s->cells[c].done.count)
            continue;
        while (k < t->cell_count && !same_runs(s, &s->cells[c], t, &t->cells[k]))
            k++;
        if (k == t->cell_count || (group != NO_GROUP && t->cells[k].group != group))
            return 0;
        group = t->cells[k].group;
        cells++;
    }
    for (size_t k = 0; k < t->cell_count; k++)
        others += t->cells[k].group == group && t->cells[k].done.count;
    *more = others > cells;
    return cells > 0;
}

static berlu_status within_find(view *v, size_t at)
{
    view_study *s = &v->studies[at];
    s->within = ARENA_ARRAY(&v->memory, const view_study *, s->group_count + 1);
    if (!s->within)
        return BERLU_ERR_MEMORY;
    for (size_t g = 0; g < s->group_count; g++)
        for (size_t i = 0; i < v->count && !s->within[g]; i++) {
            int more = 0;
            if (i != at && is_within(s, g, &v->studies[i], &more) && (more || i < at))
                s->within[g] = &v->studies[i];
        }
    return BERLU_OK;
}

/* By key; of one key a finished run first, then the order of the report. */
static int by_key(const void *a, const void *b)
{
    const view_run *x = a, *y = b;
    int order = strcmp(x->run->key, y->run->key),
        done = (strcmp(y->run->state, "done") == 0) - (strcmp(x->run->state, "done") == 0);
    return order ? order : done ? done : x->place < y->place ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    const view_run *x = a, *y = b;
    return x->place < y->place ? -1 : 1;
}

/* Each run once, however many cells have it. */
static berlu_status runs_list(view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->count; i++)
        for (size_t c = 0; c < v->studies[i].cell_count; c++)
            n += v->studies[i].cells[c].of->count;
    v->runs = ARENA_ARRAY(&v->memory, view_run, n + 1);
    if (!v->runs)
        return BERLU_ERR_MEMORY;
    n = 0;
    for (size_t i = 0; i < v->count; i++)
        for (size_t c = 0; c < v->studies[i].cell_count; c++)
            for (size_t k = 0; k < v->studies[i].cells[c].of->count; k++, n++)
                v->runs[n] = (view_run){&v->studies[i].cells[c].of->runs[k], &v->studies[i].cells[c], n};
    qsort(v->runs, n, sizeof *v->runs, by_key);
    for (size_t i = 0; i < n; i++)
        if (!v->run_count || strcmp(v->runs[v->run_count - 1].run->key, v->runs[i].run->key) != 0)
            v->runs[v->run_count++] = v->runs[i];
    qsort(v->runs, v->run_count, sizeof *v->runs, by_place);
    return BERLU_OK;
}

berlu_status view_make(view *out, const store_contents *from)
{
    *out = (view){0};
    out->studies = ARENA_ARRAY(&out->memory, view_study, from->count + 1);
    berlu_status status;
    if (!out->studies)
        TRY_DONE(BERLU_ERR_MEMORY);
    for (size_t i = 0; i < from->count; i++)
        TRY_DONE(study_view(&out->studies[out->count++], &from->studies[i], &out->memory));
    for (size_t i = 0; i < out->count; i++)
        TRY_DONE(within_find(out, i));
    status = runs_list(out);
done:
    if (status != BERLU_OK)
        view_free(out);
    return status;
}

void view_free(view *v)
{
    arena_free(&v->memory);
    *v = (view){0};
}
