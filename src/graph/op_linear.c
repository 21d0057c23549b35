/* op_linear.c - y = x W^T + b, and its two gradients. SPDX-License-Identifier: MIT
 *
 *     linear(x[..., K], W (N, K...), b?, residual?) -> y[..., N] (+ residual)
 *     linear_dx(dy, W, residual?)                   -> dx = dy W (+ residual)
 *     linear_dw(dy, x)                              -> dW = dy^T x, db = column sums of dy
 *     linear_act(x, W, b?, p0?, p1?)                -> y = f(x W^T + b), and for the backward
 *                                                      x W^T (+ b unless raw)
 *     linear_norm(x, W, b?, residual, w, s)         -> z = x W^T + b + residual, y = norm(z) with
 *                                                      weight w and bias s, its statistics
 *     mlp(x, W1, W2, residual, b1?, b2?,            -> z = f(x W1^T + b1) W2^T + b2 + residual, and
 *         w?, s?, p0?, p1?)                            y = norm(z), its statistics where w, s exist
 *
 * The backward is two ops because their loops differ: dx runs over rows, dW reduces over the whole
 * batch. x is requested with grad_keep(), so a norm or an activation before this layer is
 * recomputed, not saved. A convolution is unfold and linear, hence weights of rank 4. linear_act,
 * linear_norm and mlp are created by passes/fuse.c; linear_act has no out[1] where nothing is
 * saved. */
#include "graph/op_rules.h"

berlu_status vector_check(graph *g, const char *op, tensor t, int64_t count, int optional)
{
    if (t == TENSOR_NONE)
        return optional ? BERLU_OK : graph_fail(g, BERLU_ERR_ARG, "%s: a parameter is missing", op);
    if (info_of(g, t)->batched || tensor_elements(info_of(g, t)) != count)
        return graph_fail(g, BERLU_ERR_ARG, "%s: %s should have %lld numbers", op, graph_say(g, t), (long long)count);
    return BERLU_OK;
}

/* (N, K...) against the channels of x. */
static berlu_status weight_check(graph *g, const char *op, tensor x, tensor w)
{
    const tensor_info *weight = info_of(g, w);
    if (weight->rank < 2 || weight->batched ||
        tensor_elements(weight) / weight->size[0] != tensor_channels(info_of(g, x)))
        return graph_fail(g, BERLU_ERR_ARG, "%s: weight %s does not fit input %s", op, graph_say(g, w),
                          graph_say(g, x));
    return BERLU_OK;
}

static tensor declare_rows(graph *g, tensor like, int64_t channels)
{
    tensor_info t = *info_of(g, like);
    t.size[t.rank - 1] = channels;
    return graph_declare(g, ROLE_BRANCH, t.batched, t.rank, t.size);
}

berlu_status linear_shape(graph *g, node *n)
{
    tensor x = n->in[0], w = n->in[1];
    if (weight_check(g, "linear", x, w) != BERLU_OK)
        return graph_status(g);
    int64_t outputs = info_of(g, w)->size[0];
    if (vector_check(g, "linear", n->in[2], outputs, 1) != BERLU_OK)
        return graph_status(g);
    n->out[0] = declare_rows(g, x, outputs);
    return graph_status(g);
}

static void weight_gradient(grad_pass *p, const node *n, tensor dy, tensor x)
{
    node dw = node_make(OP_LINEAR_DW, 2, (tensor[]){dy, x});
    dw.attr.like[0] = n->in[1];
    dw.attr.like[1] = grad_like(p, n->in[2]);
    grad_give_outputs(p, &dw);
}

/* The weight gradient comes first: the op behind then finds dx in the cache. Where x is recomputed
 * it comes last, because fuse.c may join x's recomputation with the op that reads dx. */
berlu_status linear_gradient(grad_pass *p, const node *n)
{
    tensor x = n->in[0], w = n->in[1], dy = grad_of(p, n->out[0]);
    int first = grad_saves(p, x);
    if (grad_wanted(p, w) && first)
        weight_gradient(p, n, dy, x);
    if (grad_wanted(p, x)) {
        node dx = node_make(OP_LINEAR_DX, 2, (tensor[]){dy, w});
        dx.attr.like[0] = x;
        grad_give(p, x, grad_add(p, &dx));
    }
    if (grad_wanted(p, w) && !first)
        weight_gradient(p, n, dy, grad_keep(p, x));
    return graph_status(grad_graph(p));
}

double linear_macs(const graph *g, const node *n)
{
    return (double)rows_of(g, n->in[0]) * (double)tensor_elements(info_of(g, n->in[1]));
}

berlu_status linear_act_shape(graph *g, node *n)
{
    n->out[0] = declare_rows(g, n->in[0], info_of(g, n->in[1])->size[0]);
    n->out[1] = graph_declare_like(g, ROLE_BRANCH, n->out[0]);
    return graph_status(g);
}

berlu_status linear_norm_shape(graph *g, node *n)
{
    tensor_info t = *info_of(g, n->in[3]);
    t.size[t.rank - 1] = 2;
    n->out[0] = graph_declare_like(g, ROLE_RESIDUAL, n->in[3]);
    n->out[1] = graph_declare_like(g, ROLE_BRANCH, n->in[3]);
    n->out[2] = graph_declare(g, ROLE_STATISTIC, t.batched, t.rank, t.size);
    return graph_status(g);
}

double mlp_macs(const graph *g, const node *n)
{
    return linear_macs(g, n) + (double)rows_of(g, n->in[0]) * (double)tensor_elements(info_of(g, n->in[2]));
}
