/* create.c - creates an engine: checks, device, parameters, passes, plan, memory, calls.
 * SPDX-License-Identifier: MIT
 *
 * Read on: build.c (lowering to calls), run.c (execution). */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "engine/engine_internal.h"

static berlu_status options_check(const graph *g, const engine_options *o)
{
    tensor heads[2];
    if (!o->backend)
        return berlu_fail(BERLU_ERR_ARG, "engine: no backend; pass cpu_backend()");
    if (graph_image(g) == TENSOR_NONE || graph_logits(g) == TENSOR_NONE)
        return berlu_fail(BERLU_ERR_ARG, "engine: the graph has no image or no output");
    if (o->batch < 1 || o->batch > 1 << 20)
        return berlu_fail(BERLU_ERR_ARG, "engine: batch %d; from 1 on is possible", o->batch);
    if (o->mode == ENGINE_TRAIN && o->loss == LOSS_NONE)
        return berlu_fail(BERLU_ERR_ARG, "engine: training needs a loss");
    if (o->distill != DISTILL_NONE && graph_heads(g, heads) != 2)
        return berlu_fail(BERLU_ERR_ARG, "engine: distillation needs a model with two heads");
    if (o->share && o->share->backend != o->backend)
        return berlu_fail(BERLU_ERR_ARG, "engine: parameters can be shared on one backend only");
    return BERLU_OK;
}

/* The same parameters, name by name and size by size. */
static berlu_status share_check(const engine *e)
{
    const graph *a = e->g, *b = e->options.share->g;
    int same = graph_param_count(a) == graph_param_count(b);
    for (int i = 0; same && i < graph_param_count(a); i++) {
        const tensor_info *x = graph_tensor(a, graph_param(a, i)), *y = graph_tensor(b, graph_param(b, i));
        same = strcmp(x->name, y->name) == 0 && tensor_elements(x) == tensor_elements(y);
        if (!same)
            return berlu_fail(BERLU_ERR_ARG, "engine: parameter %d is '%s' here and '%s' in the engine to share with",
                              i, x->name, y->name);
    }
    return same ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "engine: the engine to share with has other parameters");
}

static berlu_status store_get(engine *e)
{
    if (e->options.share) {
        e->store = e->options.share->store;
        return share_check(e);
    }
    e->store = calloc(1, sizeof *e->store);
    e->owns_store = 1;
    return e->store ? BERLU_OK : berlu_fail_memory(sizeof *e->store, "an engine");
}

static berlu_status device_get(engine *e)
{
    e->device = e->options.device ? e->options.device : e->options.share ? e->options.share->device : NULL;
    if (!e->device) {
        e->options.opening.threads = e->options.threads;
        TRY(e->backend->open(&e->device, e->backend, &e->options.opening));
        e->owns_device = 1;
    }
    e->backend->dtypes(e->device, e->dtype);
    return BERLU_OK;
}

berlu_status engine_begin(engine **out, const graph *g, const engine_options *options)
{
    *out = NULL;
    TRY(graph_status(g));
    TRY(options_check(g, options));
    engine *e = calloc(1, sizeof *e);
    if (!e)
        return berlu_fail_memory(sizeof *e, "an engine");
    e->options = *options;
    e->backend = options->backend;
    e->options.threads = threads_granted(e->options.threads);
    for (int i = 0; i < FEED_COUNT; i++)
        e->feed[i].t = TENSOR_NONE;
    e->feed[FEED_IMAGE].t = graph_image(g);
    e->classes = tensor_elements(graph_tensor(g, graph_logits(g)));
    berlu_status status;
    TRY_DONE(device_get(e));
    TRY_DONE(graph_clone(&e->model, g));
    TRY_DONE(graph_clone(&e->g, g));
    *out = e;
    e = NULL;
done:
    engine_free(e);
    return status;
}

/* Everything before allocation: the rewritten graph and the plan of its memory. */
static berlu_status plan_engine(engine **out, const graph *g, const engine_options *options)
{
    TRY(engine_begin(out, g, options));
    TRY(store_get(*out));
    TRY(engine_rewrite(*out, PASS_PLAN));
    return plan_make(&(*out)->plan, (*out)->g, (*out)->backend, (*out)->device, (*out)->options.batch);
}

berlu_status engine_create(engine **out, const graph *g, const engine_options *options)
{
    engine *e = NULL;
    *out = NULL;
    berlu_status status;
    TRY_DONE(plan_engine(&e, g, options));
    TRY_DONE(engine_fit_check(e, g));
    e->options.beside = NULL;
    TRY_DONE(engine_allocate(e));
    TRY_DONE(engine_resolve(e));
    TRY_DONE(engine_take_scratch(e));
    *out = e;
    e = NULL;
done:
    engine_free(e);
    return status;
}

berlu_status engine_plan_memory(engine_memory *out, const graph *g, const engine_options *options)
{
    engine *e = NULL;
    berlu_status status;
    TRY_DONE(plan_engine(&e, g, options));
    TRY_DONE(engine_resolve(e)); /* without addresses: workspace sizes follow from shapes alone */
    *out = engine_memory_use(e);
done:
    engine_free(e);
    return status;
}

static void store_free(engine *e)
{
    for (int i = 0; i < ARRAY_COUNT; i++)
        e->backend->release(e->device, MEMORY_DEVICE, e->store->array[i]);
    e->backend->release(e->device, MEMORY_DEVICE, e->store->shadow);
    free(e->store);
}

static void device_memory_free(engine *e)
{
    void *const mine[] = {
        e->area[AREA_ARENA], e->area[AREA_FEED], e->partial_sums, e->workspace, e->step, e->result, e->draws};
    for (int i = 0; i < PROGRAM_COUNT; i++)
        e->backend->program_free(e->program[i]);
    if (e->owns_store && e->store)
        store_free(e);
    for (size_t i = 0; i < COUNT(mine); i++)
        e->backend->release(e->device, MEMORY_DEVICE, mine[i]);
    for (int i = 0; i < FEED_COUNT; i++)
        if (e->feed[i].owned)
            e->backend->release(e->device, MEMORY_HOST, e->feed[i].host);
    if (e->owns_device)
        e->backend->close(e->device);
}

void engine_free(engine *e)
{
    if (!e)
        return;
    if (e->device)
        device_memory_free(e);
    free(e->staging);
    free(e->logits);
    free(e->image_uses);
    free(e->calls ? e->calls + IMAGES_CALL : NULL);
    free(e->spans);
    plan_free(&e->plan);
    graph_free(e->model);
    graph_free(e->g);
    free(e);
}
