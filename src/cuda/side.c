/* side.c - see side.h. SPDX-License-Identifier: MIT
 *
 * The plan gives memory out by the order of calls, so what runs beside later calls must be guarded:
 * a call waits for every gradient in flight that reads what the call writes, or that writes what
 * the call reads or writes. Those are ranges of addresses, compared once, when the program is
 * captured. plan.c lets the inputs of such calls live some calls longer (backend.linger), else the
 * next result would reuse their memory at once and there would be nothing to run beside. The
 * gradient of weights that others were computed from (scale_weight_grad) goes where the weight
 * gradient that it reads was computed: on the first stream it would wait for that one at once. */
#include "cuda/side.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/dtype.h"

enum {
    ROWS_MOST = 32768, /* measured with ViT-Tiny/4 on an H200: 256 images gain, 1024 lose */
    LINGER = 4,
};

typedef struct side_call {
    int index;    /* in the program */
    op_call call; /* with a workspace of its own */
    cuda_event fork, join;
} side_call;

struct cuda_side {
    cuda_device *device;
    side_call *calls;
    int count, launched, joined; /* of a capture: so many were launched, so many are waited for */
    void *workspace;
};

static int reads_weight_gradient(op_id op)
{
    return op == OP_SCALE_WEIGHT_GRAD || op == OP_SPREAD_WEIGHT_GRAD || op == OP_JOIN_WEIGHT_GRAD;
}

/* May it run on the second stream? */
static int runs_beside(const cuda_device *d, op_id op, int64_t rows)
{
    if (reads_weight_gradient(op))
        return d->second_stream >= 0;
    return op == OP_LINEAR_DW && d->second_stream >= 0 && (d->second_stream > 0 || rows <= ROWS_MOST);
}

int cuda_linger(const device *d, op_id op, int64_t rows)
{
    return runs_beside(cuda_device_at(d), op, rows) ? LINGER : 0;
}

static int may_be_side(const cuda_device *d, const op_call *c)
{
    return runs_beside(d, c->op, c->in[0].rows);
}

static int overlap(const op_operand *a, const op_operand *b)
{
    if (!a->data || !b->data)
        return 0;
    const char *x = a->data, *y = b->data;
    size_t xs = (size_t)(a->rows * a->channels) * dtype_bytes(a->dtype);
    size_t ys = (size_t)(b->rows * b->channels) * dtype_bytes(b->dtype);
    return x < y + ys && y < x + xs;
}

/* Adds the call to the list if it runs beside the others. */
static void call_consider(cuda_side *s, const op_call *c, int index)
{
    int wanted = !reads_weight_gradient(c->op);
    for (int i = 0; i < s->count; i++)
        wanted |= overlap(&s->calls[i].call.out[0], &c->in[0]);
    if (wanted && may_be_side(s->device, c))
        s->calls[s->count++] = (side_call){.index = index, .call = *c};
}

static size_t scratch_of(const cuda_device *d, const op_call *c)
{
    op_workspace workspace = d->base.backend->ops[c->op].workspace;
    return workspace ? workspace(c) : 0;
}

size_t cuda_side_bytes(const cuda_device *d, const op_call *calls, int count)
{
    size_t scratch = 0, library = 0;
    for (int i = 0; i < count; i++) {
        if (!may_be_side(d, &calls[i]) || reads_weight_gradient(calls[i].op)) /* which needs none */
            continue;
        size_t bytes = scratch_of(d, &calls[i]);
        scratch = bytes > scratch ? bytes : scratch;
        library = cuda_gemm_library(&calls[i]);
    }
    return scratch + library;
}

