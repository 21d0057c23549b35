/* pages.h - man pages and shell completion from the tables of options.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "base/text.h"
#include "commands.h"

void bash_write(text *out);
void zsh_write(text *out);

#endif
