/* site.h - from a node's operands to a call of the activation library.
 * SPDX-License-Identifier: MIT */
#ifndef CPU_SITE_H
#define CPU_SITE_H

#include "engine/backend.h"

/* A call for `rows` rows with the learned parameters of the node, which begin at input `first`. */
static inline berlu_act_call site_call(const op_call *c, int first, int64_t rows, int64_t channels)
{
    berlu_act_call call = {.rows = (size_t)rows, .channels = (size_t)channels, .hint = BERLU_HINT_REUSE};
    for (int i = 0; i < c->attr->act_params; i++) {
        berlu_act_param_arg *arg = &call.param[c->attr->act_param[i]];
        arg->value = c->in[first + i].data;
        arg->stride = c->in[first + i].channels > 1;
    }
    return call;
}

#endif
