/* equivalence.h - whether another program's results are the same as ours.
 * SPDX-License-Identifier: MIT
 *
 * Two one-sided tests per row: the 90 % interval of ours minus theirs must lie inside the
 * registered margin (p below 0.05). A row is a cell, or a difference of two cells, which makes it a
 * difference of differences. The engines count as equivalent when every row does, so no correction
 * for their number is needed: it would only weaken the requirement. */
#ifndef REPORT_EQUIVALENCE_H
#define REPORT_EQUIVALENCE_H

#include "report/table.h"
#include "study/import.h"

typedef struct report_equivalence {
    table table;
    arena memory;
} report_equivalence;

void report_equivalence_start(report_equivalence *r);
/* Adds the rows of one store, whose studies are `from`. */
berlu_status report_equivalence_add(report_equivalence *r, store *s, const store_contents *from);
void report_equivalence_free(report_equivalence *r);

/* equivalence.csv and equivalence.md in a folder that exists; nothing without rows. */
berlu_status report_equivalence_write(const report_equivalence *r, const char *folder, unsigned formats);

#endif
