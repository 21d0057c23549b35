/* eval_run.c - see eval_run.h. SPDX-License-Identifier: MIT */
#include "train/eval_run.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/files.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/finite.h"
#include "train/image_options.h"
#include "train/network.h"
#include "train/run_folder.h"
#include "train/run_missing.h"
#include "train/settings_hash.h"
#include "train/subset.h"

/* What was asked for. The numbers of classes are what the network learned and stay, in their order; a list of labels, their
 * kind and how many files may be broken are of one set. */
static berlu_status data_settings(const eval_request *r, train_settings *s)
{
    berlu_status status = r->data ? recipe_set(s, "data", r->data) : BERLU_OK;
    static const char *const of_one_set[][2] = {
        {"val_labels", ""}, {"labels", "fine"}, {"max_bad", "-1"}, {"train_images", "0"}, {"test_images", "0"}};
    for (size_t i = 0; status == BERLU_OK && r->data && i < sizeof of_one_set / sizeof of_one_set[0]; i++)
        status = recipe_set(s, of_one_set[i][0], of_one_set[i][1]);
    for (size_t i = 0; status == BERLU_OK && i < r->setting_count; i++)
        status = recipe_set(s, r->settings[i][0], r->settings[i][1]);
    return status;
}

berlu_status run_record_check(const train_settings *s, const char *weights)
{
    char folder[CHECKPOINT_PATH];
    checkpoint_facts facts;
    text differing = {0};
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(weights, '/') - weights), weights);
    berlu_status status = checkpoint_facts_read(&facts, folder);
    if (status != BERLU_OK)
        return status;
    if (facts.settings.data && settings_against_text(s, facts.settings.data, &differing) > 0)
        status = berlu_fail(BERLU_ERR_INPUT,
                            "%s: run.json has other settings than this checkpoint: %s; put run.json back as it was",
                            folder, differing.data ? differing.data : "?");
    if (differing.failed)
        status = text_status(&differing);
    text_free(&differing);
    text_free(&facts.settings);
    return status;
}

/* The settings that describe the network and its images, and where its weights are. */
static berlu_status request_settings(const eval_request *r, train_settings *s, char weights[CHECKPOINT_PATH])
{
    if (!r->weights) {
        if (!run_exists(r->run))
            return run_missing(r->run);
        run_facts facts;
        berlu_status status = run_settings(s, &facts, r->run);
        if (status == BERLU_OK)
            s->algorithms_record = NULL; /* of the training's shapes; an accuracy asks for no bits */
        const char *file = r->ema ? "ema.safetensors" : "model.safetensors";
        if (status == BERLU_OK)
            status = network_weights(weights, CHECKPOINT_PATH, r->run, r->which, file, r->log);
        if (status == BERLU_OK && facts.format > 0)
            status = run_record_check(s, weights);
        return status == BERLU_OK ? data_settings(r, s) : status;
    }
    if (!r->data)
        return berlu_fail(BERLU_ERR_ARG, "data: say what to evaluate on, --data DATA");
    if (strlen(r->weights) >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "weights: the path is too long");
    strcpy(weights, r->weights);
    berlu_status status = recipe_set(s, "model", r->run);
    if (status == BERLU_OK)
        status = data_settings(r, s);
    for (size_t i = 0; status == BERLU_OK && i < r->act_count; i++)
        status = recipe_set(s, "act", r->acts[i]);
    if (status == BERLU_OK && r->act_count == 0)
        status = network_acts(s, weights, &(int){0}); /* none named: the model's usual one */
    if (status == BERLU_OK)
        status = recipe_complete(s);
    return status;
}

