/* help.c - --help from the rows of a command, for a terminal of 80 columns.
 * SPDX-License-Identifier: MIT
 *
 * The width of the terminal is not used: help is also read in a pager, in a file and in a search,
 * and 80 columns fit all of them. Rows keep their order; a command with many rows names groups
 * (option_group), and rows that no group names are in the last one. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "options_internal.h"

enum { TITLE = 26, WIDTH = 80 };
static const double range_shown_below = 1000; /* a larger bound only protects the arithmetic */

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

/* Choices too long for the title are listed in the help. */
static int choices_too_long(const option_row *row)
{
    return row->type == OPTION_CHOICE && !row->value && strlen(row->choices) > 60;
}

static void upper(char *out, size_t size, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        out[i] = (char)(name[i] == '-' ? '_' : toupper((unsigned char)name[i]));
    out[i] = 0;
}

void option_title(char *title, size_t size, const option_row *row)
{
    if (row->flags & OPTION_ARGUMENT)
        upper(title, size, row->name);
    else if (row->type == OPTION_FLAG)
        snprintf(title, size, "--%s", row->name);
    else if (row->type == OPTION_OPTIONAL)
        snprintf(title, size, "--%s[=%s]", row->name, value_word(row));
    else
        snprintf(title, size, "--%s %s", row->name, choices_too_long(row) ? "NAME" : value_word(row));
}

static void title_print(FILE *file, const option_row *row)
{
    char title[256];
    option_title(title, sizeof title, row);
    if (strlen(title) > TITLE - 2)
        fprintf(file, "  %s\n  %*s", title, TITLE, "");
    else
        fprintf(file, "  %-*s", TITLE, title);
}

/* Bytes of the next thing that stays in one line: a word, and in a command an option with its
 * value. */
static size_t unit_length(const char *words, int is_command)
{
    size_t length = strcspn(words, " "), blank = strspn(words + length, " ");
    const char *value = words + length + blank;
    if (is_command && strncmp(words, "--", 2) == 0 && *value && *value != '-')
        length += blank + strcspn(value, " ");
    return length;
}

void help_wrap(FILE *file, const char *words, size_t column, size_t indent, const char *more)
{
    size_t start = column, width = WIDTH - strlen(more);
    for (int first = 1; *words; first = 0) {
        size_t length = unit_length(words, *more != 0), rest = strspn(words + length, " ");
        size_t limit = words[length + rest] ? width : WIDTH; /* nothing follows the last word */
        if (!first && column > start && column + 1 + length > limit) {
            fprintf(file, "%s\n%*s", more, (int)indent, "");
            column = start = indent;
        }
        column += (size_t)fprintf(file, "%s%.*s", column > start ? " " : "", (int)length, words);
        words += length + rest;
    }
    fputc('\n', file);
}

void help_text(FILE *file, const char *text_of_command)
{
    char paragraph[4096] = "";
    for (const char *line = text_of_command; *line;) {
        size_t length = strcspn(line, "\n"), at = strlen(paragraph);
        int plain = length > 0 && *line != ' ';
        if (plain)
            snprintf(paragraph + at, sizeof paragraph - at, "%s%.*s", at ? " " : "", (int)length, line);
        if ((!plain || !line[length]) && *paragraph) {
            help_wrap(file, paragraph, 0, 0, "");
            *paragraph = 0;
        }
        size_t blank = strspn(line, " ");
        if (!plain && length <= blank) {
            fputc('\n', file);
        } else if (!plain && length - blank + 2 <= WIDTH) {
            fprintf(file, "  %.*s\n", (int)(length - blank), line + blank);
        } else if (!plain) {
            char example[1024];
            snprintf(example, sizeof example, "%.*s", (int)(length - blank), line + blank);
            fputs("  ", file);
            help_wrap(file, example, 2, 6, " \\");
        }
        line += length + (line[length] == '\n');
    }
    if (*paragraph)
        help_wrap(file, paragraph, 0, 0, "");
}

