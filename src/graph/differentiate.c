/* differentiate.c - appends the backward to a graph. SPDX-License-Identifier: MIT
 *
 * Reverse mode: nodes are visited from the last to the first; each op's gradient rule adds the
 * nodes that carry the gradient of its output to its inputs. Contributions to one tensor are joined
 * by adds in that order, so the sum has a fixed order. Gradients flow only to what has parameters.
 *
 * A rule asks for a tensor of the forward with grad_keep(), which decides between saving and
 * recomputing: the output of a cheap op (a norm, an unfold, with policy `input` an activation) is
 * recomputed by a copy of its node, once, just before the first reader. Everything else that a
 * backward node reads is saved, because being read extends its lifetime (engine/plan.c). Policy
 * `both` trades memory for time: it recomputes nothing. Read on: graph/op_linear.c for a rule. */
#include <stdlib.h>

#include "graph/op.h"

struct grad_pass {
    graph *g;
    tensor *gradient;   /* per tensor of the forward: its gradient so far */
    tensor *recomputed; /* the copy that the backward reads, or TENSOR_NONE */
    char *wanted;
    engine_keep keep;
    int recompute_attention;
};

graph *grad_graph(grad_pass *p)
{
    return p->g;
}

int grad_from_output(const grad_pass *p)
{
    return p->keep == KEEP_OUTPUT;
}

tensor grad_add(grad_pass *p, const node *n)
{
    node copy = *n;
    copy.backward = 1;
    return graph_add(p->g, &copy);
}

tensor grad_of(grad_pass *p, tensor t)
{
    return p->gradient[t];
}

int grad_wanted(const grad_pass *p, tensor t)
{
    return t != TENSOR_NONE && p->wanted[t];
}

tensor grad_like(const grad_pass *p, tensor t)
{
    return grad_wanted(p, t) ? t : TENSOR_NONE;
}

berlu_status grad_give(grad_pass *p, tensor t, tensor d)
{
    if (d == TENSOR_NONE || !grad_wanted(p, t))
        return graph_status(p->g);
    if (p->gradient[t] == TENSOR_NONE) {
        p->gradient[t] = d;
        return BERLU_OK;
    }
    node sum = node_make(OP_ADD, 2, (tensor[]){p->gradient[t], d});
    p->gradient[t] = grad_add(p, &sum);
    return graph_status(p->g);
}

berlu_status grad_give_outputs(grad_pass *p, const node *n)
{
    grad_add(p, n);
    if (graph_failed(p->g))
        return graph_status(p->g);
    node added = *graph_last(p->g); /* a copy: sums append to the array */
    for (int i = 0; i < NODE_OUTPUTS; i++)
        grad_give(p, added.attr.like[i], added.out[i]);
    return graph_status(p->g);
}

/* Is the output of this node recomputed rather than saved? */
static int node_recomputes(const grad_pass *p, const node *n)
{
    if (n->attr.heads)
        return p->recompute_attention;
    if (n->attr.act)
        return p->keep == KEEP_INPUT;
    return p->keep != KEEP_BOTH && (op_rules[n->op].flags & RULE_RECOMPUTE) != 0;
}

int grad_saves(const grad_pass *p, tensor t)
{
    int producer = graph_tensor(p->g, t)->producer;
    const node *n = producer < 0 ? NULL : graph_node(p->g, producer);
    if (!n || n->out[0] != t)
        return 1;
    return op_rules[n->op].flags & RULE_VIEW ? grad_saves(p, n->in[0]) : !node_recomputes(p, n);
}

tensor grad_keep(grad_pass *p, tensor t)
{
    if (grad_saves(p, t))
        return t;
    if (p->recomputed[t] != TENSOR_NONE)
        return p->recomputed[t];
    node again = *graph_node(p->g, graph_tensor(p->g, t)->producer);
    int statistic = op_rules[again.op].statistic;
    if (statistic)
        again.in[statistic] = again.out[1];
    again.in[0] = grad_keep(p, again.in[0]);
    return p->recomputed[t] = grad_add(p, &again);
}

/* A tensor is wanted if it is a parameter or computed from one. */
static void wanted_mark(grad_pass *p)
{
    for (int i = 0; i < graph_param_count(p->g); i++)
        p->wanted[graph_param(p->g, i)] = 1;
    for (int i = 0; i < graph_node_count(p->g); i++) {
        const node *n = graph_node(p->g, i);
        int any = 0;
        for (int j = 0; j < NODE_INPUTS; j++)
            any |= grad_wanted(p, n->in[j]);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            if (n->out[j] != TENSOR_NONE)
                p->wanted[n->out[j]] = (char)any;
    }
}

static berlu_status nodes_differentiate(grad_pass *p)
{
    for (int i = graph_node_count(p->g) - 1; i >= 0; i--) {
        node n = *graph_node(p->g, i); /* a copy: rules append to the array */
        const op_rule *rule = &op_rules[n.op];
        int begins = (rule->flags & RULE_LOSS) != 0;
        if (!rule->gradient || !(begins || (n.out[0] != TENSOR_NONE && p->gradient[n.out[0]] != TENSOR_NONE)))
            continue;
        TRY(rule->gradient(p, &n));
    }
    for (int i = 0; i < graph_param_count(p->g); i++) {
        tensor param = graph_param(p->g, i), d = p->gradient[param];
        if (d != TENSOR_NONE)
            graph_tensor_edit(p->g, d)->gradient_of = param;
    }
    return graph_status(p->g);
}

berlu_status graph_differentiate(graph *g, engine_keep keep, int recompute_attention)
{
    int count = graph_tensor_count(g);
    grad_pass p = {.g = g, .keep = keep, .recompute_attention = recompute_attention};
    p.gradient = malloc((size_t)(count + 1) * sizeof *p.gradient);
    p.recomputed = malloc((size_t)(count + 1) * sizeof *p.recomputed);
    p.wanted = calloc((size_t)count + 1, 1);
    berlu_status status = BERLU_OK;
    if (!p.gradient || !p.recomputed || !p.wanted) {
        status = berlu_fail_memory((size_t)count * 9, "differentiating a graph");
        goto done;
    }
    for (int i = 0; i < count; i++)
        p.gradient[i] = p.recomputed[i] = TENSOR_NONE;
    wanted_mark(&p);
    status = nodes_differentiate(&p);
done:
    free(p.gradient);
    free(p.recomputed);
    free(p.wanted);
    return status;
}
