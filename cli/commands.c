/* commands.c - the table of commands; commands.h explains how to add one.
 * SPDX-License-Identifier: MIT */
#include "commands.h"

#include "train_help.h"

/* clang-format off */
#define COMMANDS(_) \
    _(doctor) \
    _(smooth) \
    _(smooth_check) \
    _(act_list) \
    _(act_eval) \
    _(act_plot) \
    _(models) \
    _(recipes) \
    _(summary) \
    _(forward) \
    _(data_get) \
    _(data_make) \
    _(data_pack) \
    _(data_info) \
    _(train) \
    _(eval) \
    _(predict) \
    _(compare) \
    _(export_onnx) \
    _(export_timm) \
    _(study_run) \
    _(study_status) \
    _(study_list) \
    _(study_report) \
    _(study_compare) \
    _(study_choose) \
    _(study_import) \
    _(study_rebuild) \
    _(study_verify) \
    _(study_pack) \
    _(study_merge) \
    _(demo) \
    _(analyze_lipschitz) \
    _(analyze_depth) \
    _(analyze_linearity) \
    _(analyze_regions) \
    _(analyze_spectrum) \
    _(analyze_landscape) \
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

help_layout command_layout(const command *cmd, const options *o)
{
    return cmd == &cmd_train ? (help_layout){train_groups, train_standard, o} : (help_layout){0};
}
