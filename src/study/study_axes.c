/* study_axes.c - settings, axes, parts and seeds of a study file. SPDX-License-Identifier: MIT
 *
 * Keys are checked against the table of training settings, and values by the functions that read
 * them for a run, each at its place in the file; contradictions between settings are found later,
 * in the cells (study_expand.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/act_text.h"
#include "models/models.h"
#include "study/study_internal.h"

/* -- settings -- */

static void unknown_setting(study_reader *r, const yaml_item *item)
{
    const char *names[RECIPE_KEYS_MAX + 1] = {0};
    for (size_t i = 0; i < train_settings_count; i++)
        names[i] = train_settings_table[i].key;
    study_unknown(r, item, "setting", names);
}

/* Whether a study may give this setting: the scheduler chooses the seed and the folder. */
static int is_own(study_reader *r, const yaml_item *item, const setting *row)
{
    static const char *const taken[][2] = {{"seed", "seeds: says which"}, {"run", "the study keeps its runs itself"}};
    for (size_t i = 0; i < COUNT(taken); i++)
        if (strcmp(row->key, taken[i][0]) == 0) {
            study_problem(r, item->line, item->column, "%s cannot be set here; %s", row->key, taken[i][1]);
            return 0;
        }
    return 1;
}

/* Activations and models are texts to the table of settings; their existence is checked where they
 * are written. */
static berlu_status name_check(const setting *row, const char *value)
{
    berlu_status status = BERLU_OK;
    if (strcmp(row->key, "act") == 0) {
        berlu_act *act = NULL;
        status = act_from_text(&act, value);
        berlu_act_free(act);
    } else if (strcmp(row->key, "model") == 0) {
        model_config config;
        status = model_configure(&config, value, NULL);
    }
    return status;
}

static void setting_read(study_reader *r, const yaml_item *item, const char *key, study_settings *list)
{
    const setting *row = recipe_find(key);
    if (!row) {
        unknown_setting(r, item);
        return;
    }
    if (!is_own(r, item, row))
        return;
    if (item->kind == YAML_MAP || (item->kind == YAML_LIST && row->kind != SETTING_LIST)) {
        study_problem(r, item->line, item->column, "%s is one value", row->key);
        return;
    }
    study_setting *out = &list->items[list->count];
    *out = (study_setting){.key = row->key, .line = item->line, .column = item->column};
    out->values = study_array(r, item->kind == YAML_LIST ? item->count : 1, sizeof *out->values);
    train_settings trial;
    recipe_init(&trial);
    for (const yaml_item *one = item->kind == YAML_LIST ? item->first : item; one && out->values; one = one->next) {
        out->values[out->count++] = study_scalar(r, one, row->key);
        berlu_status status = one->kind == YAML_TEXT ? recipe_set(&trial, row->key, one->text) : BERLU_OK;
        if (status == BERLU_OK && one->kind == YAML_TEXT)
            status = name_check(row, one->text);
        r->failed |= status == BERLU_ERR_MEMORY;
        if (status != BERLU_OK && status != BERLU_ERR_MEMORY)
            study_problem(r, one->line, one->column, "%s", berlu_last_error());
        if (item->kind != YAML_LIST)
            break;
    }
    recipe_free(&trial);
    list->count++;
}

/* All keys of a map but `label` and, where `teacher` is given, a teacher that is a map of its
 * own. */
static study_settings settings_read(study_reader *r, const yaml_item *map, const yaml_item **teacher)
{
    study_settings list = {.items = study_array(r, map->count, sizeof *list.items)};
    for (const yaml_item *item = map->first; item && list.items; item = item->next) {
        if (teacher && strcmp(item->key, "teacher") == 0 && item->kind == YAML_MAP)
            *teacher = item;
        else if (teacher || strcmp(item->key, "label") != 0)
            setting_read(r, item, item->key, &list);
    }
    return list;
}

study_settings study_settings_read(study_reader *r, const yaml_item *map)
{
    return settings_read(r, map, NULL);
}

study_settings study_settings_merge(study_reader *r, const study_settings *base, const study_settings *over)
{
    study_settings out = {.items = study_array(r, base->count + over->count, sizeof *out.items)};
    for (size_t i = 0; out.items && i < base->count; i++) {
        int hidden = 0;
        for (size_t k = 0; k < over->count; k++)
            hidden |= strcmp(base->items[i].key, over->items[k].key) == 0;
        if (!hidden)
            out.items[out.count++] = base->items[i];
    }
    for (size_t i = 0; out.items && i < over->count; i++)
        out.items[out.count++] = over->items[i];
    return out;
}

