/* options_internal.h - parsed options, shared by options.c, options_get.c and help.c.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_OPTIONS_INTERNAL_H
#define CLI_OPTIONS_INTERNAL_H

#include "base/arena.h"
#include "options.h"

typedef enum value_level { LEVEL_ABSENT, LEVEL_DEFAULT, LEVEL_COMMAND } value_level;

typedef struct option_value {
    value_level level; /* its origin; a higher one takes precedence */
    int64_t integer;   /* INT, FLAG; CHOICE and OPTIONAL: index of the choice */
    double real;
    const char *string; /* as last given */
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
                        const char *const *names); /* our name for another program's option, or NULL */

#endif
