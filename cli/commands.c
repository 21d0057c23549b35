/* commands.c - the table of commands. How to add one stands at the head of commands.h. SPDX-License-Identifier: MIT */
#include "commands.h"

/* clang-format off */
#define COMMANDS(_) \
    _(doctor) \
    _(smooth) \
    _(bench_act)
/* clang-format on */

#define DECLARE(name) extern const command cmd_##name;
#define POINT(name)   &cmd_##name,
COMMANDS(DECLARE)
const command *const commands[] = {COMMANDS(POINT) NULL};
