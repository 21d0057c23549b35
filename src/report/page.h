/* page.h - a report as one self-contained page. SPDX-License-Identifier: MIT
 *
 * HTML that is well-formed XML too; it makes no requests and is complete without its script.
 * Sections have a fixed order (page.c); one without data is one line. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/tables.h"

typedef struct page_parts {
    const evidence *e;
    const claim_result *claims;
    int of_paper; /* else the page has no claims */
    const report_tables *tables;
    const table *equivalence; /* NULL: no other program's results */
    const char *first_line;
} page_parts;

berlu_status page_write(text *out, const page_parts *p);

/* The plots of the page as files: ID.svg, ID-2.svg, ... for each section of plots. */
berlu_status page_figures_write(const evidence *e, const char *folder);

extern const char page_css[], page_script[]; /* page_style.c */

/* page_verdicts.c */
void verdicts_write(text *out, const page_parts *p);
void beside_write(text *out, const page_parts *p);
void contrasts_write(text *out, const page_parts *p);

#endif
