/* recipe_text.c - settings as text and as JSON, and the difference of two of them. SPDX-License-Identifier: MIT
 *
 * Every value has one text, the one recipe_set() reads back to the same bits. Two settings are equal when their texts
 * are; run.json holds numbers as numbers, for programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* A JSON string, quotes and all. jansson knows the rules of escaping. */
static void string_json(text *out, const char *value)
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
            string_json(out, word);
        out->failed |= value.failed;
        text_free(&value);
    }
    if (row->kind == SETTING_LIST)
        text_string(out, "]");
}

void recipe_json(const train_settings *s, text *out)
{
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        text_add(out, "%s\n    \"%s\": ", i ? "," : "{", row->key);
        row_json(s, row, out);
    }
    text_string(out, "\n  }");
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
    memset(s->given, 0, sizeof s->given); /* nobody asked for them this time */
    return status == BERLU_OK || status == BERLU_ERR_MEMORY ? status : berlu_fail_in(BERLU_ERR_INPUT, path);
}

static void value_list(const train_settings *s, const setting *row, text *out)
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
void recipe_print(const train_settings *s, text *out)
{
    enum { KEY = 17, CELL = 54 };
    int column = 0;
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        text value = {0};
        value_list(s, row, &value);
        if (value.length > 0) {
            size_t before = out->length;
            text_add(out, "%c %-*s%s", s->given[i] ? '*' : ' ', KEY, row->key, value.data);
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

size_t recipe_differences(const train_settings *asked, const train_settings *saved, text *out)
{
    size_t count = 0;
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        int derived = row->kind == SETTING_REAL && isnan(*(const double *)field(asked, row)); /* "auto" */
        if (!asked->given[i] || row->free || derived)
            continue;
        text a = {0}, b = {0};
        value_list(asked, row, &a);
        value_list(saved, row, &b);
        if (strcmp(a.data ? a.data : "", b.data ? b.data : "") != 0)
            text_add(out, "%s%s (%s, not %s)", count++ ? ", " : "", row->key, b.data ? b.data : "nothing",
                     a.data ? a.data : "nothing");
        text_free(&a);
        text_free(&b);
    }
    return count;
}
