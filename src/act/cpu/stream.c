/* stream.c - from how many bytes on a call stores past the caches. SPDX-License-Identifier: MIT
 *
 * A non-temporal store saves the read of the line it overwrites and evicts nothing, and loses when
 * the caches would have held the output. Measured on two kinds of machine (docs/performance.md):
 *
 *     a large L2 comes with a slow shared L3    streaming pays as soon as the L2s are full
 *     a small L2 comes with a fast shared L3    it pays beyond the L3, and costs up to a factor of
 *                                               2 before
 *
 * A server has several L3s; a team of threads has as many as it needs cores of. */
#include "act/act_internal.h"

enum { LARGE_L2 = 5 << 18, UNKNOWN = 30 << 20 };

stream_rule stream_rule_for(const cpu_caches *c)
{
    if (c->l2 >= LARGE_L2)
        return (stream_rule){c->l2 + c->l2 / 4, 1, "5/4 of a large L2 per thread"};
    if (c->l3)
        return (stream_rule){c->l3 / 16 * 15, c->l3_threads, "15/16 of each L3 beside a small L2"};
    if (c->l2)
        return (stream_rule){c->l2 + c->l2 / 4, 1, "5/4 of an L2 per thread, and no L3"};
    return (stream_rule){UNKNOWN, 0, "a guess, as the machine does not report its caches"};
}

size_t stream_limit(const stream_rule *rule, int threads)
{
    size_t teams = rule->sharers ? ((size_t)threads + rule->sharers - 1) / rule->sharers : 1;
    return rule->bytes * (teams ? teams : 1);
}
