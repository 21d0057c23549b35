/* engine.c - makes an engine and runs its calls. SPDX-License-Identifier: MIT
 *
 * A step is three loops over op_calls. Everything that varies is in step_values; see graph/op.h.
 * Read on: engine_build.c (how the calls came about), engine_params.c (reading and writing parameters). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "engine/engine_internal.h"

static berlu_status options_check(const graph *g, const engine_options *o)
{
    tensor heads[2];
    if (!o->backend)
        return berlu_fail(BERLU_ERR_ARG, "engine: no backend; pass cpu_backend()");
    if (graph_image(g) == TENSOR_NONE || graph_logits(g) == TENSOR_NONE)
        return berlu_fail(BERLU_ERR_ARG, "engine: the graph has no image or no answer");
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

berlu_status engine_begin(engine **out, const graph *g, const engine_options *options)
{
    *out = NULL;
    berlu_status status = graph_status(g);
    if (status == BERLU_OK)
        status = options_check(g, options);
    if (status != BERLU_OK)
        return status;
    engine *e = calloc(1, sizeof *e);
    if (!e)
        return berlu_fail_memory(sizeof *e, "an engine");
    e->options = *options;
    e->backend = options->backend;
    if (e->options.threads < 1)
        e->options.threads = threads_default();
    for (int i = 0; i < FEED_COUNT; i++)
        e->feed[i].t = TENSOR_NONE;
    e->feed[FEED_IMAGE].t = graph_image(g);
    e->label_feed = TENSOR_NONE;
    e->classes = tensor_elements(graph_tensor(g, graph_logits(g)));
    status = graph_clone(&e->model, g);
    if (status == BERLU_OK)
        status = graph_clone(&e->g, g);
    if (status != BERLU_OK) {
        engine_free(e);
        return status;
    }
    *out = e;
    return BERLU_OK;
}

/* Everything that needs no memory to compute in: the graph as it will run and where its tensors will lie. */
static berlu_status plan_engine(engine **out, const graph *g, const engine_options *options)
{
    berlu_status status = engine_begin(out, g, options);
    if (status == BERLU_OK)
        status = store_get(*out);
    if (status == BERLU_OK)
        status = engine_rewrite(*out, PASS_PLAN);
    if (status == BERLU_OK)
        status = plan_make(&(*out)->plan, (*out)->g, (*out)->backend, (*out)->options.batch);
    return status;
}

berlu_status engine_create(engine **out, const graph *g, const engine_options *options)
{
    engine *e = NULL;
    *out = NULL;
    berlu_status status = plan_engine(&e, g, options);
    if (status == BERLU_OK)
        status = engine_allocate(e);
    if (status == BERLU_OK)
        status = engine_resolve(e);
    if (status == BERLU_OK)
        status = engine_take_scratch(e);
    if (status != BERLU_OK) {
        engine_free(e);
        return status;
    }
    *out = e;
    return BERLU_OK;
}

berlu_status engine_plan_memory(engine_memory *out, const graph *g, const engine_options *options)
{
    engine *e = NULL;
    berlu_status status = plan_engine(&e, g, options);
    if (status == BERLU_OK)
        status = engine_resolve(e); /* without addresses: kernels tell their scratch from sizes alone */
    if (status == BERLU_OK)
        *out = engine_memory_use(e);
    engine_free(e);
    return status;
}

static void store_free(engine *e)
{
    for (int i = 0; i < ARRAY_COUNT; i++)
        e->backend->release(e->store->array[i]);
    e->backend->release(e->store->sum);
    free(e->store);
}

void engine_free(engine *e)
{
    if (!e)
        return;
    if (e->owns_store && e->store)
        store_free(e);
    e->backend->release(e->area[AREA_ARENA]);
    e->backend->release(e->area[AREA_FEED]);
    e->backend->release(e->workspace);
    e->backend->release(e->step);
    for (int i = 0; i < FEED_COUNT; i++)
        free(e->feed[i].memory);
    free(e->labels);
    free(e->logits);
    free(e->image_uses);
    free(e->calls);
    free(e->spans);
    free(e->seconds);
    plan_free(&e->plan);
    graph_free(e->model);
    graph_free(e->g);
    free(e);
}

/* ---- running ---- */

static void calls_run(engine *e, int from, int to)
{
    for (int i = from; i < to; i++) {
        const op_call *call = &e->calls[i];
        if (call->group > 1) {
            e->backend->group(call, call->group, e->seconds ? e->seconds + i : NULL);
            i += call->group - 1;
            continue;
        }
        double begin = e->seconds ? clock_seconds() : 0;
        e->backend->ops[call->op].run(call);
        if (e->seconds)
            e->seconds[i] += clock_seconds() - begin;
    }
}

