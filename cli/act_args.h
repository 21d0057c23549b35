/* act_args.h - the option --isa as the activations name it. SPDX-License-Identifier: MIT */
#ifndef CLI_ACT_ARGS_H
#define CLI_ACT_ARGS_H

#include <berlu/act.h>

#include "base/cpu.h"

berlu_isa act_isa_of(cpu_isa isa);

#endif
