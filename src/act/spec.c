/* spec.c - makes an activation from a text: NAME[:key=value,...]. SPDX-License-Identifier: MIT
 *
 * Keys are the activation's own parameters and degree, and for all of them learn, scale, center.
 * Everything is checked before anything is kept; an error names the key, the value and, where a
 * name is nearly right, the right one. Parameters are kept twice: rounded to f32 for the kernels,
 * and as written for berlu_act_at() and for the text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "base/text.h"

enum { PAIR_ROOM = 256, KEYS_MOST = BERLU_ACT_PARAMS + 5 };

static int has_degree(const berlu_act *act)
{
    return act->definition->degree != 0;
}

/* The keys this activation knows, NULL-terminated. */
static void key_names(const berlu_act *act, const char *names[KEYS_MOST])
{
    size_t n = 0;
    for (size_t i = 0; i < act->definition->param_count; i++)
        names[n++] = act->definition->params[i].name;
    if (has_degree(act))
        names[n++] = "degree";
    names[n++] = "learn";
    names[n++] = "scale";
    names[n++] = "center";
    names[n] = NULL;
}

static berlu_status fail_unknown_key(const berlu_act *act, const char *key)
{
    const char *names[KEYS_MOST];
    key_names(act, names);
    const char *near = nearest_name(key, names);
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "%s: unknown key '%s'; did you mean '%s'?", act->name, key, near);
    char known[PAIR_ROOM] = "";
    for (size_t i = 0; names[i]; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", names[i]);
    return berlu_fail(BERLU_ERR_ARG, "%s: unknown key '%s'; it has %s", act->name, key, known);
}

static berlu_status read_number(const berlu_act *act, const char *key, const char *value, double *out)
{
    if (!number_parse(value, out) || !isfinite(*out))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s=%s is not a finite number", act->name, key, value);
    return BERLU_OK;
}

/* Bounds that are large or small powers of two read better as such: 2^-60. */
static const char *bound_text(char out[NUMBER_TEXT], double value)
{
    int exponent;
    if (frexp(value, &exponent) == 0.5 && (exponent > 21 || exponent < -9))
        snprintf(out, NUMBER_TEXT, "2^%d", exponent - 1);
    else
        snprintf(out, NUMBER_TEXT, "%g", value);
    return out;
}

static berlu_status set_param(berlu_act *act, size_t index, const char *value)
{
    const act_param_definition *p = &act->definition->params[index];
    double v = 0;
    char low[NUMBER_TEXT], high[NUMBER_TEXT];
    berlu_status status = read_number(act, p->name, value, &v);
    if (status != BERLU_OK)
        return status;
    if (v < p->low || v > p->high)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s=%s is outside its range, %s to %s", act->name, p->name, value,
                          bound_text(low, p->low), bound_text(high, p->high));
    if (fabs((double)(float)v) < p->least)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s=%s is too near zero; its magnitude must be at least %g", act->name,
                          p->name, value, p->least);
    if (!isfinite((float)v))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s=%s is infinite as an f32 number", act->name, p->name, value);
    act->params[index] = (float)v;
    act->exact[index] = v;
    return BERLU_OK;
}

static berlu_status set_degree(berlu_act *act, const char *value)
{
    double v = 0;
    berlu_status status = read_number(act, "degree", value, &v);
    if (status != BERLU_OK)
        return status;
    if (v != floor(v) || v < BERLU_SMOOTH_MIN_DEGREE || v > BERLU_SMOOTH_MAX_DEGREE)
        return berlu_fail(BERLU_ERR_ARG, "%s: degree=%s is not a whole number from %d to %d", act->name, value,
                          BERLU_SMOOTH_MIN_DEGREE, BERLU_SMOOTH_MAX_DEGREE);
    act->shape.degree = (int)v / 2 * 2; /* an odd degree is the even one below */
    return BERLU_OK;
}

/* learn=none, or names joined by '+'. */
static berlu_status set_learn(berlu_act *act, const char *value)
{
    char names[PAIR_ROOM], *rest = names, *name;
    memset(act->learned, 0, sizeof act->learned);
    if (strcmp(value, "none") == 0)
        return BERLU_OK;
    snprintf(names, sizeof names, "%s", value);
    while ((name = strsep(&rest, "+"))) {
        int index = berlu_act_param_find(act, name);
        if (index < 0)
            return berlu_fail(BERLU_ERR_ARG, "%s: learn=%s: there is no parameter '%s' to learn", act->name, value,
                              name);
        act->learned[index] = 1;
    }
    return BERLU_OK;
}

static berlu_status set_scale(berlu_act *act, const char *value)
{
    double v = 0;
    berlu_status status = read_number(act, "scale", value, &v);
    if (status != BERLU_OK)
        return status;
    if (!isfinite((float)v) || (float)v == 0.0f)
        return berlu_fail(BERLU_ERR_ARG, "%s: scale=%s must be a finite f32 number other than 0", act->name, value);
    act->scale = (float)v;
    act->exact_scale = v;
    return BERLU_OK;
}

