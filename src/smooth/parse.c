/* parse.c - reads "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1; degree=4)".
 * SPDX-License-Identifier: MIT
 *
 * Any bytes may come in (tests/fuzz/fuzz_smooth_parse.c); the message names the mistake. Numbers
 * are those of strtod. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "smooth/settings.h"

enum { TEXT_LIMIT = 1 << 20 }; /* bytes; 4096 kinks need a fraction of it */

static const char *const keys[] = {"kinks", "slopes", "eps", "eps_right", "at", "degree", "form", NULL};

void settings_start(smooth_settings *s)
{
    *s = (smooth_settings){.degree = 2};
}

void settings_free(smooth_settings *s)
{
    free(s->kinks.items);
    free(s->slopes.items);
    free(s->eps.items);
    free(s->eps_right.items);
    *s = (smooth_settings){0};
}

/* strdup() on top of malloc(), which tests can make fail. */
static char *copy_make(const char *word)
{
    char *copy = malloc(strlen(word) + 1);
    return copy ? strcpy(copy, word) : NULL;
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *word)
{
    while (isspace((unsigned char)*word))
        word++;
    size_t length = strlen(word);
    while (length > 0 && isspace((unsigned char)word[length - 1]))
        word[--length] = '\0';
    return word;
}

static berlu_status number_read(double *out, const char *word, const char *key)
{
    if (*word == '\0')
        return berlu_fail(BERLU_ERR_ARG, "%s: a number is missing", key);
    if (!number_parse(word, out))
        return berlu_fail(BERLU_ERR_ARG, "%s: '%.40s' is no number", key, word);
    return BERLU_OK;
}

