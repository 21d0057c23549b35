/* passes.h - rewrites of a graph between a model and a run. SPDX-License-Identifier: MIT
 *
 * In this order: slice (only the rows the output reads), the losses, prune (remove ops that the
 * mode does not need), weights (what weights can do into them, for backends that ask for it),
 * differentiate (append the backward), fuse (fewer, larger calls where the backend has them), prune
 * again (dead code), precision (a dtype for every tensor), group (which calls run together, some
 * rows at a time: the backend's choice), plan (memory for every tensor). Each is a file whose head
 * explains it; engine_pass_print() shows a graph after any of them
 * (`berlu summary MODEL --graph --after differentiate`). */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "graph/dtype.h"
#include "graph/op.h"

/* Moves selections of a token up through row-wise ops. */
berlu_status graph_slice(graph *g);

/* Replaces random ops by their inputs unless `train`, and removes nodes whose outputs are not
 * read. */
berlu_status graph_prune(graph *g, int train);

/* Moves factors of LayerScale and windows of small tiles into the weights of the layers beside. */
berlu_status graph_weights(graph *g);

/* Rewrites in place; uses only fused ops for which `ops` has a kernel. Where an entry depends on
 * sizes and dtypes (op_entry.takes), `takes` answers for a node that could be made; NULL: all are
 * taken. */
typedef struct fuse_question {
    int (*takes)(const void *context, const node *n);
    const void *context;
} fuse_question;
berlu_status graph_fuse(graph *g, const op_entry *ops, const fuse_question *question);

/* Sets every tensor's dtype from its role; nodes whose kernels want weights in the branch's dtype
 * read copies of them. */
berlu_status graph_precision(graph *g, const op_entry *ops, const tensor_dtype of_role[ROLE_COUNT]);
/* The dtype that it will give a tensor, as input `slot` of an op; slot -1: as an output. */
tensor_dtype graph_dtype_of(const graph *g, tensor t, const op_entry *entry, int slot,
                            const tensor_dtype of_role[ROLE_COUNT]);

/* The number of readers of each tensor; outputs and gradients count once more. NULL with the error
 * text set. */
int *graph_uses(const graph *g);

#endif
