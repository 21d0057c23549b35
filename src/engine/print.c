/* print.c - prints an engine's graph after any pass. SPDX-License-Identifier: MIT
 *
 * Passes rewrite one graph in place, so an earlier state is shown by running them again up to
 * there: engines record nothing. Read on: graph_print.c. */
#include "engine/engine_internal.h"
#include "engine/graph_print.h"

berlu_status engine_pass_print(const graph *g, const engine_options *options, engine_pass pass, text *out, int dot)
{
    engine *e = NULL;
    berlu_status status;
    TRY_DONE(engine_begin(&e, g, options));
    TRY_DONE(engine_rewrite(e, pass));
    if (pass == PASS_PLAN)
        TRY_DONE(plan_make(&e->plan, e->g, e->backend, e->device, e->options.batch));
    status = graph_print(out, e->g, pass == PASS_PLAN ? &e->plan : NULL, dot);
done:
    engine_free(e);
    return status;
}
