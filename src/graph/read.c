/* read.c - queries of a graph: its tensors, nodes, parameters, sites and counts.
 * SPDX-License-Identifier: MIT
 *
 * Handles are checked by asserts: a tensor or node that is not in the graph is a mistake of ours.
 * graph_macs() counts multiply-adds of a forward over the rules of the ops. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph_internal.h"

const tensor_info *graph_tensor(const graph *g, tensor t)
{
    assert(t >= 0 && t < g->tensor_count);
    return &g->tensors[t];
}

tensor_info *graph_tensor_edit(graph *g, tensor t)
{
    assert(t >= 0 && t < g->tensor_count);
    return &g->tensors[t];
}

int graph_tensor_count(const graph *g)
{
    return g->tensor_count;
}

int graph_node_count(const graph *g)
{
    return g->node_count;
}

const node *graph_node(const graph *g, int index)
{
    assert(index >= 0 && index < g->node_count);
    return &g->nodes[index];
}

node *graph_node_edit(graph *g, int index)
{
    assert(index >= 0 && index < g->node_count);
    return &g->nodes[index];
}

const node *graph_last(const graph *g)
{
    assert(g->node_count > 0);
    return &g->nodes[g->node_count - 1];
}

int graph_param_count(const graph *g)
{
    return g->param_count;
}

tensor graph_param(const graph *g, int index)
{
    assert(index >= 0 && index < g->param_count);
    return g->params[index];
}

tensor graph_find(const graph *g, const char *name)
{
    for (int i = 0; i < g->param_count; i++)
        if (strcmp(g->tensors[g->params[i]].name, name) == 0)
            return g->params[i];
    return TENSOR_NONE;
}

int64_t tensor_elements(const tensor_info *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->size[i];
    return count;
}

int64_t tensor_channels(const tensor_info *t)
{
    assert(t->rank > 0 && t->rank <= TENSOR_RANK);
    return t->size[t->rank - 1];
}

tensor graph_image(const graph *g)
{
    return g->image;
}

tensor graph_logits(const graph *g)
{
    return g->answer;
}

int graph_heads(const graph *g, tensor heads[2])
{
    heads[0] = g->head[0];
    heads[1] = g->head[1];
    return g->head[1] == TENSOR_NONE ? 1 : 2;
}

double graph_macs(const graph *g)
{
    double sum = 0;
    for (int i = 0; i < g->node_count; i++)
        if (op_rules[g->nodes[i].op].macs)
            sum += op_rules[g->nodes[i].op].macs(g, &g->nodes[i]);
    return sum;
}

int graph_site_count(const graph *g)
{
    return g->site_count;
}

const graph_site *graph_site_at(const graph *g, int index)
{
    return &g->sites[index];
}

const char *graph_say(graph *g, tensor t)
{
    char *text = g->said[g->say++ & 3];
    if (t < 0) {
        snprintf(text, sizeof g->said[0], "(no tensor)");
        return text;
    }
    const tensor_info *info = &g->tensors[t];
    int used = snprintf(text, sizeof g->said[0], "'%.120s' [", info->name ? info->name : "?");
    for (int i = 0; i < info->rank; i++)
        used +=
            snprintf(text + used, sizeof g->said[0] - (size_t)used, "%s%lld", i ? ", " : "", (long long)info->size[i]);
    snprintf(text + used, sizeof g->said[0] - (size_t)used, "]");
    return text;
}
