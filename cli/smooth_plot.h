/* smooth_plot.h - a smoothed function as a picture. SPDX-License-Identifier: MIT */
#ifndef CLI_SMOOTH_PLOT_H
#define CLI_SMOOTH_PLOT_H

#include <berlu/smooth.h>

/* Function with control polygon above, slope below; where the transitions are narrow, a closer look beside both. */
berlu_status smooth_plot_save(const berlu_smooth *f, const char *name, const char *path);

#endif
