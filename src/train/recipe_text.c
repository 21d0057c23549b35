/* recipe_text.c - settings as text and as JSON, and the difference of two of them.
 * SPDX-License-Identifier: MIT
 *
 * Every value has one text, the one recipe_set() reads back to the same bits. Two settings are
 * equal when their texts are; run.json holds numbers as numbers, for programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/act_text.h"
#include "train/recipe.h"

static const void *field(const train_settings *s, const setting *row)
{
    return (const char *)s + row->offset;
}

int recipe_value(const train_settings *s, const setting *row, size_t index, text *out)
{
    char digits[NUMBER_TEXT];
    if (row->kind == SETTING_LIST) {
        if (index >= s->acts)
            return 0;
        text_string(out, s->act[index]);
        return 1;
    }
    if (index > 0)
        return 0;
    if (row->kind == SETTING_TEXT || row->choices == recipe_names) {
        const char *value = *(const char *const *)field(s, row);
        text_string(out, value ? value : "");
    } else if (row->kind == SETTING_CHOICE) {
        text_string(out, row->choices[*(const int64_t *)field(s, row)]);
    } else if (row->kind == SETTING_REAL) {
        text_string(out, number_text(digits, *(const double *)field(s, row)));
    } else {
        text_add(out, "%lld", (long long)*(const int64_t *)field(s, row));
    }
    return 1;
}

int recipe_is_zero(const train_settings *s, const setting *row)
{
    if (row->kind == SETTING_REAL)
        return *(const double *)field(s, row) == 0;
    return row->kind == SETTING_COUNT && *(const int64_t *)field(s, row) == 0;
}

/* A quoted JSON string; jansson escapes it. */
void recipe_json_string(text *out, const char *value)
{
    json_t *string = json_string(value ? value : "");
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        text_string(out, quoted);
    else
        out->failed = 1; /* no memory, or not UTF-8 */
    free(quoted);
    json_decref(string);
}

static void row_json(const train_settings *s, const setting *row, text *out)
{
    if (row->kind == SETTING_LIST)
        text_string(out, "[");
    for (size_t i = 0;; i++) {
        text value = {0};
        if (!recipe_value(s, row, i, &value))
            break;
        const char *word = value.data ? value.data : "";
        text_string(out, i ? ", " : "");
        if (row->kind == SETTING_FLAG)
            text_string(out, strcmp(word, "0") == 0 ? "false" : "true");
        else if (row->kind == SETTING_COUNT || row->kind == SETTING_REAL)
            text_string(out, word);
        else
            recipe_json_string(out, word);
        out->failed |= value.failed;
        text_free(&value);
    }
    if (row->kind == SETTING_LIST)
        text_string(out, "]");
}

void recipe_json(const train_settings *s, const unsigned char *leave_out, text *out)
{
    size_t written = 0;
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (leave_out && leave_out[i])
            continue;
        text_add(out, "%s\n    \"%s\": ", written++ ? "," : "{", row->key);
        row_json(s, row, out);
    }
    text_string(out, written ? "\n  }" : "{}");
}

static berlu_status value_from_json(train_settings *s, const char *key, const json_t *value)
{
    char digits[NUMBER_TEXT];
    const char *as_text = json_string_value(value);
    if (json_is_boolean(value))
        as_text = json_is_true(value) ? "1" : "0";
    else if (json_is_integer(value))
        snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value)), as_text = digits;
    else if (json_is_real(value))
        as_text = number_text(digits, json_real_value(value));
    if (!as_text)
        return berlu_fail(BERLU_ERR_INPUT, "%s: neither a text nor a number", key);
    return recipe_set(s, key, as_text);
}

static berlu_status object_read(train_settings *s, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        for (size_t i = 0; i < count; i++) {
            berlu_status status = value_from_json(s, key, json_is_array(value) ? json_array_get(value, i) : value);
            if (status != BERLU_OK)
                return status;
        }
    }
    return BERLU_OK;
}

