/* stream.c - the size above which a call uses non-temporal stores. SPDX-License-Identifier: MIT
 *
 * A non-temporal store saves the read of the line it overwrites and evicts nothing, and loses when
 * the caches would have held the output. Measured on two kinds of machine (docs/performance.md):
 *
 *     a large L2 comes with a slow shared L3    streaming pays as soon as the L2s are full
 *     a small L2 comes with a fast shared L3    it pays beyond the L3, and costs up to a factor of
 *                                               2 before; in a backward, which reads twice as much
 *                                               as it writes, it costs nothing and pays from 5/8
 *                                               of the L3 on
 *
 * A server has several L3s: a call counts on as many of them as its threads need (threads over
 * threads per L3, rounded up).
 *
 * Prefetches help within the L2 on both kinds. Beyond it they help the first, as do interleaved
 * streams (kernel.c); the second fetches ahead by itself, and both cost it 5 to 20 %: there the
 * distance is 0, a prefetch of the line that is loaded anyway. */
#include "act/act_internal.h"

enum { LARGE_L2 = 5 << 18, UNKNOWN = 30 << 20, UNKNOWN_L2 = 1 << 18, AHEAD = 512 };

stream_rule stream_rule_for(const cpu_caches *c)
{
    stream_rule rule = {.near_bytes = c->l2 ? c->l2 : UNKNOWN_L2, .interleave = 1};
    if (c->l2 >= LARGE_L2 || (c->l2 && !c->l3)) {
        rule.bytes = c->l2 + c->l2 / 4;
        rule.sharers = 1;
        rule.cause = c->l2 >= LARGE_L2 ? "5/4 of a large L2 per thread" : "5/4 of an L2 per thread, and no L3";
    } else if (c->l3) {
        rule.bytes = c->l3 / 16 * 15;
        rule.backward_bytes = c->l3 / 8 * 5;
        rule.sharers = c->l3_threads;
        rule.interleave = 0;
        rule.cause = "15/16 of each L3 beside a small L2, in a backward 5/8";
    } else {
        rule.bytes = UNKNOWN;
        rule.cause = "a guess, as the machine does not report its caches";
    }
    if (!rule.backward_bytes)
        rule.backward_bytes = rule.bytes;
    return rule;
}

size_t stream_limit(const stream_rule *rule, int backward, int threads)
{
    size_t teams = rule->sharers ? ((size_t)threads + rule->sharers - 1) / rule->sharers : 1;
    return (backward ? rule->backward_bytes : rule->bytes) * (teams ? teams : 1);
}

size_t stream_ahead(const stream_rule *rule, size_t bytes, int threads)
{
    return rule->interleave || bytes <= rule->near_bytes * (size_t)threads ? AHEAD : 0;
}
