/* figures.h - where the plots of a report go: into the page, or into files of their own.
 * SPDX-License-Identifier: MIT */
#ifndef REPORT_FIGURES_H
#define REPORT_FIGURES_H

#include "base/text.h"
#include "io/svg.h"

typedef struct figures {
    text *page;                /* with captions; NULL: files */
    const char *folder, *name; /* FOLDER/NAME.svg, NAME-2.svg, ... */
    const char *heading;       /* in files: a line above the next figures; NULL: none */
    size_t shown;
} figures;

/* One plot; `caption` has no markup. Height 0: the default. */
berlu_status figure_write(figures *to, const svg_plot *plot, int width, int height, const char *caption);

/* Several plots in one figure, `columns` beside each other. */
berlu_status figures_write(figures *to, const svg_plot *plots, size_t count, int columns, const char *caption);

#endif
