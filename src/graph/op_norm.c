/* op_norm.c - layer norm over the last dimension. SPDX-License-Identifier: MIT
 *
 *     norm(x, weight, bias, statistics?)  -> y = (x - mean) / sqrt(var + eps) * weight + bias,
 *                                            statistics[..., 2] = mean, 1/sigma unless given
 *     norm_grad(dy, x, weight, statistics, residual?, bias?)
 *                                         -> dx (+ residual), dweight, dbias, and where a pass
 *                                            requests them: column sums of dx (op_entry.sums), y
 *                                            recomputed (op_entry.again), dx in the branch's dtype
 *                                            (op_entry.copy)
 *
 * The forward saves x and two statistics a row; y is recomputed from them (a norm reads and writes
 * memory once, which costs less than holding its output until the backward), unless `keep` is
 * both. */
#include "graph/op_rules.h"

berlu_status norm_shape(graph *g, node *n)
{
    int64_t channels = tensor_channels(info_of(g, n->in[0]));
    if (vector_check(g, "norm", n->in[1], channels, 0) != BERLU_OK ||
        vector_check(g, "norm", n->in[2], channels, 0) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    if (n->in[3] != TENSOR_NONE)
        return graph_status(g);
    tensor_info t = *info_of(g, n->in[0]);
    t.size[t.rank - 1] = 2;
    n->out[1] = graph_declare(g, ROLE_STATISTIC, t.batched, t.rank, t.size);
    return graph_status(g);
}

berlu_status norm_gradient(grad_pass *p, const node *n)
{
    tensor x = n->in[0], w = n->in[1], b = n->in[2];
    node dx = node_make(OP_NORM_GRAD, 4, (tensor[]){grad_of(p, n->out[0]), grad_keep(p, x), w, n->out[1]});
    dx.attr.eps = n->attr.eps;
    dx.attr.like[0] = x;
    dx.attr.like[1] = w;
    dx.attr.like[2] = b;
    return grad_give_outputs(p, &dx);
}