/* Numbers with commas between them; `value` is changed. */
static berlu_status list_read(number_list *list, char *value, const char *key)
{
    size_t count = 1;
    for (const char *c = value; *c; c++)
        count += *c == ',';
    if (count > BERLU_SMOOTH_MAX_KINKS + 1)
        return berlu_fail(BERLU_ERR_ARG, "%s: %zu numbers; at most %d kinks are possible", key, count,
                          BERLU_SMOOTH_MAX_KINKS);
    list->items = calloc(count, sizeof *list->items);
    if (!list->items)
        return berlu_fail_memory(count * sizeof *list->items, key);
    list->given = 1;
    for (char *rest = value; list->count < count; list->count++) {
        char *word = rest, *comma = strchr(rest, ',');
        if (comma) {
            *comma = '\0';
            rest = comma + 1;
        }
        berlu_status status = number_read(&list->items[list->count], trim(word), key);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

static berlu_status anchor_read(smooth_settings *s, char *value)
{
    char *equals = strchr(value, '=');
    if (!equals)
        return berlu_fail(BERLU_ERR_ARG, "at: '%.40s' is not of the form x=y", value);
    *equals = '\0';
    TRY(number_read(&s->at_x, trim(value), "at"));
    return number_read(&s->at_y, trim(equals + 1), "at");
}

static berlu_status degree_read(int *out, const char *value)
{
    double degree;
    berlu_status status = number_read(&degree, value, "degree");
    if (status != BERLU_OK)
        return status;
    if (!(degree >= BERLU_SMOOTH_MIN_DEGREE && degree <= BERLU_SMOOTH_MAX_DEGREE) || degree != floor(degree))
        return berlu_fail(BERLU_ERR_ARG, "degree is '%.40s'; it must be a whole number from 2 to 16", value);
    *out = (int)degree;
    return BERLU_OK;
}

static berlu_status form_read(berlu_smooth_form *out, const char *value)
{
    if (strcmp(value, "bernstein") != 0 && strcmp(value, "collinear") != 0)
        return berlu_fail(BERLU_ERR_ARG, "form is '%.40s'; it must be bernstein or collinear", value);
    *out = value[0] == 'c' ? BERLU_SMOOTH_COLLINEAR : BERLU_SMOOTH_BERNSTEIN;
    return BERLU_OK;
}

static berlu_status value_read(smooth_settings *s, size_t key, char *value)
{
    number_list *const lists[] = {&s->kinks, &s->slopes, &s->eps, &s->eps_right};
    if (key < COUNT(lists))
        return list_read(lists[key], value, keys[key]);
    if (key == 4)
        return anchor_read(s, value);
    return key == 5 ? degree_read(&s->degree, value) : form_read(&s->form, value);
}

static size_t key_find(const char *key)
{
    size_t i = 0;
    while (keys[i] && strcmp(keys[i], key) != 0)
        i++;
    return i;
}

berlu_status settings_set(smooth_settings *s, const char *key, const char *value)
{
    size_t index = key_find(key);
    if (!keys[index]) {
        const char *near = nearest_name(key, keys);
        if (near)
            return berlu_fail(BERLU_ERR_ARG, "unknown key '%.40s'; did you mean '%s'?", key, near);
        return berlu_fail(BERLU_ERR_ARG, "unknown key '%.40s'; there are kinks slopes eps eps_right at degree form",
                          key);
    }
    if (s->seen >> index & 1)
        return berlu_fail(BERLU_ERR_ARG, "%s is given twice", key);
    s->seen |= 1u << index;
    char *copy = copy_make(value);
    if (!copy)
        return berlu_fail_memory(strlen(value) + 1, key);
    berlu_status status = value_read(s, index, trim(copy));
    free(copy);
    return status;
}

berlu_status settings_make(const smooth_settings *s, berlu_smooth **out)
{
    static const double eps_standard[] = {0.01};
    *out = NULL;
    if (!s->slopes.given)
        return berlu_fail(BERLU_ERR_ARG, "slopes are missing: give one number more than there are kinks");
    if (s->slopes.count != s->kinks.count + 1)
        return berlu_fail(BERLU_ERR_ARG, "slopes: %zu given, %zu needed: one more than there are kinks",
                          s->slopes.count, s->kinks.count + 1);
    if (s->eps_right.given && s->eps_right.count != (s->eps.given ? s->eps.count : 1))
        return berlu_fail(BERLU_ERR_ARG, "eps_right and eps have %zu and %zu numbers: give as many of both",
                          s->eps_right.count, s->eps.given ? s->eps.count : (size_t)1);
    berlu_smooth_spec spec = {
        .kink_count = s->kinks.count,
        .kinks = s->kinks.items,
        .slopes = s->slopes.items,
        .at_x = s->at_x,
        .at_y = s->at_y,
        .eps = s->eps.given ? s->eps.items : eps_standard,
        .eps_count = s->eps.given ? s->eps.count : 1,
        .eps_right = s->eps_right.items,
        .degree = s->degree,
        .form = s->form,
    };
    return berlu_smooth_make(out, &spec);
}

/* "key=value" between semicolons; `body` is changed. */
static berlu_status pairs_read(smooth_settings *s, char *body)
{
    for (char *rest = body; rest;) {
        char *pair = rest, *end = strchr(rest, ';');
        rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        pair = trim(pair);
        if (*pair == '\0' && !rest) /* a semicolon after the last pair */
            break;
        char *equals = strchr(pair, '=');
        if (!equals)
            return berlu_fail(BERLU_ERR_ARG, "'%.40s' is not of the form key=value", pair);
        *equals = '\0';
        berlu_status status = settings_set(s, trim(pair), equals + 1);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

/* The text between "smooth(" and ")", cut out of `copy`; NULL when it has another form. */
static char *body_find(char *copy)
{
    copy = trim(copy);
    if (strncmp(copy, "smooth", 6) != 0)
        return NULL;
    copy = trim(copy + 6);
    size_t length = strlen(copy);
    if (length < 2 || copy[0] != '(' || copy[length - 1] != ')')
        return NULL;
    copy[length - 1] = '\0';
    return copy + 1;
}

berlu_status berlu_smooth_parse(berlu_smooth **out, const char *input)
{
    if (out)
        *out = NULL;
    if (!out || !input)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_parse() was given NULL");
    if (strlen(input) > TEXT_LIMIT)
        return berlu_fail(BERLU_ERR_ARG, "the text of a smoothed function is longer than %d bytes", TEXT_LIMIT);
    char *copy = copy_make(input);
    if (!copy)
        return berlu_fail_memory(strlen(input) + 1, "the text of a smoothed function");
    smooth_settings settings;
    settings_start(&settings);
    char *body = body_find(copy);
    berlu_status status = BERLU_OK;
    if (!body)
        status = berlu_fail(BERLU_ERR_ARG, "'%.60s' is not of the form smooth(key=value; ...)", input);
    else if ((status = pairs_read(&settings, body)) == BERLU_OK)
        status = settings_make(&settings, out);
    settings_free(&settings);
    free(copy);
    return status;
}
