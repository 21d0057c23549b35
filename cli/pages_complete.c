/* pages_complete.c - completion for bash and zsh. SPDX-License-Identifier: MIT
 *
 * Both scripts are flat: the words of each command, its options, and the choices of each option;
 * arguments and values without choices complete file names. Names of activations, models and
 * recipes come from their tables. */
#include <stdio.h>
#include <string.h>

#include <berlu/act.h>

#include "models/models.h"
#include "pages.h"

/* The known values of a row, separated by blanks; "" if there are none. */
static void values_of(text *out, const option_row *row)
{
    const char *list = row->choices ? row->choices : row->value && strchr(row->value, '|') ? row->value : NULL;
    if (strcmp(row->name, "act") == 0 || strcmp(row->name, "acts") == 0) {
        for (size_t i = 0; berlu_act_builtin(i); i++)
            text_add(out, "%s%s", i ? " " : "", berlu_act_builtin(i));
    } else if (strcmp(row->name, "model") == 0) {
        for (size_t i = 0; model_name(i); i++)
            text_add(out, "%s%s", i ? " " : "", model_name(i));
    } else if (list && row->type != OPTION_FLAG) {
        for (const char *c = list; *c; c++)
            text_add(out, "%c", *c == '|' ? ' ' : *c);
    }
}

/* "RUN|MODEL:FILE" names kinds of values, not values. */
static int are_words(const char *values)
{
    return *values && strspn(values, "abcdefghijklmnopqrstuvwxyz0123456789_-. ") == strlen(values);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_option(void *context, const char *heading, const option_row *row, const help_layout *layout)
{
    (void)heading, (void)layout;
    if (!(row->flags & OPTION_ARGUMENT))
        text_add(context, " --%s", row->name);
}

/* The words that may follow an option; none where it takes another value, so that no option is
 * offered there. */
static void bash_values(void *context, const char *heading, const option_row *row, const help_layout *layout)
{
    text values = {0}, *out = context;
    (void)heading, (void)layout;
    values_of(&values, row);
    if (!(row->flags & OPTION_ARGUMENT) && row->type != OPTION_FLAG && row->type != OPTION_OPTIONAL)
        text_add(out, "        --%s) words=\"%s\" ;;\n", row->name,
                 values.length && are_words(values.data) ? values.data : "");
    text_free(&values);
}

/* The words that an argument may be: those of the first argument that has some, for all of them. */
static void bash_arguments(text *out, const command *cmd)
{
    text values = {0};
    int arguments = 0;
    for (const option_row *row = cmd->rows; row && row->name; row++)
        if (row->flags & OPTION_ARGUMENT) {
            arguments = 1;
            if (!values.length)
                values_of(&values, row);
        }
    if (arguments)
        text_add(out, "        [[ $cur == -* ]] || words=\"%s\"\n",
                 values.length && are_words(values.data) ? values.data : "");
    text_free(&values);
}

/* First words, or the second words of a group. */
static void first_words(text *out, const char *group)
{
    const char *last = "";
    size_t length = group ? strlen(group) : 0;
    for (const command *const *cmd = commands; *cmd; cmd++) {
        const char *name = (*cmd)->name, *from = name;
        if (group && (strncmp(name, group, length) != 0 || name[length] != ' '))
            continue;
        if (group)
            from = name + length + 1;
        size_t size = strcspn(from, " ");
        if (strlen(last) >= size && strncmp(last, from, size) == 0)
            continue;
        text_add(out, "%.*s ", (int)size, from);
        last = from;
    }
}

/* For every group of commands: its name and its second words, with the given text around them. */
static void groups_write(text *out, const char *before, const char *between, const char *after)
{
    const char *last = "";
    for (const command *const *cmd = commands; *cmd; cmd++) {
        size_t length = strcspn((*cmd)->name, " ");
        if (!(*cmd)->name[length] || (strlen(last) > length && strncmp(last, (*cmd)->name, length) == 0))
            continue;
        last = (*cmd)->name;
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)length, (*cmd)->name);
        text_add(out, "%s%s%s", before, group, between);
        first_words(out, group);
        text_string(out, after);
    }
}

