/* trainer_open.c - builds a trainer from settings; writes nothing. SPDX-License-Identifier: MIT
 *
 * trainer_prepare() resolves everything a run is identified by (data, model, settings, schedule)
 * without memory to compute in; trainer_complete() adds engines, weights and diagnosis. A study
 * identifies hundreds of runs by the first alone (train_canonical()). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/op.h"
#include "models/weights.h"
#include "train/trainer_internal.h"

/* ---- settings, data and network -------------------------------------------------------------- */

/* Writes the normalization found into the run's settings: a resume or an evaluation then normalizes
 * images as this run does, even if the data folder has changed since. */
static berlu_status normalization_settle(trainer *t)
{
    TRY(normalization_find(&t->normalization, &t->settings, t->data));
    if (recipe_given(&t->settings, "mean")) /* keep the caller's text: a resume compares texts */
        return BERLU_OK;
    t->settings.mean = channels_text(t->mean, t->normalization.mean);
    t->settings.std = channels_text(t->std, t->normalization.std);
    return BERLU_OK;
}

static int attends(const graph *g)
{
    for (int i = 0; i < graph_node_count(g); i++)
        if (graph_node(g, i)->op == OP_ATTENTION)
            return 1;
    return 0;
}

/* Refuses settings that are without effect for this network or these data. */
static berlu_status idle_check(const trainer *t)
{
    static const char *const of_learned[] = {"act_lr", "act_decay", "act_freeze", "act_constraint", "act_params"};
    const train_settings *s = &t->settings;
    tensor heads[2];
    if (s->distill != RECIPE_DISTILL_NONE && graph_heads(t->model->graph, heads) != 2)
        return berlu_fail(BERLU_ERR_ARG,
                          "distill: %s has one head; choose a distilled model, such as deit_tiny_distilled", s->model);
    for (size_t i = 0; i < COUNT(of_learned); i++)
        if (recipe_given(s, of_learned[i]) && !learns_activations(t->model->graph))
            return berlu_fail(BERLU_ERR_ARG, "%s: has no effect because %s has no learned parameter; leave it out",
                              of_learned[i], s->acts ? s->act[0] : s->model);
    if (recipe_given(s, "init_std_fc1") && graph_site_count(t->model->graph) == 0)
        return berlu_fail(BERLU_ERR_ARG, "init_std_fc1: has no effect because %s has no fc1; leave it out", s->model);
    if (recipe_given(s, "recompute_attention") && !attends(t->model->graph))
        return berlu_fail(BERLU_ERR_ARG, "recompute_attention: has no effect because %s has no attention; leave it out",
                          s->model);
    return image_options_idle(s, data_describe(t->data), t->model->config.image_size, s->augment);
}

/* ---- engines --------------------------------------------------------------------------------- */

static berlu_status engines_make(trainer *t)
{
    static const engine_distill distill[] = {DISTILL_NONE, DISTILL_HARD, DISTILL_SOFT};
    static const engine_keep keep[] = {KEEP_INPUT, KEEP_BOTH, KEEP_OUTPUT};
    const train_settings *s = &t->settings;
    engine_options o = {.mode = ENGINE_TRAIN, .batch = (int)s->batch, .threads = (int)s->threads};
    o.keep = keep[s->keep];
    o.recompute_attention = (int)s->recompute_attention;
    engine_bound bounds[3];
    o.bounds = bounds;
    o.bound_count = constraint_bounds(&t->bounds, bounds);
    o.loss = s->mixup > 0 || s->cutmix > 0 ? LOSS_SOFT_TARGET : LOSS_CROSS_ENTROPY;
    o.distill = distill[s->distill];
    o.optimizer = s->optimizer == RECIPE_SGD ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
    o.nesterov = (int)s->nesterov;
    o.accumulate = (int)s->accumulate;
    o.ema = s->ema > 0;
    TRY(network_device(&o, s));
    engine_options e = {.backend = o.backend, .mode = ENGINE_INFER, .batch = t->eval_batch, .threads = o.threads};
    o.beside = &e;
    berlu_status status = memory_check(t, &o, &e, memory_free());
    if (status == BERLU_OK)
        status = engine_create(&t->train, t->model->graph, &o);
    o.beside = NULL;
    e.share = t->train;
    if (status == BERLU_OK)
        status = engine_create(&t->eval, t->model->graph, &e);
    if (status == BERLU_ERR_MEMORY)
        memory_advice(t, &o, &e);
    TRY(status);
    return trainer_saver_open(t, &o);
}

