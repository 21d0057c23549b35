/* op_random.c - dropout and drop path. SPDX-License-Identifier: MIT
 *
 *     dropout(x)               -> each element kept with probability 1 - rate and divided by it,
 *                                 else 0
 *     drop_path(x, residual?)  -> the same for whole groups: images, or patches of TNT (+ residual)
 *
 * The draw is a function of (seed, step, index in the batch of the update, number of the op), so
 * the backward is the same op on dy and nothing is saved. In inference passes/prune.c removes
 * both. */
#include "graph/op_rules.h"

berlu_status random_shape(graph *g, node *n)
{
    if (n->op == OP_DROP_PATH && (n->attr.groups < 1 || tensor_elements(info_of(g, n->in[0])) % n->attr.groups))
        return graph_fail(g, BERLU_ERR_ARG, "drop_path: %s does not divide into %d groups", graph_say(g, n->in[0]),
                          n->attr.groups);
    n->out[0] = graph_declare_like(g, ROLE_BRANCH, n->in[0]);
    return graph_status(g);
}

berlu_status random_gradient(grad_pass *p, const node *n)
{
    node d = node_make(n->op, 1, (tensor[]){grad_of(p, n->out[0])});
    d.attr = n->attr;
    return grad_give(p, n->in[0], grad_add(p, &d));
}