berlu_status recipe_from_json(train_settings *s, const json_t *object, const char *path)
{
    if (!json_is_object(object))
        return berlu_fail(BERLU_ERR_INPUT, "%s: holds no settings", path);
    berlu_status status = object_read(s, object);
    if (status == BERLU_OK)
        status = recipe_complete(s);
    memset(s->given, 0, sizeof s->given); /* not given by the user this time */
    return status == BERLU_OK || status == BERLU_ERR_MEMORY ? status : berlu_fail_in(BERLU_ERR_INPUT, path);
}

void recipe_values(const train_settings *s, const setting *row, text *out)
{
    for (size_t i = 0;; i++) {
        text one = {0};
        if (!recipe_value(s, row, i, &one))
            break;
        text_add(out, "%s%s", i ? " " : "", one.data ? one.data : "");
        out->failed |= one.failed;
        text_free(&one);
    }
}

/* Two columns keep the table on one screen; an asterisk marks what the user gave. */
void recipe_print(const train_settings *s, const unsigned char *leave_out, text *out)
{
    enum { KEY = 17, CELL = 54 };
    int column = 0;
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        text value = {0};
        if (!leave_out || !leave_out[i])
            recipe_values(s, row, &value);
        if (value.length > 0) {
            size_t before = out->length;
            text_add(out, "%c %-*s%s", s->given[i] == GIVEN ? '*' : ' ', KEY, row->key, value.data);
            size_t used = out->length - before;
            column = !column && used < CELL;
            if (column)
                text_add(out, "%*s", (int)(CELL - used), "");
            else
                text_string(out, "\n");
        }
        out->failed |= value.failed;
        text_free(&value);
    }
    if (column)
        text_string(out, "\n");
}

/* Whether the value is derived: "auto", or a zero that means the model's or the data's value. */
static int is_own(const train_settings *s, const setting *row)
{
    static const char *const zero_is_own[] = {"image_size",   "patch",    "stride",    "stem",      "classes",
                                              "init_std",     "crop_pct", "mix_group", "max_bad",   "train_images",
                                              "init_std_fc1", "mean",     "std",       "eval_crop", "test_images"};
    if (row->kind == SETTING_REAL && isnan(*(const double *)field(s, row)))
        return 1;
    for (size_t i = 0; i < COUNT(zero_is_own); i++)
        if (strcmp(row->key, zero_is_own[i]) == 0) {
            text value = {0};
            recipe_values(s, row, &value);
            int own = strcmp(value.data ? value.data : "", row->value) == 0;
            text_free(&value);
            return own;
        }
    return 0;
}

/* The activations in canonical form: "berlu" and "berlu:alpha=0.01" are equal. A text that is no
 * activation is copied. */
static void acts_add(const train_settings *s, text *out)
{
    for (size_t i = 0; i < s->acts; i++) {
        berlu_act *act = NULL;
        const char *words = act_from_text(&act, s->act[i]) == BERLU_OK ? berlu_act_spec(act) : s->act[i];
        text_add(out, "%s%s", i ? " " : "", words);
        berlu_act_free(act);
    }
}

static int same_meaning(const train_settings *a, const train_settings *b, const setting *row)
{
    text one = {0}, two = {0};
    recipe_values(a, row, &one);
    recipe_values(b, row, &two);
    int same = strcmp(one.data ? one.data : "", two.data ? two.data : "") == 0;
    if (!same && row->kind == SETTING_LIST) {
        text_free(&one), text_free(&two);
        one = two = (text){0};
        acts_add(a, &one);
        acts_add(b, &two);
        same = strcmp(one.data ? one.data : "", two.data ? two.data : "") == 0;
    }
    text_free(&one);
    text_free(&two);
    return same;
}

size_t recipe_differences(const train_settings *asked, const train_settings *saved, text *out)
{
    size_t count = 0;
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (asked->given[i] != GIVEN || setting_may_differ(row) || is_own(asked, row) ||
            same_meaning(asked, saved, row))
            continue;
        text a = {0}, b = {0};
        recipe_values(asked, row, &a);
        recipe_values(saved, row, &b);
        text_add(out, "%s%s (%s, not %s)", count++ ? ", " : "", row->key, b.data ? b.data : "nothing",
                 a.data ? a.data : "nothing");
        text_free(&a);
        text_free(&b);
    }
    return count;
}
