/* graph_print.h - a graph as text or as a Graphviz file. SPDX-License-Identifier: MIT */
#ifndef ENGINE_GRAPH_PRINT_H
#define ENGINE_GRAPH_PRINT_H

#include "base/text.h"
#include "engine/plan.h"

/* One line per node, or a dot file. `p` NULL: without memory. */
berlu_status graph_print(text *out, const graph *g, const plan *p, int dot);

#endif
