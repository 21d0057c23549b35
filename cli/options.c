/* options.c - parses a command line by the rows of a command. SPDX-License-Identifier: MIT
 *
 * value_set() sets every value, a default or a word of the command line. A value has a level (its
 * origin): a higher level replaces a lower one, the same level appends to a list. Numbers and flags
 * are parsed by base/text.h, as in settings files (train/recipe.c). The typed getters are in
 * options_get.c, --help is in help.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "options_internal.h"

const option_row options_common[] = {
    {"help", OPTION_FLAG, .help = "this text"},
    {"json", OPTION_FLAG, .help = "one JSON object on standard output"},
    {"threads", OPTION_INT, "N", .standard = "0", .most = 1024, .help = "threads; 0: as many as there are cores"},
    {"isa", OPTION_CHOICE, .standard = "best", .choices = "best|scalar|avx2|avx512|neon", .help = "instruction set"},
    {0}};

static size_t rows_count(const option_row *rows)
{
    size_t count = 0;
    while (rows && rows[count].name)
        count++;
    return count;
}

static const char *row_title(const option_row *row, char out[80])
{
    snprintf(out, 80, row->flags & OPTION_ARGUMENT ? "argument %s" : "option --%s", row->name);
    return out;
}

static berlu_status fail_row(const option_row *row, const char *sentence, const char *value)
{
    char title[80];
    return berlu_fail(BERLU_ERR_ARG, "%s: '%s' %s", row_title(row, title), value, sentence);
}

/* ---- one value from its text ----------------------------------------------------------------- */

static berlu_status check_range(const option_row *row, const char *value, double number)
{
    if (row->least == 0 && row->most == 0)
        return isfinite(number) || row->type == OPTION_FLOATS ? BERLU_OK : fail_row(row, "is not finite", value);
    if (number >= row->least && number <= row->most)
        return BERLU_OK;
    char sentence[96], least[NUMBER_TEXT], most[NUMBER_TEXT];
    snprintf(sentence, sizeof sentence, "is outside %s to %s", number_text(least, row->least),
             number_text(most, row->most));
    return fail_row(row, sentence, value);
}

static berlu_status row_int(const option_row *row, const char *word, int64_t *out)
{
    char sentence[64 + NUMBER_ADVICE], advice[NUMBER_ADVICE];
    snprintf(sentence, sizeof sentence, "is not a whole number%s", number_advice(advice, word));
    double number;
    int ranged = row->least != 0 || row->most != 0;
    if (!count_parse(word, out)) /* a whole number that no integer holds is outside of any range */
        return ranged && number_parse(word, &number) && fabs(number) > 0x1p53 ? check_range(row, word, number)
                                                                              : fail_row(row, sentence, word);
    return check_range(row, word, (double)*out);
}

static berlu_status row_float(const option_row *row, const char *word, double *out)
{
    char sentence[64 + NUMBER_ADVICE], advice[NUMBER_ADVICE];
    snprintf(sentence, sizeof sentence, "is not a number%s", number_advice(advice, word));
    if (!number_parse(word, out))
        return fail_row(row, sentence, word);
    return check_range(row, word, *out);
}

static berlu_status row_choice(const option_row *row, const char *word, int64_t *index)
{
    enum { MOST = 32 };
    const char *names[MOST + 1] = {0};
    char all[512];
    snprintf(all, sizeof all, "%s", row->choices);
    size_t count = 0;
    for (char *rest = NULL, *name = strtok_r(all, "|", &rest); name && count < MOST;
         name = strtok_r(NULL, "|", &rest)) {
        names[count] = name;
        if (strcmp(name, word) == 0) {
            *index = (int64_t)count;
            return BERLU_OK;
        }
        count++;
    }
    const char *near = nearest_name(strcmp(word, "gpu") == 0 ? "cuda" : word, names); /* not cpu */
    char sentence[640];
    snprintf(sentence, sizeof sentence, near ? "is not one of %s; did you mean '%s'?" : "is not one of %s",
             row->choices, near);
    return fail_row(row, sentence, word);
}

