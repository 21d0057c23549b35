/* command.c - the command line of a run, for workers and for people who repeat it.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "study/scheduler.h"

static void option_add(arena *memory, char **words, size_t *count, const char *key, const char *value)
{
    const setting *row = recipe_find(key);
    int off = strcmp(value, "0") == 0 || strcmp(value, "false") == 0 || strcmp(value, "no") == 0;
    if (!*value) /* takes back what base says; the command has it that way already */
        return;
    if (row && row->kind == SETTING_FLAG) {
        words[(*count)++] = arena_printf(memory, off ? "--no-%s" : "--%s", row->option);
        return;
    }
    words[(*count)++] = arena_printf(memory, "--%s", row ? row->option : key);
    words[(*count)++] = arena_strdup(memory, value);
}

char **study_command(arena *memory, const study *s, const study_entry *run, const study_schedule *how)
{
    const study_settings *v = &s->cells[run->cell].settings;
    char number[32];
    size_t most = 20, count = 0;
    for (size_t i = 0; i < v->count; i++)
        most += 2 * v->items[i].count;
    char **words = ARENA_ARRAY(memory, char *, most);
    if (!words)
        return NULL;
    words[count++] = arena_strdup(memory, how->program);
    words[count++] = arena_strdup(memory, "train");
    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < v->items[i].count; k++)
            option_add(memory, words, &count, v->items[i].key, v->items[i].values[k]);
    snprintf(number, sizeof number, "%lld", (long long)run->seed);
    option_add(memory, words, &count, "seed", number);
    option_add(memory, words, &count, "run", run->path);
    if (*run->teacher)
        option_add(memory, words, &count, "teacher", run->teacher);
    if (how->threads) {
        snprintf(number, sizeof number, "%d", how->threads);
        option_add(memory, words, &count, "threads", number);
    }
    words[count++] = arena_strdup(memory, "--resume");
    words[count] = NULL;
    for (size_t i = 0; i < count; i++)
        if (!words[i])
            return NULL;
    return words;
}
