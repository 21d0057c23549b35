/* recipe.c - the table of settings, and setting and reading its values.
 * SPDX-License-Identifier: MIT
 *
 * The list itself is settings.h; presets and conflicts are in preset.c, JSON and printing in
 * recipe_text.c. */
#include "train/recipe.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/settings.h"

static const char *const layer_or_channel[] = {"layer", "channel", NULL};
static const char *const optimizers[] = {"adamw", "sgd", NULL};
static const char *const normalizations[] = {"own", "imagenet", "customary", NULL};
static const char *const interpolations[] = {"bicubic", "bilinear", "random", NULL};
static const char *const eval_crops[] = {"auto", "center", "squash", NULL};
static const char *const class_orders[] = {"torchvision", "timm", NULL};
static const char *const label_kinds[] = {"fine", "coarse", NULL};
static const char *const distillations[] = {"none", "hard", "soft", NULL};
static const char *const keeps[] = {"input", "both", "output", NULL};
static const char *const devices[] = {"cpu", "cuda", NULL};
static const char *const data_places[] = {"auto", "host", "device", NULL};

const char *const precision_names[] = {"bf16", "tf32", "f32", NULL};
const char *const residual_names[] = {"bf16", "f32", NULL};

#define ROW(key, option, kind, value, least, most, choices, unit, help, role)                                          \
    {#key, option, SETTING_##kind, offsetof(train_settings, key), value, least, most, choices,                         \
     unit, help,   SETTING_##role},
const setting train_settings_table[] = {TRAIN_SETTINGS(ROW)};
const size_t train_settings_count = COUNT(train_settings_table);
_Static_assert(COUNT(train_settings_table) <= RECIPE_KEYS_MAX, "train_settings.given is too short");

void recipe_init(train_settings *s)
{
    *s = (train_settings){0};
}

void recipe_free(train_settings *s)
{
    arena_free(&s->memory);
    *s = (train_settings){0};
}

const setting *recipe_find(const char *key)
{
    for (const setting *row = train_settings_table; row < train_settings_table + train_settings_count; row++) {
        size_t i = 0;
        while (row->key[i] && (key[i] == row->key[i] || (key[i] == '-' && row->key[i] == '_')))
            i++;
        if (!row->key[i] && !key[i])
            return row;
    }
    return NULL;
}

int setting_moves(const setting *row)
{
    static const char *const keys[] = {"device", "precision", "residual"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(row->key, keys[i]) == 0)
            return 1;
    return 0;
}

static berlu_status fail_unknown(const char *key)
{
    const char *names[RECIPE_KEYS_MAX + 1] = {0};
    for (size_t i = 0; i < train_settings_count; i++)
        names[i] = train_settings_table[i].key;
    const char *near = nearest_name(key, names);
    return berlu_fail(BERLU_ERR_ARG, "%s: there is no such setting%s%s%s", key, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "");
}

static berlu_status fail_choice(const setting *row, const char *value)
{
    char list[256] = "";
    for (const char *const *c = row->choices; *c; c++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", *c);
    const char *near = nearest_name(strcmp(value, "gpu") == 0 ? "cuda" : value, row->choices);
    return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is none of %s%s%s%s", row->key, value, list,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The recipe is stored as its name, all other choices as an index. */
static berlu_status set_choice(train_settings *s, const setting *row, const char *value)
{
    for (int64_t i = 0; row->choices[i]; i++) {
        if (strcmp(value, row->choices[i]) != 0)
            continue;
        if (row->choices == recipe_names)
            *(const char **)((char *)s + row->offset) = row->choices[i];
        else
            *(int64_t *)((char *)s + row->offset) = i;
        return BERLU_OK;
    }
    return fail_choice(row, value);
}

static berlu_status set_number(train_settings *s, const setting *row, const char *value)
{
    int64_t count = 0;
    double number;
    char least[NUMBER_TEXT], most[NUMBER_TEXT], advice[NUMBER_ADVICE];
    int real = row->kind == SETTING_REAL, known;
    if (real && strcmp(value, "auto") == 0 && strcmp(row->value, "auto") == 0) {
        *(double *)((char *)s + row->offset) = NAN;
        return BERLU_OK;
    }
    known = !real && count_parse(value, &count);
    if (!known && !number_parse(value, &number))
        return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is not a number%s", row->key, value, number_advice(advice, value));
    number = known ? (double)count : number;
    if (!(number >= row->least && number <= row->most))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s lies outside %s to %s", row->key, value,
                          number_text(least, row->least), number_text(most, row->most));
    if (!real && !known)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s is not a whole number", row->key, value);
    if (real)
        *(double *)((char *)s + row->offset) = number;
    else
        *(int64_t *)((char *)s + row->offset) = count;
    return BERLU_OK;
}

static berlu_status set_flag(train_settings *s, const setting *row, const char *value)
{
    if (!flag_parse(value, (int64_t *)((char *)s + row->offset)))
        return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is neither true nor false", row->key, value);
    return BERLU_OK;
}

static berlu_status set_text(train_settings *s, const setting *row, const char *value)
{
    size_t good = utf8_span(value); /* JSON text is UTF-8 */
    if (value[good])
        return berlu_fail(BERLU_ERR_ARG, "%s: '%.*s\\x%02x...' is not UTF-8 text; give a path that is", row->key,
                          good < 200 ? (int)good : 200, value, (unsigned char)value[good]);
    const char *copy = arena_strdup(&s->memory, value);
    if (!copy)
        return BERLU_ERR_MEMORY;
    if (row->kind == SETTING_TEXT) {
        *(const char **)((char *)s + row->offset) = copy;
        return BERLU_OK;
    }
    if (s->acts == RECIPE_ACTS_MAX)
        return berlu_fail(BERLU_ERR_ARG, "%s: more than %d", row->key, RECIPE_ACTS_MAX);
    s->act[s->acts++] = copy;
    return BERLU_OK;
}

berlu_status recipe_fill(train_settings *s, const setting *row, const char *value)
{
    assert(row >= train_settings_table && row < train_settings_table + train_settings_count);
    switch (row->kind) {
    case SETTING_TEXT:
    case SETTING_LIST:
        return set_text(s, row, value);
    case SETTING_CHOICE:
        return set_choice(s, row, value);
    case SETTING_FLAG:
        return set_flag(s, row, value);
    default:
        return set_number(s, row, value);
    }
}

berlu_status recipe_set(train_settings *s, const char *key, const char *value)
{
    const setting *row = recipe_find(key);
    if (!row)
        return fail_unknown(key);
    TRY(recipe_fill(s, row, value));
    s->given[row - train_settings_table] = GIVEN;
    return BERLU_OK;
}

int recipe_given(const train_settings *s, const char *key)
{
    const setting *row = recipe_find(key);
    return row && s->given[row - train_settings_table] == GIVEN;
}

int recipe_present(const train_settings *s, const char *key)
{
    const setting *row = recipe_find(key);
    return row && s->given[row - train_settings_table] != 0;
}

berlu_status recipe_take_algorithms(train_settings *s, const char *record)
{
    if (record && !(s->algorithms_record = arena_strdup(&s->memory, record)))
        return BERLU_ERR_MEMORY;
    return BERLU_OK;
}

berlu_status recipe_take(train_settings *s, const train_settings *from)
{
    unsigned char idle[RECIPE_KEYS_MAX] = {0};
    recipe_idle_rows(from, idle);
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (s->given[i] || idle[i] || row->role == SETTING_FREE)
            continue;
        for (size_t k = 0;; k++) {
            text value = {0};
            if (!recipe_value(from, row, k, &value))
                break;
            berlu_status status = text_status(&value);
            if (status == BERLU_OK)
                status = recipe_fill(s, row, value.data ? value.data : "");
            text_free(&value);
            if (status != BERLU_OK)
                return status;
        }
        s->given[i] = RECORDED;
    }
    return recipe_take_algorithms(s, from->algorithms_record);
}

static berlu_status set_item(train_settings *s, const yaml_tree *tree, const setting *row, const yaml_item *item)
{
    if (item->kind == YAML_LIST && row->kind == SETTING_LIST) {
        for (const yaml_item *part = item->first; part; part = part->next) {
            berlu_status status = set_item(s, tree, row, part);
            if (status != BERLU_OK)
                return status;
        }
        return BERLU_OK;
    }
    if (item->kind != YAML_TEXT)
        return yaml_fail(tree, item, "%s takes one value", row->key);
    berlu_status status = recipe_fill(s, row, item->text);
    if (status != BERLU_ERR_ARG)
        return status;
    char place[320];
    snprintf(place, sizeof place, "%.250s:%d:%d", tree->name, item->line, item->column);
    return berlu_fail_in(BERLU_ERR_INPUT, place);
}

berlu_status recipe_set_yaml(train_settings *s, const yaml_tree *tree, const yaml_item *map)
{
    if (map->kind != YAML_MAP)
        return yaml_fail(tree, map, "settings are written as KEY: VALUE");
    for (const yaml_item *item = map->first; item; item = item->next) {
        const setting *row = recipe_find(item->key);
        if (!row) {
            fail_unknown(item->key);
            char place[320];
            snprintf(place, sizeof place, "%.250s:%d:%d", tree->name, item->line, item->column);
            return berlu_fail_in(BERLU_ERR_INPUT, place);
        }
        unsigned char *given = &s->given[row - train_settings_table];
        if (!*given)
            TRY(set_item(s, tree, row, item));
        *given = GIVEN;
    }
    return BERLU_OK;
}