static berlu_status row_flag(const option_row *row, const char *word, int64_t *out)
{
    return flag_parse(word, out) ? BERLU_OK : fail_row(row, "is neither true nor false", word);
}

/* An empty text is nearly always a variable of the shell that is not set. As a file's name it would
 * be found out after the work, by a rename to nowhere. */
static berlu_status check_text(const option_row *row, const char *word)
{
    char title[80];
    if (*word || row->flags & OPTION_EMPTY || (row->type != OPTION_STRING && row->type != OPTION_STRINGS))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG, "%s is empty: %s is expected", row_title(row, title),
                      row->value ? row->value : "a text");
}

/* Makes a list hold one more entry by doubling it. Old copies stay in the arena: lists are
 * short. */
static berlu_status list_grow(options *o, void **list, size_t count, size_t size)
{
    if (count & (count - 1) && count)
        return BERLU_OK;
    void *larger = arena_array(&o->memory, count ? count * 2 : 1, size, _Alignof(max_align_t));
    if (!larger)
        return BERLU_ERR_MEMORY;
    if (count)
        memcpy(larger, *list, count * size);
    *list = larger;
    return BERLU_OK;
}

static berlu_status list_add(options *o, const option_row *row, option_value *v, const char *word)
{
    if (row->type == OPTION_INTS) {
        TRY(list_grow(o, (void **)&v->ints, v->count, sizeof *v->ints));
        TRY(row_int(row, word, &v->ints[v->count]));
    } else if (row->type == OPTION_FLOATS) {
        TRY(list_grow(o, (void **)&v->floats, v->count, sizeof *v->floats));
        TRY(row_float(row, word, &v->floats[v->count]));
    } else {
        TRY(list_grow(o, (void **)&v->strings, v->count, sizeof *v->strings));
        v->strings[v->count] = word;
    }
    v->count++;
    return BERLU_OK;
}

static berlu_status list_add_all(options *o, const option_row *row, option_value *v, char *words)
{
    if (row->type == OPTION_STRINGS)
        return list_add(o, row, v, words);
    for (char *word = words; word;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = 0;
        TRY(list_add(o, row, v, word));
        word = comma ? comma + 1 : NULL;
    }
    return BERLU_OK;
}

static berlu_status value_set(options *o, const option_row *row, const char *given, value_level level)
{
    option_value *v = options_value(o, row);
    if (v->level > level)
        return BERLU_OK;
    char *word = arena_strdup(&o->memory, given);
    if (!word)
        return BERLU_ERR_MEMORY;
    if (v->level < level)
        v->count = 0; /* a list given at a higher level replaces the lower one */
    v->level = level;
    v->string = word;
    switch (row->type) {
    case OPTION_FLAG:
        return row_flag(row, word, &v->integer);
    case OPTION_INT:
        return row_int(row, word, &v->integer);
    case OPTION_FLOAT:
        return row_float(row, word, &v->real);
    case OPTION_STRING:
    case OPTION_NONE:
        return BERLU_OK;
    case OPTION_CHOICE:
        return row_choice(row, word, &v->integer);
    case OPTION_OPTIONAL:
        return row->choices ? row_choice(row, word, &v->integer) : BERLU_OK;
    case OPTION_FLOATS:
    case OPTION_INTS:
    case OPTION_STRINGS:
        return list_add_all(o, row, v, word);
    }
    return BERLU_OK;
}

/* ---- the rows of a command ------------------------------------------------------------------- */

const option_row *options_row(const options *o, const char *name, size_t length)
{
    const option_row *tables[] = {o->rows, options_common};
    for (size_t t = 0; t < COUNT(tables); t++)
        for (const option_row *row = tables[t]; row && row->name; row++)
            if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
                return row;
    return NULL;
}