static berlu_status weights_make(trainer *t)
{
    const train_settings *s = &t->settings;
    init_options init = {.std = s->init_std, .std_fc1 = s->init_std_fc1};
    TRY(weights_init(t->train, (uint64_t)s->seed, &init));
    if (*s->init)
        TRY(init_load(t));
    TRY(engine_apply_bounds(t->train));
    return engine_sync_ema(t->train);
}

/* ---- schedule and step ----------------------------------------------------------------------- */

static berlu_status schedule_make(trainer *t)
{
    const train_settings *s = &t->settings;
    uint64_t group = (uint64_t)s->accumulate, most = (uint64_t)s->max_steps;
    t->epoch_batches = loader_batches(t->batches);
    if (s->overfit_batch)
        t->epoch_batches = group * (most ? most : OVERFIT_UPDATES);
    t->epoch_updates = (t->epoch_batches + group - 1) / group;
    int too_many = __builtin_mul_overflow(t->epoch_updates, (uint64_t)s->epochs, &t->updates);
    if (most && (too_many || most < t->updates))
        t->updates = most, too_many = 0;
    if (too_many || t->updates > UINT32_MAX) /* the width of a word of the random counter */
        return berlu_fail(BERLU_ERR_ARG,
                          "epochs: %lld times %llu updates are more than the %u a run can count; make it fewer",
                          (long long)s->epochs, (unsigned long long)t->epoch_updates, UINT32_MAX);
    t->schedule = (schedule){.kind = (schedule_kind)s->schedule,
                             .peak = s->lr,
                             .start = s->warmup_lr,
                             .floor = s->min_lr,
                             .epochs = (double)s->epochs,
                             .warmup = s->warmup,
                             .updates = t->epoch_updates,
                             .step_every = s->step_every,
                             .step_factor = s->step_factor};
    return schedule_check(&t->schedule);
}

static void step_make(trainer *t)
{
    const train_settings *s = &t->settings;
    t->step = (engine_step){.seed = (uint64_t)s->seed,
                            .smoothing = s->smoothing,
                            .distill_alpha = s->distill_alpha,
                            .distill_tau = s->distill_tau,
                            .weight_decay = s->weight_decay,
                            .clip = s->clip,
                            .act_lr = s->act_lr,
                            .act_decay = s->act_decay,
                            .act_frozen = s->act_freeze || s->act_lr == 0,
                            .decay_all = (int)s->decay_all,
                            .beta1 = s->beta1,
                            .beta2 = s->beta2,
                            .eps = s->adam_eps,
                            .momentum = s->momentum,
                            .ema_decay = s->ema};
}

static berlu_status site_metrics_make(trainer *t)
{
    TRY(diagnosis_create(&t->diagnosis, engine_graph(t->train), (int)t->settings.threads));
    t->state.site_metric_count = diagnosis_sites(t->diagnosis) * SITE_METRICS;
    t->state.site_metrics = calloc(t->state.site_metric_count + 1, sizeof *t->state.site_metrics);
    t->initial = calloc(t->state.site_metric_count + 1, sizeof *t->initial);
    return t->state.site_metrics && t->initial
               ? BERLU_OK
               : berlu_fail_memory(t->state.site_metric_count * sizeof(double), "the metrics of sites");
}

