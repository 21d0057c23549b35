/* memory.c - allocates all memory of an engine, as planned. SPDX-License-Identifier: MIT
 *
 * Parameters and their arrays belong to the store, which engines may share; the arena, the feeds
 * and the values of a step are the engine's own. Everything is in device memory; in host memory are
 * only the feeds that the caller fills and the output, and on a device that shares host memory not
 * even those. */
#include <assert.h>
#include <stdlib.h>

#include "engine/engine_internal.h"

berlu_status engine_device_take(engine *e, void **out, uint64_t bytes, const char *what)
{
    if (*out)
        return BERLU_OK;
    TRY(e->backend->alloc(e->device, out, MEMORY_DEVICE, bytes ? bytes : 64, what));
    e->allocated += bytes;
    return BERLU_OK;
}

/* The arrays of the store that this mode needs. An engine that shares allocates those that are
 * missing. */
static berlu_status store_fill(engine *e)
{
    const engine_options *o = &e->options;
    param_store *s = e->store;
    uint64_t weights = e->plan.bytes[AREA_WEIGHT], gradients = e->plan.bytes[AREA_GRADIENT];
    int train = o->mode == ENGINE_TRAIN, update = train && !o->no_update;
    s->bytes = weights;
    TRY(engine_device_take(e, &s->array[ARRAY_WEIGHT], weights, "the parameters"));
    if (e->plan.bytes[AREA_SHADOW] && !s->shadow) {
        TRY(engine_device_take(e, &s->shadow, e->plan.bytes[AREA_SHADOW], "the copies of the weights"));
        s->shadow_stale = 1;
    }
    if (train)
        TRY(engine_device_take(e, &s->array[ARRAY_GRADIENT], gradients, "the gradients"));
    if (train && o->accumulate > 1)
        TRY(engine_device_take(e, &e->partial_sums, gradients * (uint64_t)sum_levels_for(o->accumulate),
                               "the sums of gradients"));
    if (update)
        TRY(engine_device_take(e, &s->array[ARRAY_MOMENT1], weights, "the first moments"));
    if (update && o->optimizer == OPTIMIZER_ADAMW)
        TRY(engine_device_take(e, &s->array[ARRAY_MOMENT2], weights, "the second moments"));
    if (train && o->ema)
        TRY(engine_device_take(e, &s->array[ARRAY_EMA], weights, "the average of the weights"));
    return BERLU_OK;
}

static size_t feed_elements(const engine *e, const engine_feed *feed)
{
    return (size_t)tensor_elements(graph_tensor(e->g, feed->t)) * (size_t)e->options.batch;
}

static int caller_fills(tensor_dtype dtype) /* without a conversion */
{
    return dtype == DTYPE_F32 || dtype == DTYPE_I32;
}

/* Where device memory is the host's and has the caller's dtype, the caller fills device memory
 * itself. */
static berlu_status feeds_allocate(engine *e)
{
    for (int i = 0; i < FEED_COUNT; i++) {
        engine_feed *feed = &e->feed[i];
        int absent = feed->t == TENSOR_NONE;
        if (absent &&
            i != FEED_LABELS) /* labels may always be filled, even where the loss reads targets or there is none */
            continue;
        if (!absent && e->backend->host_memory && caller_fills(graph_tensor(e->g, feed->t)->dtype)) {
            feed->host = engine_data(e, feed->t);
            continue;
        }
        size_t bytes = (absent ? (size_t)e->options.batch : feed_elements(e, feed)) * sizeof(float);
        TRY(e->backend->alloc(e->device, &feed->host, MEMORY_HOST, bytes, "a batch"));
        feed->owned = 1;
        feed->staged = !absent;
        e->allocated += bytes;
    }
    return BERLU_OK;
}

/* The output where device memory is not the host's, and space to convert in where dtypes differ. */
static berlu_status host_allocate(engine *e)
{
    tensor_dtype dtype = graph_tensor(e->g, graph_logits(e->g))->dtype;
    size_t logits = (size_t)e->options.batch * (size_t)e->classes;
    size_t staging = dtype == DTYPE_F32 ? 0 : logits * dtype_bytes(dtype);
    if (!e->backend->host_memory || dtype != DTYPE_F32) {
        e->logits = calloc(logits, sizeof *e->logits);
        if (!e->logits)
            return berlu_fail_memory(logits * sizeof *e->logits, "the logits of a batch");
        e->allocated += logits * sizeof *e->logits;
    }
    for (int i = 0; i < FEED_COUNT; i++) {
        tensor_dtype wanted = e->feed[i].staged ? graph_tensor(e->g, e->feed[i].t)->dtype : DTYPE_F32;
        size_t bytes = caller_fills(wanted) ? 0 : feed_elements(e, &e->feed[i]) * dtype_bytes(wanted);
        staging = bytes > staging ? bytes : staging;
    }
    if (staging && !(e->staging = malloc(staging)))
        return berlu_fail_memory(staging, "a batch to convert");
    e->allocated += staging;
    return BERLU_OK;
}

berlu_status engine_allocate(engine *e)
{
    TRY(store_fill(e));
    e->area[AREA_WEIGHT] = e->store->array[ARRAY_WEIGHT];
    e->area[AREA_GRADIENT] = e->store->array[ARRAY_GRADIENT];
    e->area[AREA_SHADOW] = e->store->shadow;
    void *step = NULL, *result = NULL;
    TRY(engine_device_take(e, &e->area[AREA_ARENA], e->plan.bytes[AREA_ARENA], "the activations"));
    TRY(engine_device_take(e, &e->area[AREA_FEED], e->plan.bytes[AREA_FEED], "the input"));
    TRY(engine_device_take(e, &step, sizeof *e->step, "the values of a step"));
    e->step = step;
    TRY(engine_device_take(e, &result, sizeof *e->result, "the results of a step"));
    e->result = result;
    TRY(feeds_allocate(e));
    return host_allocate(e);
}

void *engine_data(const engine *e, tensor t)
{
    assert(t >= 0 && t < e->plan.count);
    const plan_place *place = &e->plan.places[t];
    if (place->area == AREA_NONE || !e->area[place->area])
        return NULL;
    return (char *)e->area[place->area] + place->offset;
}
