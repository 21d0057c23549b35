/* cases.h - small networks that between them use every op, for the tests of graph, passes and
 * kernels. SPDX-License-Identifier: MIT
 *
 * Every op under test has learned layers before and behind it, so that a wrong gradient to any of
 * its inputs shows in some parameter. Sizes are odd and small: no vector length divides them. */
#ifndef TESTS_GRAPH_CASES_H
#define TESTS_GRAPH_CASES_H

#include "cpu/cpu.h"
#include "engine/engine.h"

typedef struct graph_case {
    const char *name;
    void (*build)(graph *g, const berlu_act *act);
    const char *act;        /* spec, or NULL */
    engine_options options; /* mode, loss, distillation ...; backend and threads are the test's */
} graph_case;

extern const graph_case graph_cases[];
extern const int graph_case_count;

/* A case made ready: graph, activation, engine with random parameters, a random batch, labels and
 * targets. */
typedef struct prepared {
    graph *g;
    berlu_act *act;
    engine *e;
    engine_step step;
} prepared;
prepared case_prepare(const graph_case *c, const backend *machine, int threads);
prepared case_prepare_on(const graph_case *c, const backend *machine, device *opened, int threads); /* NULL: its own */
void case_free(prepared *p);
void case_fill(engine *e, uint64_t seed); /* parameters and batch as a function of names and seed */

#endif
