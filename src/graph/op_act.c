/* op_act.c - an activation site. SPDX-License-Identifier: MIT
 *
 *     act(x, p0?, p1?)              -> y = f(x); p0, p1: learned parameters
 *     act_grad(dy, x, p0?, p1?)     -> dx = dy f'(x), dp0, dp1
 *     act_grad_out(dy, y, p0?, p1?) -> the same from y = f(x) alone
 *
 * The policy `keep` selects one of the two gradients. With `input` the op may be recomputed, so y
 * need not be saved for the weight gradient of the next layer; with `both` and `output` y is saved
 * (graph/differentiate.c). */
#include "graph/op_rules.h"

berlu_status act_shape(graph *g, node *n)
{
    int64_t channels = tensor_channels(info_of(g, n->in[0]));
    for (int i = 0; i < n->attr.act_params; i++)
        if (tensor_elements(info_of(g, n->in[1 + i])) != 1 &&
            vector_check(g, "act", n->in[1 + i], channels, 0) != BERLU_OK)
            return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    return graph_status(g);
}

berlu_status act_gradient(grad_pass *p, const node *n)
{
    int from_output = grad_from_output(p);
    tensor held = from_output ? n->out[0] : grad_keep(p, n->in[0]);
    node d = node_make(from_output ? OP_ACT_GRAD_OUT : OP_ACT_GRAD, 4,
                       (tensor[]){grad_of(p, n->out[0]), held, n->in[1], n->in[2]});
    d.attr = n->attr;
    for (int i = 0; i <= ACT_PARAMS; i++)
        d.attr.like[i] = n->in[i];
    return grad_give_outputs(p, &d);
}
