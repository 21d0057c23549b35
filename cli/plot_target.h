/* plot_target.h - where a plot goes. SPDX-License-Identifier: MIT
 *
 * --svg FILE and --confusion FILE write a file; `-` is standard output, and what the command prints
 * goes to standard error instead, so that `berlu smooth relu --svg - | rsvg-convert` works for
 * every command. Names of other formats are refused. */
#ifndef CLI_PLOT_TARGET_H
#define CLI_PLOT_TARGET_H

#include "options.h"

berlu_status plot_target_take(options *o); /* once, before the command runs */

/* A file that is written last: a place that cannot hold it is found before the work. */
berlu_status target_check(const char *option, const char *path);
berlu_status target_writable(const char *option, const char *folder); /* the same of a folder that is there */

#endif
