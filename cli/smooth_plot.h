/* smooth_plot.h - the plot of `berlu smooth --svg`. SPDX-License-Identifier: MIT */
#ifndef CLI_SMOOTH_PLOT_H
#define CLI_SMOOTH_PLOT_H

#include "smooth_args.h"

/* `overlay` is NULL, "eps=0.1,0.5" or "degree=2,4,8": the same function several times, instead of
 * its control points. */
berlu_status smooth_plot_save(const smooth_made *made, const char *overlay, const char *path);

#endif
