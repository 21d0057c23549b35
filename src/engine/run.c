/* run.c - a step: uploads, three programs, results. SPDX-License-Identifier: MIT
 *
 * A step is three lists of calls that the backend has prepared. Only engine_step and step_result
 * (step.h) vary. Read on: build.c (lowering to calls), params.c (reading and writing
 * parameters). */
#include <assert.h>
#include <math.h>

#include "engine/engine_internal.h"

static double value_or(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

static engine_step step_resolve(const engine *e, const engine_step *given)
{
    engine_step s = *given;
    int defaults = s.beta1 == 0 && s.beta2 == 0 && s.eps == 0;
    s.count = s.count ? s.count : 1;
    s.distill_tau = value_or(s.distill_tau, 1);
    s.loss_scale = value_or(s.loss_scale, 1);
    s.act_lr = value_or(s.act_lr, 1);
    s.beta1 = defaults ? 0.9 : s.beta1;
    s.beta2 = defaults ? 0.999 : s.beta2;
    s.eps = defaults ? 1e-8 : s.eps;
    s.correction1 = 1 - pow(s.beta1, s.count);
    s.correction2 = 1 - pow(s.beta2, s.count);
    s.micro_batches = s.micro_batches ? s.micro_batches : 1;
    s.first_sample = (uint64_t)s.micro_batch * (uint64_t)e->options.batch;
    return s;
}

berlu_status engine_set_step(engine *e, const engine_step *step)
{
    int most = e->options.accumulate > 1 ? e->options.accumulate : 1;
    engine_step resolved = step_resolve(e, step);
    if (resolved.micro_batch >= resolved.micro_batches || resolved.micro_batches > (uint32_t)most)
        return berlu_fail(BERLU_ERR_ARG, "engine: micro-batch %u of %u; this engine was made for %d",
                          resolved.micro_batch, resolved.micro_batches, most);
    e->host_step = resolved;
    return e->backend->upload(e->device, e->step, &e->host_step, sizeof e->host_step);
}

/* Lists of calls are prepared before their first run: not every engine runs all of them. */
static berlu_status program_prepare(engine *e, program_id id)
{
    assert(id >= 0 && id < PROGRAM_COUNT && e->first[id] >= IMAGES_CALL && e->count[id] >= 0);
    if (e->program[id])
        return BERLU_OK;
    return e->backend->prepare(e->device, &e->program[id], e->calls + e->first[id], e->count[id],
                               &(program_options){.profile = e->options.profile});
}

static berlu_status shadow_refresh(engine *e)
{
    if (!e->store->shadow || !e->store->shadow_stale)
        return BERLU_OK;
    e->store->shadow_stale = 0;
    TRY(program_prepare(e, PROGRAM_SHADOW));
    return e->backend->run(e->program[PROGRAM_SHADOW]);
}

static berlu_status labels_check(const engine *e)
{
    const int32_t *labels = e->feed[FEED_LABELS].host;
    for (int i = 0; i < e->options.batch && e->feed[FEED_LABELS].t != TENSOR_NONE; i++)
        if (labels[i] >= e->classes)
            return berlu_fail(BERLU_ERR_INPUT, "label %d of image %d is outside the %lld classes", labels[i], i,
                              (long long)e->classes);
    return BERLU_OK;
}

static berlu_status feed_upload(engine *e, const engine_feed *feed)
{
    assert(feed->t != TENSOR_NONE && (feed->borrowed || feed->host));
    const tensor_info *info = graph_tensor(e->g, feed->t);
    size_t count = (size_t)tensor_elements(info) * (size_t)e->options.batch;
    const void *from = feed->borrowed ? feed->borrowed : feed->host;
    if (info->dtype != DTYPE_F32 && info->dtype != DTYPE_I32) {
        dtype_from_f32(e->staging, info->dtype, from, count);
        from = e->staging;
    }
    return e->backend->upload(e->device, engine_data(e, feed->t), from, count * dtype_bytes(info->dtype));
}

/* Uploads the feeds, except those that the device computes from draws. */
static berlu_status feeds_upload(engine *e)
{
    TRY(e->host_draws ? engine_draws_upload(e) : labels_check(e));
    for (int i = e->host_draws ? FEED_TEACHER : 0; i < FEED_COUNT; i++)
        if (e->feed[i].staged)
            TRY(feed_upload(e, &e->feed[i]));
    return BERLU_OK;
}

/* All that a step reads, up to its first call. */
static berlu_status step_begin(engine *e, const engine_step *step)
{
    TRY(engine_set_step(e, step));
    TRY(feeds_upload(e));
    return shadow_refresh(e);
}

berlu_status engine_forward(engine *e, const engine_step *step)
{
    TRY(step_begin(e, step));
    if (e->host_draws) {
        TRY(program_prepare(e, PROGRAM_IMAGES));
        TRY(e->backend->run(e->program[PROGRAM_IMAGES]));
    }
    TRY(program_prepare(e, PROGRAM_FORWARD));
    return e->backend->run(e->program[PROGRAM_FORWARD]);
}

berlu_status engine_step_run(engine *e, const engine_step *step)
{
    if (e->options.mode != ENGINE_TRAIN || e->options.no_update)
        return berlu_fail(BERLU_ERR_ARG, "engine: this engine was made without an optimizer");
    TRY(step_begin(e, step));
    e->profiled_steps++;
    program_id id = e->host_draws ? PROGRAM_IMAGES_STEP : PROGRAM_STEP;
    TRY(program_prepare(e, id));
    return e->backend->run(e->program[id]);
}

berlu_status engine_backward(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN)
        return berlu_fail(BERLU_ERR_ARG, "engine: an engine made for inference has no backward");
    e->profiled_steps++;
    TRY(program_prepare(e, PROGRAM_BACKWARD));
    return e->backend->run(e->program[PROGRAM_BACKWARD]);
}

