/* precision.c - gives every tensor its dtype, by role, and weights their copies.
 * SPDX-License-Identifier: MIT
 *
 * A backend defines the dtype of each role (f32 throughout on the CPU; on CUDA branches may be bf16
 * while weights, gradients, statistics and losses stay f32). Views have the dtype of their source.
 * Where a backend's kernel wants a weight in the branch's dtype (op_entry.shadow), the node reads a
 * copy of it instead, a "shadow" that the update writes in the same pass as the weight itself; one
 * shadow serves all readers of a weight. Likewise a kernel may write its result a second time in
 * the branch's dtype (op_entry.copy), for the products that read it so: gradients of an f32
 * residual stream are then converted once, where they are computed, and not by every reader. */
#include <stdlib.h>

#include "passes/passes.h"

/* A pass may have pointed a view at a tensor declared after it, so tensors are in no useful
 * order. */
static tensor viewed(const graph *g, tensor t)
{
    while (graph_tensor(g, t)->view_of != TENSOR_NONE)
        t = graph_tensor(g, t)->view_of;
    return t;
}

static tensor_dtype dtype_by_role(const graph *g, tensor t, const tensor_dtype of_role[ROLE_COUNT])
{
    const tensor_info *base = graph_tensor(g, viewed(g, t));
    return base->dtype == DTYPE_I32 ? DTYPE_I32 : of_role[base->feed ? ROLE_LOSS : base->role];
}

tensor_dtype graph_dtype_of(const graph *g, tensor t, const op_entry *entry, int slot,
                            const tensor_dtype of_role[ROLE_COUNT])
{
    int copied = slot >= 0 && graph_tensor(g, t)->parameter >= 0 && (entry->shadow >> slot & 1);
    return copied ? of_role[ROLE_BRANCH] : dtype_by_role(g, t, of_role);
}

static void dtypes_set(graph *g, const tensor_dtype of_role[ROLE_COUNT])
{
    for (int t = 0; t < graph_tensor_count(g); t++)
        if (graph_tensor(g, viewed(g, t))->dtype != DTYPE_I32)
            graph_tensor_edit(g, t)->dtype = dtype_by_role(g, t, of_role);
}

static tensor shadow_make(graph *g, tensor parameter, tensor_dtype dtype)
{
    tensor t = graph_declare_like(g, ROLE_WEIGHT, parameter);
    if (t == TENSOR_NONE)
        return t;
    tensor_info *info = graph_tensor_edit(g, t);
    info->name = graph_name(g, "%s:%s", graph_tensor(g, parameter)->name, dtype_name(dtype));
    info->dtype = dtype;
    info->shadow_of = parameter;
    return t;
}

/* Input j of node n is tensor t, and the kernel wants it in the branch's dtype. */
static int reads_branch(const node *n, int j, tensor t, const op_entry *ops)
{
    return n->in[j] == t && ops[n->op].branch >> j & 1;
}

/* Requests output 0 of node `index` in the branch's dtype too, where a later node wants it so. */
static void copy_request(graph *g, int index, const op_entry *ops, tensor_dtype dtype)
{
    const node *maker = graph_node(g, index);
    int slot = ops[maker->op].copy;
    tensor whole = slot ? maker->out[0] : TENSOR_NONE, copy = TENSOR_NONE;
    if (whole == TENSOR_NONE || graph_tensor(g, whole)->dtype == dtype)
        return;
    for (int i = index + 1; i < graph_node_count(g); i++)
        for (int j = 0; j < NODE_INPUTS; j++) {
            if (!reads_branch(graph_node(g, i), j, whole, ops))
                continue;
            if (copy == TENSOR_NONE)
                copy = graph_declare_like(g, ROLE_BRANCH, whole);
            if (copy == TENSOR_NONE)
                return;
            graph_node_edit(g, i)->in[j] = copy;
        }
    if (copy == TENSOR_NONE)
        return;
    graph_tensor_edit(g, copy)->dtype = dtype;
    graph_tensor_edit(g, copy)->producer = index;
    graph_node_edit(g, index)->out[slot] = copy;
    graph_node_edit(g, index)->attr.like[slot] = whole;
}

berlu_status graph_precision(graph *g, const op_entry *ops, const tensor_dtype of_role[ROLE_COUNT])
{
    dtypes_set(g, of_role);
    if (of_role[ROLE_BRANCH] == of_role[ROLE_WEIGHT])
        return graph_status(g);
    int params = graph_param_count(g);
    tensor *shadows = malloc(((size_t)params + 1) * sizeof *shadows);
    if (!shadows)
        return berlu_fail_memory((size_t)params * sizeof *shadows, "a list of parameters");
    for (int i = 0; i < params; i++)
        shadows[i] = TENSOR_NONE;
    for (int i = 0; i < graph_node_count(g) && !graph_failed(g); i++)
        for (int j = 0; j < NODE_INPUTS; j++) {
            tensor in = graph_node(g, i)->in[j];
            int parameter = in == TENSOR_NONE ? -1 : graph_tensor(g, in)->parameter;
            if (parameter < 0 || !(ops[graph_node(g, i)->op].shadow >> j & 1))
                continue;
            if (shadows[parameter] == TENSOR_NONE)
                shadows[parameter] = shadow_make(g, in, of_role[ROLE_BRANCH]);
            graph_node_edit(g, i)->in[j] = shadows[parameter];
        }
    free(shadows);
    for (int i = 0; i < graph_node_count(g) && !graph_failed(g); i++)
        copy_request(g, i, ops, of_role[ROLE_BRANCH]);
    return graph_status(g);
}
