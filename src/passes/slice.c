/* slice.c - slice pushdown: computes only the rows that the output reads.
 * SPDX-License-Identifier: MIT
 *
 * A ViT reads one token of its last block and drops the rest; yet every op after the last attention
 * is row-wise (sums, norms, linear layers, activations). So the selection can move up:
 * select(op(x)) = op(select(x)) for every op flagged RULE_ROWS. The last block's projection and MLP
 * then run on one token instead of 65, which is 6 % of a training step of ViT-Tiny at 32 x 32, and
 * none of their activations is kept for the other 64. Values do not change.
 *
 * slice_tensor() follows an input upwards and adds sliced copies of the nodes it passes; the old
 * ones, if nothing else reads them, are dead code for prune.c. Copies are appended, so the list is
 * sorted topologically at the end. */
#include <assert.h>
#include <stdlib.h>

#include "passes/passes.h"

typedef struct slice_pass {
    graph *g;
    int *uses; /* tensors at the beginning of the round */
    int tensors;
    node *sorted; /* for nodes_sort() */
    char *placed;
    int count;
} slice_pass;

/* Is t [T, C] of every image, so that a token can be selected? Parameters are not sliced. */
static int has_tokens(const graph *g, tensor t)
{
    const tensor_info *info = graph_tensor(g, t);
    return info->batched && info->rank == 2;
}

/* One selection per tensor and token, so that a stream read twice counts as read once in the next
 * round. */
static tensor select_add(graph *g, tensor t, int token)
{
    for (int i = 0; i < graph_node_count(g); i++)
        if (graph_node(g, i)->op == OP_SELECT && graph_node(g, i)->in[0] == t && graph_node(g, i)->attr.skip == token)
            return graph_node(g, i)->out[0];
    node n = node_make(OP_SELECT, 1, &t);
    n.attr.skip = token;
    return graph_add(g, &n);
}

/* Token `token` of t: by a sliced copy of its producer, or by a selection from t. */
static tensor slice_tensor(slice_pass *p, tensor t, int token)
{
    int producer = graph_tensor(p->g, t)->producer;
    node n = producer < 0 ? node_make(OP_COUNT, 0, NULL) : *graph_node(p->g, producer);
    int follows = producer >= 0 && t < p->tensors && p->uses[t] == 1 && n.out[0] == t && n.attr.groups <= 1;
    if (!follows || !(op_rules[n.op].flags & RULE_ROWS))
        return select_add(p->g, t, token);
    tensor wide = n.in[0];
    for (int j = 0; j < NODE_INPUTS; j++)
        if (n.in[j] != TENSOR_NONE && has_tokens(p->g, n.in[j]))
            n.in[j] = slice_tensor(p, n.in[j], token);
    tensor made = graph_add(p->g, &n);
    if (made != TENSOR_NONE && n.attr.act)
        graph_site_move(p->g, n.attr.site, wide, n.in[0], made);
    return made;
}

/* Depth first from the outputs: inputs come before their readers. */
static void node_place(slice_pass *p, tensor t)
{
    int index = t == TENSOR_NONE ? -1 : graph_tensor(p->g, t)->producer;
    if (index < 0 || p->placed[index])
        return;
    p->placed[index] = 1;
    for (int j = 0; j < NODE_INPUTS; j++)
        node_place(p, graph_node(p->g, index)->in[j]);
    p->sorted[p->count++] = *graph_node(p->g, index);
}

static berlu_status nodes_sort(slice_pass *p)
{
    int nodes = graph_node_count(p->g);
    p->sorted = calloc((size_t)nodes + 1, sizeof *p->sorted);
    p->placed = calloc((size_t)nodes + 1, 1);
    if (!p->sorted || !p->placed)
        return berlu_fail_memory((size_t)nodes * sizeof *p->sorted, "sorting a graph");
    tensor heads[2];
    graph_heads(p->g, heads);
    node_place(p, heads[0]);
    node_place(p, heads[1]);
    node_place(p, graph_logits(p->g));
    assert(p->count <= nodes);
    graph_set_nodes(p->g, p->sorted, p->count);
    return BERLU_OK;
}

/* One round: every selection moves up as far as it can. One that cannot move is returned
 * unchanged. */
static berlu_status round_run(graph *g, int *moved)
{
    slice_pass p = {.g = g, .uses = graph_uses(g), .tensors = graph_tensor_count(g)};
    berlu_status status;
    int nodes = graph_node_count(g);
    TRY_DONE(p.uses ? BERLU_OK : BERLU_ERR_MEMORY);
    for (int i = 0; i < nodes; i++) {
        node n = *graph_node(g, i);
        if (n.op != OP_SELECT)
            continue;
        tensor narrow = slice_tensor(&p, n.in[0], n.attr.skip);
        TRY_DONE(graph_status(g));
        *moved += graph_replace(g, n.out[0], narrow) > 0;
    }
    if (*moved)
        status = nodes_sort(&p);
done:
    free(p.uses);
    free(p.sorted);
    free(p.placed);
    return status;
}

/* The residual stream is read by a sum and by a norm; once both are sliced it has one selection
 * left, which can move on. */
berlu_status graph_slice(graph *g)
{
    for (int moved = 1; moved;) {
        moved = 0;
        TRY(round_run(g, &moved));
        if (moved)
            TRY(graph_prune(g, 1));
    }
    return BERLU_OK;
}
