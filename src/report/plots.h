/* plots.h - the plots of the page. SPDX-License-Identifier: MIT
 *
 * Each function writes its plots with captions, or nothing without data; `*shown` counts them.
 * Files: plots_runs.c (contrasts, runs), plots_curves.c (epochs, widths), plots_sites.c
 * (measurements by layer), plots_cost.c (time and memory). */
#ifndef REPORT_PLOTS_H
#define REPORT_PLOTS_H

#include "base/text.h"
#include "report/claims.h"

berlu_status plot_forest(text *out, const evidence *e, size_t *shown);
berlu_status plot_dots(text *out, const evidence *e, size_t *shown);
berlu_status plot_learning(text *out, const evidence *e, size_t *shown);
berlu_status plot_widths(text *out, const evidence *e, size_t *shown);
berlu_status plot_nonlinear(text *out, const evidence *e, size_t *shown);
berlu_status plot_sites(text *out, const evidence *e, size_t *shown);
berlu_status plot_cost(text *out, const evidence *e, size_t *shown);

/* ---- for the files of plots ------------------------------------------------------------------ */

#include "io/svg.h"

/* One plot as a figure of the page; `caption` has no markup. Height 0: the default. */
berlu_status figure_write(text *out, const svg_plot *plot, int width, int height, const char *caption, size_t *shown);

/* Several plots in one figure, `columns` beside each other. */
berlu_status figures_write(text *out, const svg_plot *plots, size_t count, int columns, const char *caption,
                           size_t *shown);

const char *metric_words(const view_study *s); /* "test accuracy, %" */

/* "study: model on data, 100 epochs" */
const char *group_words(const evidence *e, const view_study *s, size_t group);

#endif