berlu_status eval_images_open(loader **out, uint64_t **only, data_source *data, const train_settings *s,
                              const eval_request *r, int side)
{
    loader_options o = {.split = r->train_split ? DATA_TRAIN : DATA_TEST, .batch = (size_t)r->batch};
    if (s->holdout) {
        o.split = DATA_TRAIN;
        o.part = r->train_split ? PART_KEPT : PART_HELD;
        o.holdout = (size_t)s->holdout;
    }
    if (data_describe(data)->images[o.split] == 0)
        return berlu_fail(BERLU_ERR_ARG, "data: %s has no %s images", s->data, data_split_names[o.split]);
    o.only_count = (size_t)(r->train_split ? s->train_images : s->test_images);
    normalization n;
    berlu_status status = BERLU_OK;
    if (o.only_count)
        status = subset_choose(only, data, o.split, o.part, o.holdout, o.only_count,
                               r->train_split ? "train_images" : "test_images");
    o.only = *only;
    if (status == BERLU_OK)
        status = image_options_idle(s, data_describe(data), side, 0);
    if (status == BERLU_OK)
        status = normalization_find(&n, s, data);
    if (status != BERLU_OK)
        return status;
    memcpy(o.mean, n.mean, sizeof o.mean);
    memcpy(o.std, n.std, sizeof o.std);
    status = image_options_eval(&o.augment, s, side);
    return status == BERLU_OK ? loader_open(out, data, &o) : status;
}

/* Files of the caller instead of the set's images, prepared like these. */
static berlu_status files_open(loader **out, data_source *files, data_source *data, const train_settings *s,
                               const eval_request *r, int side)
{
    const data_info *info = data_describe(data);
    loader_options o = {.split = DATA_TEST, .batch = (size_t)r->batch};
    normalization n;
    berlu_status status = normalization_find(&n, s, data);
    if (status == BERLU_OK)
        status = image_options_eval(&o.augment, s, side);
    if (status != BERLU_OK)
        return status;
    if (o.augment.crop_pct == 0 && info->width > 0 && info->width == info->height)
        o.augment.crop_pct = 1; /* as for the square images the network was trained on */
    memcpy(o.mean, n.mean, sizeof o.mean);
    memcpy(o.std, n.std, sizeof o.std);
    return loader_open(out, files, &o);
}

/* The step in a checkpoint's path, behind the links `last` and `best`. */
static uint64_t step_of(const char *weights)
{
    char real[PATH_MAX];
    const char *at = realpath(weights, real) ? strstr(real, "/step-") : NULL;
    return at ? strtoull(at + strlen("/step-"), NULL, 10) : 0;
}

static berlu_status report_fill(eval_report *out, const train_settings *s, const model *m, const data_source *data,
                                const char *weights)
{
    const data_info *info = data_describe(data);
    text acts = {0};
    for (int i = 0; i < m->act_count; i++)
        text_add(&acts, "%s%s", i ? "; " : "", berlu_act_spec(m->acts[i]));
    berlu_status status = text_status(&acts);
    if (status == BERLU_OK) {
        out->model = arena_strdup(&out->memory, m->config.name);
        out->data = arena_strdup(&out->memory, s->data);
        out->act = arena_strdup(&out->memory, acts.data ? acts.data : "");
        out->step = step_of(weights);
        out->classes = (size_t)m->config.classes;
        out->class_names = ARENA_ARRAY(&out->memory, const char *, out->classes);
        if (!out->model || !out->data || !out->act || !out->class_names)
            status = BERLU_ERR_MEMORY;
    }
    for (size_t i = 0; status == BERLU_OK && i < out->classes; i++) {
        char number[32];
        snprintf(number, sizeof number, "%zu", i);
        out->class_names[i] = arena_strdup(&out->memory, i < info->classes ? info->class_names[i] : number);
        if (!out->class_names[i])
            status = BERLU_ERR_MEMORY;
    }
    text_free(&acts);
    return status;
}

