/* op_weights.c - weights computed from weights, so that rows need less.
 * SPDX-License-Identifier: MIT
 *
 *     scale_weight(W (N, K...), gamma (N), b?)    -> W' = gamma W row by row, b' = gamma b
 *     scale_weight_grad(dW', W, gamma, db'?, b?)  -> dW = gamma dW', db = gamma db',
 *                                                    dgamma_o = sum_k dW'_ok W_ok + db'_o b_o
 *     spread_weight(W (N, C, k, k), b?)           -> W' (S N, C, p, p), b' (S N)
 *     spread_weight_grad(dW', db'?)               -> dW, db: sums over the S places
 *     join_weight(A (N, K...), B (M, K...))       -> (N + M, K...): the rows of both
 *     join_weight_grad(dW')                       -> dA, dB
 *
 * scale: gamma (x W^T + b) = x W'^T + b', so a layer with W' and b' needs no pass over its output
 * for gamma, and none over its gradient: dgamma follows from dW', which is as small as the weights.
 *
 * spread: a k x k window at each of S places of a p x p tile, zeros around the tile (attr.unfold),
 * sees nothing but the tile's pixels. So its S N results are one layer over those C p p pixels:
 * row (s, n) of W' has W[n] moved to place s, cut off at the tile's edges.
 *
 * join: two layers without bias over one input are one layer.
 *
 * W' has the dtype of a branch, which is what products read. passes/weights.c creates the ops. */
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
    return grad_give_outputs(p, &d);
}

/* Places of a window along one side of a tile. */
static int64_t places_of(const unfold_spec *s)
{
    return (s->tile + 2 * s->padding - s->kernel) / s->stride + 1;
}

berlu_status spread_weight_shape(graph *g, node *n)
{
    const unfold_spec *s = &n->attr.unfold;
    const tensor_info w = *info_of(g, n->in[0]);
    int64_t places = places_of(s) * places_of(s), outputs = places * w.size[0];
    if (w.rank != 4 || w.size[2] != s->kernel || w.size[3] != s->kernel || !s->tile || s->leak)
        return graph_fail(g, BERLU_ERR_ARG, "spread_weight: %s is no window in a tile", graph_say(g, n->in[0]));
    if (vector_check(g, "spread_weight", n->in[1], w.size[0], 1) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare(g, ROLE_BRANCH, 0, 4, (int64_t[]){outputs, w.size[1], s->tile, s->tile});
    if (n->in[1] != TENSOR_NONE)
        n->out[1] = graph_declare(g, ROLE_BRANCH, 0, 1, &outputs);
    return graph_status(g);
}

berlu_status spread_weight_gradient(grad_pass *p, const node *n)
{
    tensor w = n->in[0], b = n->in[1];
    tensor db = b == TENSOR_NONE ? TENSOR_NONE : grad_of(p, n->out[1]);
    node d = node_make(OP_SPREAD_WEIGHT_GRAD, 2, (tensor[]){grad_of(p, n->out[0]), db});
    d.attr.unfold = n->attr.unfold;
    d.attr.like[0] = w;
    d.attr.like[1] = b;
    return grad_give_outputs(p, &d);
}

berlu_status join_weight_shape(graph *g, node *n)
{
    const tensor_info a = *info_of(g, n->in[0]), b = *info_of(g, n->in[1]);
    int64_t inputs = tensor_elements(&a) / a.size[0];
    if (tensor_elements(&b) / b.size[0] != inputs)
        return graph_fail(g, BERLU_ERR_ARG, "join_weight: %s and %s differ in their inputs", graph_say(g, n->in[0]),
                          graph_say(g, n->in[1]));
    n->out[0] = graph_declare(g, ROLE_BRANCH, 0, 2, (int64_t[]){a.size[0] + b.size[0], inputs});
    return graph_status(g);
}

berlu_status join_weight_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_JOIN_WEIGHT_GRAD, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr.like[0] = n->in[0];
    d.attr.like[1] = n->in[1];
    return grad_give_outputs(p, &d);
}
