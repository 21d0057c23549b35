/* choose.c - reads the section `choose`, judges the cells and writes the second study's file.
 * SPDX-License-Identifier: MIT
 *
 * choose.h has the rule. stage_write() makes the file for any choice of cells: of the best ones, or
 * of the first ones when the section is checked. */
#include "study/choose.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sha256.h"
#include "io/yaml.h"
#include "study/store_internal.h"
#include "study/study_internal.h"
#include "train/settings_hash.h"

/* ---- reading --------------------------------------------------------------------------------- */

void study_stage_read(study_reader *r, const yaml_item *map)
{
    static const char *const keys[] = {"study", "about", "axis", "base", "seeds", "contrasts", NULL};
    study_stage *g = &r->study->stage;
    study_part part = {0};
    *g = (study_stage){.about = "", .axis = "", .line = map->line, .column = map->column};
    if (!study_is_map(r, map, "choose"))
        return;
    for (const yaml_item *item = map->first; item; item = item->next) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], item->key) != 0)
            k++;
        if (!keys[k])
            study_unknown(r, item, "key of choose", keys);
        else if (strcmp(item->key, "study") == 0)
            g->name = study_scalar(r, item, "study");
        else if (strcmp(item->key, "about") == 0)
            g->about = study_scalar(r, item, "about");
        else if (strcmp(item->key, "axis") == 0)
            g->axis = study_scalar(r, item, "axis");
        else if (strcmp(item->key, "seeds") == 0)
            study_seeds_read(r, item, &part);
        else if (strcmp(item->key, "contrasts") == 0)
            study_contrasts_read(r, item, &g->contrasts, &g->contrast_count);
        else if (study_is_map(r, item, "base"))
            g->base = study_settings_read(r, item);
    }
    g->seeds = part.seeds;
    g->seed_count = part.seed_count;
    if (!yaml_find(map, "study") || !yaml_find(map, "axis") || !yaml_find(map, "seeds"))
        study_problem(r, map->line, map->column, "choose: a study, an axis and seeds are needed");
    if (!g->name)
        g->name = "";
}

/* The axis that keeps all its values; NULL unless there are two axes, one of them `axis`. */
static const study_axis *other_axis(const study *s)
{
    const study_part *p = s->parts;
    if (s->part_count != 1 || p->axis_count != 2)
        return NULL;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(p->axes[i].name, s->stage.axis) == 0)
            return &p->axes[!i];
    return NULL;
}

static const char *label_on(const study_cell *c, const char *axis)
{
    for (size_t i = 0; i < c->axis_count; i++)
        if (strcmp(c->axes[i], axis) == 0)
            return c->labels[i];
    return "";
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A plain word, or in double quotes. */
static void word_add(text *out, const char *word)
{
    int plain = *word != 0;
    for (const char *at = word; *at; at++)
        plain &= isalnum((unsigned char)*at) || (at > word && strchr("_.+-", *at));
    if (plain) {
        text_string(out, word);
        return;
    }
    text_string(out, "\"");
    for (; *word; word++)
        if ((unsigned char)*word < 0x20)
            text_add(out, "\\x%02x", (unsigned char)*word);
        else
            text_add(out, *word == '"' || *word == '\\' ? "\\%c" : "%c", *word);
    text_string(out, "\"");
}

static void setting_add(text *out, const study_setting *s)
{
    text_add(out, "%s: ", s->key);
    text_string(out, s->count == 1 ? "" : "[");
    for (size_t i = 0; i < s->count; i++) {
        text_string(out, i ? ", " : "");
        word_add(out, s->values[i]);
    }
    text_string(out, s->count == 1 ? "" : "]");
}

static int is_set(const study_settings *list, const char *key)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, key) == 0)
            return 1;
    return 0;
}

static void base_add(text *out, const study *s)
{
    size_t count = 0;
    text_string(out, "base: {");
    for (size_t i = 0; i < s->base.count; i++)
        if (!is_set(&s->stage.base, s->base.items[i].key)) {
            text_string(out, count++ ? ", " : "");
            setting_add(out, &s->base.items[i]);
        }
    for (size_t i = 0; i < s->stage.base.count; i++) {
        text_string(out, count++ ? ", " : "");
        setting_add(out, &s->stage.base.items[i]);
    }
    text_string(out, "}\n");
}

/* {label: gelu, act: gelu, lr: 5e-4}: the settings of both its axes. */
static void value_add(text *out, const study *s, const study_cell *cell)
{
    text_string(out, "    - {label: ");
    word_add(out, label_on(cell, other_axis(s)->name));
    for (size_t a = 0; a < cell->axis_count; a++) {
        const study_value *v = s->parts[0].axes[a].values;
        while (strcmp(v->label, cell->labels[a]) != 0)
            v++;
        for (size_t i = 0; i < v->settings.count; i++) {
            text_string(out, ", ");
            setting_add(out, &v->settings.items[i]);
        }
    }
    text_string(out, "}\n");
}

