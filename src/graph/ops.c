/* ops.c - the table of ops: everything a pass may know about them. SPDX-License-Identifier: MIT
 *
 * A new op is a line in graph/op.h, a file with its rules, a line here, and a kernel in each backend's table
 * (docs/add-an-op.md walks through one). tests/graph proves that no line is missing. */
#include "graph/op_rules.h"

berlu_status like_shape(graph *g, node *n)
{
    for (int i = 0; i < NODE_OUTPUTS; i++) {
        tensor like = n->attr.like[i];
        if (like == TENSOR_NONE)
            continue;
        tensor_role role = info_of(g, like)->role;
        n->out[i] = graph_declare_like(g, role == ROLE_WEIGHT ? ROLE_GRADIENT : role, like);
    }
    return graph_status(g);
}

berlu_status update_shape(graph *g, node *n)
{
    (void)n;
    return graph_status(g);
}

/* Bits of in_place: 1 is input 0, 2 is input 1, ... */
const op_rule op_rules[OP_COUNT] = {
    /*                      name       inputs  shape           gradient         macs       in place, residual, statistic, flags */
    [OP_LINEAR] = {"linear", 2, linear_shape, linear_gradient, linear_macs, 8, 3, 0, RULE_ROWS},
    [OP_NORM] = {"norm", 3, norm_shape, norm_gradient, NULL, 1, 0, 3, RULE_RECOMPUTE | RULE_ROWS},
    [OP_ATTENTION] = {"attention", 1, attention_shape, attention_gradient, attention_macs, 0, 0, 2, 0},
    [OP_ACT] = {"act", 1, act_shape, act_gradient, NULL, 1, 0, 0, RULE_RECOMPUTE | RULE_ROWS},
    [OP_UNFOLD] = {"unfold", 1, unfold_shape, unfold_gradient, NULL, 0, 0, 0, RULE_RECOMPUTE},
    [OP_DEPTHWISE] = {"depthwise", 3, depthwise_shape, depthwise_gradient, depthwise_macs, 0, 0, 0, 0},
    [OP_TOKENS] = {"tokens", 2, tokens_shape, tokens_gradient, NULL, 0, 0, 0, 0},
    [OP_PIXEL_POS] = {"pixel_pos", 2, pixel_pos_shape, pixel_pos_gradient, NULL, 1, 0, 0, 0},
    [OP_RESHAPE] = {"reshape", 1, reshape_shape, reshape_gradient, NULL, 0, 0, 0, RULE_VIEW},
    [OP_ADD] = {"add", 2, add_shape, add_gradient, NULL, 3, 0, 0, RULE_ROWS},
    [OP_ADD_TOKENS] = {"add_tokens", 2, add_tokens_shape, add_tokens_gradient, NULL, 1, 0, 0, 0},
    [OP_SCALE] = {"scale", 2, scale_shape, scale_gradient, NULL, 5, 2, 0, RULE_ROWS},
    [OP_MEAN] = {"mean", 1, mean_shape, mean_gradient, NULL, 0, 0, 0, 0},
    [OP_SELECT] = {"select", 1, select_shape, select_gradient, NULL, 0, 0, 0, 0},
    [OP_AVERAGE] = {"average", 2, average_shape, average_gradient, NULL, 0, 0, 0, 0},
    [OP_DROPOUT] = {"dropout", 1, random_shape, random_gradient, NULL, 1, 0, 0, RULE_RANDOM | RULE_RECOMPUTE},
    [OP_DROP_PATH] = {"drop_path", 1, random_shape, random_gradient, NULL, 3, 1, 0, RULE_RANDOM | RULE_ROWS},
    [OP_CROSS_ENTROPY] = {"cross_entropy", 2, cross_entropy_shape, cross_entropy_gradient, NULL, 0, 0, 0, RULE_LOSS},
    [OP_DISTILL] = {"distill", 2, distill_shape, distill_gradient, NULL, 0, 0, 0, RULE_LOSS},

    [OP_LINEAR_DX] = {"linear_dx", 2, like_shape, NULL, NULL, 4, 2, 0, 0},
    [OP_LINEAR_DW] = {"linear_dw", 2, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_NORM_GRAD] = {"norm_grad", 4, like_shape, NULL, NULL, 1 | 16, 4, 0, 0},
    [OP_ATTENTION_GRAD] = {"attention_grad", 2, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_ACT_GRAD] = {"act_grad", 2, like_shape, NULL, NULL, 1, 0, 0, 0},
    [OP_ACT_GRAD_OUT] = {"act_grad_out", 2, like_shape, NULL, NULL, 1, 0, 0, 0},
    [OP_FOLD] = {"fold", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_DEPTHWISE_DX] = {"depthwise_dx", 2, like_shape, NULL, NULL, 4, 2, 0, 0},
    [OP_DEPTHWISE_DW] = {"depthwise_dw", 2, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_TOKENS_GRAD] = {"tokens_grad", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_PIXEL_POS_GRAD] = {"pixel_pos_grad", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_TAKE_TOKENS] = {"take_tokens", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_SCALE_GRAD] = {"scale_grad", 3, like_shape, NULL, NULL, 1, 0, 0, 0},
    [OP_MEAN_GRAD] = {"mean_grad", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_SELECT_GRAD] = {"select_grad", 1, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_HALF] = {"half", 1, like_shape, NULL, NULL, 1, 0, 0, 0},
    [OP_CROSS_ENTROPY_GRAD] = {"cross_entropy_grad", 2, like_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_DISTILL_GRAD] = {"distill_grad", 2, like_shape, NULL, NULL, 0, 0, 0, 0},

    [OP_LINEAR_ACT] = {"linear_act", 2, linear_act_shape, NULL, linear_macs, 0, 0, 0, 0},
    [OP_LINEAR_DX_ACT] = {"linear_dx_act", 3, like_shape, NULL, NULL, 0, 0, 0, 0},

    [OP_ACCUMULATE] = {"accumulate", 0, update_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_GRAD_NORM] = {"grad_norm", 0, update_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_ADAMW] = {"adamw", 0, update_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_SGD] = {"sgd", 0, update_shape, NULL, NULL, 0, 0, 0, 0},
    [OP_EMA] = {"ema", 0, update_shape, NULL, NULL, 0, 0, 0, 0},
};
