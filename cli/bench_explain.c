/* bench_explain.c - see bench_explain.h. SPDX-License-Identifier: MIT */
#include "bench_explain.h"

#include <stdio.h>

#include "act/act_internal.h"
#include "io/act_text.h"

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void limit_print(const stream_rule *rule, int threads)
{
    size_t forward = stream_limit(rule, 0, threads), backward = stream_limit(rule, 1, threads);
    printf("  stores stream beyond %.4g MiB read and written on %d thread%s: %s", mib(forward), threads,
           threads == 1 ? "" : "s", rule->cause);
    if (backward != forward)
        printf(" (%.4g MiB)", mib(backward));
    printf("\n");
}

berlu_status bench_explain(const char *spec, int threads)
{
    char model[64];
    berlu_act *act = NULL;
    berlu_status status = act_from_text(&act, spec);
    if (status != BERLU_OK)
        return status;
    cpu_caches c = cpu_caches_read();
    printf("%s: L2 %.4g MiB, L3 %.4g MiB", cpu_model(model, sizeof model), mib(c.l2), mib(c.l3));
    if (c.l3_threads)
        printf(" shared by %u hardware thread%s", c.l3_threads, c.l3_threads == 1 ? "" : "s");
    printf("\n");
    limit_print(&act->stream, 1);
    if (threads > 1)
        limit_print(&act->stream, threads);
    printf(act->stream.interleave ? "  loops prefetch, and interleave streams that leave the caches\n"
                                  : "  loops prefetch within %.4g MiB per thread; beyond, the processor does\n",
           mib(act->stream.near_bytes));
    berlu_act_free(act);
    return BERLU_OK;
}

void bench_explain_row(const bench_row *r)
{
    printf("    %s: %.4g MiB read and written on %d thread%s\n",
           r->hint == BERLU_HINT_STREAM ? "streams" : "does not stream", r->bytes / (1 << 20), r->threads,
           r->threads == 1 ? "" : "s");
}