static berlu_status trainer_prepare(trainer **out, const train_settings *s, const train_hooks *hooks,
                                    const train_data *known)
{
    size_t classes = 0;
    trainer *t = calloc(1, sizeof *t);
    if (!t) {
        data_close(known ? known->source : NULL);
        return berlu_fail_memory(sizeof *t, "the trainer");
    }
    t->settings = *s;
    t->hooks = hooks ? *hooks : (train_hooks){0};
    run_init(&t->run);
    t->saved_updates = UINT64_MAX;
    t->resumed_format = -1;
    t->top1 = NAN;
    if (known && known->source) { /* the trainer owns it from here on */
        t->data = known->source;
        classes = known->classes;
        memcpy(t->data_hash, known->hash, sizeof t->data_hash);
    }
    berlu_status status;
    TRY_DONE(constraint_parse(&t->bounds, s->act_constraint));
    if (!t->data)
        TRY_DONE(network_data(&t->data, &classes, s, t->hooks.log));
    t->classes = (int)classes;
    TRY_DONE(network_create(&t->model, s, classes));
    TRY_DONE(idle_check(t));
    TRY_DONE(normalization_settle(t));
    TRY_DONE(trainer_settle(t));
    TRY_DONE(trainer_loaders_make(t));
    TRY_DONE(schedule_make(t));
    *out = t;
    return BERLU_OK;
done:
    trainer_close(t);
    return status;
}

berlu_status train_canonical(text *out, const train_settings *s, train_data *data, const char *teacher_hash)
{
    trainer *t = NULL;
    train_data known = *data;
    *data = (train_data){0}; /* a failed trainer_prepare() closes it */
    TRY(trainer_prepare(&t, s, NULL, &known));
    berlu_status status = BERLU_OK;
    if (s->distill != RECIPE_DISTILL_NONE && teacher_hash)
        snprintf(t->teacher.hash, sizeof t->teacher.hash, "%s", teacher_hash);
    else if (s->distill != RECIPE_DISTILL_NONE)
        TRY_DONE(teacher_open(&t->teacher, s, &t->model->config, NULL, NULL));
    TRY_DONE(trainer_identify(t));
    text_string(out, t->settings_text.data);
done:
    *data = (train_data){.source = t->data, .classes = (size_t)t->classes};
    memcpy(data->hash, t->data_hash, sizeof data->hash);
    t->data = NULL; /* the caller keeps it */
    trainer_close(t);
    return status == BERLU_OK ? text_status(out) : status;
}

void train_data_close(train_data *data)
{
    data_close(data->source);
    *data = (train_data){0};
}

/* Makes the device choose its algorithms now: run.json, which is written next, records them. */
static berlu_status warm_up(trainer *t)
{
    if (!engine_backend(t->train)->choices)
        return BERLU_OK;
    TRY(engine_warm_up(t->train));
    TRY(engine_warm_up(t->eval));
    return t->teacher.engine ? engine_warm_up(t->teacher.engine) : BERLU_OK;
}

static berlu_status trainer_complete(trainer *t)
{
    const train_settings *s = &t->settings;
    TRY(engines_make(t));
    if (s->distill != RECIPE_DISTILL_NONE)
        TRY(teacher_open(&t->teacher, s, &t->model->config, engine_device(t->train), t->hooks.log));
    TRY(trainer_place_images(t));
    TRY(trainer_identify(t));
    TRY(site_metrics_make(t));
    TRY(weights_make(t));
    if (!(t->correct = calloc(loader_images(t->test) / 8 + 1, 1)))
        return berlu_fail_memory(loader_images(t->test) / 8 + 1, "a bit per test image");
    step_make(t);
    return warm_up(t);
}

berlu_status trainer_open(trainer **out, const train_settings *s, const train_hooks *hooks)
{
    trainer *t = NULL;
    TRY(trainer_prepare(&t, s, hooks, NULL));
    int held = network_hold_algorithms(s);
    berlu_status status = trainer_complete(t);
    if (held >= 0)
        close(held);
    if (status != BERLU_OK) {
        trainer_close(t);
        return status;
    }
    *out = t;
    return BERLU_OK;
}

void trainer_close(trainer *t)
{
    if (!t)
        return;
    tb_close(t->tb);
    diagnosis_free(t->diagnosis);
    loader_close(t->probe);
    loader_close(t->test);
    loader_close(t->batches);
    trainer_saver_close(t);
    image_set_free(t->set);
    teacher_close(&t->teacher);
    engine_free(t->eval);
    engine_free(t->train);
    model_free(t->model);
    data_close(t->data);
    run_close(&t->run);
    free(t->test_only);
    free(t->train_only);
    free(t->correct);
    text_free(&t->settings_text);
    text_free(&t->steps.rows);
    free(t->state.site_metrics);
    free(t->initial);
    free(t);
}
