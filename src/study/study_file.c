/* study_file.c - reads the YAML of a study into the struct of study_file.h.
 * SPDX-License-Identifier: MIT
 *
 * Reading does not stop at a mistake: it is noted with its place and reading continues, so that all
 * mistakes of a file are reported at once. Only lack of memory ends it early. */
#include "study/study_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "study/study_internal.h"

void study_problem(study_reader *r, int line, int column, const char *format, ...)
{
    char words[400];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    size_t kept = r->count < STUDY_PROBLEMS ? r->count : STUDY_PROBLEMS, at = 0;
    while (at < kept && (r->list[at].line < line || (r->list[at].line == line && r->list[at].column <= column))) {
        if (r->list[at].line == line && r->list[at].column == column && strcmp(r->list[at].words, words) == 0)
            return;
        at++;
    }
    r->count++;
    if (kept == STUDY_PROBLEMS)
        return;
    for (size_t i = kept; i > at; i--)
        r->list[i] = r->list[i - 1];
    r->list[at] = (study_complaint){line, column, study_copy(r, words)};
}

void *study_array(study_reader *r, size_t count, size_t size)
{
    void *memory = arena_array(&r->study->memory, count ? count : 1, size, _Alignof(max_align_t));
    r->failed |= !memory;
    return memory;
}

const char *study_copy(study_reader *r, const char *words)
{
    const char *kept = arena_strdup(&r->study->memory, words);
    r->failed |= !kept;
    return kept ? kept : "";
}

/* The text of a scalar; "" with a problem for anything else. */
const char *study_scalar(study_reader *r, const yaml_item *item, const char *what)
{
    if (item->kind == YAML_TEXT)
        return study_copy(r, item->text);
    study_problem(r, item->line, item->column, "%s is one value, not a %s", what,
                  item->kind == YAML_LIST ? "list" : "map");
    return "";
}

int study_is_list(study_reader *r, const yaml_item *item, const char *what)
{
    if (item->kind == YAML_LIST)
        return 1;
    study_problem(r, item->line, item->column, "%s: a list is needed here, [..., ...]", what);
    return 0;
}

int study_is_map(study_reader *r, const yaml_item *item, const char *what)
{
    if (item->kind == YAML_MAP)
        return 1;
    study_problem(r, item->line, item->column, "%s: KEY: VALUE is needed here", what);
    return 0;
}

double study_real(study_reader *r, const yaml_item *item, const char *what)
{
    double value = NAN;
    const char *words = study_scalar(r, item, what);
    if (item->kind == YAML_TEXT && (!number_parse(words, &value) || !isfinite(value)))
        study_problem(r, item->line, item->column, "%s: '%.60s' is not a number", what, words);
    return value;
}

