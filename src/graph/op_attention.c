/* op_attention.c - softmax(q k^T / sqrt(head width)) v. SPDX-License-Identifier: MIT
 *
 *     attention(qkv[..., T, 3D], none, logsum?)             -> y[..., T, D], logsum[..., T, heads]
 *     attention(qk[..., T, 2D], v[..., T, D], logsum?)         unless it was given
 *     attention_grad(dy, qkv, none, logsum, y?)             -> dqkv, none
 *     attention_grad(dy, qk, v, logsum, y?)                 -> dqk, dv
 *
 * A pass may request the column sums of either gradient (op_entry.sums). The T x T weights are
 * never saved: the backward recomputes them from q, k and the log-sum of each row. Nor does it need
 * y: the sum over keys of p * dp equals the sum over channels of y * dy. A backend that would
 * rather read y for that sum says so (op_entry.output). */
#include "graph/op_rules.h"

berlu_status attention_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]);
    int parts = n->in[1] == TENSOR_NONE ? 3 : 2;
    int64_t wide = tensor_channels(x), width = wide / parts;
    if (x->rank < 2 || wide % parts || n->attr.heads < 1 || width % n->attr.heads)
        return graph_fail(g, BERLU_ERR_ARG, "attention: %s does not divide into %d parts of %d heads",
                          graph_say(g, n->in[0]), parts, n->attr.heads);
    if (parts == 2 && (tensor_channels(info_of(g, n->in[1])) != width || rows_of(g, n->in[1]) != rows_of(g, n->in[0])))
        return graph_fail(g, BERLU_ERR_ARG, "attention: v %s does not fit qk %s", graph_say(g, n->in[1]),
                          graph_say(g, n->in[0]));
    tensor_info t = *x;
    t.size[t.rank - 1] = width;
    n->out[0] = graph_declare(g, ROLE_BRANCH, t.batched, t.rank, t.size);
    if (n->in[2] != TENSOR_NONE)
        return graph_status(g);
    t.size[t.rank - 1] = n->attr.heads;
    n->out[1] = graph_declare(g, ROLE_STATISTIC, t.batched, t.rank, t.size);
    return graph_status(g);
}

berlu_status attention_gradient(grad_pass *p, const node *n)
{
    tensor x = n->in[0], v = n->in[1];
    tensor held = grad_keep(p, x), held_v = v == TENSOR_NONE ? TENSOR_NONE : grad_keep(p, v);
    node d = node_make(OP_ATTENTION_GRAD, 4, (tensor[]){grad_of(p, n->out[0]), held, held_v, n->out[1]});
    d.attr.heads = n->attr.heads;
    d.attr.like[0] = x;
    d.attr.like[1] = v;
    return grad_give_outputs(p, &d);
}

double attention_macs(const graph *g, const node *n)
{
    const tensor_info *y = info_of(g, n->out[0]);
    double tokens = (double)y->size[y->rank - 2];
    return 2.0 * tokens * (double)tensor_elements(y);
}