static berlu_status set_center(berlu_act *act, const char *value)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: center=%s is neither 0 nor 1", act->name, value);
    act->center = *value == '1';
    return BERLU_OK;
}

static berlu_status set_pair(berlu_act *act, char *pair)
{
    char *value = strchr(pair, '=');
    if (!value)
        return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is not of the form key=value", act->name, pair);
    *value++ = '\0';
    int index = berlu_act_param_find(act, pair);
    if (index >= 0)
        return set_param(act, (size_t)index, value);
    if (has_degree(act) && strcmp(pair, "degree") == 0)
        return set_degree(act, value);
    if (strcmp(pair, "learn") == 0)
        return set_learn(act, value);
    if (strcmp(pair, "scale") == 0)
        return set_scale(act, value);
    if (strcmp(pair, "center") == 0)
        return set_center(act, value);
    return fail_unknown_key(act, pair);
}

/* Every pair of "a=1,b=2"; a key that comes twice is refused. */
static berlu_status set_pairs(berlu_act *act, const char *pairs)
{
    char buffer[PAIR_ROOM], *rest = buffer, *pair;
    char seen[KEYS_MOST][PAIR_ROOM];
    size_t count = 0;
    if (strlen(pairs) >= sizeof buffer)
        return berlu_fail(BERLU_ERR_ARG, "%s: the keys take more than %d characters", act->name, PAIR_ROOM - 1);
    snprintf(buffer, sizeof buffer, "%s", pairs);
    while ((pair = strsep(&rest, ","))) {
        berlu_status status = set_pair(act, pair); /* ends the key with NUL */
        if (status != BERLU_OK)
            return status;
        for (size_t i = 0; i < count; i++)
            if (strcmp(seen[i], pair) == 0)
                return berlu_fail(BERLU_ERR_ARG, "%s: '%s' comes twice", act->name, pair);
        snprintf(seen[count++], sizeof seen[0], "%s", pair);
    }
    return BERLU_OK;
}

/* The text that makes this activation again. */
static berlu_status write_spec(berlu_act *act)
{
    text t = {0};
    char number[NUMBER_TEXT];
    const char *mark = ":", *learned_mark = "";
    if (act->definition->inner)
        smoothed_write(&t, act);
    else
        text_string(&t, act->name);
    for (size_t i = 0; i < act->definition->param_count; i++, mark = ",")
        text_add(&t, "%s%s=%s", mark, act->definition->params[i].name, number_text(number, act->exact[i]));
    if (has_degree(act)) {
        text_add(&t, "%sdegree=%d", mark, act->shape.degree);
        mark = ",";
    }
    if (act->definition->param_count) {
        text_add(&t, "%slearn=", mark);
        for (size_t i = 0; i < act->definition->param_count; i++)
            if (act->learned[i]) {
                text_add(&t, "%s%s", learned_mark, act->definition->params[i].name);
                learned_mark = "+";
            }
        if (!*learned_mark)
            text_string(&t, "none");
        mark = ",";
    }
    if (act->exact_scale != 1) {
        text_add(&t, "%sscale=%s", mark, number_text(number, act->exact_scale));
        mark = ",";
    }
    if (act->center)
        text_add(&t, "%scenter=1", mark);
    berlu_status status = text_status(&t);
    if (status != BERLU_OK) {
        text_free(&t);
        return status;
    }
    act->spec = t.data; /* ownership moves */
    return BERLU_OK;
}

/* The nearer one of two names; `near` may be NULL. */
static const char *nearer(const char *word, const char *near, const char *other)
{
    return nearest_name(word, (const char *const[]){near ? near : other, near ? other : NULL, NULL});
}

/* berlu(alpha=0.1) and berlu,alpha=0.1 instead of berlu:alpha=0.1 */
static const char *name_before_parameters(const char *name)
{
    const char *builtin;
    size_t length = strcspn(name, "(,");
    for (size_t i = 0; name[length] && (builtin = berlu_act_builtin(i)); i++)
        if (strlen(builtin) == length && strncmp(builtin, name, length) == 0)
            return builtin;
    return NULL;
}

static berlu_status fail_unknown_name(const char *name, const berlu_registry *names)
{
    const char *near = name_before_parameters(name), *next;
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "activation '%s' is unknown; parameters follow a colon, as in %s:key=value",
                          name, near);
    near = act_guess(name);
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "activation '%s' is unknown; did you mean '%s'?", name, near);
    for (size_t i = 0; (next = berlu_act_builtin(i)); i++)
        near = nearer(name, near, next);
    for (size_t i = 0; (next = berlu_registry_name(names, i)); i++)
        near = nearer(name, near, next);
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "activation '%s' is unknown; did you mean '%s'?", name, near);
    return berlu_fail(BERLU_ERR_ARG, "activation '%s' is unknown; `berlu act list` shows all names", name);
}

