/* passes.h - what is done to a graph between a model and a run. SPDX-License-Identifier: MIT
 *
 * In this order: narrow (only the rows the answer reads), simplify (take out what a mode does not need), differentiate (append
 * the backward), fuse (fewer, larger calls where the backend has them), simplify again (drop what nobody reads), group (which
 * calls run together, some rows at a time), plan (a place for every tensor). Each is a file of its own with its idea on top; engine_pass_print() shows a graph after any of them
 * (`berlu summary MODEL --graph --after differentiate`). */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "graph/op.h"

/* Moves selections of a token up through ops that work row by row. */
berlu_status graph_slice(graph *g);

/* Replaces random ops by their inputs unless `train`, and removes nodes whose results nobody reads. */
berlu_status graph_prune(graph *g, int train);

/* Rewrites in place; uses only fused ops for which `ops` has a kernel. */
berlu_status graph_fuse(graph *g, const op_entry *ops);

/* How often each tensor is read; answers and gradients count once more. NULL with the error text set. */
int *graph_uses(const graph *g);

#endif