static berlu_status memory_take(cuda_side *s)
{
    cuda_device *d = s->device;
    size_t most = 1;
    TRY(cuda_side_open(d, &s->calls[0].call));
    for (int i = 0; i < s->count; i++) {
        size_t bytes = scratch_of(d, &s->calls[i].call);
        most = bytes > most ? bytes : most;
    }
    TRY(cuda_take(d, &s->workspace, MEMORY_DEVICE, most, "the second stream's scratch"));
    for (int i = 0; i < s->count; i++) {
        s->calls[i].call.workspace = s->workspace;
        TRY(gpu_event_create(&s->calls[i].fork, 0));
        TRY(gpu_event_create(&s->calls[i].join, 0));
    }
    return BERLU_OK;
}

berlu_status cuda_side_make(cuda_side **out, cuda_device *d, const op_call *calls, int count)
{
    int beside = 0;
    *out = NULL;
    for (int i = 0; i < count; i++)
        beside += may_be_side(d, &calls[i]);
    if (!beside)
        return BERLU_OK;
    cuda_side *s = calloc(1, sizeof *s);
    side_call *list = calloc((size_t)beside, sizeof *list);
    if (!s || !list) {
        free(s);
        free(list);
        return berlu_fail_memory((size_t)beside * sizeof *list, "the calls of the second stream");
    }
    *s = (cuda_side){.device = d, .calls = list};
    for (int i = 0; i < count; i++)
        call_consider(s, &calls[i], i);
    berlu_status status = gpu_use(d->index);
    if (status == BERLU_OK && s->count)
        status = memory_take(s);
    if (status != BERLU_OK || !s->count) {
        cuda_side_free(s);
        return status;
    }
    *out = s;
    return BERLU_OK;
}

void cuda_side_free(cuda_side *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->count; i++) {
        gpu_event_destroy(s->calls[i].fork);
        gpu_event_destroy(s->calls[i].join);
    }
    cuda_release((device *)s->device, MEMORY_DEVICE, s->workspace);
    free(s->calls);
    free(s);
}

void cuda_side_begin(cuda_side *s)
{
    s->launched = s->joined = 0;
}

int cuda_side_has(const cuda_side *s, int call)
{
    int next = s->launched;
    return next < s->count && s->calls[next].index == call;
}

berlu_status cuda_side_launch(cuda_side *s, int call)
{
    cuda_device *d = s->device;
    side_call *c = &s->calls[s->launched];
    cuda_stream first = d->stream;
    assert(c->index == call);
    (void)call;
    berlu_status status = gpu_event_record(c->fork, first);
    if (status == BERLU_OK)
        status = gpu_stream_after(d->side, c->fork);
    if (status != BERLU_OK)
        return status;
    d->stream = d->side;
    d->lt_workspace = d->side_workspace;
    d->base.backend->ops[c->call.op].run(&c->call);
    d->stream = first;
    d->lt_workspace = NULL;
    s->launched++;
    return gpu_event_record(c->join, d->side);
}

/* ---- dependencies between the streams -------------------------------------------------------- */

/* Does `c` touch what `beside` writes, or write what it reads? Updates touch every gradient. */
static int conflict(const op_call *c, const op_call *beside)
{
    int found = (op_rules[c->op].flags & RULE_UPDATE) != 0;
    for (int i = 0; i < NODE_OUTPUTS && !found; i++) {
        for (int j = 0; j < NODE_INPUTS; j++)
            found |= overlap(&c->out[i], &beside->in[j]) || overlap(&c->in[j], &beside->out[i]);
        for (int j = 0; j < NODE_OUTPUTS; j++)
            found |= overlap(&c->out[i], &beside->out[j]);
    }
    return found;
}

berlu_status cuda_side_join(cuda_side *s, const op_call *c)
{
    int last = c ? -1 : s->launched - 1;
    for (int i = s->joined; i < s->launched && c; i++)
        if (conflict(c, &s->calls[i].call))
            last = i;
    berlu_status status = BERLU_OK;
    if (last >= s->joined) { /* the second stream runs in order: after its last nothing is in flight */
        status = gpu_stream_after(s->device->stream, s->calls[last].join);
        s->joined = last + 1;
    }
    return status;
}
