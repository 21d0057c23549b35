/* plots.h - the plots of a report. SPDX-License-Identifier: MIT
 *
 * Each function draws its figures (figures.h), or none without data.
 * Files: plots_runs.c (contrasts, runs), plots_curves.c (epochs, widths), plots_sites.c
 * (measurements by layer), plots_cost.c (time and memory). */
#ifndef REPORT_PLOTS_H
#define REPORT_PLOTS_H

#include "report/claims.h"
#include "report/figures.h"

berlu_status plot_forest(figures *to, const evidence *e);
berlu_status plot_dots(figures *to, const evidence *e);
berlu_status plot_learning(figures *to, const evidence *e);
berlu_status plot_widths(figures *to, const evidence *e);
berlu_status plot_nonlinear(figures *to, const evidence *e);
berlu_status plot_sites(figures *to, const evidence *e);
berlu_status plot_cost(figures *to, const evidence *e);

/* ---- for the files of plots ------------------------------------------------------------------ */

const char *metric_words(const view_study *s); /* "test accuracy, %" */

/* "study: model on data, 100 epochs", and the settings of its cells where not only `act` differs */
const char *group_words(const evidence *e, const view_study *s, size_t group);

#endif
