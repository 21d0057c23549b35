/* costs.c - see costs.h. SPDX-License-Identifier: MIT */
#include "report/costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const table_cell *cell_at(const table *t, size_t row, const char *column)
{
    for (size_t c = 0; row < table_rows(t) && c < t->column_count; c++)
        if (strcmp(t->columns[c], column) == 0)
            return &t->cells[row * t->column_count + c];
    return NULL;
}

double cost_number(const table *t, size_t row, const char *column)
{
    const table_cell *c = cell_at(t, row, column);
    return c && !c->word ? c->value : NAN;
}

const char *cost_word(const table *t, size_t row, const char *column)
{
    const table_cell *c = cell_at(t, row, column);
    return c && c->word ? c->word : "";
}

int cost_same(const table *t, size_t a, size_t b)
{
    static const char *const keys[] = {"study", "machine", "keep"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(cost_word(t, a, keys[i]), cost_word(t, b, keys[i])) != 0)
            return 0;
    return 1;
}

size_t cost_row_of(const table *t, size_t like, const char *cell)
{
    size_t row = 0;
    while (row < table_rows(t) && !(cost_same(t, row, like) && strcmp(cost_word(t, row, "cell"), cell) == 0))
        row++;
    return row;
}

static int is_again(const char *cell)
{
    size_t length = strlen(cell), tail = strlen(COST_AGAIN);
    return length > tail && strcmp(cell + length - tail, COST_AGAIN) == 0;
}

size_t cost_again(const table *t, size_t like)
{
    size_t row = 0;
    while (row < table_rows(t) && !(cost_same(t, row, like) && is_again(cost_word(t, row, "cell"))))
        row++;
    return row;
}

double cost_noise(const table *t, size_t like, const char *what)
{
    char low[32], high[32];
    size_t again = cost_again(t, like);
    snprintf(low, sizeof low, "%s_low", what);
    snprintf(high, sizeof high, "%s_high", what);
    double a = fabs(cost_number(t, again, low)), b = fabs(cost_number(t, again, high));
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}