option_value *options_value(const options *o, const option_row *row)
{
    int own = o->count && row >= o->rows && row < o->rows + o->count;
    return &o->values[own ? (size_t)(row - o->rows) : o->count + (size_t)(row - options_common)];
}

static berlu_status fail_unknown(const options *o, const char *name, size_t length)
{
    enum { MOST = 128 };
    const char *names[MOST + 1] = {0};
    char word[128];
    size_t count = 0;
    const option_row *tables[] = {o->rows, options_common};
    for (size_t t = 0; t < COUNT(tables); t++)
        for (const option_row *row = tables[t]; row && row->name && count < MOST; row++)
            if (row->type != OPTION_NONE && !(row->flags & OPTION_ARGUMENT))
                names[count++] = row->name;
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    const char *near = hint_option(word, names);
    near = near ? near : nearest_name(word, names);
    if (!near)
        return berlu_fail(BERLU_ERR_ARG, "unknown option --%s; --help lists what there is", word);
    return berlu_fail(BERLU_ERR_ARG, "unknown option --%s; did you mean --%s?", word, near);
}

static berlu_status defaults_set(options *o)
{
    const option_row *tables[] = {o->rows, options_common};
    for (size_t t = 0; t < COUNT(tables); t++)
        for (const option_row *row = tables[t]; row && row->name; row++)
            if (row->standard)
                TRY(value_set(o, row, row->standard, LEVEL_DEFAULT));
    return BERLU_OK;
}

/* ---- the command line ------------------------------------------------------------------------ */

typedef struct reader {
    options *o;
    int argc, at;
    char *const *argv;
    size_t arguments;       /* positional ones so far */
    const option_row *flag; /* the word before was this flag */
} reader;

static int looks_like_number(const char *word)
{
    double number;
    return word && *word && (number_parse(word, &number) || strspn(word, "0123456789+-.,eEKMGi") == strlen(word));
}

static const char *next_word(const reader *r)
{
    return r->at < r->argc ? r->argv[r->at] : NULL;
}

/* `--kinks -1 1` for an option of text: the words become "-1,1". */
static berlu_status text_join(options *o, const option_row *row, const char *word)
{
    const char *before = options_value(o, row)->string;
    size_t size = strlen(before) + strlen(word) + 2;
    char *joined = ARENA_ARRAY(&o->memory, char, size);
    if (!joined)
        return BERLU_ERR_MEMORY;
    snprintf(joined, size, "%s,%s", before, word);
    return value_set(o, row, joined, LEVEL_COMMAND);
}

static berlu_status take_value(reader *r, const option_row *row, const char *attached)
{
    const char *word = attached ? attached : next_word(r);
    if (!attached) {
        if (!word || (strncmp(word, "--", 2) == 0 && !(row->flags & OPTION_DASHES) && !looks_like_number(word)))
            return berlu_fail(BERLU_ERR_ARG, "option --%s needs a value", row->name);
        r->at++;
    }
    TRY(check_text(row, word));
    TRY(value_set(r->o, row, word, LEVEL_COMMAND));
    while (row->flags & OPTION_MANY && looks_like_number(next_word(r)))
        TRY(row->type == OPTION_STRING ? text_join(r->o, row, r->argv[r->at++])
                                       : value_set(r->o, row, r->argv[r->at++], LEVEL_COMMAND));
    return BERLU_OK;
}

