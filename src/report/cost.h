/* cost.h - the table of the cost of a step, from studies of kind `cost`.
 * SPDX-License-Identifier: MIT
 *
 * A row per cell and `keep` policy: medians over the rounds, and the paired difference to the
 * study's first cell in percent. Rounds are interleaved and the difference is taken round by round,
 * which cancels slow phases of the machine. The row whose cell ends in "(again)" is the first cell
 * measured a second time: its interval is the noise, and differences inside it are not
 * distinguishable from 0. */
#ifndef REPORT_COST_H
#define REPORT_COST_H

#include "report/table.h"
#include "study/cost.h"

typedef struct report_cost {
    table table;
    arena memory;
} report_cost;

/* Adds the rows of one store; begin with report_cost_start(). */
void report_cost_start(report_cost *r);
berlu_status report_cost_add(report_cost *r, store *from);
void report_cost_free(report_cost *r);

/* cost.csv and cost.md in a folder that exists; nothing without rows. `formats` as report_write()
 * takes them. */
berlu_status report_cost_write(const report_cost *r, const char *folder, unsigned formats);

#endif
