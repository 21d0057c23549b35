/* scale.c - LayerScale goes into the weights before it. SPDX-License-Identifier: MIT
 *
 *     scale(linear(x, W, b), gamma)  ->  linear(x, W', b') with W', b' = scale_weight(W, gamma, b)
 *
 * As a node of its own LayerScale reads and writes all rows of a batch, each way, and keeps its
 * input for the backward. In the weights it costs a pass over them, which is a thousandth of that
 * where the batch is large; the sum with the residual then follows the product directly, so its
 * epilogue can take it (fuse.c), and nothing is kept. Runs before differentiate, whose gradients of
 * W', b' and gamma therefore need no rule of their own here (graph/op_scale_weight.c).
 *
 * Values change in their last bits: gamma multiplies weights instead of results. So a backend asks
 * for it (backend.scale_weights); the CPU's, whose runs are recorded bit for bit, do not. Applies
 * only where nothing else reads the layer's own output. */
#include <assert.h>
#include <stdlib.h>

#include "passes/passes.h"

/* The node number of the layer whose output node n scales; -1: n scales something else, or the
 * layer's output is read elsewhere too. */
static int scaled_layer(const graph *g, const node *n, const int *uses)
{
    if (n->op != OP_SCALE || uses[n->in[0]] != 1)
        return -1;
    int layer = graph_tensor(g, n->in[0])->producer;
    return layer >= 0 && graph_node(g, layer)->op == OP_LINEAR ? layer : -1;
}

/* Appends scale_weight for the layer and lets the layer, instead of the scale, write the result.
 * Returns the number of the new node, or -1 with the graph's error set. */
static int layer_scale(graph *g, int layer, const node *scale)
{
    const node *l = graph_node(g, layer);
    node weight = node_make(OP_SCALE_WEIGHT, 3, (tensor[]){l->in[1], scale->in[1], l->in[2]});
    if (graph_add(g, &weight) == TENSOR_NONE)
        return -1;
    weight = *graph_last(g);
    node *edited = graph_node_edit(g, layer);
    edited->in[1] = weight.out[0];
    edited->in[2] = weight.out[1];
    graph_replace(g, scale->out[0], edited->out[0]);
    return graph_node_count(g) - 1;
}

/* The first `count` nodes in order, each with the one that must precede it; those marked as gone
 * are left out. */
static void nodes_order(graph *g, int count, const int *before, const char *gone, node *sorted)
{
    int at = 0;
    for (int i = 0; i < count; i++) {
        if (before[i] >= 0)
            sorted[at++] = *graph_node(g, before[i]);
        if (!gone[i])
            sorted[at++] = *graph_node(g, i);
    }
    assert(at == count); /* a node more for each that is gone */
    graph_set_nodes(g, sorted, at);
}

berlu_status graph_scale(graph *g)
{
    int count = graph_node_count(g), found = 0;
    int *uses = graph_uses(g), *before = malloc(((size_t)count + 1) * sizeof *before);
    char *gone = calloc((size_t)count + 1, 1);
    node *sorted = calloc((size_t)count + 1, sizeof *sorted);
    berlu_status status = BERLU_OK;
    if (!uses || !before || !gone || !sorted) {
        status = berlu_fail_memory((size_t)count * sizeof *sorted, "moving factors into weights");
        goto done;
    }
    for (int i = 0; i < count; i++)
        before[i] = -1;
    for (int i = 0; i < count && status == BERLU_OK; i++) {
        const node scale = *graph_node(g, i);
        int layer = scaled_layer(g, &scale, uses);
        if (layer < 0)
            continue;
        before[layer] = layer_scale(g, layer, &scale);
        gone[i] = 1;
        found++;
        status = graph_status(g);
    }
    if (found && status == BERLU_OK)
        nodes_order(g, count, before, gone, sorted);
done:
    free(uses);
    free(before);
    free(gone);
    free(sorted);
    return status;
}