/* `word` begins with two dashes. */
static berlu_status take_option(reader *r, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const option_row *row = options_row(r->o, name, length);
    if (!row && length > 3 && !equals && strncmp(name, "no-", 3) == 0) {
        row = options_row(r->o, name + 3, length - 3);
        if (row && row->type == OPTION_FLAG)
            return value_set(r->o, row, "false", LEVEL_COMMAND);
        row = NULL;
    }
    if (!row || row->flags & OPTION_ARGUMENT)
        return fail_unknown(r->o, name, length);
    if (row->type == OPTION_NONE)
        return berlu_fail(BERLU_ERR_ARG, "option --%s: has no effect on this command; leave it out", row->name);
    r->flag = row->type == OPTION_FLAG && !equals ? row : NULL;
    if (row->type == OPTION_FLAG)
        return value_set(r->o, row, equals ? equals + 1 : "true", LEVEL_COMMAND);
    if (row->type == OPTION_OPTIONAL && !equals) {
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(row->choices ? row->choices : "", "|"), row->choices);
        return value_set(r->o, row, first, LEVEL_COMMAND);
    }
    return take_value(r, row, equals ? equals + 1 : NULL);
}

static berlu_status take_argument(reader *r, const char *word)
{
    size_t position = 0;
    for (const option_row *row = r->o->rows; row && row->name; row++) {
        if (!(row->flags & OPTION_ARGUMENT))
            continue;
        if (position == r->arguments || row->type == OPTION_STRINGS) {
            r->arguments += row->type != OPTION_STRINGS;
            TRY(check_text(row, word));
            return value_set(r->o, row, word, LEVEL_COMMAND);
        }
        position++;
    }
    const char *flag = r->flag ? r->flag->name : NULL;
    if (flag && strcmp(flag, "resume") == 0)
        return berlu_fail(BERLU_ERR_ARG, "unexpected argument '%s'; write --run %s --resume", word, word);
    if (flag)
        return berlu_fail(BERLU_ERR_ARG, "unexpected argument '%s'; --%s is a flag: leave '%s' out, or write --%s=%s",
                          word, flag, word, flag, word);
    return berlu_fail(BERLU_ERR_ARG, "unexpected argument '%s'; --help tells what is expected", word);
}

static berlu_status check_required(const options *o)
{
    char title[80];
    for (const option_row *row = o->rows; row && row->name; row++)
        if (row->flags & OPTION_REQUIRED && options_value(o, row)->level == LEVEL_ABSENT)
            return berlu_fail(BERLU_ERR_ARG, "%s is missing (%s)", row_title(row, title), row->help);
    return BERLU_OK;
}

static int is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 && !looks_like_number(word);
}

static berlu_status words_read(options *o, int argc, char *const *argv)
{
    reader r = {.o = o, .argc = argc, .argv = argv};
    int only_arguments = 0;
    while (r.at < argc) {
        const char *word = argv[r.at++];
        if (!only_arguments && strcmp(word, "--") == 0)
            only_arguments = 1;
        else if (!only_arguments && strcmp(word, "-h") == 0)
            TRY(take_option(&r, "--help"));
        else if (!only_arguments && is_option(word))
            TRY(take_option(&r, word));
        else if (!only_arguments && word[0] == '-' && word[1] && !looks_like_number(word))
            return berlu_fail(BERLU_ERR_ARG, "unknown option %s; options begin with two dashes", word);
        else
            TRY(take_argument(&r, word));
    }
    return BERLU_OK;
}

berlu_status options_parse(options **out, const option_row *rows, int argc, char *const *argv)
{
    options *o = *out = calloc(1, sizeof *o);
    if (!o)
        return berlu_fail_memory(sizeof *o, "options");
    o->rows = rows;
    o->count = rows_count(rows);
    o->values = ARENA_ARRAY(&o->memory, option_value, o->count + rows_count(options_common));
    if (!o->values)
        return BERLU_ERR_MEMORY;
    berlu_status status = defaults_set(o);
    if (status == BERLU_OK)
        status = words_read(o, argc, argv);
    for (int i = 0; i < argc; i++) /* --help is answered despite any mistake */
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return value_set(o, options_row(o, "help", 4), "true", LEVEL_COMMAND);
    return status == BERLU_OK ? check_required(o) : status;
}

void options_free(options *o)
{
    if (!o)
        return;
    arena_free(&o->memory);
    free(o);
}