/* The settings a teacher inherits from its students: the same images on the same device. */
static study_settings inherited(study_reader *r, const study_settings *base)
{
    static const char *const keys[] = {"data",      "image_size", "classes",   "class_order", "labels",
                                       "normalize", "mean",       "std",       "val_labels",  "synthetic_images",
                                       "holdout",   "device",     "eval_batch"};
    study_settings out = {.items = study_array(r, base->count, sizeof *out.items)};
    for (size_t i = 0; out.items && i < base->count; i++)
        for (size_t k = 0; k < COUNT(keys); k++)
            if (strcmp(base->items[i].key, keys[k]) == 0)
                out.items[out.count++] = base->items[i];
    return out;
}

void study_base_read(study_reader *r, const yaml_item *item)
{
    const yaml_item *teacher = NULL;
    if (!study_is_map(r, item, "base"))
        return;
    r->study->base = settings_read(r, item, &teacher);
    if (!teacher)
        return;
    const yaml_item *none = NULL;
    study_settings own = settings_read(r, teacher, &none), from = inherited(r, &r->study->base);
    if (none)
        study_problem(r, none->line, none->column, "a teacher has no teacher");
    r->study->teacher = study_settings_merge(r, &from, &own);
}

/* -- axes, parts, seeds -- */

/* "0.1" as written; a list's values joined. */
static const char *label_of(study_reader *r, const study_setting *s)
{
    text words = {0};
    for (size_t i = 0; i < s->count; i++)
        text_add(&words, "%s%s", i ? " + " : "", s->values[i]);
    const char *label = study_copy(r, words.data ? words.data : "");
    r->failed |= words.failed;
    text_free(&words);
    return label;
}

static void value_read(study_reader *r, const yaml_item *item, study_axis *axis)
{
    study_value *v = &axis->values[axis->count];
    *v = (study_value){.line = item->line, .column = item->column};
    if (item->kind == YAML_MAP) {
        const yaml_item *label = yaml_find(item, "label");
        v->settings = settings_read(r, item, NULL);
        if (!label)
            study_problem(r, item->line, item->column, "%s: several settings need a label: TEXT", axis->name);
        else
            v->label = study_scalar(r, label, "label");
    } else {
        v->settings.items = study_array(r, 1, sizeof *v->settings.items);
        if (!v->settings.items)
            return;
        setting_read(r, item, axis->name, &v->settings);
        if (v->settings.count)
            v->label = label_of(r, &v->settings.items[0]);
    }
    if (!v->label)
        return;
    for (size_t i = 0; i < axis->count; i++)
        if (strcmp(axis->values[i].label, v->label) == 0) {
            study_problem(r, item->line, item->column, "%s: '%.60s' stands here a second time", axis->name, v->label);
            return;
        }
    if (!*v->label)
        study_problem(r, item->line, item->column, "%s: a label needs some text", axis->name);
    axis->count++;
}

/* An axis of plain values is a setting; reported once, not for every value. */
static int axis_is_known(study_reader *r, const yaml_item *item)
{
    int plain = 0;
    for (const yaml_item *value = item->first; item->kind == YAML_LIST && value; value = value->next)
        plain |= value->kind != YAML_MAP;
    if (!plain || recipe_find(item->key))
        return 1;
    unknown_setting(r, item);
    return 0;
}

static void axes_read(study_reader *r, const yaml_item *map, study_part *part)
{
    if (!study_is_map(r, map, "axes"))
        return;
    if (map->count > STUDY_AXES) {
        study_problem(r, map->line, map->column, "axes: %zu are more than %d", map->count, STUDY_AXES);
        return;
    }
    part->axes = study_array(r, map->count, sizeof *part->axes);
    for (const yaml_item *item = map->first; item && part->axes; item = item->next) {
        if (!axis_is_known(r, item) || !study_is_list(r, item, item->key))
            continue;
        study_axis *axis = &part->axes[part->axis_count];
        *axis =
            (study_axis){.name = study_copy(r, item->key), .values = study_array(r, item->count, sizeof *axis->values)};
        for (const yaml_item *value = item->first; value && axis->values && *axis->name; value = value->next)
            value_read(r, value, axis);
        if (!item->count)
            study_problem(r, item->line, item->column, "%s: an axis needs at least one value", item->key);
        part->axis_count++;
    }
}

