/* trainer_open.c - from settings to a trainer that is ready to begin; nothing is written here.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/weights.h"
#include "train/subset.h"
#include "train/trainer_internal.h"

/* ---- settings against data and network --------------------------------------------------------------------------------- */

/* What is found out is written into the run's settings: a resume and an evaluation then need not find it again, and see
 * images as this run does, whatever became of the folder. */
static berlu_status normalization_settle(trainer *t)
{
    berlu_status status = normalization_find(&t->normalization, &t->settings, t->data);
    if (status != BERLU_OK)
        return status;
    if (recipe_given(&t->settings, "mean")) /* as it was written, so that the same words resume the run */
        return BERLU_OK;
    t->settings.mean = channels_text(t->mean, t->normalization.mean);
    t->settings.std = channels_text(t->std, t->normalization.std);
    return BERLU_OK;
}

/* Settings that only the network or the data can tell to be without effect. */
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
    return image_options_idle(s, data_describe(t->data), t->model->config.image_size, s->augment);
}

/* ---- loaders ----------------------------------------------------------------------------------------------------------- */

static berlu_status loader_make(loader **out, trainer *t, loader_options *o, int training)
{
    const train_settings *s = &t->settings;
    int side = t->model->config.image_size;
    berlu_status status =
        training ? image_options_train(&o->augment, s, side) : image_options_eval(&o->augment, s, side);
    o->seed = (uint64_t)s->seed;
    o->holdout = (size_t)s->holdout;
    o->workers = (int)s->workers;
    memcpy(o->mean, t->normalization.mean, sizeof o->mean);
    memcpy(o->std, t->normalization.std, sizeof o->std);
    if (status != BERLU_OK)
        return status;
    if (t->set) {
        o->draws = 1;
        o->draws_first = o->split == DATA_TEST ? data_describe(t->data)->images[DATA_TRAIN] : 0;
    } else
        t->drawable &= loader_drawable(t->data, o);
    loader_close(*out);
    *out = NULL;
    return loader_open(out, t->data, o);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static berlu_status train_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    size_t images = t->train_images;
    loader_options o = {.split = DATA_TRAIN, .part = s->holdout ? PART_KEPT : PART_ALL, .batch = (size_t)s->batch};
    if ((size_t)s->batch > images)
        return berlu_fail(BERLU_ERR_ARG, "batch: %lld is larger than the %zu training images; make it smaller",
                          (long long)s->batch, images);
    o.only = t->train_only, o.only_count = (size_t)s->train_images;
    o.drop_last = 1;
    o.shuffle = !s->overfit_batch;
    o.first = s->overfit_batch ? (size_t)s->batch : 0;
    o.repeats = (int)s->repeats;
    o.mix = (mix_options){.mixup = s->mixup,
                          .cutmix = s->cutmix,
                          .probability = s->mix_prob,
                          .switch_to_cutmix = s->mix_switch,
                          .smoothing = s->smoothing,
                          .group = (size_t)s->mix_group};
    return loader_make(&t->batches, t, &o, 1);
}

/* The test split, or what was held out of the training split. One batch alone is tested on itself. */
static berlu_status test_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    const data_info *info = data_describe(t->data);
    loader_options o = {.split = DATA_TEST, .batch = (size_t)t->eval_batch};
    if (s->holdout)
        o.split = DATA_TRAIN, o.part = PART_HELD;
    o.only = t->test_only, o.only_count = (size_t)s->test_images;
    if (s->overfit_batch)
        o.split = DATA_TRAIN, o.part = PART_ALL, o.first = (size_t)s->batch, o.only = t->train_only,
        o.only_count = (size_t)s->train_images;
    if (info->images[o.split] == 0)
        return berlu_fail(BERLU_ERR_ARG, "data: %s has no test images; keep some training images with --holdout N",
                          s->data);
    return loader_make(&t->test, t, &o, 0);
}

/* A batch that is learned by heart takes no part of anything. */
static berlu_status parts_choose(trainer *t)
{
    const train_settings *s = &t->settings;
    loader_part train = s->holdout ? PART_KEPT : PART_ALL, test = s->holdout ? PART_HELD : PART_ALL;
    data_split split = s->holdout ? DATA_TRAIN : DATA_TEST;
    berlu_status status = BERLU_OK;
    if (s->train_images)
        status = subset_choose(&t->train_only, t->data, DATA_TRAIN, train, (size_t)s->holdout, (size_t)s->train_images,
                               "train_images");
    if (status == BERLU_OK && s->test_images)
        status = subset_choose(&t->test_only, t->data, split, test, (size_t)s->holdout, (size_t)s->test_images,
                               "test_images");
    return status;
}

