/* command_hints.c - commands under other names. SPDX-License-Identifier: MIT
 *
 * As with options (hints.c) they are not accepted; the message names the right one. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

/* The first is what is typed, alone or after the name of a group. */
static const char *const command_pairs[][2] = {
    {"activations", "act list"},
    {"benchmark", "bench"},
    {"data download", "data get"},
    {"data show", "data info"},
    {"download", "data get"},
    {"evaluate", "eval"},
    {"export pytorch", "export timm"},
    {"export torch", "export timm"},
    {"fit", "train"},
    {"inference", "predict"},
    {"infer", "predict"},
    {"list", "act list"},
    {"act show", "act list"},
    {"act info", "act list"},
    {"resume", "train --resume"},
    {"study start", "study run"},
    {"test", "eval"},
    {"version", "--version"},
};

/* `plot` for `act plot`: the only command whose second word it is. */
static const char *second_word(const char *word)
{
    const char *found = NULL;
    for (const command *const *cmd = commands; *cmd; cmd++) {
        const char *space = strchr((*cmd)->name, ' ');
        if (!space || strcmp(space + 1, word) != 0)
            continue;
        if (found)
            return NULL;
        found = (*cmd)->name;
    }
    return found;
}

const char *hint_command(const char *word, const char *group)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%s%s%s", group ? group : "", group ? " " : "", word);
    for (size_t i = 0; i < COUNT(command_pairs); i++)
        if (strcmp(command_pairs[i][0], typed) == 0)
            return command_pairs[i][1];
    for (char *c = typed; *c; c++)
        if (*c == '-' || *c == '_')
            *c = ' ';
    for (const command *const *cmd = commands; *cmd; cmd++)
        if (strcmp((*cmd)->name, typed) == 0) /* smooth-check */
            return (*cmd)->name;
    return group ? NULL : second_word(word);
}
