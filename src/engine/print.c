/* print.c - prints an engine's graph after any pass. SPDX-License-Identifier: MIT
 *
 * Passes rewrite one graph in place, so an earlier state is shown by running them again up to
 * there: engines record nothing. Read on: graph_print.c. */
#include "engine/engine_internal.h"
#include "engine/graph_print.h"

berlu_status engine_pass_print(const graph *g, const engine_options *options, engine_pass pass, text *out, int dot)
{
    engine *e = NULL;
    berlu_status status = engine_begin(&e, g, options);
    if (status == BERLU_OK)
        status = engine_rewrite(e, pass);
    if (status == BERLU_OK && pass == PASS_PLAN)
        status = plan_make(&e->plan, e->g, e->backend, e->options.batch);
    if (status == BERLU_OK)
        status = graph_print(out, e->g, pass == PASS_PLAN ? &e->plan : NULL, dot);
    engine_free(e);
    return status;
}