static void match_add(text *out, const char *side, const study_match *m)
{
    text_add(out, "%s: {", side);
    for (size_t i = 0; i < m->count; i++) {
        text_string(out, i ? ", " : "");
        word_add(out, m->axes[i]);
        text_string(out, ": ");
        word_add(out, m->labels[i]);
    }
    text_string(out, "}");
}

static void real_add(text *out, const char *key, double value)
{
    char number[NUMBER_TEXT];
    text_add(out, ", %s: %s", key, number_text(number, value));
}

static void contrast_add(text *out, const study_contrast *c)
{
    text_string(out, "  - {name: ");
    word_add(out, c->name);
    text_string(out, ", ");
    match_add(out, "a", &c->a);
    text_string(out, ", ");
    match_add(out, "b", &c->b);
    if (c->minus_a.count) {
        text_string(out, ", minus: {");
        match_add(out, "a", &c->minus_a);
        text_string(out, ", ");
        match_add(out, "b", &c->minus_b);
        text_string(out, "}");
    }
    if (*c->expect)
        text_add(out, ", expect: %s", c->expect);
    if (c->expected.what)
        real_add(out, c->expected.what == STATS_WITHIN ? "margin" : "than", c->expected.limit);
    if (!isnan(c->paper))
        real_add(out, "paper", c->paper);
    text_string(out, "}\n");
}

/* The file of the second study at these cells, without the comment on how they were found. */
static void stage_write(text *out, const study *s, const size_t *cells, size_t count)
{
    const study_stage *g = &s->stage;
    char number[NUMBER_TEXT];
    text_string(out, "study: ");
    word_add(out, g->name);
    text_string(out, "\n");
    if (*g->about) {
        text_string(out, "about: ");
        word_add(out, g->about);
        text_string(out, "\n");
    }
    base_add(out, s);
    text_string(out, "axes:\n  ");
    word_add(out, other_axis(s)->name);
    text_string(out, ":\n");
    for (size_t i = 0; i < count; i++)
        value_add(out, s, &s->cells[cells[i]]);
    text_string(out, "seeds: [");
    for (size_t i = 0; i < g->seed_count; i++)
        text_add(out, "%s%lld", i ? ", " : "", (long long)g->seeds[i]);
    text_add(out, "]\nmargin: %s\nmetric: %s\n", number_text(number, s->margin), s->metric);
    text_string(out, g->contrast_count ? "contrasts:\n" : "");
    for (size_t i = 0; i < g->contrast_count; i++)
        contrast_add(out, &g->contrasts[i]);
}

/* ---- checking the section -------------------------------------------------------------------- */

/* The first cell of each value of the other axis; returns how many. */
static size_t firsts(const study *s, size_t *cells)
{
    const study_axis *other = other_axis(s);
    size_t count = 0;
    for (size_t v = 0; v < other->count; v++) {
        size_t c = 0;
        while (c < s->cell_count && strcmp(label_on(&s->cells[c], other->name), other->values[v].label) != 0)
            c++;
        if (c < s->cell_count)
            cells[count++] = c;
    }
    return count;
}

/* Written with the first value of each and read back: what is wrong now would be wrong then. */
static void trial(study_reader *r)
{
    const study *s = r->study;
    study second;
    text file = {0};
    size_t *cells = study_array(r, s->cell_count, sizeof *cells);
    if (!cells)
        return;
    stage_write(&file, s, cells, firsts(s, cells));
    berlu_status status = text_status(&file);
    if (status == BERLU_OK)
        status = study_parse(&second, file.data, file.length, "the second study", NULL);
    r->failed |= status == BERLU_ERR_MEMORY;
    if (status == BERLU_OK)
        study_free(&second);
    else if (status != BERLU_ERR_MEMORY)
        study_problem(r, s->stage.line, s->stage.column, "choose: %s", berlu_last_error());
    text_free(&file);
}

static int is_seed_of(const study *s, int64_t seed)
{
    for (size_t i = 0; i < s->run_count; i++)
        if (s->runs[i].seed == seed)
            return 1;
    return 0;
}

