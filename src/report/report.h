/* report.h - what a study found: tables of cells, contrasts and runs, as one page and as files. SPDX-License-Identifier: MIT
 *
 * Reads the index alone (study/store.h). Cells: n, mean, deviation, t interval, and beside it the deviation that independent
 * errors on the test images alone would give. Contrasts: the difference of means with the deviation pooled over the study's
 * cells, Holm over all registered contrasts of the report, the paired and per-image views beside it. Failed runs are counted
 * in every row. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "report/table.h"
#include "study/store.h"

typedef struct report {
    table cells, contrasts, runs;
    arena memory;
} report;

berlu_status report_make(report *out, const store_contents *from);
void report_free(report *r);

enum { REPORT_HTML = 1, REPORT_MARKDOWN = 2, REPORT_CSV = 4, REPORT_LATEX = 8 };
/* Writes index.html, report.md, cells.csv contrasts.csv runs.csv, report.tex into a folder. */
berlu_status report_write(const report *r, const store_contents *from, const char *folder, unsigned formats);

#endif