/* The range of a number where it is informative: choices have none, and huge bounds are omitted. */
static void range_add(text *help, const option_row *row)
{
    char least[NUMBER_TEXT], most[NUMBER_TEXT];
    if (row->type == OPTION_FLAG || (row->least == 0 && row->most == 0) || (row->value && strchr(row->value, '|')))
        return;
    if (row->most < range_shown_below)
        text_add(help, "; %s to %s", number_text(least, row->least), number_text(most, row->most));
    else if (row->least != 0 && row->least > -range_shown_below)
        text_add(help, "; from %s", number_text(least, row->least));
}

void option_words(text *help, const option_row *row, const help_layout *layout)
{
    text standard = {0};
    text_string(help, row->help ? row->help : "");
    range_add(help, row);
    if (choices_too_long(row)) {
        text_string(help, "; one of ");
        for (const char *c = row->choices; *c; c++)
            text_string(help, *c == '|' ? ", " : (char[]){*c, 0});
    }
    if (row->type == OPTION_STRINGS && !(row->flags & OPTION_ARGUMENT))
        text_string(help, "; may be given several times");
    if (layout->standard && row->type != OPTION_FLAG)
        layout->standard(layout->context, row->name, &standard);
    if (row->standard || standard.length)
        text_add(help, " (default: %s)", standard.length ? standard.data : row->standard);
    if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_ARGUMENT))
        text_string(help, " (required)");
    text_free(&standard);
}

/* The visitor of the rows, and the heading of the next one if it is the first of a group. */
typedef struct visitor {
    option_visit *visit;
    void *context;
    const char *heading;
} visitor;

static void row_visit(visitor *v, const option_row *row, const help_layout *layout)
{
    v->visit(v->context, v->heading, row, layout);
    v->heading = NULL;
}

/* Whether `name` is one of the words of "a b c". */
static int named(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; at && (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return 1;
    return 0;
}

static int in_any(const option_group *groups, const char *name)
{
    for (; groups->title; groups++)
        if (named(groups->names, name))
            return 1;
    return 0;
}

static int in_rows(const option_row *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return 1;
    return 0;
}

static int shown(const option_row *row, unsigned argument)
{
    return row->type != OPTION_NONE && (row->flags & OPTION_ARGUMENT) == argument;
}

static void list_visit(visitor *v, const char *heading, const option_row *rows, unsigned argument,
                       const option_row *hidden_by, const help_layout *layout)
{
    v->heading = heading;
    for (const option_row *row = rows; row && row->name; row++)
        if (shown(row, argument) && !in_rows(hidden_by, row->name))
            row_visit(v, row, layout);
}

/* In the order of the names, not of the rows: the most used options come first. */
static void group_visit(visitor *v, const option_group *group, const option_row *rows, const help_layout *layout)
{
    int last = !group[1].title;
    v->heading = group->title;
    for (const char *name = group->names; *name; name += strspn(name, " ")) {
        size_t length = strcspn(name, " ");
        for (const option_row *row = rows; row->name; row++)
            if (shown(row, 0) && strlen(row->name) == length && strncmp(row->name, name, length) == 0)
                row_visit(v, row, layout);
        name += length;
    }
    for (const option_row *row = rows; last && row->name; row++)
        if (shown(row, 0) && !in_any(layout->groups, row->name))
            row_visit(v, row, layout);
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

void options_visit(const option_row *rows, const help_layout *layout, option_visit *visit, void *context)
{
    static const help_layout none = {0};
    layout = layout ? layout : &none;
    visitor v = {.visit = visit, .context = context};
    list_visit(&v, "arguments", rows, OPTION_ARGUMENT, NULL, layout);
    for (const option_group *group = layout->groups; group && group->title; group++)
        group_visit(&v, group, rows, layout);
    if (!layout->groups)
        list_visit(&v, "options", rows, 0, NULL, layout);
    list_visit(&v, "options of every command", options_common, 0, rows, &none);
}

static void row_print(void *context, const char *heading, const option_row *row, const help_layout *layout)
{
    FILE *file = context;
    text help = {0};
    if (heading)
        fprintf(file, "\n%s\n", heading);
    option_words(&help, row, layout);
    title_print(file, row);
    help_wrap(file, help.data ? help.data : "", TITLE + 2, TITLE + 2, "");
    text_free(&help);
}

void options_help(FILE *file, const option_row *rows, const help_layout *layout)
{
    options_visit(rows, layout, row_print, file);
}