/* As evaluate(), with every row handed to the caller. */
static berlu_status visit(engine *e, loader *l, score *out, const eval_request *r)
{
    const loader_batch *b;
    *out = (score){0};
    berlu_status status = loader_start(l, 0, 0);
    while (status == BERLU_OK && (status = loader_next(l, &b)) == BERLU_OK && b) {
        engine_borrow_input(e, b->images);
        status = engine_forward(e, &(engine_step){0});
        const float *logits = status == BERLU_OK ? engine_logits(e) : NULL;
        size_t classes = (size_t)tensor_channels(graph_tensor(engine_graph(e), graph_logits(engine_graph(e))));
        if (status == BERLU_OK && !logits)
            status = BERLU_ERR_DEVICE;
        for (size_t i = 0; status == BERLU_OK && i < b->count; i++) {
            score_add(out, logits + i * classes, classes, (size_t)b->labels[i]);
            r->each(r->context, (size_t)b->indices[i], logits + i * classes, classes, (size_t)b->labels[i]);
        }
        if (r->tick)
            r->tick(r->context, out->images);
    }
    return status;
}

/* An accuracy of weights that are not numbers means nothing. */
static berlu_status weights_finite(engine *e, const char *path)
{
    not_finite found;
    berlu_status status = finite_look(e, ARRAY_WEIGHT, &found);
    if (status == BERLU_OK && found.name)
        status =
            berlu_fail(BERLU_ERR_NUMERIC, "%s: %zu of %zu numbers of %s are not finite; these weights are of no use",
                       path, found.bad, found.count, found.name);
    return status;
}

/* A pass need not be larger than the set. */
static int batch_of(const eval_request *r, const data_source *data, const train_settings *s)
{
    size_t images = r->file_count ? r->file_count
                                  : data_describe(data)->images[s->holdout || r->train_split ? DATA_TRAIN : DATA_TEST];
    int batch = r->batch ? r->batch : s->device == RECIPE_CPU ? 100 : 1024;
    return images && (size_t)batch > images ? (int)images : batch;
}

berlu_status eval_run(const eval_request *request, score *out)
{
    eval_request clamped = *request, *r = &clamped;
    char weights[CHECKPOINT_PATH];
    train_settings s;
    data_source *data = NULL, *files = NULL;
    model *m = NULL;
    engine *e = NULL;
    loader *l = NULL;
    uint64_t *only = NULL;
    size_t classes;
    engine_options o = {.mode = ENGINE_INFER, .threads = r->threads};
    recipe_init(&s);
    berlu_status status = request_settings(r, &s, weights);
    if (status == BERLU_OK)
        status = recipe_idle(&s);
    if (status == BERLU_OK)
        status = network_data(&data, &classes, &s, r->log);
    if (status == BERLU_OK)
        r->batch = o.batch = batch_of(request, data, &s);
    if (status == BERLU_OK)
        status = network_create(&m, &s, classes);
    if (status == BERLU_OK)
        status = network_device(&o, &s);
    if (status == BERLU_OK)
        status = engine_create(&e, m->graph, &o);
    if (status == BERLU_OK)
        status = weights_load_path(e, weights);
    if (status == BERLU_OK && r->report)
        status = report_fill(r->report, &s, m, data, weights);
    if (status == BERLU_OK && r->file_count)
        status = data_open_files(&files, r->files, r->file_count, data_describe(data));
    if (status == BERLU_OK)
        status = weights_finite(e, weights);
    if (status == BERLU_OK)
        status = files ? files_open(&l, files, data, &s, r, m->config.image_size)
                       : eval_images_open(&l, &only, data, &s, r, m->config.image_size);
    if (status == BERLU_OK)
        status = r->each ? visit(e, l, out, r) : evaluate(e, l, out, NULL, NULL, r->tick, r->context);
    if (status == BERLU_OK && !isfinite(score_loss(out)))
        status = berlu_fail(BERLU_ERR_NUMERIC,
                            "%s: the weights are finite, but what the network makes of the images is not", weights);
    loader_close(l);
    free(only);
    data_close(files);
    engine_free(e);
    model_free(m);
    data_close(data);
    recipe_free(&s);
    return status;
}