static void seed_read(study_reader *r, const yaml_item *item, study_part *part)
{
    double seed = study_real(r, item, "seeds");
    if (isnan(seed))
        return;
    if (seed != floor(seed) || seed < 0 || seed > 9e15) {
        study_problem(r, item->line, item->column, "seeds: %s is not a whole number from 0 on", item->text);
        return;
    }
    for (size_t i = 0; i < part->seed_count; i++)
        if (part->seeds[i] == (int64_t)seed) {
            study_problem(r, item->line, item->column, "seeds: %lld stands here a second time", (long long)seed);
            return;
        }
    part->seeds[part->seed_count++] = (int64_t)seed;
}

void study_seeds_read(study_reader *r, const yaml_item *item, study_part *part)
{
    if (item->kind == YAML_LIST) {
        part->seeds = study_array(r, item->count, sizeof *part->seeds);
        for (const yaml_item *one = item->first; one && part->seeds; one = one->next)
            seed_read(r, one, part);
        if (!item->count)
            study_problem(r, item->line, item->column, "seeds: at least one is needed");
        return;
    }
    double count = study_real(r, item, "seeds");
    if (isnan(count))
        return;
    if (count != floor(count) || count < 1 || count > STUDY_SEEDS) {
        study_problem(r, item->line, item->column, "seeds: %s is not a number of seeds from 1 to %d", item->text,
                      STUDY_SEEDS);
        return;
    }
    part->seeds = study_array(r, (size_t)count, sizeof *part->seeds);
    for (int64_t i = 0; part->seeds && i < (int64_t)count; i++)
        part->seeds[part->seed_count++] = i;
}

/* A cost has no seeds; its cells are still those of runs. */
static void seed_zero(study_reader *r, study_part *part)
{
    part->seeds = study_array(r, 1, sizeof *part->seeds);
    part->seed_count = part->seeds ? 1 : 0;
}

static void part_read(study_reader *r, const yaml_item *map, const yaml_item *seeds, study_part *part)
{
    static const char *const keys[] = {"axes", "seeds", NULL};
    *part = (study_part){.line = map->line, .column = map->column};
    const yaml_item *own = yaml_find(map, "seeds"), *axes = yaml_find(map, "axes");
    for (const yaml_item *item = map->first; item; item = item->next)
        if (item != own && item != axes)
            study_unknown(r, item, "key of a part", keys);
    if (axes)
        axes_read(r, axes, part);
    if (own || seeds)
        study_seeds_read(r, own ? own : seeds, part);
    else if (r->study->kind == STUDY_COST)
        seed_zero(r, part);
    else
        study_problem(r, map->line, map->column, "seeds: say how many, or which");
}

/* Either `parts`, or the file itself is the only part. */
void study_parts_read(study_reader *r, const yaml_item *root)
{
    const yaml_item *parts = yaml_find(root, "parts"), *axes = yaml_find(root, "axes"),
                    *seeds = yaml_find(root, "seeds");
    study *s = r->study;
    if (parts && axes)
        study_problem(r, axes->line, axes->column, "axes beside parts: put them into a part");
    if (parts && study_is_list(r, parts, "parts")) {
        s->parts = study_array(r, parts->count, sizeof *s->parts);
        for (const yaml_item *item = parts->first; item && s->parts; item = item->next)
            if (study_is_map(r, item, "parts"))
                part_read(r, item, seeds, &s->parts[s->part_count++]);
        if (!parts->count)
            study_problem(r, parts->line, parts->column, "parts: at least one is needed");
    } else if (!parts && (s->parts = study_array(r, 1, sizeof *s->parts))) {
        study_part *part = &s->parts[s->part_count++];
        *part = (study_part){.line = root->line, .column = root->column};
        if (axes)
            axes_read(r, axes, part);
        if (seeds)
            study_seeds_read(r, seeds, part);
        else if (s->kind == STUDY_COST)
            seed_zero(r, part);
        else
            study_problem(r, root->line, root->column, "seeds: say how many, or which");
    }
}