static void update_run(engine *e, op_id op)
{
    double begin = e->seconds ? clock_seconds() : 0;
    e->update.op = op;
    e->backend->ops[op].run(&e->update);
    if (e->seconds)
        e->seconds[e->call_count + op] += clock_seconds() - begin;
}

static double value_or(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

static void step_fill(step_values *to, const engine_step *s)
{
    int plain = s->beta1 == 0 && s->beta2 == 0 && s->eps == 0;
    *to = (step_values){.seed = s->seed,
                        .first_sample = s->first_sample,
                        .step = s->step,
                        .count = s->count ? s->count : 1,
                        .smoothing = s->smoothing,
                        .distill_alpha = s->distill_alpha,
                        .distill_tau = value_or(s->distill_tau, 1),
                        .loss_scale = value_or(s->loss_scale, 1),
                        .lr = s->lr,
                        .weight_decay = s->weight_decay,
                        .clip = s->clip,
                        .act_lr = value_or(s->act_lr, 1),
                        .act_decay = s->act_decay,
                        .act_frozen = s->act_frozen,
                        .decay_all = s->decay_all,
                        .beta1 = plain ? 0.9 : s->beta1,
                        .beta2 = plain ? 0.999 : s->beta2,
                        .eps = plain ? 1e-8 : s->eps,
                        .momentum = s->momentum,
                        .dampening = s->dampening,
                        .ema_decay = s->ema_decay,
                        .clip_factor = 1};
    to->correction1 = 1 - pow(to->beta1, to->count);
    to->correction2 = 1 - pow(to->beta2, to->count);
}

static void feeds_put(engine *e)
{
    for (int i = 0; i < FEED_COUNT; i++)
        if (e->feed[i].memory)
            e->backend->put(engine_data(e, e->feed[i].t), e->feed[i].borrowed ? e->feed[i].borrowed : e->feed[i].host,
                            (size_t)tensor_elements(graph_tensor(e->g, e->feed[i].t)) * (size_t)e->options.batch);
}

berlu_status engine_forward(engine *e, const engine_step *step)
{
    step_fill(e->step, step);
    for (int i = 0; i < e->options.batch && e->label_feed != TENSOR_NONE; i++)
        if (e->labels[i] >= e->classes)
            return berlu_fail(BERLU_ERR_INPUT, "label %d of image %d is outside the %lld classes", e->labels[i], i,
                              (long long)e->classes);
    feeds_put(e);
    calls_run(e, 0, e->backward_begin);
    return BERLU_OK;
}

berlu_status engine_backward(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN)
        return berlu_fail(BERLU_ERR_ARG, "engine: an engine made for inference has no backward");
    calls_run(e, e->backward_begin, e->call_count);
    if (e->options.accumulate) {
        e->step->sum_begun = e->micro_batches++ > 0;
        update_run(e, OP_ACCUMULATE);
    }
    e->profiled_steps++;
    return BERLU_OK;
}

berlu_status engine_compute_grad_norm(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN)
        return berlu_fail(BERLU_ERR_ARG, "engine: an engine made for inference has no gradients");
    update_run(e, OP_GRAD_NORM);
    return BERLU_OK;
}

berlu_status engine_update(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN || e->options.no_update)
        return berlu_fail(BERLU_ERR_ARG, "engine: this engine was made without an optimizer");
    update_run(e, OP_GRAD_NORM);
    update_run(e, e->options.optimizer == OPTIMIZER_SGD ? OP_SGD : OP_ADAMW);
    if (e->options.ema)
        update_run(e, OP_EMA);
    e->micro_batches = 0;
    return BERLU_OK;
}

/* ---- results ---- */

double engine_loss(const engine *e)
{
    const step_values *s = e->step;
    if (e->options.distill == DISTILL_NONE)
        return s->loss_part[0];
    return (1 - s->distill_alpha) * s->loss_part[0] + s->distill_alpha * s->loss_part[1];
}

double engine_grad_norm(const engine *e)
{
    return e->step->grad_norm;
}

const float *engine_logits(engine *e)
{
    void *logits = engine_data(e, graph_logits(e->g));
    if (e->backend->host_f32)
        return logits;
    e->backend->get(e->logits, logits, (size_t)e->classes * (size_t)e->options.batch);
    return e->logits;
}

float *engine_input(engine *e)
{
    return e->feed[FEED_IMAGE].host;
}

void engine_borrow_input(engine *e, const float *images)
{
    engine_feed *feed = &e->feed[FEED_IMAGE];
    feed->borrowed = images;
    for (int i = 0; i < e->image_use_count; i++)
        e->image_uses[i]->data = images ? (void *)images : feed->host; /* inputs are only read */
}

int32_t *engine_labels(engine *e)
{
    return e->labels;
}

float *engine_targets(engine *e)
{
    return e->feed[FEED_TARGETS].host;
}

float *engine_teacher(engine *e)
{
    return e->feed[FEED_TEACHER].host;
}