berlu_status engine_compute_grad_norm(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN)
        return berlu_fail(BERLU_ERR_ARG, "engine: an engine made for inference has no gradients");
    TRY(program_prepare(e, PROGRAM_NORM));
    return e->backend->run(e->program[PROGRAM_NORM]);
}

berlu_status engine_update(engine *e)
{
    if (e->options.mode != ENGINE_TRAIN || e->options.no_update)
        return berlu_fail(BERLU_ERR_ARG, "engine: this engine was made without an optimizer");
    TRY(program_prepare(e, PROGRAM_UPDATE));
    return e->backend->run(e->program[PROGRAM_UPDATE]);
}

berlu_status engine_warm_up(engine *e)
{
    static const step_result nothing;
    TRY(engine_set_step(e, &(engine_step){0}));
    TRY(shadow_refresh(e));
    TRY(program_prepare(e, PROGRAM_FORWARD));
    TRY(e->backend->run(e->program[PROGRAM_FORWARD]));
    if (e->options.mode == ENGINE_TRAIN) {
        TRY(program_prepare(e, PROGRAM_BACKWARD));
        TRY(e->backend->run(e->program[PROGRAM_BACKWARD]));
        e->backend->program_free(e->program[PROGRAM_BACKWARD]); /* a whole step has memory of its own for all of it */
        e->program[PROGRAM_BACKWARD] = NULL;
    }
    return e->backend->upload(e->device, e->result, &nothing, sizeof nothing);
}

/* ---- results --------------------------------------------------------------------------------- */

berlu_status engine_step_end(engine *e)
{
    return e->backend->result_push(e->device, e->result);
}

berlu_status engine_poll(engine *e, step_result *out, int *there, int wait)
{
    return e->backend->result_pop(e->device, out, there, wait);
}

double step_loss(const engine *e, const step_result *r)
{
    double alpha = e->host_step.distill_alpha;
    return e->options.distill == DISTILL_NONE ? r->loss_part[0]
                                              : (1 - alpha) * r->loss_part[0] + alpha * r->loss_part[1];
}

berlu_status engine_wait(engine *e)
{
    step_result r;
    return e->backend->download(e->device, &r, e->result, sizeof r);
}

static step_result result_now(const engine *e)
{
    step_result r;
    if (e->backend->download(e->device, &r, e->result, sizeof r) != BERLU_OK)
        r = (step_result){.loss_part = {NAN, NAN}, .grad_norm = NAN};
    return r;
}

double engine_loss(const engine *e)
{
    step_result r = result_now(e);
    return step_loss(e, &r);
}

double engine_grad_norm(const engine *e)
{
    return result_now(e).grad_norm;
}

const float *engine_logits(engine *e)
{
    tensor t = graph_logits(e->g);
    tensor_dtype dtype = graph_tensor(e->g, t)->dtype;
    size_t count = (size_t)e->classes * (size_t)e->options.batch;
    if (!e->logits)
        return engine_data(e, t);
    void *to = dtype == DTYPE_F32 ? (void *)e->logits : e->staging;
    if (e->backend->download(e->device, to, engine_data(e, t), count * dtype_bytes(dtype)) != BERLU_OK)
        return NULL;
    if (to == e->staging)
        dtype_to_f32(e->logits, e->staging, dtype, count);
    return e->logits;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

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
    return e->feed[FEED_LABELS].host;
}

float *engine_targets(engine *e)
{
    return e->feed[FEED_TARGETS].host;
}

float *engine_teacher(engine *e)
{
    return e->feed[FEED_TEACHER].host;
}