static berlu_status probe_loader(trainer *t)
{
    const train_settings *s = &t->settings;
    loader_options o = {.split = DATA_TRAIN, .part = s->holdout ? PART_KEPT : PART_ALL, .batch = (size_t)t->eval_batch};
    o.only = t->train_only, o.only_count = (size_t)s->train_images;
    o.first = s->overfit_batch ? (size_t)s->batch : least(PROBE_IMAGES, t->train_images);
    return loader_make(&t->probe, t, &o, 0);
}

berlu_status trainer_loaders_open(trainer *t)
{
    t->drawable = 1;
    berlu_status status = train_loader(t);
    if (status == BERLU_OK)
        status = test_loader(t);
    return status == BERLU_OK ? probe_loader(t) : status;
}

/* A pass of an evaluation need not be larger than the larger of the two sets that are evaluated. The setting stays as it
 * was given: it is part of the settings' hash. */
static void eval_batch_find(trainer *t, size_t images)
{
    const train_settings *s = &t->settings;
    size_t test = s->test_images ? (size_t)s->test_images
                  : s->holdout   ? (size_t)s->holdout
                                 : data_describe(t->data)->images[DATA_TEST];
    size_t most = least(PROBE_IMAGES, images);
    most = test > most ? test : most;
    t->eval_batch = (int)least((size_t)s->eval_batch, s->overfit_batch ? (size_t)s->batch : most);
    t->eval_batch = t->eval_batch < 1 ? 1 : t->eval_batch;
}

static berlu_status loaders_make(trainer *t)
{
    const train_settings *s = &t->settings;
    size_t images = data_describe(t->data)->images[DATA_TRAIN];
    if ((size_t)s->holdout >= images)
        return berlu_fail(BERLU_ERR_ARG, "holdout: %lld leaves nothing of %zu training images", (long long)s->holdout,
                          images);
    berlu_status status = parts_choose(t);
    t->train_images = s->train_images ? (size_t)s->train_images : images - (size_t)s->holdout;
    if (status != BERLU_OK)
        return status;
    eval_batch_find(t, t->train_images);
    return trainer_loaders_open(t);
}

/* ---- engines ----------------------------------------------------------------------------------------------------------- */

static berlu_status engines_make(trainer *t)
{
    static const engine_distill distill[] = {DISTILL_NONE, DISTILL_HARD, DISTILL_SOFT};
    static const engine_keep keep[] = {KEEP_INPUT, KEEP_BOTH, KEEP_OUTPUT};
    const train_settings *s = &t->settings;
    engine_options o = {.mode = ENGINE_TRAIN, .batch = (int)s->batch, .threads = (int)s->threads};
    o.keep = keep[s->keep];
    engine_bound bounds[3];
    o.bounds = bounds;
    o.bound_count = constraint_bounds(&t->bounds, bounds);
    o.loss = s->mixup > 0 || s->cutmix > 0 ? LOSS_SOFT_TARGET : LOSS_CROSS_ENTROPY;
    o.distill = distill[s->distill];
    o.optimizer = s->optimizer == RECIPE_SGD ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
    o.nesterov = (int)s->nesterov;
    o.accumulate = (int)s->accumulate;
    o.ema = s->ema > 0;
    berlu_status status = network_device(&o, s);
    if (status != BERLU_OK)
        return status;
    status = engine_create(&t->train, t->model->graph, &o);
    engine_options e = {.backend = o.backend, .mode = ENGINE_INFER, .batch = t->eval_batch, .share = t->train};
    e.threads = o.threads;
    if (status == BERLU_OK)
        status = engine_create(&t->eval, t->model->graph, &e);
    if (status == BERLU_ERR_MEMORY)
        memory_advice(t, &o, &e);
    return status == BERLU_OK ? trainer_saver_open(t, &o) : status;
}

static berlu_status weights_make(trainer *t)
{
    const train_settings *s = &t->settings;
    init_options init = {.std = s->init_std, .std_fc1 = s->init_std_fc1};
    berlu_status status = weights_init(t->train, (uint64_t)s->seed, &init);
    if (status == BERLU_OK && *s->init)
        status = init_take(t);
    if (status == BERLU_OK)
        status = engine_apply_bounds(t->train);
    return status == BERLU_OK ? engine_sync_ema(t->train) : status;
}

