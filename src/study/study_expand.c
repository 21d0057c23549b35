/* study_expand.c - the grid of a study: cells, and runs in seed order. SPDX-License-Identifier: MIT
 *
 * Each cell is resolved with the rules of `berlu train` (train/recipe, the table of models, the
 * texts of activations), so that what training would refuse is refused before anything runs. A
 * setting without effect next to the others of its cell is dropped there with a note: in a grid
 * that is not a slip but a corner. Contrasts: study_contrasts.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/act_text.h"
#include "models/models.h"
#include "study/study_internal.h"

/* -- resolving a cell -- */

berlu_status study_settings_apply(const study_settings *list, train_settings *out)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < list->items[i].count; k++)
            TRY(recipe_set(out, list->items[i].key, list->items[i].values[k]));
    return BERLU_OK;
}

/* Model and activations, checked as `berlu train` checks them. */
static berlu_status network_check(const train_settings *s)
{
    model_config config;
    const model_options options = {.image_size = (int)s->image_size,
                                   .patch = (int)s->patch,
                                   .stride = (int)s->stride,
                                   .stem = (int)s->stem,
                                   .classes = (int)s->classes,
                                   .drop_path = s->drop_path,
                                   .per_channel = (int)s->act_params,
                                   .acts = s->act,
                                   .act_count = (int)s->acts};
    TRY(model_configure(&config, s->model, &options));
    for (size_t i = 0; i < s->acts; i++) {
        berlu_act *act;
        TRY(act_from_text(&act, s->act[i]));
        berlu_act_free(act);
    }
    return BERLU_OK;
}

static berlu_status resolve(const study_settings *list, int trained_teacher, train_settings *out)
{
    recipe_init(out);
    TRY(study_settings_apply(list, out));
    if (trained_teacher)
        TRY(recipe_set(out, "teacher", STUDY_TEACHER));
    TRY(recipe_resolve(out));
    return network_check(out);
}

/* The index of the setting that a message "KEY: ..." is about; the list's length if it names none.
 * */
static size_t named(const study_settings *list, const char *message)
{
    size_t i = 0, length = strcspn(message, ":");
    while (i < list->count &&
           (strlen(list->items[i].key) != length || strncmp(list->items[i].key, message, length) != 0))
        i++;
    return i;
}

static void note(study_reader *r, const char *label, const char *message)
{
    study *s = r->study;
    const char *words = arena_printf(&s->memory, "%s: %s", label, message);
    const char **longer = words ? study_array(r, s->note_count + 1, sizeof *longer) : NULL;
    r->failed |= !words;
    if (!longer)
        return;
    if (s->note_count)
        memcpy(longer, s->notes, s->note_count * sizeof *longer);
    longer[s->note_count++] = words;
    s->notes = longer;
}

/* Whether the list has this message already, at any place: a mistake of base is one of every cell.
 * */
static int is_reported(const study_reader *r, const char *message)
{
    for (size_t i = 0; i < r->count && i < STUDY_PROBLEMS; i++)
        if (strcmp(r->list[i].words, message) == 0)
            return 1;
    return 0;
}

/* Drops settings without effect, one by one, and reports other problems where the setting was
 * written. */
static void cell_check(study_reader *r, study_cell *cell)
{
    for (;;) {
        train_settings s;
        berlu_status status = resolve(&cell->settings, r->study->teacher.count > 0, &s);
        recipe_free(&s);
        if (status == BERLU_ERR_MEMORY)
            r->failed = 1;
        if (status == BERLU_OK || status == BERLU_ERR_MEMORY)
            return;
        char message[400];
        snprintf(message, sizeof message, "%s", berlu_last_error());
        size_t at = named(&cell->settings, message);
        if (at < cell->settings.count && strstr(message, "has no effect")) {
            note(r, cell->label, message);
            cell->settings.count--;
            memmove(&cell->settings.items[at], &cell->settings.items[at + 1],
                    (cell->settings.count - at) * sizeof *cell->settings.items);
            continue;
        }
        if (at < cell->settings.count)
            study_problem(r, cell->settings.items[at].line, cell->settings.items[at].column, "%s", message);
        else if (!is_reported(r, message))
            study_problem(r, cell->line, cell->column, "%s", message);
        return;
    }
}