void bash_write(text *out)
{
    text_string(out,
                "# bash completion for berlu; made from its tables of options\n_berlu() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= command\n"
                "    COMPREPLY=()\n"
                "    if [[ ${COMP_WORDS[1]} == help ]] && ((COMP_CWORD > 1)); then # its words are those of a command\n"
                "        COMP_WORDS=(\"${COMP_WORDS[@]:1}\")\n        ((COMP_CWORD -= 1))\n    fi\n"
                "    if ((COMP_CWORD == 1)); then\n        words=\"");
    first_words(out, NULL);
    text_string(out, "help --help --version\"\n"
                     "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n"
                     "    command=\"${COMP_WORDS[1]} ${COMP_WORDS[2]}\"\n    case $command in\n");
    for (int two = 1; two >= 0; two--) /* the longer names first */
        for (const command *const *cmd = commands; *cmd; cmd++) {
            help_layout layout = command_layout(*cmd, NULL);
            if ((strchr((*cmd)->name, ' ') != NULL) != two)
                continue;
            text_add(out, two ? "    \"%s\")\n" : "    \"%s \"*)\n", (*cmd)->name);
            text_string(out, "        words=\"");
            options_visit((*cmd)->rows, &layout, bash_option, out);
            text_string(out, "\"\n");
            bash_arguments(out, *cmd);
            text_string(out, "        case \"$prev\" in\n");
            options_visit((*cmd)->rows, &layout, bash_values, out);
            text_string(out, "        esac ;;\n");
        }
    text_string(out, "    esac\n    if ((COMP_CWORD == 2)); then\n        case ${COMP_WORDS[1]} in\n");
    groups_write(out, "        ", ") words=\"$words ", "\" ;;\n");
    text_string(
        out, "        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
             "    [[ $cur == -* || ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n}\n"
             "complete -o filenames -F _berlu berlu\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Text inside '...[...]:...': brackets, colons and quotes would end it. */
static void zsh_escape(text *out, const char *words)
{
    for (; *words; words++) {
        if (*words == '[' || *words == ']' || *words == ':' || *words == '\\')
            text_string(out, "\\");
        if (*words == '\'')
            text_string(out, "'\\''");
        else
            text_bytes(out, words, 1);
    }
}

static void zsh_option(void *context, const char *heading, const option_row *row, const help_layout *layout)
{
    text *out = context, values = {0};
    (void)heading, (void)layout;
    values_of(&values, row);
    int words = values.length && are_words(values.data);
    if (row->flags & OPTION_ARGUMENT) {
        text_add(out, " \\\n      '%s:", row->type == OPTION_STRINGS ? "*" : "");
        zsh_escape(out, row->name);
    } else {
        text_add(out, " \\\n      '%s--%s%s[", row->type == OPTION_STRINGS ? "*" : "", row->name,
                 row->type == OPTION_FLAG       ? ""
                 : row->type == OPTION_OPTIONAL ? "=-"
                                                : "=");
        zsh_escape(out, row->help ? row->help : "");
        text_string(out, row->type == OPTION_FLAG ? "]" : "]:value");
    }
    if (row->type != OPTION_FLAG) {
        text_string(out, ":");
        if (words)
            text_add(out, "(%s)", values.data);
        else
            text_string(out, "_files");
    }
    text_string(out, "'");
    text_free(&values);
}

void zsh_write(text *out)
{
    text_string(out, "#compdef berlu\n# made from berlu's tables of options\n_berlu() {\n"
                     "  if [[ $words[2] == help ]] && ((CURRENT > 2)); then # its words are those of a command\n"
                     "    shift words; ((CURRENT -= 1))\n  fi\n"
                     "  if ((CURRENT == 2)); then\n    compadd -- ");
    first_words(out, NULL);
    text_string(out, "help --help --version\n    return\n  fi\n  case \"$words[2] $words[3]\" in\n");
    for (int two = 1; two >= 0; two--) /* the longer names first */
        for (const command *const *cmd = commands; *cmd; cmd++) {
            help_layout layout = command_layout(*cmd, NULL);
            if ((strchr((*cmd)->name, ' ') != NULL) != two)
                continue;
            text_add(out, two ? "  '%s')\n" : "  '%s '*)\n", (*cmd)->name);
            text_add(out, "    shift %d words; ((CURRENT -= %d)); _arguments", 1 + two, 1 + two);
            options_visit((*cmd)->rows, &layout, zsh_option, out);
            text_string(out, " ;;\n");
        }
    groups_write(out, "  '", " '*)\n    compadd -- ", ";;\n");
    text_string(out, "  esac\n}\n_berlu \"$@\"\n");
}