void study_stage_check(study_reader *r)
{
    const study *s = r->study;
    const study_stage *g = &s->stage;
    if (!g->name)
        return;
    if (!other_axis(s) || s->kind != STUDY_TRAIN || s->teacher.count) {
        study_problem(r, g->line, g->column,
                      "choose: it takes a study of two axes, one of them '%.60s', without parts and teacher", g->axis);
        return;
    }
    if (strcmp(g->name, s->name) == 0)
        study_problem(r, g->line, g->column, "choose: the second study needs another name");
    for (size_t i = 0; i < g->seed_count; i++)
        if (is_seed_of(s, g->seeds[i]))
            study_problem(r, g->line, g->column, "choose: seed %lld has been used to choose; fresh ones are needed",
                          (long long)g->seeds[i]);
    if (!r->count)
        trial(r);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static double value_of(const store_result *r, const char *metric)
{
    return strcmp(metric, "loss") == 0 ? r->loss : strcmp(metric, "top5") == 0 ? r->top5 : r->top1;
}

static const store_cell *stored(const store_study *from, const char *label)
{
    for (size_t c = 0; c < from->cell_count; c++)
        if (strcmp(from->cells[c].label, label) == 0)
            return &from->cells[c];
    return NULL;
}

/* The mean over all registered runs; NaN where one failed. */
static double mean_of(const store_cell *c, const char *metric)
{
    double sum = 0;
    for (size_t i = 0; i < c->count; i++)
        sum += strcmp(c->runs[i].state, "done") == 0 ? value_of(&c->runs[i], metric) : NAN;
    return c->count ? sum / (double)c->count : NAN;
}

/* Lines of settings as the table `cell` has them, without those that change no result and without
 * where the data lie. */
static void results_lines(text *out, const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(lines, "=\n"), lines);
        const setting *row = recipe_find(key);
        int is_data = strcmp(key, "data") == 0;
        if (!row || (row->role == SETTING_FREE))
            continue;
        text_bytes(out, lines, is_data ? strcspn(lines, ":\n") : length);
        text_string(out, "\n");
    }
}

/* `study run --set` trains with other settings than the file has, and the second file is made of
 * the file's. */
static berlu_status settings_check(const study *s, const study_cell *cell, const store_cell *run)
{
    text file = {0}, here = {0}, there = {0}, differ = {0};
    store_settings_text(&file, &cell->settings);
    results_lines(&here, file.data ? file.data : "");
    results_lines(&there, run->settings);
    berlu_status status;
    TRY_DONE(text_status(&file));
    TRY_DONE(text_status(&here));
    TRY_DONE(text_status(&there));
    size_t count = settings_text_differences(there.data ? there.data : "", here.data ? here.data : "", &differ);
    TRY_DONE(text_status(&differ));
    if (count)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: %s was run with other settings than the file's: %s; put them into it",
                            s->name, cell->label, differ.data);
done:
    text_free(&file);
    text_free(&here);
    text_free(&there);
    text_free(&differ);
    return status;
}

