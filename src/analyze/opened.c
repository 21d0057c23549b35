/* opened.c - opens a run or a model: settings, data, engine, weights, a set of images.
 * SPDX-License-Identifier: MIT
 *
 * opened.h says what the analyses need of it. opened_make() finds settings and images and builds
 * the engine; opened_start() and opened_checkpoint() set weights, opened_get() and opened_set()
 * move them as one vector, opened_loss() returns the loss over all images and its gradient. */
#include "analyze/opened.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/constraint.h"
#include "train/eval_run.h"
#include "train/finite.h"
#include "train/network.h"
#include "train/run_folder.h"
#include "train/run_missing.h"

_Static_assert(sizeof((opened *)0)->weights >= CHECKPOINT_PATH, "the path of a checkpoint");

/* ---- which network --------------------------------------------------------------------------- */

/* The number of classes that a file of weights was trained for, so that a run can be analysed
 * without its data. */
static berlu_status classes_of(size_t *out, const char *weights)
{
    static const char *const heads[] = {"head.bias", "head.fc.bias"};
    safetensors *file;
    TRY(safetensors_open(&file, weights));
    *out = 0;
    for (size_t i = 0; i < COUNT(heads); i++) {
        const st_tensor *t = safetensors_find(file, heads[i]);
        if (t && t->rank == 1)
            *out = (size_t)t->shape[0];
    }
    safetensors_close(file);
    return *out ? BERLU_OK : berlu_fail(BERLU_ERR_INPUT, "%s: has no head to count classes by", weights);
}

static berlu_status settings_find(opened *out, const opened_options *o)
{
    out->is_run = run_exists(o->name);
    model_config config;
    if (!out->is_run && model_configure(&config, o->name, NULL) != BERLU_OK)
        return run_missing(o->name);
    if (out->is_run) {
        if (o->setting_count)
            return berlu_fail(BERLU_ERR_ARG, "option --%s: has no effect on a run, which says it itself; leave it out",
                              o->settings[0][0]);
        TRY(run_settings(&out->settings, NULL, o->name));
        return network_weights(out->weights, sizeof out->weights, o->name, o->which ? o->which : "last",
                               o->ema ? "ema.safetensors" : "model.safetensors", NULL);
    }
    recipe_init(&out->settings);
    TRY(recipe_set(&out->settings, "model", o->name));
    for (size_t i = 0; i < o->setting_count; i++)
        TRY(recipe_set(&out->settings, o->settings[i][0], o->settings[i][1]));
    if (!recipe_given(&out->settings, "data"))
        TRY(recipe_set(&out->settings, "data", "synthetic"));
    return recipe_complete(&out->settings);
}

/* ---- images ---------------------------------------------------------------------------------- */

