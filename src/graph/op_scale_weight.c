/* op_scale_weight.c - LayerScale as part of the weights. SPDX-License-Identifier: MIT
 *
 *     scale_weight(W (N, K...), gamma (N), b?)         -> W' = gamma W row by row, b' = gamma b
 *     scale_weight_grad(dW', W, gamma, db'?, b?)       -> dW = gamma dW',
 *                                                         dgamma_o = sum_k dW'_ok W_ok + db'_o b_o,
 *                                                         db = gamma db'
 *
 * gamma (x W^T + b) = x W'^T + b', so a layer with W' and b' needs no pass over its output for
 * gamma, and none over its gradient: dgamma follows from dW', which is as small as the weights.
 * W' has the dtype of a branch, which is what products read. passes/scale.c creates the op. */
#include "graph/op_rules.h"

berlu_status scale_weight_shape(graph *g, node *n)
{
    int64_t outputs = info_of(g, n->in[0])->size[0];
    if (vector_check(g, "scale_weight", n->in[1], outputs, 0) != BERLU_OK ||
        vector_check(g, "scale_weight", n->in[2], outputs, 1) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    if (n->in[2] != TENSOR_NONE)
        n->out[1] = graph_declare_like(g, ROLE_BRANCH, n->in[2]);
    return graph_status(g);
}

berlu_status scale_weight_gradient(grad_pass *p, const node *n)
{
    tensor w = n->in[0], gamma = n->in[1], b = n->in[2];
    tensor db = b == TENSOR_NONE ? TENSOR_NONE : grad_of(p, n->out[1]);
    node d = node_make(OP_SCALE_WEIGHT_GRAD, 5, (tensor[]){grad_of(p, n->out[0]), w, gamma, db, b});
    d.attr.like[0] = w;
    d.attr.like[1] = gamma;
    d.attr.like[2] = b;
    if (grad_add(p, &d) == TENSOR_NONE)
        return graph_status(grad_graph(p));
    node made = *graph_last(grad_graph(p));
    grad_give(p, w, made.out[0]);
    grad_give(p, gamma, made.out[1]);
    return grad_give(p, b, made.out[2]);
}