static berlu_status complete_check(const study *s, const char *yaml, const store_study *from)
{
    size_t missing = 0, runs = 0;
    if (!s->stage.name)
        return berlu_fail(BERLU_ERR_INPUT, "%s: the file has no section choose", s->name);
    if (strcmp(from->yaml, yaml) != 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: the store has another file of this study; choose by that one", s->name);
    for (size_t c = 0; c < s->cell_count; c++) {
        const store_cell *cell = stored(from, s->cells[c].label);
        if (!cell || !cell->count)
            return berlu_fail(BERLU_ERR_INPUT, "%s: the store has no runs of %s", s->name, s->cells[c].label);
        TRY(settings_check(s, &s->cells[c], cell));
        for (size_t i = 0; i < cell->count; i++) {
            const store_result *r = &cell->runs[i];
            int done = strcmp(r->state, "done") == 0 && !isnan(value_of(r, s->metric));
            missing += !done && strcmp(r->state, "failed") != 0;
            runs++;
        }
    }
    return missing ? berlu_fail(BERLU_ERR_INPUT,
                                "%s: %zu of %zu runs have no result; nothing is chosen before all do (`study merge` "
                                "joins what other stores hold)",
                                s->name, missing, runs)
                   : BERLU_OK;
}

/* Accuracies are counts of images, so means over runs are often equal, but for the rounding of each
 * value, of their sum and of the mean. */
static int is_better(double mean, double most, int less, size_t runs)
{
    double rounding = (double)(runs + 2) * DBL_EPSILON * fabs(most);
    return less ? mean < most - rounding : mean > most + rounding;
}

/* The best cell of each value of the other axis. */
static berlu_status best_find(const study *s, const store_study *from, size_t *chosen, size_t *count)
{
    const study_axis *other = other_axis(s);
    int less = strcmp(s->metric, "loss") == 0;
    *count = 0;
    for (size_t v = 0; v < other->count; v++) {
        size_t best = STUDY_NO_CELL, cells = 0;
        double most = NAN;
        for (size_t c = 0; c < s->cell_count; c++) {
            if (strcmp(label_on(&s->cells[c], other->name), other->values[v].label) != 0)
                continue;
            const store_cell *cell = stored(from, s->cells[c].label);
            double mean = mean_of(cell, s->metric);
            cells++;
            if (!isnan(mean) && (best == STUDY_NO_CELL || is_better(mean, most, less, cell->count)))
                best = c, most = mean;
        }
        if (cells && best == STUDY_NO_CELL)
            return berlu_fail(BERLU_ERR_INPUT, "%s: every %s of %s has a failed run: there is nothing to choose",
                              s->name, s->stage.axis, other->values[v].label);
        if (cells)
            chosen[(*count)++] = best;
    }
    return BERLU_OK;
}

/* A comment is one line, whatever a label holds. */
static void remark_add(text *out, const char *words, int width)
{
    int length = 0;
    for (; *words; words++, length++)
        text_add(out, "%c", (unsigned char)*words < 0x20 ? ' ' : *words);
    text_add(out, "%*s", length < width ? width - length : 0, "");
}

static void table_add(text *out, const study *s, const store_study *from, const size_t *chosen, size_t count)
{
    const char *other = other_axis(s)->name;
    char number[NUMBER_TEXT];
    for (size_t c = 0; c < s->cell_count; c++) {
        const store_cell *cell = stored(from, s->cells[c].label);
        double mean = mean_of(cell, s->metric);
        size_t i = 0;
        while (i < count && chosen[i] != c)
            i++;
        text_string(out, i < count ? "# * " : "#   ");
        remark_add(out, label_on(&s->cells[c], other), 20);
        text_string(out, " ");
        remark_add(out, label_on(&s->cells[c], s->stage.axis), 8);
        text_string(out, isnan(mean) ? "        " : "");
        if (!isnan(mean))
            text_add(out, " %7.3f", mean);
        for (size_t k = 0; k < cell->count; k++)
            text_add(out, "  %s",
                     strcmp(cell->runs[k].state, "done") == 0 ? number_text(number, value_of(&cell->runs[k], s->metric))
                                                              : "failed");
        text_string(out, "\n");
    }
}

/* A choice at the end of its list may have a better one beyond it. */
static void ends_add(text *out, const study *s, const size_t *chosen, size_t count)
{
    const study_part *p = &s->parts[0];
    const study_axis *axis = strcmp(p->axes[0].name, s->stage.axis) == 0 ? &p->axes[0] : &p->axes[1];
    for (size_t i = 0; i < count; i++) {
        const char *label = label_on(&s->cells[chosen[i]], axis->name);
        if (strcmp(label, axis->values[0].label) != 0 && strcmp(label, axis->values[axis->count - 1].label) != 0)
            continue;
        text_string(out, "# The choice for ");
        remark_add(out, label_on(&s->cells[chosen[i]], other_axis(s)->name), 0);
        text_string(out, " lies at the end of the list: a better one may lie beyond it.\n");
    }
}

/* SHA-256 over a line "KEY VALUE" per run, in the order of cells and seeds. */
static void results_hash(char out[SHA256_TEXT], const study *s, const store_study *from)
{
    sha256 hash;
    char number[NUMBER_TEXT];
    sha256_start(&hash);
    for (size_t c = 0; c < s->cell_count; c++) {
        const store_cell *cell = stored(from, s->cells[c].label);
        for (size_t i = 0; i < cell->count; i++) {
            const store_result *r = &cell->runs[i];
            const char *value = strcmp(r->state, "done") == 0 ? number_text(number, value_of(r, s->metric)) : "failed";
            sha256_add(&hash, r->key, strlen(r->key));
            sha256_add(&hash, " ", 1);
            sha256_add(&hash, value, strlen(value));
            sha256_add(&hash, "\n", 1);
        }
    }
    sha256_finish(&hash, out);
}

berlu_status study_choose(text *out, const study *s, const char *yaml, const store_study *from, size_t *chosen,
                          size_t *count)
{
    char digits[SHA256_TEXT];
    TRY(complete_check(s, yaml, from));
    TRY(best_find(s, from, chosen, count));
    results_hash(digits, s, from);
    text_add(out, "# Written by `berlu study choose` from the results of study %s: each %s at the %s with the best\n",
             s->name, other_axis(s)->name, s->stage.axis);
    text_add(out, "# mean %s of its runs. Not to be edited: the same results give the same file.\n", s->metric);
    text_add(out, "# File of %s: SHA-256 %s.\n", s->name, from->sha256);
    text_add(out, "# Its results, a line \"KEY VALUE\" per run in the order below: SHA-256 %s.\n#\n", digits);
    table_add(out, s, from, chosen, *count);
    ends_add(out, s, chosen, *count);
    text_string(out, "#\n");
    stage_write(out, s, chosen, *count);
    return text_status(out);
}