/* ---- time -------------------------------------------------------------------------------------------------------------- */

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
    if (too_many || t->updates > UINT32_MAX) /* a word of the random counter, and of AdamW's correction */
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
    berlu_status status = diagnosis_create(&t->diagnosis, engine_graph(t->train), (int)t->settings.threads);
    if (status != BERLU_OK)
        return status;
    t->state.site_metric_count = diagnosis_sites(t->diagnosis) * SITE_METRICS;
    t->state.site_metrics = calloc(t->state.site_metric_count + 1, sizeof *t->state.site_metrics);
    t->initial = calloc(t->state.site_metric_count + 1, sizeof *t->initial);
    return t->state.site_metrics && t->initial
               ? BERLU_OK
               : berlu_fail_memory(t->state.site_metric_count * sizeof(double), "the figures of sites");
}

/* Data, model, settings as they will be used, loaders and schedule: all that a run is known by, and no engine yet. */
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
    if (known && known->source) { /* owned from here on */
        t->data = known->source;
        classes = known->classes;
        memcpy(t->data_hash, known->hash, sizeof t->data_hash);
    }
    berlu_status status = constraint_parse(&t->bounds, s->act_constraint);
    if (status == BERLU_OK && !t->data)
        status = network_data(&t->data, &classes, s, t->hooks.log);
    t->classes = (int)classes;
    if (status == BERLU_OK)
        status = network_create(&t->model, s, classes);
    if (status == BERLU_OK)
        status = idle_check(t);
    if (status == BERLU_OK)
        status = normalization_settle(t);
    if (status == BERLU_OK)
        status = trainer_settle(t);
    if (status == BERLU_OK)
        status = loaders_make(t);
    if (status == BERLU_OK)
        status = schedule_make(t);
    if (status != BERLU_OK)
        trainer_close(t);
    else
        *out = t;
    return status;
}

berlu_status train_canonical(text *out, const train_settings *s, train_data *data, const char *teacher_hash)
{
    trainer *t = NULL;
    train_data known = *data;
    *data = (train_data){0}; /* a trainer that cannot be prepared closes it */
    berlu_status status = trainer_prepare(&t, s, NULL, &known);
    if (status != BERLU_OK)
        return status;
    if (s->distill != RECIPE_DISTILL_NONE && teacher_hash)
        snprintf(t->teacher.hash, sizeof t->teacher.hash, "%s", teacher_hash);
    else if (s->distill != RECIPE_DISTILL_NONE)
        status = teacher_open(&t->teacher, s, &t->model->config, NULL, NULL);
    if (status == BERLU_OK)
        status = trainer_identify(t);
    if (status == BERLU_OK)
        text_string(out, t->settings_text.data);
    loader_close(t->test); /* loaders read the data that is handed on */
    loader_close(t->batches);
    *data = (train_data){.source = t->data, .classes = (size_t)t->classes};
    memcpy(data->hash, t->data_hash, sizeof data->hash);
    t->test = t->batches = NULL;
    t->data = NULL;
    trainer_close(t);
    return status == BERLU_OK ? text_status(out) : status;
}

void train_data_close(train_data *data)
{
    data_close(data->source);
    *data = (train_data){0};
}

/* What a device chooses by trying is chosen before run.json is written, which records it. */
static berlu_status warm_up(trainer *t)
{
    if (!((const struct device_base *)engine_device(t->train))->backend->choices)
        return BERLU_OK;
    berlu_status status = engine_warm_up(t->train);
    if (status == BERLU_OK)
        status = engine_warm_up(t->eval);
    return status == BERLU_OK && t->teacher.engine ? engine_warm_up(t->teacher.engine) : status;
}

/* All that needs memory to compute in. */
static berlu_status trainer_complete(trainer *t)
{
    const train_settings *s = &t->settings;
    berlu_status status = engines_make(t);
    if (status == BERLU_OK && s->distill != RECIPE_DISTILL_NONE)
        status = teacher_open(&t->teacher, s, &t->model->config, engine_device(t->train), t->hooks.log);
    if (status == BERLU_OK)
        status = trainer_place_images(t);
    if (status == BERLU_OK)
        status = trainer_identify(t);
    if (status == BERLU_OK)
        status = site_metrics_make(t);
    if (status == BERLU_OK)
        status = weights_make(t);
    if (status == BERLU_OK && !(t->correct = calloc(loader_images(t->test) / 8 + 1, 1)))
        status = berlu_fail_memory(loader_images(t->test) / 8 + 1, "a bit per test image");
    step_make(t);
    return status == BERLU_OK ? warm_up(t) : status;
}

berlu_status trainer_open(trainer **out, const train_settings *s, const train_hooks *hooks)
{
    trainer *t = NULL;
    berlu_status status = trainer_prepare(&t, s, hooks, NULL);
    if (status != BERLU_OK)
        return status;
    int held = network_hold_algorithms(s);
    status = trainer_complete(t);
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
