/* options.h - one table per command defines its options. SPDX-License-Identifier: MIT
 *
 * A row holds name, type, default, range and help. The same row parses the command line, prints
 * --help, sets the default and formulates the error, so they cannot disagree.
 *
 *     static const option_row rows[] = {
 *         {"model", OPTION_STRING, "NAME", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "which network"},
 *         {"batch", OPTION_INT, "N", .standard = "128", .least = 1, .most = 65536, .help = "images per step"},
 *         {"keep", OPTION_CHOICE, .standard = "input", .choices = "input|both|output", .help = "kept for backward"},
 *         {"graph", OPTION_OPTIONAL, .choices = "text|dot", .help = "print the graph as text, or for Graphviz"},
 *         {0}};
 *
 * options_parse() adds the rows common to all commands (--help --json --threads --isa); a command's
 * own row of the same name takes precedence, and NO_COMPUTE_ROWS removes the last two. Numbers may
 * be written as 64Ki, 4Mi, 1Gi. `--name value` and `--name=value` both work; --no-NAME clears a
 * flag; `--` ends the options. Values are fetched by name with the typed functions below; a wrong
 * name or type there is a bug in berlu and fails an assert. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/status.h"

typedef enum option_type {
    OPTION_FLAG,     /* present or not */
    OPTION_INT,      /* int64_t in [least, most] */
    OPTION_FLOAT,    /* double in [least, most] */
    OPTION_STRING,   /* any text */
    OPTION_CHOICE,   /* one of choices */
    OPTION_FLOATS,   /* doubles: 1,2,3 and several times; each in [least, most] */
    OPTION_INTS,     /* the same for int64_t */
    OPTION_STRINGS,  /* may be given several times; as an argument it takes all remaining words */
    OPTION_OPTIONAL, /* --name, which means the first of choices, or --name=value (any text when choices is NULL) */
    OPTION_NONE,     /* removes a common option from a command on which it has no effect */
} option_type;

enum {
    OPTION_ARGUMENT = 1, /* positional, in the order of the rows */
    OPTION_REQUIRED = 2,
    OPTION_MANY = 4,   /* lists of numbers, texts of them: also takes the numbers that follow, `--x 1 2 3` */
    OPTION_DASHES = 8, /* its value may begin with dashes: options for another program */
    OPTION_EMPTY = 16, /* a text that may be empty: it takes back what a settings file gave */
};

typedef struct option_row {
    const char *name; /* with dashes: "weight-decay"; {0} ends a table */
    option_type type;
    const char *value;    /* placeholder of the value in --help: "N", "FILE"; NULL: by type, or the choices */
    const char *standard; /* the default as one would type it; NULL: none */
    double least, most;   /* inclusive range of numbers; both 0: any finite number */
    const char *choices;  /* "a|b|c" for OPTION_CHOICE and OPTION_OPTIONAL */
    const char *help;     /* one line, lower case, no full stop */
    unsigned flags;
} option_row;

typedef struct options options;

/* Parses argv by the rows. `out` is valid even after a failure, so that --help works despite
 * mistakes; always free it. Required arguments are checked unless --help was given. */
berlu_status options_parse(options **out, const option_row *rows, int argc, char *const *argv);
void options_free(options *o);

/* ---- values, by name ------------------------------------------------------------------------- */
int options_given(const options *o, const char *name); /* on the command line */
int options_flag(const options *o, const char *name);
int64_t options_int(const options *o, const char *name);        /* 0 when absent */
double options_float(const options *o, const char *name);       /* NaN when absent */
const char *options_string(const options *o, const char *name); /* NULL when absent; also for CHOICE and OPTIONAL */
int options_choice(const options *o, const char *name);         /* index into choices; -1 when absent */
size_t options_count(const options *o, const char *name);       /* length of a list */
const double *options_floats(const options *o, const char *name);
const int64_t *options_ints(const options *o, const char *name);
const char *const *options_strings(const options *o, const char *name);

/* The common rows. --isa is checked against this machine before a command runs and becomes
 * BERLU_ISA of the process; without it the environment's value applies. */
int options_json(const options *o);
int options_threads(const options *o); /* 0: the default */
cpu_isa options_isa(const options *o);

/* ---- help ------------------------------------------------------------------------------------ */
/* A heading of --help and the names of the rows under it, "batch epochs seed". {0} ends a table.
 * Rows that no group names are in the last one, so that a new option is never lost. */
typedef struct option_group {
    const char *title, *names;
} option_group;

struct text;
typedef struct help_layout {
    const option_group *groups; /* NULL: one list */
    void (*standard)(const void *context, const char *name,
                     struct text *out); /* a default that the row does not know */
    const void *context;
} help_layout;

void options_help(FILE *file, const option_row *rows, const help_layout *layout); /* layout may be NULL */
void options_usage(FILE *file, const option_row *rows);                           /* "MODEL [options]" */

/* Every argument and option of a command, the common ones included, in the order of --help;
 * `heading` is NULL but for the first of a group. option_title() is "--batch N", option_words() its
 * help with range and default. */
typedef void option_visit(void *context, const char *heading, const option_row *row, const help_layout *layout);
void options_visit(const option_row *rows, const help_layout *layout, option_visit *visit, void *context);
void option_title(char *out, size_t size, const option_row *row);
void option_words(struct text *out, const option_row *row, const help_layout *layout);

/* Prints words from `column` on, wrapped at column 80 and indented by `indent`. `more` ends each
 * wrapped line: " \\" for a shell command. */
void help_wrap(FILE *file, const char *words, size_t column, size_t indent, const char *more);

/* Prints the text of a command: paragraphs are filled, lines that begin with two spaces are shell
 * commands and stay. */
void help_text(FILE *file, const char *text_of_command);

/* Rows of a command that computes nothing with threads or vector instructions. */
/* clang-format off */
#define NO_COMPUTE_ROWS {"threads", OPTION_NONE, .help = NULL}, {"isa", OPTION_NONE, .help = NULL}
/* clang-format on */

extern const option_row options_common[];

#endif
