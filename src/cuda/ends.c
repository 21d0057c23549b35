/* ends.c - the last additions of sums over rows, many of them in one launch.
 * SPDX-License-Identifier: MIT
 *
 * A kernel that sums over rows leaves partial sums in its workspace, and somebody has to add them.
 * Nobody needs the results (gradients of biases and norms) before the update, while a launch for
 * each would cost more than its additions: a step of ViT-Tiny has 36. So within a program they are
 * collected and added by one launch (columns.cu): when the list is full, before a call that touches
 * a result or the memory in which partial sums still lie, before updates, and at the end of the
 * program. Workspaces of consecutive calls lie side by side (backend.workspace_ring), so that this
 * is seldom. Outside a program, and on the second stream, an end is launched at once. The order of
 * additions is the same in any case. */
#include <assert.h>

#include "cuda/kernels.h"
#include "graph/dtype.h"

static void launch(cuda_device *d, const cuda_end *ends, int count)
{
    cuda_ends_launch(d, ends, count);
    berlu_status status = gpu_launch_status();
    if (status != BERLU_OK)
        cuda_device_fail(d, status, "ends of sums: %s", berlu_last_error());
}

static void flush(cuda_device *d)
{
    assert(d->stream == d->ends.stream || !d->ends.count);
    if (d->ends.count)
        launch(d, d->ends.list, d->ends.count);
    d->ends.count = 0;
}

void cuda_end_add(const op_call *c, const cuda_end *end)
{
    cuda_device *d = cuda_device_of(c);
    if (!end->to || !end->columns)
        return;
    if (!d->ends.stream || d->ends.stream != d->stream) {
        launch(d, end, 1);
        return;
    }
    if (d->ends.count == ENDS_MOST)
        flush(d);
    for (int i = 0; i < d->ends.count; i++)
        assert(d->ends.list[i].part != end->part); /* two sums of one call need two workspaces */
    d->ends.list[d->ends.count++] = *end;
}

void cuda_ends_begin(cuda_device *d)
{
    d->ends.count = 0;
    d->ends.stream = d->stream;
}

void cuda_ends_finish(cuda_device *d)
{
    if (d->failed == BERLU_OK)
        flush(d);
    d->ends.count = 0;
    d->ends.stream = NULL;
}

/* ---- which calls force the launch ------------------------------------------------------------ */

static int overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const char *x = a, *y = b;
    return x && y && x < y + b_bytes && y < x + a_bytes;
}

static int touches(const op_operand *o, const cuda_end *end)
{
    size_t bytes = (size_t)operand_count(o) * dtype_bytes(o->dtype);
    return overlap(o->data, bytes, end->to, (size_t)end->columns * sizeof *end->to);
}

void cuda_ends_before(cuda_device *d, const op_call *c)
{
    op_workspace workspace = d->base.backend->ops[c->op].workspace;
    size_t bytes = d->ends.count && workspace ? workspace(c) : 0;
    int found = (op_rules[c->op].flags & RULE_UPDATE) != 0;
    for (int i = 0; i < d->ends.count && !found; i++) {
        const cuda_end *end = &d->ends.list[i];
        size_t reads = (size_t)((end->parts - 1) * end->stride + end->columns) * sizeof *end->part;
        found = overlap(c->workspace, bytes, end->part, reads);
        for (int j = 0; j < NODE_INPUTS; j++)
            found |= touches(&c->in[j], end);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            found |= touches(&c->out[j], end);
    }
    if (found)
        flush(d);
}
