/* constraint.c - parses the rules, and turns them into intervals of floats.
 * SPDX-License-Identifier: MIT
 *
 * constraint.h has the syntax. constraint_parse() splits a list into items, item_parse() an item
 * into name and ends; constraint_bounds() makes what the engine takes, rounded inwards.
 * constraint_idle() finds rules for parameters that no activation learns. */
#include "train/constraint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/act_text.h"
#include "smooth/limits.h"

static const interval everything = {-INFINITY, INFINITY};

enum { ITEM_CAPACITY = 96 };

static interval *interval_named(constraint *c, const char *name)
{
    return strcmp(name, "alpha") == 0  ? &c->alpha
           : strcmp(name, "eps") == 0  ? &c->eps
           : strcmp(name, "beta") == 0 ? &c->beta
                                       : NULL;
}

static int end_parse(const char *word, double *out)
{
    return !*word || (number_parse(word, out) && !isnan(*out));
}

/* Splits one item into name, low and high. */
static int item_parse(char *item, const char **name, interval *out)
{
    char *at;
    *out = everything;
    *name = item;
    if (*item == '|' && (at = strstr(item, "|<="))) {
        *at = 0;
        *name = item + 1;
        if (!end_parse(at + 3, &out->high) || !(out->high >= 0))
            return 0;
        out->low = -out->high;
        return 1;
    }
    if ((at = strstr(item, ">=")) || (at = strstr(item, "<="))) {
        double *end = *at == '>' ? &out->low : &out->high;
        *at = 0;
        return at[2] && end_parse(at + 2, end);
    }
    char *second = NULL;
    if (!(at = strchr(item, ':')) || !(second = strchr(at + 1, ':')))
        return 0;
    *at = *second = 0;
    return end_parse(at + 1, &out->low) && end_parse(second + 1, &out->high) && out->low <= out->high;
}

static berlu_status item_add(constraint *c, const char *rule, size_t length)
{
    char item[ITEM_CAPACITY];
    const char *name;
    interval asked;
    snprintf(item, sizeof item, "%.*s", (int)length, rule);
    if (length >= sizeof item || !item_parse(item, &name, &asked))
        return berlu_fail(BERLU_ERR_ARG,
                          "act_constraint: '%.*s' is not a rule; write alpha:LOW:HIGH, alpha>=LOW or |alpha|<=HIGH",
                          (int)(length < 80 ? length : 80), rule);
    interval *place = interval_named(c, name);
    if (!place)
        return berlu_fail(BERLU_ERR_ARG,
                          "act_constraint: no activation learns a parameter '%s'; choose alpha, eps or beta", name);
    place->low = fmax(place->low, asked.low);
    place->high = fmin(place->high, asked.high);
    if (!(place->low <= place->high))
        return berlu_fail(BERLU_ERR_ARG, "act_constraint: nothing is left for %s between %g and %g", name, place->low,
                          place->high);
    return BERLU_OK;
}

berlu_status constraint_parse(constraint *out, const char *rules)
{
    constraint c = {.alpha = everything, .eps = {EPS_MIN, EPS_MAX}, .beta = everything};
    if (strcmp(rules, "none") != 0) {
        for (const char *at = rules;; at++) {
            size_t length = strcspn(at, ",");
            TRY(item_add(&c, at, length));
            at += length;
            if (!*at)
                break;
        }
    }
    *out = c;
    return BERLU_OK;
}

/* A bit for each of alpha, eps and beta that any of the activations learns; all bits where a text
 * is no activation. */
static berlu_status learned_by(unsigned *learned, const char *const *acts, size_t count, const char *const *names)
{
    *learned = 0;
    for (size_t i = 0; i < count; i++) {
        berlu_act *act = NULL;
        berlu_status status = act_from_text(&act, acts[i]);
        if (status == BERLU_ERR_MEMORY)
            return status;
        if (status != BERLU_OK) {
            *learned = ~0u;
            return BERLU_OK;
        }
        for (unsigned n = 0; names[n]; n++) {
            int index = berlu_act_param_find(act, names[n]);
            berlu_act_param_info info = {0};
            if (index >= 0 && berlu_act_param(act, (size_t)index, &info) == BERLU_OK && info.learned)
                *learned |= 1u << n;
        }
        berlu_act_free(act);
    }
    return BERLU_OK;
}

berlu_status constraint_idle(const char *rules, const char *const *acts, size_t count)
{
    static const char *const names[] = {"alpha", "eps", "beta", NULL};
    unsigned learned;
    TRY(learned_by(&learned, acts, count, names));
    for (unsigned n = 0; learned && names[n]; n++)
        if (strstr(rules, names[n]) && !(learned >> n & 1))
            return berlu_fail(
                BERLU_ERR_ARG,
                "act_constraint: %s has no effect because %s does not learn it; leave it out, or choose what "
                "is learned with learn=",
                names[n], acts[0]);
    return BERLU_OK;
}

/* Rounds the ends inwards to floats: the float below 0.7 violates a lower bound of 0.7. An interval
 * without any float gets those nearest to it. */
static void ends_round(interval i, float *low, float *high)
{
    *low = (float)i.low, *high = (float)i.high;
    float inner_low = *low < i.low ? nextafterf(*low, INFINITY) : *low;
    float inner_high = *high > i.high ? nextafterf(*high, -INFINITY) : *high;
    if (inner_low <= inner_high)
        *low = inner_low, *high = inner_high;
}

int constraint_bounds(const constraint *c, engine_bound out[3])
{
    static const char *const names[] = {"alpha", "eps", "beta"};
    const interval all[] = {c->alpha, c->eps, c->beta};
    int count = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        interval bounds = all[i];
        if (bounds.low > -INFINITY || bounds.high < INFINITY) {
            out[count].parameter = names[i];
            ends_round(bounds, &out[count].low, &out[count].high);
            count++;
        }
    }
    return count;
}
