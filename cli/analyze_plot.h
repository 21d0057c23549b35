/* analyze_plot.h - plots of `berlu analyze ... --svg`. SPDX-License-Identifier: MIT */
#ifndef CLI_ANALYZE_PLOT_H
#define CLI_ANALYZE_PLOT_H

#include "analyze/depth.h"

typedef struct analyze_acts {
    berlu_act **acts;
    const char **names; /* as given by the user */
    size_t count;
} analyze_acts;

typedef struct depth_list {
    depth *depth;
    char (*name)[256];
    size_t count;
} depth_list;

berlu_status analyze_plot_slopes(const analyze_acts *list, const char *path);
berlu_status analyze_plot_depth(const depth_list *list, const char *path);
berlu_status analyze_plot_linearity(const analyze_acts *list, const double *scales, size_t count, const char *path);

#endif
