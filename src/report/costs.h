/* costs.h - reading the table of costs. SPDX-License-Identifier: MIT
 *
 * The table has a row per study, machine, cell and `keep` policy, medians over rounds, and the
 * difference to the study's first cell in percent with its 95 % interval. The row whose cell ends
 * in "(again)" is the first cell measured a second time: the noise (A/A) that any other difference
 * must exceed. Columns are found by name. */
#ifndef REPORT_COSTS_H
#define REPORT_COSTS_H

#include "report/table.h"

#define COST_AGAIN " (again)"

/* Whether two rows are of the same study, machine and policy. */
int cost_same(const table *t, size_t a, size_t b);

/* The row of a cell with the study, machine and policy of `like`; table_rows() when there is none.
 * */
size_t cost_row_of(const table *t, size_t like, const char *cell);
size_t cost_again(const table *t, size_t like); /* its A/A row */

/* The largest distance from 0 that the A/A interval of "forward" or "backward" reaches for the
 * study, machine and policy of a row; NaN without one. */
double cost_noise(const table *t, size_t like, const char *what);

#endif
