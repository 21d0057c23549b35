/* costs.c - see costs.h. SPDX-License-Identifier: MIT */
#include "report/costs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int cost_same(const table *t, size_t a, size_t b)
{
    static const char *const keys[] = {"study", "machine", "keep"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(table_word_at(t, a, keys[i]), table_word_at(t, b, keys[i])) != 0)
            return 0;
    return 1;
}

size_t cost_row_of(const table *t, size_t like, const char *cell)
{
    size_t row = 0;
    while (row < table_rows(t) && !(cost_same(t, row, like) && strcmp(table_word_at(t, row, "cell"), cell) == 0))
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
    while (row < table_rows(t) && !(cost_same(t, row, like) && is_again(table_word_at(t, row, "cell"))))
        row++;
    return row;
}

double cost_noise(const table *t, size_t like, const char *what)
{
    char low[32], high[32];
    size_t again = cost_again(t, like);
    snprintf(low, sizeof low, "%s_low", what);
    snprintf(high, sizeof high, "%s_high", what);
    double a = fabs(table_number_at(t, again, low)), b = fabs(table_number_at(t, again, high));
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}
