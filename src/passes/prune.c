/* prune.c - removes ops that the mode does not need, and dead code. SPDX-License-Identifier: MIT
 *
 * In inference a random op is the identity: uses of its output become uses of its input. Then, from
 * the end to the beginning, a node is live if one of its outputs is the graph's output, a head, a
 * loss, the gradient of a parameter, or read by a live node. One pass each. */
#include <stdlib.h>

#include "passes/passes.h"

static void random_remove(graph *g)
{
    for (int i = 0; i < graph_node_count(g); i++) {
        const node *n = graph_node(g, i);
        if (op_rules[n->op].flags & RULE_RANDOM)
            graph_replace(g, n->out[0], n->in[0]);
    }
}

static int node_is_root(const graph *g, const node *n)
{
    if (op_rules[n->op].flags & RULE_LOSS)
        return 1;
    for (int j = 0; j < NODE_OUTPUTS; j++)
        if (n->out[j] != TENSOR_NONE && graph_tensor(g, n->out[j])->gradient_of != TENSOR_NONE)
            return 1;
    return 0;
}

static void outputs_mark(const graph *g, char *read)
{
    tensor heads[2];
    graph_heads(g, heads);
    if (graph_logits(g) != TENSOR_NONE)
        read[graph_logits(g)] = 1;
    for (int i = 0; i < 2; i++)
        if (heads[i] != TENSOR_NONE)
            read[heads[i]] = 1;
}

/* Collects the live nodes in `kept`, in order, and returns their number. */
static int nodes_filter(const graph *g, char *read, node *kept)
{
    int count = graph_node_count(g), left = count;
    for (int i = count - 1; i >= 0; i--) {
        const node *n = graph_node(g, i);
        int needed = node_is_root(g, n);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            needed |= n->out[j] != TENSOR_NONE && read[n->out[j]];
        if (!needed)
            continue;
        for (int j = 0; j < NODE_INPUTS; j++)
            if (n->in[j] != TENSOR_NONE)
                read[n->in[j]] = 1;
        kept[--left] = *n;
    }
    return count - left;
}

berlu_status graph_prune(graph *g, int train)
{
    if (!train)
        random_remove(g);
    int count = graph_node_count(g), tensors = graph_tensor_count(g);
    char *read = calloc((size_t)tensors + 1, 1);
    node *kept = calloc((size_t)count + 1, sizeof *kept);
    berlu_status status;
    TRY_DONE(read && kept ? BERLU_OK : berlu_fail_memory((size_t)count * sizeof *kept, "pruning a graph"));
    outputs_mark(g, read);
    int left = nodes_filter(g, read, kept);
    graph_set_nodes(g, kept + (count - left), left);
done:
    free(read);
    free(kept);
    return status;
}

int *graph_uses(const graph *g)
{
    int *uses = calloc((size_t)graph_tensor_count(g) + 1, sizeof *uses);
    char *read = calloc((size_t)graph_tensor_count(g) + 1, 1);
    if (!uses || !read) {
        berlu_fail_memory((size_t)graph_tensor_count(g) * sizeof *uses, "counting a graph's readers");
        free(uses);
        free(read);
        return NULL;
    }
    outputs_mark(g, read);
    for (int i = 0; i < graph_tensor_count(g); i++)
        uses[i] = read[i] + (graph_tensor(g, i)->gradient_of != TENSOR_NONE);
    for (int i = 0; i < graph_node_count(g); i++)
        for (int j = 0; j < NODE_INPUTS; j++)
            if (graph_node(g, i)->in[j] != TENSOR_NONE)
                uses[graph_node(g, i)->in[j]]++;
    free(read);
    return uses;
}