/* Makes an activation with all defaults of its row. */
static berlu_status act_start(berlu_act **out, const act_row *row)
{
    berlu_act *act = calloc(1, sizeof *act);
    if (!act)
        return berlu_fail_memory(sizeof *act, "an activation");
    act->definition = row->definition;
    snprintf(act->name, sizeof act->name, "%s", row->definition->name);
    act->shape.degree = row->definition->degree;
    act->scale = 1.0f;
    act->exact_scale = 1;
    for (size_t i = 0; i < row->definition->param_count; i++) {
        act->exact[i] = row->definition->params[i].initial;
        act->params[i] = (float)act->exact[i];
        act->learned[i] = row->definition->params[i].learned;
    }
    berlu_status status = kernels_choose(act, row);
    if (status != BERLU_OK) {
        berlu_act_free(act);
        act = NULL;
    }
    *out = act;
    return status;
}

/* Sets keys, text and constants of an activation whose function is set, unless `status` is a
 * failure; frees it on any failure. */
static berlu_status act_finish(berlu_act **out, berlu_act *act, berlu_status status, const char *pairs)
{
    TRY_DONE(status);
    if (pairs)
        TRY_DONE(set_pairs(act, pairs));
    if (act->definition->check)
        TRY_DONE(act->definition->check(act->exact));
    TRY_DONE(write_spec(act));
    TRY_DONE(kernels_prepare(act));
    *out = act;
    return BERLU_OK;
done:
    berlu_act_free(act);
    return status;
}

static berlu_status make_builtin(berlu_act **out, const act_row *row, const char *pairs)
{
    berlu_act *act = NULL;
    TRY(act_start(&act, row));
    return act_finish(out, act, BERLU_OK, pairs);
}

static berlu_status make_smooth(berlu_act **out, const char *name, const berlu_smooth *f, const char *pairs)
{
    berlu_act *act = NULL;
    berlu_status status = act_start(&act, act_row_find("smooth"));
    if (status != BERLU_OK)
        return status;
    snprintf(act->name, sizeof act->name, "%s", name);
    return act_finish(out, act, smoothed_fill(act, f), pairs);
}

/* smooth(...), with or without keys after it: smooth(...):scale=2 */
static berlu_status make_smooth_text(berlu_act **out, const char *spec)
{
    const char *end = strrchr(spec, ')'), *pairs = end && end[1] == ':' ? end + 2 : NULL;
    size_t length = pairs ? (size_t)(end + 1 - spec) : strlen(spec);
    char *function = malloc(length + 1);
    if (!function)
        return berlu_fail_memory(length + 1, "the text of an activation");
    memcpy(function, spec, length);
    function[length] = '\0';
    berlu_smooth *f = NULL;
    berlu_status status = berlu_smooth_parse(&f, function);
    if (status == BERLU_OK)
        status = make_smooth(out, "smooth", f, pairs);
    berlu_smooth_free(f);
    free(function);
    return status;
}

berlu_status berlu_act_make_smooth(berlu_act **out, const char *name, const berlu_smooth *f)
{
    if (out)
        *out = NULL;
    if (!out || !name || !f)
        return berlu_fail(BERLU_ERR_ARG, "berlu_act_make_smooth: the answer, the name or the function is NULL");
    TRY(act_name_check(name));
    return make_smooth(out, name, f, NULL);
}

berlu_status berlu_act_make_in(berlu_act **out, const char *spec, const berlu_registry *names)
{
    if (out)
        *out = NULL;
    if (!out || !spec)
        return berlu_fail(BERLU_ERR_ARG, "berlu_act_make: the answer or the text is NULL");
    if (strncmp(spec, "smooth(", 7) == 0)
        return make_smooth_text(out, spec);
    const char *pairs = strchr(spec, ':');
    size_t length = pairs ? (size_t)(pairs - spec) : strlen(spec);
    char name[ACT_NAME_CAPACITY];
    if (length >= sizeof name)
        return berlu_fail(BERLU_ERR_ARG, "activation '%.20s...' is unknown; `berlu act list` shows all names", spec);
    memcpy(name, spec, length);
    name[length] = '\0';
    pairs = pairs ? pairs + 1 : NULL;
    const act_row *row = act_row_find(name);
    if (row && !row->definition->inner)
        return make_builtin(out, row, pairs);
    const berlu_smooth *own = berlu_registry_find(names, name);
    return own ? make_smooth(out, name, own, pairs) : fail_unknown_name(name, names);
}

berlu_status berlu_act_make(berlu_act **out, const char *spec)
{
    return berlu_act_make_in(out, spec, NULL);
}
