/* op_elementwise.c - sums, factors, means and views. SPDX-License-Identifier: MIT
 *
 *     reshape(x)                  -> the same elements under another shape; a view, no kernel
 *     add(x, branch)              -> x + branch; its gradient goes to both unchanged
 *     average(a, b)               -> (a + b) / 2; half(dy) -> dy / 2
 *     scale(x, gamma, residual?)  -> x * gamma (+ residual), gamma (C)
 *     scale_grad(dy, x, gamma)    -> dy * gamma, dgamma = sum over rows of dy * x
 *     mean(x[H, W, C])            -> [C]; mean_grad spreads dy / (H W) */
#include <string.h>

#include "graph/op_rules.h"

berlu_status reshape_shape(graph *g, node *n)
{
    tensor_info t = *info_of(g, n->in[0]);
    int64_t before = tensor_elements(&t);
    t.rank = n->attr.rank;
    memcpy(t.size, n->attr.size, sizeof t.size);
    if (tensor_elements(&t) != before)
        return graph_fail(g, BERLU_ERR_ARG, "reshape: %s has %lld numbers, the new shape %lld", graph_say(g, n->in[0]),
                          (long long)before, (long long)tensor_elements(&t));
    n->out[0] = graph_declare(g, t.role, t.batched, t.rank, t.size);
    if (n->out[0] != TENSOR_NONE)
        graph_tensor_edit(g, n->out[0])->view_of = n->in[0];
    return graph_status(g);
}

berlu_status reshape_gradient(grad_pass *p, const node *n)
{
    const tensor_info *x = info_of(grad_graph(p), n->in[0]);
    node d = node_make(OP_RESHAPE, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr.rank = x->rank;
    memcpy(d.attr.size, x->size, sizeof d.attr.size);
    return grad_give(p, n->in[0], grad_add(p, &d));
}

static berlu_status same_check(graph *g, const char *op, tensor a, tensor b)
{
    const tensor_info *x = info_of(g, a), *y = info_of(g, b);
    if (x->rank != y->rank || x->batched != y->batched || memcmp(x->size, y->size, (size_t)x->rank * sizeof x->size[0]))
        return graph_fail(g, BERLU_ERR_ARG, "%s: %s and %s differ in shape", op, graph_say(g, a), graph_say(g, b));
    return BERLU_OK;
}

berlu_status add_shape(graph *g, node *n)
{
    if (same_check(g, "add", n->in[0], n->in[1]) != BERLU_OK)
        return graph_status(g);
    int gradient = info_of(g, n->in[0])->role == ROLE_GRADIENT; /* of a parameter with several uses */
    n->out[0] = graph_declare_like(g, gradient ? ROLE_GRADIENT : ROLE_RESIDUAL, n->in[0]);
    return graph_status(g);
}

berlu_status add_gradient(grad_pass *p, const node *n)
{
    tensor dy = grad_of(p, n->out[0]);
    grad_give(p, n->in[0], dy);
    return grad_give(p, n->in[1], dy);
}

berlu_status average_shape(graph *g, node *n)
{
    if (same_check(g, "average", n->in[0], n->in[1]) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_LOSS, n->in[0]);
    return graph_status(g);
}

berlu_status average_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_HALF, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr.like[0] = n->in[0];
    tensor half = grad_add(p, &d);
    grad_give(p, n->in[0], half);
    return grad_give(p, n->in[1], half);
}

berlu_status scale_shape(graph *g, node *n)
{
    if (vector_check(g, "scale", n->in[1], tensor_channels(info_of(g, n->in[0])), 0) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    return graph_status(g);
}

berlu_status scale_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_SCALE_GRAD, 3, (tensor[]){grad_of(p, n->out[0]), grad_keep(p, n->in[0]), n->in[1]});
    d.attr.like[0] = n->in[0];
    d.attr.like[1] = n->in[1];
    return grad_give_outputs(p, &d);
}

berlu_status mean_shape(graph *g, node *n)
{
    int64_t channels = tensor_channels(info_of(g, n->in[0]));
    n->out[0] = graph_declare(g, ROLE_BRANCH, 1, 1, &channels);
    return graph_status(g);
}

berlu_status mean_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_MEAN_GRAD, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr.like[0] = n->in[0];
    return grad_give(p, n->in[0], grad_add(p, &d));
}
