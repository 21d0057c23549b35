/* claims_cost.c - C14 to C16: time and memory of a step. SPDX-License-Identifier: MIT
 *
 * Differences are percent of the study's first cell, round by round; a claim about GELU needs GELU
 * there. A claim holds if it holds at every `keep` policy that was measured on every machine. */
#include <math.h>
#include <string.h>

#include "report/claims.h"
#include "report/costs.h"

/* The paper's difference to GELU in percent. */
static double paper_percent(const char *what)
{
    double gelu = NAN, berlu = NAN;
    for (size_t i = 0; paper_cost_at(i); i++) {
        const paper_cost *p = paper_cost_at(i);
        double value = strcmp(what, "forward") == 0 ? p->forward : p->backward;
        if (strcmp(p->act, "gelu") == 0)
            gelu = value;
        if (strcmp(p->act, "berlu") == 0)
            berlu = value;
    }
    return 100 * (berlu / gelu - 1);
}

static int first_is_gelu(const table *t, size_t row)
{
    size_t first = 0;
    while (first < row && !cost_same(t, first, row))
        first++;
    return strcmp(table_word_at(t, first, "cell"), "gelu") == 0;
}

/* Rounds that are missing decide nothing, but who looked before them could stop where it suits. */
static int lacks_rounds(const evidence *e, size_t row)
{
    const char *name = table_word_at(e->cost, row, "study");
    for (size_t i = 0; i < e->v->count; i++)
        if (strcmp(e->v->studies[i].of->name, name) == 0)
            return table_number_at(e->cost, row, "rounds") < e->v->studies[i].rounds;
    return 0;
}

