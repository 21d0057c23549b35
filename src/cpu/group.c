/* group.c - finds row-blocked groups: calls that run together, some rows at a time.
 * SPDX-License-Identifier: MIT
 *
 * TNT's pixels are 16384 short rows: norm, product, activation, product each read and write
 * megabytes for little arithmetic, and the output of one is evicted before the next reads it. All
 * of them are row-wise (weight gradients sum over rows, and keep partial sums anyway), so a
 * sequence of such nodes can run on a thousand rows at a time: all nodes for the first rows, then
 * all for the next, each thread with rows of its own and no barrier between nodes. Bits are the
 * same: neither the result of a row nor the partial sums depend on the order.
 *
 * A group is a sequence of consecutive nodes, all forward or all backward, that the backend can
 * block, over the same number of rows, so short that a block of them stays in L2. Long rows
 * (tokens: 384 to 1536 elements) come with weights that fill the cache themselves: there a group
 * gains nothing. Read on: plan_groups() in plan.c; cpu/run.c. */
#include "cpu/blocks.h"
#include "cpu/kernels.h"
#include "graph/op_rules.h"

enum { GROUP_TIMES = 8 }; /* blocks of GROUP_ROWS from which on a group pays off and leaves work for several threads */

static int is_short(const graph *g, tensor t, int64_t width)
{
    const tensor_info *info = t == TENSOR_NONE ? NULL : graph_tensor(g, t);
    return !info || !info->batched || tensor_channels(info) <= width;
}

/* Attention reads all tokens of a group: it must be whole among the rows of a block. */
static int groups_fit(const graph *g, const node *n, int64_t group_rows)
{
    const tensor_info *info = graph_tensor(g, n->in[0]);
    return !n->attr.heads || group_rows % info->size[info->rank - 2] == 0;
}

/* Rows of an image that the node works on, or 0 if it cannot be in a group. */
static int64_t member_rows(const graph *g, const node *n, int64_t group_rows, int batch)
{
    if ((op_rules[n->op].flags & RULE_VIEW) || !cpu_groupable(n->op) || n->in[0] == TENSOR_NONE ||
        !graph_tensor(g, n->in[0])->batched || rows_of(g, n->in[0]) * batch < GROUP_TIMES * group_rows ||
        !groups_fit(g, n, group_rows))
        return 0;
    for (int j = 0; j < NODE_INPUTS; j++)
        if (!is_short(g, n->in[j], GROUP_WIDTH))
            return 0;
    for (int j = 0; j < NODE_OUTPUTS; j++)
        if (!is_short(g, n->out[j], GROUP_WIDTH))
            return 0;
    return rows_of(g, n->in[0]);
}

/* May the node join the group that begins at node `first`? Its inputs within the group must be the
 * same rows, not a sum over them. */
static int member_follows(const graph *g, const node *n, int first, int64_t rows)
{
    for (int j = 0; j < NODE_INPUTS; j++) {
        const tensor_info *info = n->in[j] == TENSOR_NONE ? NULL : graph_tensor(g, n->in[j]);
        if (info && info->producer >= first && (!info->batched || rows_of(g, n->in[j]) != rows))
            return 0;
    }
    return 1;
}

void cpu_group_mark(graph *g, int64_t group_rows, int batch)
{
    int first = 0, number = 0, count = graph_node_count(g);
    int64_t rows = 0;
    for (int i = 0; i < count; i++) {
        node *n = graph_node_edit(g, i);
        int64_t own = member_rows(g, n, group_rows, batch);
        int goes_on =
            rows && own == rows && n->backward == graph_node(g, first)->backward && member_follows(g, n, first, rows);
        if (goes_on) {
            if (!graph_node(g, first)->group)
                graph_node_edit(g, first)->group = ++number;
            n->group = number;
            continue;
        }
        first = i;
        rows = own;
    }
}
