/* run.c - programs: a list of calls, launched once and from then on replayed as one graph.
 * SPDX-License-Identifier: MIT
 *
 * The first run launches call by call: that is when product algorithms are chosen, and a mistake
 * shows in the call that made it. The second run captures the same launches into a CUDA graph; it
 * and all later ones cost one launch. Nothing in a captured launch changes: learning rate, seeds
 * and clip factor are read from device memory. With program_options.profile there is no graph; an
 * event before each call gives its time.
 *
 * A weight gradient is needed by nobody until the update, so in a captured program it may run
 * beside the rest of the backward on a second stream with workspaces of its own (side.c); where the
 * batch is large one product fills the GPU, and there is only one stream. The same kernels add the
 * same elements in the same order: no bit changes.
 *
 * The last additions of sums over rows are put off and launched together (ends.c).
 *
 * Update ops find their parameter table on the device: prepare() uploads the spans and the list of
 * pieces that blocks of threads work on, and cuda_device.params points there while their calls are
 * launched. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/kernels.h"
#include "cuda/side.h"

struct program {
    cuda_device *device;
    const op_call *calls; /* the engine's */
    int count;
    int warm; /* a run has launched every call */
    cuda_graph graph;
    cuda_params params;
    void *spans, *pieces; /* device memory */
    cuda_side *side;      /* calls for the second stream; NULL: none */
    cuda_event *events;   /* when profiling: one before each call and one after the last */
    double *seconds;
};

/* ---- parameter tables ------------------------------------------------------------------------ */

static int is_update(const op_call *c)
{
    return (op_rules[c->op].flags & RULE_UPDATE) != 0;
}

/* The table of the list's update ops; NULL where there are none. A list belongs to one engine, so
 * they share it. */
static const param_table *table_of(const op_call *calls, int count)
{
    const param_table *table = NULL;
    for (int i = 0; i < count; i++) {
        if (!is_update(&calls[i]))
            continue;
        assert(!table || calls[i].params == table);
        table = calls[i].params;
    }
    return table;
}

static int64_t pieces_of(const param_span *span)
{
    return (span->count + PIECE - 1) / PIECE;
}

static int64_t pieces_count(const param_table *table)
{
    int64_t count = 0;
    for (int i = 0; i < table->count; i++)
        count += pieces_of(&table->spans[i]);
    return count;
}

static berlu_status array_upload(cuda_device *d, void **out, const void *from, size_t bytes, const char *what)
{
    TRY(cuda_alloc((device *)d, out, MEMORY_DEVICE, bytes, what));
    return cuda_upload((device *)d, *out, from, bytes);
}

static berlu_status params_upload(program *p, const param_table *table)
{
    int64_t count = pieces_count(table);
    size_t bytes = (size_t)count * sizeof(param_piece);
    param_piece *pieces = calloc((size_t)count + 1, sizeof *pieces);
    if (!pieces)
        return berlu_fail_memory(bytes, "the pieces of the parameters");
    int64_t at = 0;
    for (int i = 0; i < table->count; i++)
        for (int64_t k = 0; k < pieces_of(&table->spans[i]); k++, at++) {
            int64_t left = table->spans[i].count - k * PIECE;
            pieces[at] = (param_piece){.begin = k * PIECE, .count = left < PIECE ? left : PIECE, .span = i};
        }
    berlu_status status = array_upload(p->device, &p->spans, table->spans, (size_t)table->count * sizeof *table->spans,
                                       "the table of parameters");
    if (status == BERLU_OK)
        status = array_upload(p->device, &p->pieces, pieces, bytes, "the pieces of the parameters");
    p->params = (cuda_params){.spans = p->spans, .pieces = p->pieces, .piece_count = (int)count};
    free(pieces);
    return status;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static berlu_status events_make(program *p)
{
    p->events = calloc((size_t)p->count + 1, sizeof *p->events);
    p->seconds = calloc((size_t)p->count + 1, sizeof *p->seconds);
    if (!p->events || !p->seconds)
        return berlu_fail_memory((size_t)p->count * sizeof *p->events, "the times of calls");
    berlu_status status = gpu_use(p->device->index);
    for (int i = 0; i <= p->count && status == BERLU_OK; i++)
        status = gpu_event_create(&p->events[i], 1);
    return status;
}

size_t cuda_prepared(const device *d, const op_call *calls, int count)
{
    const param_table *table = table_of(calls, count);
    size_t bytes = cuda_side_bytes(cuda_device_at(d), calls, count);
    return table
               ? bytes + (size_t)table->count * sizeof *table->spans + (size_t)pieces_count(table) * sizeof(param_piece)
               : bytes;
}

berlu_status cuda_prepare(device *d, program **out, const op_call *calls, int count, const program_options *o)
{
    program *p = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, "a list of calls");
    *p = (program){.device = cuda_device_at(d), .calls = calls, .count = count};
    const param_table *table = table_of(calls, count);
    berlu_status status;
    if (table)
        TRY_DONE(params_upload(p, table));
    TRY_DONE(o->profile ? events_make(p) : cuda_side_make(&p->side, p->device, calls, count));
    *out = p;
    return BERLU_OK;
done:
    cuda_program_free(p);
    return status;
}

