/* study_equal.c - the section `equivalence` of a study file. SPDX-License-Identifier: MIT
 *
 *     equivalence: {source: pytorch, margin: 0.5,
 *                   differences: [{a: {act: berlu}, b: {act: gelu}, margin: 0.7}]}
 *
 * Every cell is to have the mean that the source has, within the margin; and each difference the
 * source's difference. Nothing is run for it: the source's results are imported (import.h), and the
 * report tests (report/equivalence.h). */
#include <math.h>
#include <string.h>

#include "io/yaml.h"
#include "study/study_internal.h"

static void difference_read(study_reader *r, const yaml_item *map, study_contrast *c)
{
    static const char *const keys[] = {"a", "b", "margin", NULL};
    *c = (study_contrast){.name = "difference", .expect = "", .paper = NAN, .line = map->line, .column = map->column};
    for (const yaml_item *item = map->first; item; item = item->next) {
        if (strcmp(item->key, "a") == 0)
            c->a = study_match_read(r, item, "a");
        else if (strcmp(item->key, "b") == 0)
            c->b = study_match_read(r, item, "b");
        else if (strcmp(item->key, "margin") == 0)
            c->paper = study_margin_read(r, item);
        else
            study_unknown(r, item, "key of a difference", keys);
    }
    if (!yaml_find(map, "a") || !yaml_find(map, "b") || !yaml_find(map, "margin"))
        study_problem(r, map->line, map->column, "a difference needs a: {...}, b: {...} and a margin");
}

static void differences_read(study_reader *r, const yaml_item *list)
{
    study_equivalence *e = &r->study->equivalence;
    if (!study_is_list(r, list, "differences") ||
        !(e->differences = study_array(r, list->count, sizeof *e->differences)))
        return;
    for (const yaml_item *item = list->first; item; item = item->next)
        if (study_is_map(r, item, "differences"))
            difference_read(r, item, &e->differences[e->difference_count++]);
}

void study_equivalence_read(study_reader *r, const yaml_item *map)
{
    static const char *const keys[] = {"source", "margin", "differences", NULL};
    study_equivalence *e = &r->study->equivalence;
    *e = (study_equivalence){.margin = r->study->margin, .line = map->line, .column = map->column};
    if (!study_is_map(r, map, "equivalence"))
        return;
    for (const yaml_item *item = map->first; item; item = item->next) {
        if (strcmp(item->key, "source") == 0)
            e->source = study_scalar(r, item, "source");
        else if (strcmp(item->key, "margin") == 0)
            e->margin = study_margin_read(r, item);
        else if (strcmp(item->key, "differences") == 0)
            differences_read(r, item);
        else
            study_unknown(r, item, "key of an equivalence", keys);
    }
    if (!e->source || !*e->source)
        study_problem(r, map->line, map->column, "equivalence: name the source of the other results");
}

static const char *difference_name(study_reader *r, size_t a, size_t b)
{
    const study *s = r->study;
    const char *name = arena_printf(&r->study->memory, "%s - %s", s->cells[a].label, s->cells[b].label);
    r->failed |= !name;
    return name;
}

void study_equivalence_expand(study_reader *r)
{
    study *s = r->study;
    const study_equivalence *e = &s->equivalence;
    size_t count = 0;
    if (!e->source)
        return;
    for (size_t i = 0; i < e->difference_count; i++) {
        size_t found =
            study_contrast_check(r, &e->differences[i]) ? study_contrast_cells(s, &e->differences[i], NULL) : 1;
        if (!found)
            study_problem(r, e->differences[i].line, e->differences[i].column, "no two cells differ by it alone");
        count += found;
    }
    if (r->count || !(s->equals = study_array(r, s->cell_count + count, sizeof *s->equals)))
        return;
    for (size_t i = 0; i < s->cell_count; i++)
        if (i != s->teacher_cell)
            s->equals[s->equal_count++] = (study_equal){i, STUDY_NO_CELL, e->margin, s->cells[i].label};
    for (size_t i = 0; i < e->difference_count; i++) {
        size_t found = study_contrast_cells(s, &e->differences[i], NULL);
        study_cells *cells = study_array(r, found, sizeof *cells);
        if (!cells)
            return;
        study_contrast_cells(s, &e->differences[i], cells);
        for (size_t k = 0; k < found; k++)
            s->equals[s->equal_count++] = (study_equal){cells[k].a, cells[k].b, e->differences[i].paper,
                                                        difference_name(r, cells[k].a, cells[k].b)};
    }
}
