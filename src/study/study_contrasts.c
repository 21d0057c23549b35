/* study_contrasts.c - which cells the contrasts of a study compare. SPDX-License-Identifier: MIT
 *
 * A contrast names some axes on both sides; on every other axis the two cells have the same label,
 * so a contrast that leaves an axis open is made at each of its values. */
#include <string.h>

#include "study/study_internal.h"

static const char *label_of(const study_cell *cell, const char *axis)
{
    for (size_t i = 0; i < cell->axis_count; i++)
        if (strcmp(cell->axes[i], axis) == 0)
            return cell->labels[i];
    return NULL;
}

int study_cell_matches(const study_cell *cell, const study_match *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const char *label = label_of(cell, m->axes[i]);
        if (!label || strcmp(label, m->labels[i]) != 0)
            return 0;
    }
    return m->count > 0;
}

static int names_axis(const study_match *m, const char *axis)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->axes[i], axis) == 0)
            return 1;
    return 0;
}

/* Whether b is the partner of a: the same label on every axis that the contrast leaves open. */
static int is_partner(const study_contrast *c, const study_cell *a, const study_cell *b)
{
    if (a->axis_count != b->axis_count)
        return 0;
    for (size_t i = 0; i < a->axis_count; i++) {
        const char *other = label_of(b, a->axes[i]);
        if (!other || (!names_axis(&c->a, a->axes[i]) && strcmp(other, a->labels[i]) != 0))
            return 0;
    }
    return 1;
}

/* The contrast's name followed by the labels of the open axes: "smoothness, augmented". */
static const char *pair_name(study_reader *r, const study_contrast *c, const study_cell *a)
{
    text words = {0};
    text_string(&words, c->name);
    for (size_t i = 0; i < a->axis_count; i++)
        if (!names_axis(&c->a, a->axes[i]))
            text_add(&words, ", %s", a->labels[i]);
    const char *name = words.failed ? NULL : arena_strdup(&r->study->memory, words.data);
    r->failed |= !name;
    text_free(&words);
    return name;
}

/* The sides of a contrast: two, or four with a second difference. */
typedef struct sides {
    const study_match *of[4];
    size_t count;
} sides;

static sides sides_of(const study_contrast *c)
{
    return (sides){{&c->a, &c->b, &c->minus_a, &c->minus_b}, c->minus_a.count && c->minus_b.count ? 4 : 2};
}

static size_t matches(const study *s, const study_match *m)
{
    size_t found = 0;
    for (size_t i = 0; i < s->cell_count; i++)
        found += (size_t)study_cell_matches(&s->cells[i], m);
    return found;
}

/* Every side names axes and labels that exist, and the same axes. */
int study_contrast_check(study_reader *r, const study_contrast *c)
{
    static const char *const names[] = {"a", "b", "a of minus", "b of minus"};
    const sides all = sides_of(c);
    int right = c->a.count && c->b.count;
    for (size_t side = 0; side < all.count && right; side++) {
        const study_match *m = all.of[side], *other = all.of[side ? 0 : 1];
        int found = matches(r->study, m) > 0;
        if (!found)
            study_problem(r, m->line, m->column, "contrast '%.60s': %s matches no cell", c->name, names[side]);
        for (size_t i = 0; i < m->count; i++)
            if (!names_axis(other, m->axes[i])) {
                study_problem(r, other->line, other->column, "contrast '%.60s': %s sides must name %.60s", c->name,
                              all.count > 2 ? "all" : "both", m->axes[i]);
                right = 0;
            }
        for (size_t i = 0; i < c->a.count && side > 1; i++)
            if (!names_axis(m, c->a.axes[i])) {
                study_problem(r, m->line, m->column, "contrast '%.60s': all sides must name %.60s", c->name,
                              c->a.axes[i]);
                right = 0;
            }
        right &= found;
    }
    return right;
}

/* The cell of a side of the second difference at the labels that `a` has on the open axes. */
static size_t partner_of(const study *s, const study_contrast *c, const study_cell *a, const study_match *side)
{
    for (size_t i = 0; i < s->cell_count; i++)
        if (study_cell_matches(&s->cells[i], side) && is_partner(c, a, &s->cells[i]))
            return i;
    return STUDY_NO_CELL;
}

size_t study_contrast_cells(const study *s, const study_contrast *c, study_cells *out)
{
    size_t count = 0;
    int second = sides_of(c).count > 2;
    for (size_t a = 0; a < s->cell_count; a++)
        for (size_t b = 0; b < s->cell_count && study_cell_matches(&s->cells[a], &c->a); b++) {
            if (a == b || !study_cell_matches(&s->cells[b], &c->b) || !is_partner(c, &s->cells[a], &s->cells[b]))
                continue;
            study_cells found = {a, b, STUDY_NO_CELL, STUDY_NO_CELL};
            if (second) {
                found.minus_a = partner_of(s, c, &s->cells[a], &c->minus_a);
                found.minus_b = partner_of(s, c, &s->cells[a], &c->minus_b);
                if (found.minus_a == STUDY_NO_CELL || found.minus_b == STUDY_NO_CELL)
                    continue;
            }
            if (out)
                out[count] = found;
            count++;
        }
    return count;
}

static void contrast_pairs(study_reader *r, size_t index)
{
    study *s = r->study;
    const study_contrast *c = &s->contrasts[index];
    size_t count = study_contrast_cells(s, c, NULL);
    study_cells *cells = study_array(r, count, sizeof *cells);
    if (!cells)
        return;
    study_contrast_cells(s, c, cells);
    for (size_t i = 0; i < count; i++)
        s->pairs[s->pair_count++] = (study_pair){.contrast = index,
                                                 .a = cells[i].a,
                                                 .b = cells[i].b,
                                                 .minus_a = cells[i].minus_a,
                                                 .minus_b = cells[i].minus_b,
                                                 .name = pair_name(r, c, &s->cells[cells[i].a])};
}

void study_pairs_make(study_reader *r)
{
    study *s = r->study;
    size_t count = 0;
    for (size_t i = 0; i < s->contrast_count; i++) {
        const study_contrast *c = &s->contrasts[i];
        size_t found = study_contrast_check(r, c) ? study_contrast_cells(s, c, NULL) : 1;
        if (!found)
            study_problem(r, c->line, c->column, "contrast '%.60s': no two cells differ by it alone", c->name);
        count += found;
    }
    if (r->count || !(s->pairs = study_array(r, count, sizeof *s->pairs)))
        return;
    for (size_t i = 0; i < s->contrast_count; i++)
        contrast_pairs(r, i);
}
