/* ops.c - the table of op rules, which is all that passes know about ops.
 * SPDX-License-Identifier: MIT
 *
 * Generated from ops.inc; docs/add-an-op.md walks through a new op. */
#include "graph/op_rules.h"

berlu_status like_shape(graph *g, node *n)
{
    for (int i = 0; i < NODE_OUTPUTS; i++) {
        tensor like = n->attr.like[i];
        if (like == TENSOR_NONE)
            continue;
        const tensor_info *of = info_of(g, like);
        int weight = of->role == ROLE_WEIGHT || !of->batched; /* or computed from weights alone */
        n->out[i] = graph_declare_like(g, weight ? ROLE_GRADIENT : of->role, like);
    }
    return graph_status(g);
}

berlu_status update_shape(graph *g, node *n)
{
    (void)n;
    return graph_status(g);
}

const op_rule op_rules[OP_COUNT] = {
#define OP(ID, name_, inputs_, shape_, gradient_, macs_, statistic_, flags_)                                           \
    [OP_##ID] = {.name = #name_,                                                                                       \
                 .inputs = inputs_,                                                                                    \
                 .shape = shape_,                                                                                      \
                 .gradient = gradient_,                                                                                \
                 .macs = macs_,                                                                                        \
                 .statistic = statistic_,                                                                              \
                 .flags = flags_},
#include "graph/ops.inc"
#undef OP
};