static berlu_status images_copy(opened *out, loader *l)
{
    size_t side = (size_t)out->model->config.image_size, numbers = 3 * side * side, capacity = loader_images(l), bytes;
    if (!size_mul(capacity, numbers * sizeof(float), &bytes) || !(out->images = memory_aligned(bytes, "the images")))
        return BERLU_ERR_MEMORY;
    out->labels = calloc(capacity, sizeof *out->labels);
    if (!out->labels)
        return berlu_fail_memory(capacity * sizeof *out->labels, "the labels");
    TRY(loader_start(l, 0, 0));
    for (;;) {
        const loader_batch *b;
        TRY(loader_next(l, &b));
        if (!b)
            break;
        assert(out->count + b->count <= capacity);
        memcpy(out->images + out->count * numbers, b->images, b->count * numbers * sizeof *b->images);
        memcpy(out->labels + out->count, b->labels, b->count * sizeof *b->labels);
        out->count += b->count;
    }
    if (out->count == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: has no image to compute on", out->settings.data);
    return BERLU_OK;
}

/* The requested number of images, or all that the run uses if fewer. */
static berlu_status images_take(opened *out, data_source *data, const opened_options *o)
{
    train_settings s = out->settings;
    const data_info *info = data_describe(data);
    loader *l = NULL;
    uint64_t *only = NULL;
    int64_t *part = o->test ? &s.test_images : &s.train_images;
    size_t all = info->images[o->test && !s.holdout ? DATA_TEST : DATA_TRAIN];
    if (s.holdout)
        all = o->test ? (size_t)s.holdout : all - (size_t)s.holdout;
    if (o->images < (*part ? (size_t)*part : all))
        *part = (int64_t)o->images;
    const eval_request request = {.train_split = !o->test, .batch = out->batch};
    berlu_status status = eval_images_open(&l, &only, data, &s, &request, out->model->config.image_size);
    if (status == BERLU_OK)
        status = images_copy(out, l);
    loader_close(l);
    free(only);
    return status;
}

/* ---- making it ------------------------------------------------------------------------------- */

static berlu_status engine_open(opened *out, const opened_options *o)
{
    constraint rules;
    engine_bound bounds[3];
    engine_options e = {.mode = ENGINE_TRAIN,
                        .batch = out->batch,
                        .threads = o->threads,
                        .loss = LOSS_CROSS_ENTROPY,
                        .no_update = 1,
                        .bounds = bounds};
    TRY(constraint_parse(&rules, out->settings.act_constraint));
    TRY(network_device(&e, &out->settings));
    e.bound_count = constraint_bounds(&rules, bounds);
    TRY(engine_create(&out->engine, out->model->graph, &e));
    const graph *g = out->model->graph;
    for (int i = 0; i < graph_param_count(g); i++)
        out->parameters += (size_t)tensor_elements(graph_tensor(g, graph_param(g, i)));
    return BERLU_OK;
}

berlu_status opened_make(opened *out, const opened_options *o)
{
    data_source *data = NULL;
    size_t classes = 0;
    *out = (opened){.batch = o->images && (size_t)o->batch > o->images ? (int)o->images : o->batch};
    assert(out->batch >= 1);
    berlu_status status;
    TRY_DONE(settings_find(out, o));
    if (o->images || !out->is_run)
        TRY_DONE(network_data(&data, &classes, &out->settings, NULL));
    else
        TRY_DONE(classes_of(&classes, out->weights));
    out->settings.drop_path = 0;
    out->settings.device = o->cuda ? RECIPE_CUDA : RECIPE_CPU;
    out->settings.precision = RECIPE_F32;
    TRY_DONE(network_create(&out->model, &out->settings, classes));
    if (o->images)
        TRY_DONE(images_take(out, data, o));
    status = engine_open(out, o);
done:
    data_close(data);
    if (status != BERLU_OK)
        opened_free(out);
    return status;
}

void opened_free(opened *out)
{
    engine_free(out->engine);
    model_free(out->model);
    free(out->images);
    free(out->labels);
    recipe_free(&out->settings);
    *out = (opened){0};
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Weights from a file are not the seed's. The setting is found by name: versions without it have no
 * such runs. */
static berlu_status start_is_drawn(const opened *o)
{
    text value = {0};
    const setting *row = recipe_find("init");
    if (!row)
        return BERLU_OK;
    recipe_values(&o->settings, row, &value);
    berlu_status status = text_status(&value);
    if (status == BERLU_OK && value.data && *value.data)
        status = berlu_fail(BERLU_ERR_INPUT, "the run began with the weights of %s, which its seed does not draw",
                            value.data);
    text_free(&value);
    return status;
}

berlu_status opened_start(opened *o)
{
    TRY(start_is_drawn(o));
    init_options init = {.std = o->settings.init_std, .std_fc1 = o->settings.init_std_fc1};
    TRY(weights_init(o->engine, (uint64_t)o->settings.seed, &init));
    return engine_apply_bounds(o->engine);
}

berlu_status opened_checkpoint(opened *o)
{
    not_finite found;
    assert(o->is_run);
    TRY(weights_load_path(o->engine, o->weights));
    TRY(finite_look(o->engine, ARRAY_WEIGHT, &found));
    if (found.name)
        return berlu_fail(BERLU_ERR_NUMERIC, "%s: %zu of %zu numbers of %s are not finite", o->weights, found.bad,
                          found.count, found.name);
    return BERLU_OK;
}

static size_t elements_of(const opened *o, int parameter)
{
    const graph *g = engine_graph(o->engine);
    return (size_t)tensor_elements(graph_tensor(g, graph_param(g, parameter)));
}

static berlu_status array_get(const opened *o, engine_array array, double *out)
{
    for (int i = 0; i < graph_param_count(engine_graph(o->engine)); i++) {
        TRY(engine_get_f64(o->engine, array, i, out));
        out += elements_of(o, i);
    }
    return BERLU_OK;
}

berlu_status opened_get(const opened *o, double *weights)
{
    return array_get(o, ARRAY_WEIGHT, weights);
}

berlu_status opened_set(opened *o, const double *weights)
{
    for (int i = 0; i < graph_param_count(engine_graph(o->engine)); i++) {
        TRY(engine_set_f64(o->engine, ARRAY_WEIGHT, i, weights));
        weights += elements_of(o, i);
    }
    return BERLU_OK;
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* One batch; images past the last have no label. */
static berlu_status batch_loss(opened *o, size_t first, double *loss, int backward)
{
    size_t side = (size_t)o->model->config.image_size, numbers = 3 * side * side, rows = (size_t)o->batch;
    size_t here = o->count - first < rows ? o->count - first : rows;
    float *in = engine_input(o->engine);
    int32_t *labels = engine_labels(o->engine);
    memcpy(in, o->images + first * numbers, here * numbers * sizeof *in);
    memset(in + here * numbers, 0, (rows - here) * numbers * sizeof *in);
    for (size_t i = 0; i < rows; i++)
        labels[i] = i < here ? o->labels[first + i] : -1;
    TRY(engine_forward(o->engine, &(engine_step){0}));
    *loss = engine_loss(o->engine) * (double)here;
    return backward ? engine_backward(o->engine) : BERLU_OK;
}

berlu_status opened_loss(opened *o, double *loss, double *gradient)
{
    assert(o->count > 0);
    double *part = gradient ? malloc(o->parameters * sizeof *part) : NULL;
    if (gradient && !part)
        return berlu_fail_memory(o->parameters * sizeof *part, "a gradient");
    berlu_status status = BERLU_OK;
    *loss = 0;
    if (gradient)
        memset(gradient, 0, o->parameters * sizeof *gradient);
    for (size_t first = 0; first < o->count; first += (size_t)o->batch) {
        size_t here = o->count - first < (size_t)o->batch ? o->count - first : (size_t)o->batch;
        double sum;
        TRY_DONE(batch_loss(o, first, &sum, gradient != NULL));
        *loss += sum / (double)o->count;
        if (gradient)
            TRY_DONE(array_get(o, ARRAY_GRADIENT, part));
        for (size_t i = 0; gradient && i < o->parameters; i++)
            gradient[i] += part[i] * ((double)here / (double)o->count);
        o->passes++;
        if (o->tick)
            o->tick(o->context, o->passes);
    }
    if (!isfinite(*loss))
        status = berlu_fail(BERLU_ERR_NUMERIC, "the loss of these weights is not finite");
done:
    free(part);
    return status;
}

berlu_status opened_parameter(const opened *o, engine_array array, const char *name, float **values,
                              const tensor_info **info)
{
    const graph *g = engine_graph(o->engine);
    tensor t = graph_find(g, name);
    if (t == TENSOR_NONE || graph_tensor(g, t)->parameter < 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: has no parameter %s", o->model->config.name, name);
    *info = graph_tensor(g, t);
    size_t count = (size_t)tensor_elements(*info);
    float *copy = malloc(count * sizeof *copy);
    if (!copy)
        return berlu_fail_memory(count * sizeof *copy, name);
    berlu_status status = engine_get(o->engine, array, (*info)->parameter, copy);
    if (status != BERLU_OK)
        free(copy);
    else
        *values = copy;
    return status;
}