/* -- cells -- */

static int is_skipped(const study *s, const study_cell *cell)
{
    for (size_t i = 0; i < s->skip_count; i++)
        if (study_cell_matches(cell, &s->skip[i]))
            return 1;
    return 0;
}

/* The cell at one choice of every axis of a part. */
static void cell_make(study_reader *r, size_t part, const size_t *choice, study_cell *out)
{
    const study_part *p = &r->study->parts[part];
    text label = {0};
    *out = (study_cell){.part = part, .axis_count = p->axis_count, .line = p->line, .column = p->column};
    out->axes = study_array(r, p->axis_count, sizeof *out->axes);
    out->labels = study_array(r, p->axis_count, sizeof *out->labels);
    out->settings = study_settings_merge(r, &r->study->base, &(study_settings){0});
    for (size_t i = 0; i < p->axis_count && !r->failed; i++) {
        const study_value *v = &p->axes[i].values[choice[i]];
        out->axes[i] = p->axes[i].name;
        out->labels[i] = v->label;
        out->settings = study_settings_merge(r, &out->settings, &v->settings);
        out->line = v->line, out->column = v->column;
        text_add(&label, "%s%s", i ? ", " : "", v->label);
    }
    out->label = arena_strdup(&r->study->memory, p->axis_count ? label.data ? label.data : "" : r->study->name);
    r->failed |= label.failed || !out->label;
    text_free(&label);
}

static void cell_add(study_reader *r, const study_cell *cell)
{
    study *s = r->study;
    for (size_t i = 0; i < s->cell_count; i++)
        if (strcmp(s->cells[i].label, cell->label) == 0) {
            study_problem(r, cell->line, cell->column, "two cells are called '%.100s'", cell->label);
            return;
        }
    s->cells[s->cell_count++] = *cell;
}

static size_t part_size(const study_part *p)
{
    size_t size = 1;
    for (size_t i = 0; i < p->axis_count; i++)
        if (!size_mul(size, p->axes[i].count, &size) || size > STUDY_CELLS)
            return STUDY_CELLS + 1;
    return size;
}

/* All combinations of a part, the last axis fastest. */
static void part_expand(study_reader *r, size_t part)
{
    const study_part *p = &r->study->parts[part];
    size_t choice[STUDY_AXES] = {0};
    for (size_t k = part_size(p); k > 0 && !r->failed; k--) {
        study_cell cell;
        cell_make(r, part, choice, &cell);
        if (!r->failed && !is_skipped(r->study, &cell)) {
            cell_check(r, &cell);
            cell_add(r, &cell);
        }
        for (size_t i = p->axis_count; i-- > 0 && ++choice[i] == p->axes[i].count;)
            choice[i] = 0;
    }
}

/* -- runs -- */

/* The teacher is a cell of its own with one run, the first. */
static void teacher_add(study_reader *r)
{
    study *s = r->study;
    s->teacher_cell = STUDY_NO_CELL;
    if (!s->teacher.count || !s->cell_count)
        return;
    s->teacher_cell = s->cell_count;
    cell_add(r, &(study_cell){.label = "teacher",
                              .settings = s->teacher,
                              .line = s->teacher.items[0].line,
                              .column = s->teacher.items[0].column});
}

static void runs_make(study_reader *r)
{
    study *s = r->study;
    size_t most = 0, count = 1, students = s->teacher_cell == STUDY_NO_CELL ? s->cell_count : s->teacher_cell;
    for (size_t i = 0; i < students; i++) {
        size_t seeds = s->parts[s->cells[i].part].seed_count;
        most = seeds > most ? seeds : most;
        count += seeds;
    }
    if (count > STUDY_RUNS) {
        study_problem(r, 1, 1, "%zu runs are more than %d", count, STUDY_RUNS);
        return;
    }
    s->runs = study_array(r, count, sizeof *s->runs);
    if (s->runs && students < s->cell_count)
        s->runs[s->run_count++] = (study_run){s->teacher_cell, 0};
    for (size_t k = 0; k < most && s->runs; k++)
        for (size_t i = 0; i < students; i++) {
            const study_part *p = &s->parts[s->cells[i].part];
            if (k < p->seed_count)
                s->runs[s->run_count++] = (study_run){i, p->seeds[k]};
        }
}