/* Reports an unknown word and suggests the nearest one. */
void study_unknown(study_reader *r, const yaml_item *item, const char *what, const char *const *names)
{
    const char *near = nearest_name(item->key, names);
    study_problem(r, item->line, item->column, "there is no %s '%.60s'%s%s%s", what, item->key,
                  near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* -- cells by their labels, skip, claims -- */

study_match study_match_read(study_reader *r, const yaml_item *item, const char *what)
{
    study_match m = {.line = item->line, .column = item->column};
    if (!study_is_map(r, item, what))
        return m;
    m.axes = study_array(r, item->count, sizeof *m.axes);
    m.labels = study_array(r, item->count, sizeof *m.labels);
    for (const yaml_item *one = item->first; one && m.axes && m.labels; one = one->next) {
        m.axes[m.count] = study_copy(r, one->key);
        m.labels[m.count++] = study_scalar(r, one, one->key);
    }
    if (!item->count)
        study_problem(r, item->line, item->column, "%s: {AXIS: LABEL} is needed here", what);
    return m;
}

static void skip_read(study_reader *r, const yaml_item *list)
{
    study *s = r->study;
    if (!study_is_list(r, list, "skip") || !(s->skip = study_array(r, list->count, sizeof *s->skip)))
        return;
    for (const yaml_item *item = list->first; item; item = item->next)
        s->skip[s->skip_count++] = study_match_read(r, item, "skip");
}

static void claims_read(study_reader *r, const yaml_item *list)
{
    study *s = r->study;
    if (!study_is_list(r, list, "claims") || !(s->claims = study_array(r, list->count, sizeof *s->claims)))
        return;
    for (const yaml_item *item = list->first; item; item = item->next) {
        const char *id = study_scalar(r, item, "claims");
        char *end = NULL;
        long number = *id == 'C' ? strtol(id + 1, &end, 10) : 0;
        if (item->kind == YAML_TEXT && (!end || *end || number < 1 || number > 20 || id[1] == '0' || id[1] == '+'))
            study_problem(r, item->line, item->column, "claims: '%.60s' is none of C1 to C20", id);
        s->claims[s->claim_count++] = id;
    }
}

/* -- the file -- */

static void head_read(study_reader *r, const yaml_item *item)
{
    study *s = r->study;
    if (strcmp(item->key, "study") == 0) {
        s->name = study_scalar(r, item, "study");
        if (item->kind == YAML_TEXT && !name_is_identifier(s->name))
            study_problem(r, item->line, item->column, "study: '%.60s' is no plain name (letters, digits and _)",
                          s->name);
    } else if (strcmp(item->key, "about") == 0) {
        s->about = study_scalar(r, item, "about");
    } else if (strcmp(item->key, "hypothesis") == 0) {
        s->hypothesis = study_scalar(r, item, "hypothesis");
    } else if (strcmp(item->key, "metric") == 0) {
        s->metric = study_scalar(r, item, "metric");
        if (strcmp(s->metric, "top1") != 0 && strcmp(s->metric, "top5") != 0 && strcmp(s->metric, "loss") != 0)
            study_problem(r, item->line, item->column, "metric: '%.60s' is none of top1, top5, loss", s->metric);
    } else if (strcmp(item->key, "margin") == 0) {
        s->margin = study_margin_read(r, item);
    } else if (strcmp(item->key, "kind") == 0) {
        const char *words = study_scalar(r, item, "kind");
        s->kind = strcmp(words, "cost") == 0 ? STUDY_COST : STUDY_TRAIN;
        if (strcmp(words, "cost") != 0 && strcmp(words, "train") != 0)
            study_problem(r, item->line, item->column, "kind: '%.60s' is neither train nor cost", words);
    } else if (strcmp(item->key, "rounds") == 0) {
        double rounds = study_real(r, item, "rounds");
        if (!(rounds >= 1 && rounds <= 1000 && rounds == floor(rounds)))
            study_problem(r, item->line, item->column, "rounds: a whole number from 1 to 1000 is needed");
        else
            s->rounds = (int64_t)rounds;
    }
}

static void file_read(study_reader *r)
{
    static const char *const keys[] = {"study",  "about",       "base",       "axes",   "parts",  "seeds",
                                       "skip",   "contrasts",   "margin",     "metric", "claims", "kind",
                                       "rounds", "equivalence", "hypothesis", "choose", NULL};
    const yaml_item *root = r->tree.root;
    if (!study_is_map(r, root, "a study"))
        return;
    for (const yaml_item *item = root->first; item; item = item->next) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], item->key) != 0)
            k++;
        if (!keys[k])
            study_unknown(r, item, "key of a study", keys);
        else
            head_read(r, item);
    }
    if (!r->study->name)
        study_problem(r, root->line, root->column, "study: give it a name");
    const yaml_item *base = yaml_find(root, "base"), *skip = yaml_find(root, "skip"),
                    *contrasts = yaml_find(root, "contrasts"), *claims = yaml_find(root, "claims"),
                    *equal = yaml_find(root, "equivalence"), *hypothesis = yaml_find(root, "hypothesis"),
                    *choose = yaml_find(root, "choose");
    if (base)
        study_base_read(r, base);
    study_parts_read(r, root);
    if (skip)
        skip_read(r, skip);
    if (contrasts)
        study_contrasts_read(r, contrasts, &r->study->contrasts, &r->study->contrast_count);
    if (hypothesis)
        study_hypothesis_check(r, hypothesis);
    if (claims)
        claims_read(r, claims);
    if (equal)
        study_equivalence_read(r, equal);
    if (choose)
        study_stage_read(r, choose);
}

berlu_status study_parse(study *out, const char *bytes, size_t count, const char *name, text *problems)
{
    study s = {
        .metric = "top1", .about = "", .hypothesis = "", .margin = 0.5, .rounds = 7, .teacher_cell = STUDY_NO_CELL};
    study_reader r = {.study = &s};
    *out = (study){0};
    berlu_status status = yaml_tree_parse(&r.tree, bytes, count, name);
    if (status != BERLU_OK) {
        if (problems && status == BERLU_ERR_INPUT)
            text_add(problems, "%s\n", berlu_last_error());
        return status;
    }
    file_read(&r);
    if (!r.failed)
        study_expand(&r);
    if (r.failed) {
        status = berlu_fail_memory(0, "the study");
    } else if (r.count) {
        char more[48] = "";
        for (size_t i = 0; problems && i < r.count && i < STUDY_PROBLEMS; i++)
            text_add(problems, "%s:%d:%d: %s\n", name, r.list[i].line, r.list[i].column, r.list[i].words);
        if (r.count > 1)
            snprintf(more, sizeof more, " (and %zu more)", r.count - 1);
        status = berlu_fail(BERLU_ERR_INPUT, "%s:%d:%d: %s%s", name, r.list[0].line, r.list[0].column, r.list[0].words,
                            more);
    } else {
        *out = s;
        s = (study){0};
    }
    yaml_tree_free(&r.tree);
    study_free(&s);
    return status;
}

berlu_status study_read(study *out, const char *path, text *problems)
{
    char *bytes;
    size_t count;
    *out = (study){0};
    TRY(file_read_all(&bytes, &count, path, YAML_BYTES));
    berlu_status status = study_parse(out, bytes, count, path, problems);
    free(bytes);
    return status;
}

void study_free(study *s)
{
    arena_free(&s->memory);
    *s = (study){0};
}
