/* tables.h - the tables of a report; docs/studies.md documents their columns.
 * SPDX-License-Identifier: MIT */
#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H

#include "report/claims.h"
#include "report/table.h"

typedef struct report_tables {
    table claims, hypotheses, beside, contrasts, aa, cells, runs, machines;
} report_tables;

berlu_status tables_make(report_tables *out, const evidence *e, const claim_result claims[CLAIMS]);

berlu_status tables_aa(table *t, const view_study *s, arena *memory); /* tables_aa.c */

/* Every table, in the order of the files. */
enum { TABLES = 8 };
void tables_list(const report_tables *t, const table *out[TABLES]);

/* The tables of a report that has nothing to do with the paper, for people: contrasts before means,
 * no claims, no empty rows or columns. Memory of the tables. */
berlu_status tables_own(const report_tables *t, table out[TABLES], size_t *count);

#endif
