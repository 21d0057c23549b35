/* pages.c - a program that writes man pages and shell completion into a folder.
 * SPDX-License-Identifier: MIT
 *
 *     berlu_pages FOLDER      FOLDER/man1/berlu.1, berlu-train.1, ..., FOLDER/berlu.bash, FOLDER/_berlu
 *
 * It is linked with the commands and reads the tables that parse the command line and print --help.
 * The build runs it; it is never installed. */
#include "pages.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* Escapes text for roff: no requests at the start of a line, dashes that can be copied. */
static void roff(text *out, const char *words, size_t length)
{
    int start = !out->length || out->data[out->length - 1] == '\n';
    for (size_t i = 0; i < length; i++) {
        char c = words[i];
        if (start && (c == '.' || c == '\''))
            text_string(out, "\\&");
        if (c == '\\')
            text_string(out, "\\e");
        else if (c == '-')
            text_string(out, "\\-");
        else
            text_bytes(out, &c, 1);
        start = c == '\n';
    }
}

static void roff_text(text *out, const char *words)
{
    roff(out, words, strlen(words));
}

/* "train" gives BERLU-TRAIN, "act eval" berlu-act-eval. */
static void page_name(char out[64], const char *called, int large)
{
    snprintf(out, 64, "berlu%s%s", *called ? "-" : "", called);
    for (char *c = out; *c; c++)
        *c = (char)(*c == ' ' ? '-' : large ? toupper((unsigned char)*c) : *c);
}

static void head_write(text *out, const char *called, const char *summary)
{
    char title[64], name[64];
    page_name(title, called, 1);
    page_name(name, called, 0);
    text_add(out, ".TH %s 1 \"\" \"berlu %s\" \"User Commands\"\n.SH NAME\n", title, berlu_version());
    roff_text(out, name);
    text_string(out, " \\- ");
    roff_text(out, summary);
    text_string(out, "\n");
}

/* Paragraphs are filled; lines indented by two spaces are examples. */
static void description_write(text *out, const char *words)
{
    int example = 0;
    text_string(out, ".SH DESCRIPTION\n");
    for (const char *line = words; *line;) {
        size_t length = strcspn(line, "\n");
        int indented = length > 0 && *line == ' ';
        if (indented != example)
            text_string(out, indented ? ".PP\n.nf\n.RS 2\n" : ".RE\n.fi\n.PP\n");
        else if (length == 0)
            text_string(out, ".PP\n");
        example = indented;
        roff(out, line + (indented ? 2 : 0), length - (indented ? 2 : 0));
        if (length)
            text_string(out, "\n");
        line += length + (line[length] == '\n');
    }
    if (example)
        text_string(out, ".RE\n.fi\n");
}

static void option_write(void *context, const char *heading, const option_row *row, const help_layout *layout)
{
    text *out = context, words = {0};
    char title[256];
    if (heading) {
        text_string(out, ".SH ");
        for (const char *c = heading; *c; c++)
            text_add(out, "%c", toupper((unsigned char)*c));
        text_string(out, "\n");
    }
    option_title(title, sizeof title, row);
    size_t name = strcspn(title, " [");
    text_string(out, ".TP\n\\fB");
    roff(out, title, name);
    text_string(out, "\\fR");
    text_string(out, title[name] ? title[name] == ' ' ? " \\fI" : "\\fI" : "");
    roff_text(out, title + name + (title[name] == ' '));
    text_string(out, title[name] ? "\\fR\n" : "\n");
    option_words(&words, row, layout);
    roff_text(out, words.data ? words.data : "");
    text_string(out, "\n");
    out->failed |= words.failed;
    text_free(&words);
}

static void usage_write(text *out, const command *cmd)
{
    text_string(out, ".SH SYNOPSIS\n\\fBberlu ");
    roff_text(out, cmd->name);
    text_string(out, "\\fR");
    for (const option_row *row = cmd->rows; row && row->name; row++)
        if (row->flags & OPTION_ARGUMENT) {
            char title[128];
            option_title(title, sizeof title, row);
            text_string(out, row->flags & OPTION_REQUIRED ? " \\fI" : " [\\fI");
            roff_text(out, title);
            text_add(out, "\\fR%s%s", row->type == OPTION_STRINGS ? "..." : "",
                     row->flags & OPTION_REQUIRED ? "" : "]");
        }
    text_string(out, " [\\fIoptions\\fR]\n");
}

static const char exits[] = ".SH EXIT STATUS\n0 done, 1 failed at run time, 2 bad input (nothing was written),\n"
                            "3 interrupted (state saved), 4 another process is at work there.\n";

static void page_write(text *out, const command *cmd)
{
    static options *const nothing_given = NULL;
    help_layout layout = command_layout(cmd, nothing_given);
    layout.standard = NULL; /* defaults of recipes: `berlu train --recipe NAME --help` */
    head_write(out, cmd->name, cmd->summary);
    usage_write(out, cmd);
    if (cmd->text)
        description_write(out, cmd->text);
    options_visit(cmd->rows, &layout, option_write, out);
    text_string(out, exits);
    text_string(out, ".SH SEE ALSO\n\\fBberlu\\fR(1)\n");
}

static void overview_write(text *out)
{
    head_write(out, "", "smooth activation functions: a library, an engine and a laboratory");
    text_string(out, ".SH SYNOPSIS\n\\fBberlu\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n"
                     "Makes activation functions with kinks smooth, evaluates them and those they are compared with,\n"
                     "trains vision networks with them, and reports what came out.\n.SH COMMANDS\n");
    for (const command *const *cmd = commands; *cmd; cmd++) {
        char name[64];
        page_name(name, (*cmd)->name, 0);
        text_string(out, ".TP\n\\fB");
        roff_text(out, name);
        text_string(out, "\\fR(1)\n");
        roff_text(out, (*cmd)->summary);
        text_string(out, "\n");
    }
    text_string(out, exits);
    text_string(out, ".SH ENVIRONMENT\n.TP\n\\fBBERLU_ISA\\fR\ninstruction set, as \\-\\-isa\n.TP\n\\fBBERLU_DATA\\fR\n"
                     "folder in which \\-\\-data looks for sets by name\n.TP\n\\fBNO_COLOR\\fR\nno colours\n");
}

static berlu_status save(const char *folder, const char *name, text *words)
{
    char path[4096 + 80];
    berlu_status status = text_status(words);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        status = berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    if (status == BERLU_OK)
        status = file_write_atomic(path, words->data, words->length);
    text_free(words);
    return status;
}

static berlu_status all_write(const char *folder)
{
    char man[4096 + 8], name[80];
    text words = {0};
    if (snprintf(man, sizeof man, "%s/man1", folder) >= (int)sizeof man)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    TRY(folder_make(man));
    overview_write(&words);
    TRY(save(man, "berlu.1", &words));
    for (const command *const *cmd = commands; *cmd; cmd++) {
        page_name(name, (*cmd)->name, 0);
        strcat(name, ".1");
        page_write(&words, *cmd);
        TRY(save(man, name, &words));
    }
    bash_write(&words);
    TRY(save(folder, "berlu.bash", &words));
    zsh_write(&words);
    TRY(save(folder, "_berlu", &words));
    return BERLU_OK;
}

int main(int argc, char **argv)
{
    if (argc == 2 && all_write(argv[1]) == BERLU_OK)
        return 0;
    fprintf(stderr, "berlu_pages: %s\n", argc == 2 ? berlu_last_error() : "give a folder");
    return 1;
}
