/* settings_hash.c - writes the canonical text and compares two of them line by line.
 * SPDX-License-Identifier: MIT
 *
 * settings_text() goes through the table of settings; counts() decides whether a row is part of the
 * text. The differences of two texts are the message of a resume that does not fit. */
#include "train/settings_hash.h"

#include <stdio.h>
#include <string.h>

/* Whether a row is part of the text. */
static int counts(const train_settings *s, const setting *row, text *out)
{
    if (row->role != SETTING_LATER)
        return row->role == SETTING_FIXED;
    text value = {0};
    recipe_values(s, row, &value);
    int usual = strcmp(value.data ? value.data : "", row->value) == 0;
    out->failed |= value.failed;
    text_free(&value);
    return !usual;
}

void settings_text(const train_settings *s, const unsigned char leave_out[RECIPE_KEYS_MAX], const char *data,
                   const char *teacher, text *out)
{
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (leave_out[i] || !counts(s, row, out))
            continue;
        text_add(out, "%s=", row->key);
        recipe_values(s, row, out);
        text_string(out, "\n");
    }
    text_add(out, "data=%s\n", data);
    if (*teacher)
        text_add(out, "teacher=%s\n", teacher);
}

const char *settings_hash(char out[SETTINGS_HASH], const char *canonical)
{
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, canonical, strlen(canonical));
    return sha256_finish(&h, out);
}

/* One line of a canonical text. */
typedef struct line {
    const char *key, *value;
    int key_length, value_length;
} line;

/* The line at *at, which moves past it; 0 at the end. A line without '=' is all key. */
static int line_next(const char **at, line *out)
{
    if (!**at)
        return 0;
    int length = (int)strcspn(*at, "\n"), key = (int)strcspn(*at, "=\n");
    *out = (line){.key = *at, .key_length = key, .value = *at + key + (key < length), .value_length = 0};
    out->value_length = length - (int)(out->value - *at);
    *at += length + ((*at)[length] == '\n');
    return 1;
}

static int line_find(const char *from, const line *like, line *out)
{
    while (line_next(&from, out))
        if (out->key_length == like->key_length && strncmp(out->key, like->key, (size_t)like->key_length) == 0)
            return 1;
    return 0;
}

static int line_moves(const line *l)
{
    char key[64];
    snprintf(key, sizeof key, "%.*s", l->key_length, l->key);
    const setting *row = recipe_find(key);
    return row && setting_moves(row);
}

static void difference_add(text *out, size_t *count, const line *key, const line *here, const line *there)
{
    text_add(out, "%s%.*s (", (*count)++ ? ", " : "", key->key_length, key->key);
    text_add(out, here ? "%.*s, " : "nothing, ", here ? here->value_length : 0, here ? here->value : "");
    text_add(out, there ? "not %.*s)" : "not nothing)", there ? there->value_length : 0, there ? there->value : "");
}

size_t settings_text_differences(const char *here, const char *there, text *out)
{
    size_t count = 0;
    line a, b;
    for (const char *at = here; line_next(&at, &a);) {
        int both = line_find(there, &a, &b);
        if (line_moves(&a))
            continue;
        if (!both || a.value_length != b.value_length || strncmp(a.value, b.value, (size_t)a.value_length) != 0)
            difference_add(out, &count, &a, &a, both ? &b : NULL);
    }
    for (const char *at = there; line_next(&at, &b);)
        if (!line_moves(&b) && !line_find(here, &b, &a))
            difference_add(out, &count, &b, NULL, &b);
    return count;
}

size_t settings_against_text(const train_settings *s, const char *canonical, text *out)
{
    size_t count = 0;
    line there;
    for (const char *at = canonical; line_next(&at, &there);) {
        char key[64];
        text value = {0};
        snprintf(key, sizeof key, "%.*s", there.key_length, there.key);
        const setting *row = recipe_find(key);
        int prolonged = strcmp(key, "epochs") == 0; /* perhaps: the older checkpoints of such a run stay */
        if (!row || prolonged || setting_moves(row) || (row->role != SETTING_FIXED && row->role != SETTING_LATER))
            continue;
        recipe_values(s, row, &value);
        line here = {.value = value.data ? value.data : "", .value_length = (int)value.length};
        out->failed |= value.failed; /* a value that could not be written down differs from nothing */
        if (!value.failed && (here.value_length != there.value_length ||
                              strncmp(here.value, there.value, (size_t)here.value_length) != 0))
            difference_add(out, &count, &there, &here, &there);
        text_free(&value);
    }
    return count;
}
