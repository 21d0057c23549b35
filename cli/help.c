/* help.c - --help from the rows of a command. SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "options_internal.h"

enum { TITLE = 30, WIDTH = 110 };

static const char *value_word(const option_row *row)
{
    if (row->value)
        return row->value;
    switch (row->type) {
    case OPTION_INT:
        return "N";
    case OPTION_FLOAT:
        return "X";
    case OPTION_FLOATS:
        return "X,X...";
    case OPTION_INTS:
        return "N,N...";
    case OPTION_CHOICE:
    case OPTION_OPTIONAL:
        return row->choices ? row->choices : "VALUE";
    default:
        return "TEXT";
    }
}

static void upper(char *out, size_t room, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < room; i++)
        out[i] = (char)(name[i] == '-' ? '_' : toupper((unsigned char)name[i]));
    out[i] = 0;
}

static void title_print(FILE *file, const option_row *row)
{
    char title[256];
    if (row->flags & OPTION_ARGUMENT)
        upper(title, sizeof title, row->name);
    else if (row->type == OPTION_FLAG)
        snprintf(title, sizeof title, "--%s", row->name);
    else if (row->type == OPTION_OPTIONAL)
        snprintf(title, sizeof title, "--%s[=%s]", row->name, value_word(row));
    else
        snprintf(title, sizeof title, "--%s %s", row->name, value_word(row));
    if (strlen(title) > TITLE - 2)
        fprintf(file, "  %s\n  %*s", title, TITLE, "");
    else
        fprintf(file, "  %-*s", TITLE, title);
}

/* Breaks a text between words and indents what follows under the column of help. */
static void text_wrap(FILE *file, const char *words)
{
    size_t column = 0, room = WIDTH - TITLE - 2;
    while (*words) {
        size_t length = strcspn(words, " ");
        if (column && column + 1 + length > room) {
            fprintf(file, "\n  %*s", TITLE, "");
            column = 0;
        }
        column += (size_t)fprintf(file, "%s%.*s", column ? " " : "", (int)length, words);
        words += length;
        words += strspn(words, " ");
    }
    fputc('\n', file);
}

static void row_print(FILE *file, const option_row *row)
{
    text help = {0};
    char least[NUMBER_TEXT], most[NUMBER_TEXT];
    text_string(&help, row->help ? row->help : "");
    if (row->least != 0 || row->most != 0)
        text_add(&help, "; %s to %s", number_text(least, row->least), number_text(most, row->most));
    if (row->type == OPTION_STRINGS && !(row->flags & OPTION_ARGUMENT))
        text_string(&help, "; may be given several times");
    if (row->standard)
        text_add(&help, " (default: %s)", row->standard);
    if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_ARGUMENT))
        text_string(&help, " (required)");
    title_print(file, row);
    text_wrap(file, help.data ? help.data : "");
    text_free(&help);
}

static void rows_print(FILE *file, const char *heading, const option_row *rows, unsigned argument,
                       const option_row *hidden_by)
{
    for (const option_row *row = rows; row && row->name; row++) {
        int hidden = (row->flags & OPTION_ARGUMENT) != argument;
        for (const option_row *own = hidden_by; own && own->name; own++)
            hidden |= strcmp(own->name, row->name) == 0;
        if (hidden)
            continue;
        if (heading)
            fprintf(file, "\n%s\n", heading);
        heading = NULL;
        row_print(file, row);
    }
}

void options_usage(FILE *file, const option_row *rows)
{
    for (const option_row *row = rows; row && row->name; row++) {
        if (!(row->flags & OPTION_ARGUMENT))
            continue;
        char name[64];
        upper(name, sizeof name, row->name);
        const char *more = row->type == OPTION_STRINGS ? "..." : "";
        fprintf(file, row->flags & OPTION_REQUIRED ? " %s%s" : " [%s%s]", name, more);
    }
    fputs(" [options]\n", file);
}

void options_help(FILE *file, const option_row *rows)
{
    rows_print(file, "arguments", rows, OPTION_ARGUMENT, NULL);
    rows_print(file, "options", rows, 0, NULL);
    rows_print(file, "options of every command", options_common, 0, rows);
}
