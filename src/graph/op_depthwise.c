/* op_depthwise.c - every channel of [H, W, C] convolved with its own k x k window.
 * SPDX-License-Identifier: MIT
 *
 *     depthwise(x, weight (C, 1, k, k), bias (C))  -> y, same shape; zero padding k / 2, stride 1
 *     depthwise_dx(dy, weight, residual?)          -> dx (+ residual)
 *     depthwise_dw(dy, x)                          -> dweight, dbias */
#include "graph/op_rules.h"

berlu_status depthwise_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]), *w = info_of(g, n->in[1]);
    if (x->rank != 3 || w->rank != 4 || w->size[0] != x->size[2] || w->size[1] != 1 || w->size[2] != w->size[3] ||
        w->size[2] % 2 == 0)
        return graph_fail(g, BERLU_ERR_ARG,
                          "depthwise: weight %s does not fit the map %s; (C, 1, k, k) with odd k is possible",
                          graph_say(g, n->in[1]), graph_say(g, n->in[0]));
    if (vector_check(g, "depthwise", n->in[2], x->size[2], 0) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    return graph_status(g);
}

berlu_status depthwise_gradient(grad_pass *p, const node *n)
{
    tensor x = n->in[0], w = n->in[1], b = n->in[2], dy = grad_of(p, n->out[0]);
    if (grad_wanted(p, x)) {
        node dx = node_make(OP_DEPTHWISE_DX, 2, (tensor[]){dy, w});
        dx.attr.like[0] = x;
        grad_give(p, x, grad_add(p, &dx));
    }
    node dw = node_make(OP_DEPTHWISE_DW, 2, (tensor[]){dy, grad_keep(p, x)});
    dw.attr.like[0] = w;
    dw.attr.like[1] = b;
    return grad_give_outputs(p, &dw);
}

double depthwise_macs(const graph *g, const node *n)
{
    const tensor_info *w = info_of(g, n->in[1]);
    return (double)tensor_elements(info_of(g, n->out[0])) * (double)(w->size[2] * w->size[3]);
}