static berlu_status words_add(claim_result *r, const evidence *e, size_t row, const char *words)
{
    const table *t = e->cost;
    if (!words)
        return BERLU_ERR_MEMORY;
    r->figures = arena_printf(e->memory, "%s%s%s, keep %s: %s", r->figures, *r->figures ? "; " : "",
                              table_word_at(t, row, "machine"), table_word_at(t, row, "keep"), words);
    const char *name = table_word_at(t, row, "study");
    if (!strstr(r->studies, name))
        r->studies = arena_printf(e->memory, "%s%s%s", r->studies, *r->studies ? ", " : "", name);
    r->n = (size_t)table_number_at(t, row, "rounds");
    r->why = r->partial ? r->why : "";
    return r->figures && r->studies ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* Faster (sign -1) or slower (sign 1) than GELU by more than the noise. */
static berlu_status time_judge(claim_result *r, const evidence *e, const char *what, int sign)
{
    claim_word word = CLAIM_NOT_TESTED;
    double paper = paper_percent(what);
    for (size_t row = 0; row < table_rows(e->cost); row++) {
        const table *t = e->cost;
        if (strcmp(table_word_at(t, row, "cell"), "berlu") != 0 || !first_is_gelu(t, row))
            continue;
        int forward = strcmp(what, "forward") == 0;
        double value = table_number_at(t, row, forward ? "forward_percent" : "backward_percent"),
               low = table_number_at(t, row, forward ? "forward_low" : "backward_low"),
               high = table_number_at(t, row, forward ? "forward_high" : "backward_high"),
               noise = cost_noise(t, row, what);
        double near = sign < 0 ? -high : low, far = sign < 0 ? -low : high; /* along the claim's direction */
        claim_word here = isnan(noise) || isnan(low) ? CLAIM_UNDECIDED
                          : near > noise             ? CLAIM_HELD
                          : far <= noise && noise < fabs(paper)
                              ? CLAIM_NOT_HELD /* the paper's difference would have been visible */
                              : CLAIM_UNDECIDED;
        word = claim_worst(word, here);
        if (lacks_rounds(e, row)) {
            r->partial = 1;
            r->why = "fewer rounds than registered";
        }
        r->size = strcmp(r->size, "outside") == 0 || !(low <= paper && paper <= high) ? "outside" : "inside";
        TRY(words_add(r, e, row,
                      arena_printf(e->memory, "%+.2f %% [%+.2f, %+.2f] of GELU's %s time, A/A within %.2f", value, low,
                                   high, what, noise)));
    }
    if (word != CLAIM_NOT_TESTED) {
        r->direction = claim_word_name(word);
        r->figures = arena_printf(e->memory, "%s; paper %+.1f %%", r->figures, paper);
    }
    return r->figures ? BERLU_OK : BERLU_ERR_MEMORY;
}

static double bytes_of(const table *t, size_t row)
{
    double peak = table_number_at(t, row, "peak_bytes");
    return isnan(peak) ? table_number_at(t, row, "planned_bytes") : peak;
}

/* Less by plan and as measured, where both are known: a measurement alone differs by some pages
 * from one process to the next. */
static int needs_less(const table *t, size_t a, size_t b)
{
    static const char *const columns[] = {"planned_bytes", "peak_bytes"};
    for (size_t i = 0; i < COUNT(columns); i++)
        if (table_number_at(t, a, columns[i]) >= table_number_at(t, b, columns[i])) /* never of a NaN */
            return 0;
    return 1;
}

/* Whether a cell was measured beside `like` at any policy: not every function has each. */
static int is_measured(const table *t, size_t like, const char *cell)
{
    for (size_t row = 0; row < table_rows(t); row++)
        if (strcmp(table_word_at(t, row, "cell"), cell) == 0 &&
            strcmp(table_word_at(t, row, "study"), table_word_at(t, like, "study")) == 0 &&
            strcmp(table_word_at(t, row, "machine"), table_word_at(t, like, "machine")) == 0 &&
            !isnan(bytes_of(t, row)))
            return 1;
    return 0;
}

static berlu_status memory_judge(claim_result *r, const evidence *e)
{
    static const struct {
        const char *act;
        int more; /* relative to BerLU, in the paper */
    } rivals[] = {{"gelu", 1}, {"silu", 1}, {"elu", 1}, {"celu", 1}, {"mish", 1}, {"prelu", 0}};
    const table *t = e->cost;
    claim_word word = CLAIM_NOT_TESTED;
    for (size_t row = 0; row < table_rows(t); row++) {
        double own = bytes_of(t, row);
        size_t right = 0, seen = 0, measured = 0;
        if (strcmp(table_word_at(t, row, "cell"), "berlu") != 0 || isnan(own))
            continue;
        for (size_t i = 0; i < COUNT(rivals); i++) {
            size_t other = cost_row_of(t, row, rivals[i].act);
            measured += (size_t)is_measured(t, row, rivals[i].act);
            if (other == table_rows(t) || isnan(bytes_of(t, other)))
                continue;
            seen++;
            right += (size_t)(rivals[i].more ? needs_less(t, row, other) : needs_less(t, other, row));
        }
        if (!seen)
            continue;
        word = claim_worst(word, right == seen ? CLAIM_HELD : CLAIM_NOT_HELD);
        TRY(words_add(
            r, e, row,
            arena_printf(e->memory, "%.1f MB, as the paper says against %zu of %zu", own / 1e6, right, seen)));
        r->n = 1; /* `bench memory` runs once, not once a round */
        if (measured < COUNT(rivals)) {
            r->partial = 1;
            r->why = "not every rival was measured";
        }
    }
    if (word != CLAIM_NOT_TESTED)
        r->direction = claim_word_name(word);
    return BERLU_OK;
}

berlu_status claims_cost(claim_result out[CLAIMS], const evidence *e)
{
    enum { C14 = 13, C15 = 14, C16 = 15 };
    for (int i = C14; i <= C16; i++)
        out[i].why = "no table of costs in this report";
    if (!e->cost)
        return BERLU_OK;
    TRY(time_judge(&out[C14], e, "forward", -1));
    TRY(time_judge(&out[C15], e, "backward", 1));
    return memory_judge(&out[C16], e);
}
