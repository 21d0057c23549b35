/* graph_internal.h - the struct behind graph.h, for the files of this layer alone.
 * SPDX-License-Identifier: MIT */
#ifndef GRAPH_GRAPH_INTERNAL_H
#define GRAPH_GRAPH_INTERNAL_H

#include "graph/op.h"

struct graph {
    arena names;
    tensor_info *tensors;
    node *nodes;
    tensor *params; /* in state-dict order */
    graph_site *sites;
    int tensor_count, node_count, param_count, site_count, random_count;
    int tensor_capacity, node_capacity, param_capacity, site_capacity;
    tensor image, answer, head[2];
    berlu_status error; /* the first; its message below */
    char message[512];
    char said[4][192];
    unsigned say;
};

static inline int graph_has(const graph *g, tensor t)
{
    return t >= 0 && t < g->tensor_count;
}

/* Sizes are at least 1 and their product leaves headroom for any sensible batch. */
berlu_status graph_sizes_check(graph *g, const char *name, int rank, const int64_t *size);
int graph_site_add(graph *g, const graph_site *site); /* its index, or -1 */

#endif
