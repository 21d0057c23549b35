/* options_internal.h - what options.c, options_get.c and help.c share. SPDX-License-Identifier: MIT */
#ifndef CLI_OPTIONS_INTERNAL_H
#define CLI_OPTIONS_INTERNAL_H

#include "base/arena.h"
#include "options.h"

typedef enum value_level { LEVEL_ABSENT, LEVEL_DEFAULT, LEVEL_COMMAND } value_level;

typedef struct option_value {
    value_level level; /* where it came from; a higher one wins */
    int64_t integer;   /* INT, FLAG; CHOICE and OPTIONAL: index of the choice */
    double real;
    const char *string; /* as it was written, the last time */
    int64_t *ints;      /* lists, `count` entries */
    double *floats;
    const char **strings;
    size_t count;
} option_value;

struct options {
    const option_row *rows; /* the command's; the common ones follow them in `values` */
    size_t count;
    option_value *values;
    arena memory;
};

const option_row *options_row(const options *o, const char *name, size_t length);
option_value *options_value(const options *o, const option_row *row);
const char *hint_option(const char *word,
                        const char *const *names); /* the one meant by another program's name, or NULL */
berlu_status value_set(options *o, const option_row *row, const char *given, value_level level);

#endif
