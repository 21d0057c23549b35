/* op_loss.c - cross entropy and distillation. SPDX-License-Identifier: MIT
 *
 *     cross_entropy(logits[K], labels[1] or targets[K])  -> softmax[K]; the loss: step_result
 *     cross_entropy_grad(softmax, labels or targets)     -> dlogits
 *     distill(logits[K], teacher[K])                     -> softmax[K] at the temperature
 *     distill_grad(softmax, teacher)                     -> dlogits
 *
 * attr.soft selects targets. Distillation reads the second head and the teacher's logits; with
 * attr.distill the cross entropy is one of two losses: its weight is 1 - alpha. Gradients begin at
 * losses, so these rules request none. Smoothing, alpha and tau are read from the step. */
#include "graph/op_rules.h"

static berlu_status logits_check(graph *g, const char *op, tensor logits, tensor other, int64_t width)
{
    const tensor_info *z = info_of(g, logits);
    if (z->rank != 1 || !z->batched)
        return graph_fail(g, BERLU_ERR_ARG, "%s: %s are not logits", op, graph_say(g, logits));
    if (tensor_elements(info_of(g, other)) != width)
        return graph_fail(g, BERLU_ERR_ARG, "%s: %s does not fit logits %s", op, graph_say(g, other),
                          graph_say(g, logits));
    return BERLU_OK;
}

berlu_status cross_entropy_shape(graph *g, node *n)
{
    int64_t classes = tensor_elements(info_of(g, n->in[0]));
    if (logits_check(g, "cross_entropy", n->in[0], n->in[1], n->attr.soft ? classes : 1) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_LOSS, n->in[0]);
    return graph_status(g);
}

static berlu_status loss_gradient(grad_pass *p, const node *n, op_id op)
{
    node d = node_make(op, 2, (tensor[]){n->out[0], n->in[1]});
    d.attr = n->attr;
    d.attr.like[0] = n->in[0];
    return grad_give(p, n->in[0], grad_add(p, &d));
}

berlu_status cross_entropy_gradient(grad_pass *p, const node *n)
{
    return loss_gradient(p, n, OP_CROSS_ENTROPY_GRAD);
}

berlu_status distill_shape(graph *g, node *n)
{
    if (logits_check(g, "distill", n->in[0], n->in[1], tensor_elements(info_of(g, n->in[0]))) != BERLU_OK)
        return graph_status(g);
    n->out[0] = graph_declare_like(g, ROLE_LOSS, n->in[0]);
    return graph_status(g);
}

berlu_status distill_gradient(grad_pass *p, const node *n)
{
    return loss_gradient(p, n, OP_DISTILL_GRAD);
}
