/* report.h - the results of studies: verdicts, tables and plots, as one page and as files.
 * SPDX-License-Identifier: MIT
 *
 * Reads the index alone (study/store.h). view.h describes the cells, contrasts.h judges contrasts,
 * claims.h the paper's claims, tables.h and plots.h present them, page.h makes the page. Failed
 * runs are counted in every table, and every contrast has a second line with failures at chance. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "report/tables.h"

/* Tables from other parts of a store; NULL or empty: none. Columns are found by name. */
typedef struct report_more {
    const table *cost; /* costs.h */
    const table
        *equivalence; /* study source name difference low90 high90 margin verdict: ours minus another program's */
} report_more;

typedef struct report {
    view v;
    judgements judged;
    cell_sites **sites;
    report_more more;
    claim_result claims[CLAIMS];
    int of_paper; /* else claims are only in claims.json and claims.csv */
    report_tables tables;
    const char *first_line; /* descriptions of the studies; a difference to another program and pilot runs come first */
    arena memory;
} report;

/* `from` and the tables of `more` must outlive the report. */
berlu_status report_make_with(report *out, const store_contents *from, const report_more *more);
berlu_status report_make(report *out, const store_contents *from);
void report_free(report *r);

enum { REPORT_HTML = 1, REPORT_MARKDOWN = 2, REPORT_CSV = 4, REPORT_LATEX = 8, REPORT_SVG = 16 };
/* Writes claims.json and, by format, index.html; report.md; a CSV file per table; report.tex; an
 * SVG file per figure of the page into a folder. */
berlu_status report_write(const report *r, const store_contents *from, const char *folder, unsigned formats);

#endif
