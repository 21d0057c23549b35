/* op_tokens.c - ops along the token dimension. SPDX-License-Identifier: MIT
 *
 *     tokens(x[n, D], pos (1, n + t, D), cls (1, 1, D)?, dist?)  -> [n + t, D]
 *     tokens_grad(dy)                                            -> dx, dpos, dcls, ddist
 *     pixel_pos(x[..., m, d], pos (1, d, q, q))  -> x + pos, the same for every group of m rows
 *     pixel_pos_grad(dy)                         -> dpos
 *     add_tokens(x[T, D], branch[T - skip, D])   -> x with the branch added after `skip` tokens
 *     take_tokens(dy[T, D])                      -> dy without the first `skip` tokens
 *     select(x[T, D])                            -> token `skip`, [D]
 *     select_grad(dy[D])                         -> [T, D], zero but for that token */
#include "graph/op_rules.h"

static int is_token(const graph *g, tensor t, int64_t channels)
{
    return t == TENSOR_NONE || (!info_of(g, t)->batched && tensor_elements(info_of(g, t)) == channels);
}

berlu_status tokens_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]);
    int64_t channels = tensor_channels(x), rows = rows_of(g, n->in[0]);
    int64_t tokens = rows + (n->in[2] != TENSOR_NONE) + (n->in[3] != TENSOR_NONE);
    for (int i = 2; i < 4; i++)
        if (!is_token(g, n->in[i], channels))
            return graph_fail(g, BERLU_ERR_ARG, "tokens: %s should have %lld numbers", graph_say(g, n->in[i]),
                              (long long)channels);
    if (tensor_elements(info_of(g, n->in[1])) != tokens * channels)
        return graph_fail(g, BERLU_ERR_ARG, "tokens: position table %s should hold %lld tokens of %lld numbers",
                          graph_say(g, n->in[1]), (long long)tokens, (long long)channels);
    n->out[0] = graph_declare(g, ROLE_RESIDUAL, 1, 2, (int64_t[]){tokens, channels});
    return graph_status(g);
}

berlu_status tokens_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_TOKENS_GRAD, 1, (tensor[]){grad_of(p, n->out[0])});
    for (int i = 0; i < 4; i++)
        d.attr.like[i] = grad_like(p, n->in[i]);
    return grad_give_outputs(p, &d);
}

berlu_status pixel_pos_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]), *pos = info_of(g, n->in[1]);
    if (x->rank < 2 || pos->rank != 4 || pos->size[1] != tensor_channels(x) ||
        pos->size[2] * pos->size[3] != x->size[x->rank - 2])
        return graph_fail(g, BERLU_ERR_ARG, "pixel_pos: table %s does not fit %s", graph_say(g, n->in[1]),
                          graph_say(g, n->in[0]));
    n->out[0] = graph_declare_like(g, ROLE_RESIDUAL, n->in[0]);
    return graph_status(g);
}

berlu_status pixel_pos_gradient(grad_pass *p, const node *n)
{
    tensor dy = grad_of(p, n->out[0]);
    node d = node_make(OP_PIXEL_POS_GRAD, 1, &dy);
    d.attr.like[0] = n->in[1];
    grad_give(p, n->in[1], grad_add(p, &d));
    return grad_give(p, n->in[0], dy);
}

berlu_status add_tokens_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]), *branch = info_of(g, n->in[1]);
    if (x->rank != 2 || n->attr.skip < 0 || tensor_channels(branch) != x->size[1] ||
        rows_of(g, n->in[1]) + n->attr.skip != x->size[0])
        return graph_fail(g, BERLU_ERR_ARG, "add_tokens: %s does not fit %s behind the first %d tokens",
                          graph_say(g, n->in[1]), graph_say(g, n->in[0]), n->attr.skip);
    n->out[0] = graph_declare_like(g, ROLE_RESIDUAL, n->in[0]);
    return graph_status(g);
}

berlu_status add_tokens_gradient(grad_pass *p, const node *n)
{
    tensor dy = grad_of(p, n->out[0]);
    node d = node_make(OP_TAKE_TOKENS, 1, &dy);
    d.attr.skip = n->attr.skip;
    d.attr.like[0] = n->in[1];
    grad_give(p, n->in[1], grad_add(p, &d));
    return grad_give(p, n->in[0], dy);
}

berlu_status select_shape(graph *g, node *n)
{
    const tensor_info *x = info_of(g, n->in[0]);
    if (x->rank != 2 || n->attr.skip < 0 || n->attr.skip >= x->size[0])
        return graph_fail(g, BERLU_ERR_ARG, "select: %s has no token %d", graph_say(g, n->in[0]), n->attr.skip);
    n->out[0] = graph_declare(g, ROLE_BRANCH, 1, 1, &info_of(g, n->in[0])->size[1]);
    return graph_status(g);
}

berlu_status select_gradient(grad_pass *p, const node *n)
{
    node d = node_make(OP_SELECT_GRAD, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr.skip = n->attr.skip;
    d.attr.like[0] = n->in[0];
    return grad_give(p, n->in[0], grad_add(p, &d));
}
