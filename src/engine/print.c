/* print.c - an engine's graph for people, after any pass. SPDX-License-Identifier: MIT
 *
 * Passes rewrite one graph in place, so a view of an earlier state is made by running them again up to there: nothing has to
 * be remembered while engines are made. Read on: graph_print.c. */
#include "engine/engine_internal.h"
#include "engine/graph_print.h"

berlu_status engine_pass_print(const graph *g, const engine_options *options, engine_pass pass, text *out, int dot)
{
    engine *e = NULL;
    berlu_status status = engine_begin(&e, g, options);
    if (status == BERLU_OK)
        status = engine_rewrite(e, pass);
    if (status == BERLU_OK && pass == PASS_PLAN)
        status = plan_make(&e->plan, e->g, e->backend, e->device, e->options.batch);
    if (status == BERLU_OK)
        status = graph_print(out, e->g, pass == PASS_PLAN ? &e->plan : NULL, dot);
    engine_free(e);
    return status;
}
