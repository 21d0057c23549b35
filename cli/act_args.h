/* act_args.h - an activation from what people type: a text, or a YAML file of a smoothed function. SPDX-License-Identifier: MIT */
#ifndef CLI_ACT_ARGS_H
#define CLI_ACT_ARGS_H

#include <berlu/act.h>

#include "base/cpu.h"

/* `text` is NAME[:key=value,...], smooth(...), or a path that ends in .yaml or .yml. */
berlu_status act_from_text(berlu_act **out, const char *text);

berlu_isa act_isa_of(cpu_isa isa);

#endif