void cuda_program_free(program *p)
{
    if (!p)
        return;
    gpu_use(p->device->index);
    gpu_stream_wait(p->device->stream); /* a graph that still runs must not lose its tables */
    gpu_graph_free(p->graph);
    cuda_side_free(p->side);
    for (int i = 0; p->events && i <= p->count; i++)
        gpu_event_destroy(p->events[i]);
    cuda_release((device *)p->device, MEMORY_DEVICE, p->spans);
    cuda_release((device *)p->device, MEMORY_DEVICE, p->pieces);
    free(p->events);
    free(p->seconds);
    free(p);
}

/* ---- running --------------------------------------------------------------------------------- */

static berlu_status failure(const cuda_device *d)
{
    return d->failed == BERLU_OK ? BERLU_OK : berlu_fail(d->failed, "%s", d->failure);
}

/* With `side` on both streams: in a capture alone. */
static berlu_status calls_launch(program *p, cuda_side *side)
{
    cuda_device *d = p->device;
    berlu_status status = BERLU_OK;
    d->failed = BERLU_OK;
    if (side)
        cuda_side_begin(side);
    if (!p->events)
        cuda_ends_begin(d);
    for (int i = 0; i < p->count && d->failed == BERLU_OK && status == BERLU_OK; i++) {
        const op_call *c = &p->calls[i];
        cuda_ends_before(d, c);
        if (side && cuda_side_has(side, i)) {
            status = cuda_side_launch(side, i);
            continue;
        }
        d->params = is_update(c) ? &p->params : NULL;
        if (p->events)
            status = gpu_event_record(p->events[i], d->stream);
        if (side)
            status = cuda_side_join(side, c);
        if (status == BERLU_OK)
            d->base.backend->ops[c->op].run(c);
    }
    cuda_ends_finish(d);
    if (side && status == BERLU_OK)
        status = cuda_side_join(side, NULL);
    if (p->events && status == BERLU_OK)
        status = gpu_event_record(p->events[p->count], d->stream);
    d->params = NULL;
    return d->failed == BERLU_OK ? status : failure(d);
}

static berlu_status launch_first(program *p)
{
    berlu_status status = calls_launch(p, NULL);
    if (status == BERLU_OK)
        status = cuda_gemm_save(p->device);
    p->warm = status == BERLU_OK;
    return status;
}

static berlu_status capture(program *p)
{
    cuda_graph made = NULL;
    berlu_status status = gpu_capture_begin(p->device->stream);
    if (status != BERLU_OK)
        return status;
    status = calls_launch(p, p->side);
    if (status != BERLU_OK) {
        char kept[sizeof p->device->failure]; /* ending the capture may fail too, for the same reason */
        snprintf(kept, sizeof kept, "%s", berlu_last_error());
        gpu_capture_end(p->device->stream, NULL);
        return berlu_fail(status, "%s", kept);
    }
    status = gpu_capture_end(p->device->stream, &made);
    p->graph = made;
    return status;
}

/* Waits for the calls and adds the time of each. */
static berlu_status times_add(program *p)
{
    berlu_status status = gpu_event_wait(p->events[p->count]);
    for (int i = 0; i < p->count && status == BERLU_OK; i++) {
        double seconds = 0;
        status = gpu_event_seconds(&seconds, p->events[i], p->events[i + 1]);
        p->seconds[i] += seconds;
    }
    return status;
}

berlu_status cuda_run(program *p)
{
    berlu_status status = gpu_use(p->device->index);
    if (status != BERLU_OK || !p->count)
        return status;
    if (!p->warm)
        status = launch_first(p);
    else if (p->events)
        status = calls_launch(p, NULL);
    else {
        if (!p->graph)
            status = capture(p);
        return status == BERLU_OK ? gpu_graph_launch(p->graph, p->device->stream) : status;
    }
    return status == BERLU_OK && p->events ? times_add(p) : status;
}

void cuda_seconds(program *p, double *per_call, int reset)
{
    for (int i = 0; i < p->count && p->seconds; i++) {
        per_call[i] += p->seconds[i];
        p->seconds[i] = reset ? 0 : p->seconds[i];
    }
}
