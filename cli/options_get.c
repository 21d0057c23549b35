/* options_get.c - values by name, and all of them as JSON. SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "options_internal.h"

enum { ANY_TYPE = -1 };

/* The value of `name`; a name or type that is not in the table is a bug in the calling command. */
static const option_value *fetch(const options *o, const char *name, int type, int or_type)
{
    const option_row *row = options_row(o, name, strlen(name));
    assert(row && (type == ANY_TYPE || (int)row->type == type || (int)row->type == or_type));
    (void)type, (void)or_type;
    return options_value(o, row);
}

int options_given(const options *o, const char *name)
{
    return fetch(o, name, ANY_TYPE, 0)->level > LEVEL_DEFAULT;
}

int options_flag(const options *o, const char *name)
{
    return fetch(o, name, OPTION_FLAG, OPTION_FLAG)->integer != 0;
}

int64_t options_int(const options *o, const char *name)
{
    return fetch(o, name, OPTION_INT, OPTION_INT)->integer;
}

double options_float(const options *o, const char *name)
{
    const option_value *v = fetch(o, name, OPTION_FLOAT, OPTION_FLOAT);
    return v->level == LEVEL_ABSENT ? (double)NAN : v->real;
}

const char *options_string(const options *o, const char *name)
{
    const option_value *v = fetch(o, name, ANY_TYPE, 0);
    return v->level == LEVEL_ABSENT ? NULL : v->string;
}

int options_choice(const options *o, const char *name)
{
    const option_value *v = fetch(o, name, OPTION_CHOICE, OPTION_OPTIONAL);
    return v->level == LEVEL_ABSENT ? -1 : (int)v->integer;
}

size_t options_count(const options *o, const char *name)
{
    return fetch(o, name, ANY_TYPE, 0)->count;
}

const double *options_floats(const options *o, const char *name)
{
    return fetch(o, name, OPTION_FLOATS, OPTION_FLOATS)->floats;
}

const int64_t *options_ints(const options *o, const char *name)
{
    return fetch(o, name, OPTION_INTS, OPTION_INTS)->ints;
}

const char *const *options_strings(const options *o, const char *name)
{
    return fetch(o, name, OPTION_STRINGS, OPTION_STRINGS)->strings;
}

int options_json(const options *o)
{
    return options_flag(o, "json");
}

int options_threads(const options *o)
{
    return (int)options_value(o, options_row(o, "threads", 7))->integer;
}

cpu_isa options_isa(const options *o)
{
    cpu_isa isa = CPU_BEST;
    const char *name = options_string(o, "isa");
    if (!name || cpu_isa_parse(&isa, name) != BERLU_OK || isa == CPU_BEST)
        (void)cpu_isa_pick(&isa); /* main() has checked that this succeeds */
    return isa;
}
