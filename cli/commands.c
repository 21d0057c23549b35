/* commands.c - the table of commands. How to add one stands at the head of commands.h. SPDX-License-Identifier: MIT */
#include "commands.h"

/* clang-format off */
#define COMMANDS(_) \
    _(doctor) \
    _(smooth) \
    _(act_list) \
    _(act_eval) \
    _(act_plot) \
    _(summary) \
    _(forward) \
    _(data_get) \
    _(data_make) \
    _(data_pack) \
    _(data_info) \
    _(train) \
    _(eval) \
    _(study_run) \
    _(study_status) \
    _(study_list) \
    _(study_report) \
    _(study_rebuild) \
    _(study_merge) \
    _(demo) \
    _(analyze_lipschitz) \
    _(analyze_depth) \
    _(analyze_linearity) \
    _(analyze_card) \
    _(bench_act) \
    _(bench_step) \
    _(bench_memory) \
    _(bench_data)
/* clang-format on */

#define DECLARE(name) extern const command cmd_##name;
#define POINT(name)   &cmd_##name,
COMMANDS(DECLARE)
const command *const commands[] = {COMMANDS(POINT) NULL};
