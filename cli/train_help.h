/* train_help.h - how `berlu train --help` is laid out. SPDX-License-Identifier: MIT */
#ifndef CLI_TRAIN_HELP_H
#define CLI_TRAIN_HELP_H

#include "base/text.h"
#include "options.h"

extern const option_group train_groups[];

/* The default of an option under the recipe that the command line names, `paper` without one. */
void train_standard(const void *options_given_so_far, const char *name, text *out);

#endif