static void teacher_check(study_reader *r)
{
    train_settings s;
    const study_settings *list = &r->study->teacher;
    if (!list->count)
        return;
    berlu_status status = resolve(list, 0, &s);
    recipe_free(&s);
    r->failed |= status == BERLU_ERR_MEMORY;
    if (status == BERLU_OK || status == BERLU_ERR_MEMORY)
        return;
    size_t at = named(list, berlu_last_error());
    const study_setting *where = &list->items[at < list->count ? at : list->count - 1];
    study_problem(r, where->line, where->column, "teacher: %s", berlu_last_error());
}

static void skip_check(study_reader *r)
{
    const study *s = r->study;
    for (size_t i = 0; i < s->skip_count; i++)
        for (size_t k = 0; k < s->skip[i].count; k++) {
            int known = 0;
            for (size_t p = 0; p < s->part_count; p++)
                for (size_t a = 0; a < s->parts[p].axis_count; a++)
                    for (size_t v = 0; v < s->parts[p].axes[a].count; v++)
                        known |= strcmp(s->parts[p].axes[a].name, s->skip[i].axes[k]) == 0 &&
                                 strcmp(s->parts[p].axes[a].values[v].label, s->skip[i].labels[k]) == 0;
            if (!known)
                study_problem(r, s->skip[i].line, s->skip[i].column, "skip: no axis %.60s has the value '%.60s'",
                              s->skip[i].axes[k], s->skip[i].labels[k]);
        }
}

void study_expand(study_reader *r)
{
    study *s = r->study;
    size_t count = 0;
    for (size_t i = 0; i < s->part_count; i++)
        count += part_size(&s->parts[i]);
    if (count > STUDY_CELLS) {
        study_problem(r, 1, 1, "the axes make more than %d cells", STUDY_CELLS);
        return;
    }
    if (!s->name)
        s->name = "";
    teacher_check(r);
    skip_check(r);
    if (!(s->cells = study_array(r, count + 1, sizeof *s->cells)))
        return;
    for (size_t i = 0; i < s->part_count; i++)
        part_expand(r, i);
    if (!r->failed)
        teacher_add(r);
    if (!r->failed)
        runs_make(r);
    if (!r->failed)
        study_pairs_make(r);
    if (!r->failed)
        study_equivalence_expand(r);
    if (!r->count && !s->cell_count && !r->failed)
        study_problem(r, 1, 1, "no cell is left");
    if (!r->count && !r->failed)
        study_stage_check(r);
}

int study_names_claim(const study *s, const char *id)
{
    for (size_t i = 0; i < s->claim_count; i++)
        if (strcmp(s->claims[i], id) == 0)
            return 1;
    return 0;
}

const char *study_setting_of(const study_cell *cell, const char *key)
{
    for (size_t i = 0; i < cell->settings.count; i++)
        if (strcmp(cell->settings.items[i].key, key) == 0)
            return cell->settings.items[i].values[0];
    return NULL;
}

berlu_status study_run_settings(const study *s, const study_run *run, train_settings *out)
{
    char seed[24];
    const study_cell *cell = &s->cells[run->cell];
    recipe_init(out);
    snprintf(seed, sizeof seed, "%lld", (long long)run->seed);
    berlu_status status;
    TRY_DONE(study_settings_apply(&cell->settings, out));
    TRY_DONE(recipe_set(out, "seed", seed));
    if (s->teacher.count && run->cell != s->teacher_cell)
        TRY_DONE(recipe_set(out, "teacher", STUDY_TEACHER));
    status = recipe_resolve(out);
done:
    if (status != BERLU_OK)
        recipe_free(out);
    return status;
}
