/* study_predict.c - contrasts as a study file has them, and what they predict.
 * SPDX-License-Identifier: MIT
 *
 * A contrast asks whether two cells differ, unless it predicts more:
 *
 *     expect: equal, margin: 0.5    the difference lies within the margin (default: the study's)
 *     expect: greater, than: 1.0    it lies above 1 (less: below)
 *     minus: {a: {...}, b: {...}}   what is judged is a difference of differences
 *
 * A study with a `hypothesis` has predictions alone: its sentence holds only if all of them hold.
 * Which cells they compare: study_contrasts.c. */
#include <math.h>
#include <string.h>

#include "io/yaml.h"
#include "study/study_internal.h"

double study_margin_read(study_reader *r, const yaml_item *item)
{
    double margin = study_real(r, item, "margin");
    if (!isnan(margin) && !(margin > 0))
        study_problem(r, item->line, item->column, "margin: must be above 0");
    return margin;
}

static void sides_check(study_reader *r, const yaml_item *map, const char *what)
{
    if (!yaml_find(map, "a") || !yaml_find(map, "b"))
        study_problem(r, map->line, map->column, "%s needs both sides, a: {...} and b: {...}", what);
}

static void minus_read(study_reader *r, const yaml_item *map, study_contrast *c)
{
    static const char *const keys[] = {"a", "b", NULL};
    if (!study_is_map(r, map, "minus"))
        return;
    for (const yaml_item *item = map->first; item; item = item->next) {
        if (strcmp(item->key, "a") == 0)
            c->minus_a = study_match_read(r, item, "a");
        else if (strcmp(item->key, "b") == 0)
            c->minus_b = study_match_read(r, item, "b");
        else
            study_unknown(r, item, "key of minus", keys);
    }
    sides_check(r, map, "minus");
}

/* `expect`, `than` and `margin` together: a prediction, an expectation without a limit, or
 * nothing. */
static void prediction_read(study_reader *r, const yaml_item *map, study_contrast *c)
{
    const yaml_item *expect = yaml_find(map, "expect"), *than = yaml_find(map, "than"),
                    *margin = yaml_find(map, "margin");
    int equal = 0, ordered = 0;
    if (expect) {
        c->expect = study_scalar(r, expect, "expect");
        equal = strcmp(c->expect, "equal") == 0;
        ordered = strcmp(c->expect, "less") == 0 ? -1 : strcmp(c->expect, "greater") == 0;
        if (!equal && !ordered)
            study_problem(r, expect->line, expect->column, "expect: '%.60s' is none of less, greater, equal",
                          c->expect);
    }
    if (than) {
        c->expected = (stats_expected){ordered < 0 ? STATS_BELOW : STATS_ABOVE, study_real(r, than, "than")};
        if (!ordered)
            study_problem(r, than->line, than->column, "than: goes with expect: less or greater");
    }
    if (margin && !equal)
        study_problem(r, margin->line, margin->column, "margin: of a contrast goes with expect: equal");
    else if (equal)
        c->expected = (stats_expected){STATS_WITHIN, margin ? study_margin_read(r, margin) : r->study->margin};
}

static void contrast_read(study_reader *r, const yaml_item *map, study_contrast *c)
{
    static const char *const keys[] = {"name", "a", "b", "minus", "expect", "than", "margin", "paper", NULL};
    *c = (study_contrast){.name = "", .expect = "", .paper = NAN, .line = map->line, .column = map->column};
    for (const yaml_item *item = map->first; item; item = item->next) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], item->key) != 0)
            k++;
        if (!keys[k])
            study_unknown(r, item, "key of a contrast", keys);
        else if (strcmp(item->key, "name") == 0)
            c->name = study_scalar(r, item, "name");
        else if (strcmp(item->key, "a") == 0)
            c->a = study_match_read(r, item, "a");
        else if (strcmp(item->key, "b") == 0)
            c->b = study_match_read(r, item, "b");
        else if (strcmp(item->key, "minus") == 0)
            minus_read(r, item, c);
        else if (strcmp(item->key, "paper") == 0)
            c->paper = study_real(r, item, "paper");
    }
    prediction_read(r, map, c);
    if (!*c->name)
        study_problem(r, map->line, map->column, "a contrast needs a name");
    sides_check(r, map, "a contrast");
}

void study_contrasts_read(study_reader *r, const yaml_item *list, study_contrast **out, size_t *count)
{
    if (!study_is_list(r, list, "contrasts") || !(*out = study_array(r, list->count, sizeof **out)))
        return;
    for (const yaml_item *item = list->first; item; item = item->next) {
        if (!study_is_map(r, item, "contrasts"))
            continue;
        study_contrast *c = &(*out)[*count];
        contrast_read(r, item, c);
        for (size_t i = 0; i < *count; i++)
            if (*c->name && strcmp((*out)[i].name, c->name) == 0)
                study_problem(r, item->line, item->column, "a second contrast is called '%.60s'", c->name);
        ++*count;
    }
}

/* A difference that is judged against 0 can come out in three ways; none of them is "held". */
void study_hypothesis_check(study_reader *r, const yaml_item *item)
{
    const study *s = r->study;
    if (item->kind == YAML_TEXT && !*item->text)
        study_problem(r, item->line, item->column, "hypothesis: say it in a sentence");
    if (!s->contrast_count)
        study_problem(r, item->line, item->column, "hypothesis: it needs contrasts that predict something");
    for (size_t i = 0; i < s->contrast_count; i++)
        if (!s->contrasts[i].expected.what)
            study_problem(r, s->contrasts[i].line, s->contrasts[i].column,
                          "contrast '%.60s' predicts nothing, and the hypothesis rests on it: expect: equal, or "
                          "less or greater than: a number",
                          s->contrasts[i].name);
}
