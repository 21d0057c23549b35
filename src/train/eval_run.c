/* eval_run.c - settings and weights of what is evaluated, then a pass over its images.
 * SPDX-License-Identifier: MIT
 *
 * eval_run() serves `berlu eval` and `predict`: the network is that of a run or of a file of
 * weights, the images are those of its set, of another set or files of the caller, prepared as in
 * training's evaluations. Weights that are not finite are refused. */
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

/* Applies the request's settings. The order of classes belongs to the network and stays; the list
 * of labels, their kind and the limit of damaged files belong to one set and are reset. */
static berlu_status data_settings(const eval_request *r, train_settings *s)
{
    static const char *const of_one_set[][2] = {
        {"val_labels", ""}, {"labels", "fine"}, {"max_bad", "-1"}, {"train_images", "0"}, {"test_images", "0"}};
    if (r->data)
        TRY(recipe_set(s, "data", r->data));
    for (size_t i = 0; r->data && i < COUNT(of_one_set); i++)
        TRY(recipe_set(s, of_one_set[i][0], of_one_set[i][1]));
    for (size_t i = 0; i < r->setting_count; i++)
        TRY(recipe_set(s, r->settings[i][0], r->settings[i][1]));
    return BERLU_OK;
}

berlu_status run_record_check(const train_settings *s, const char *weights)
{
    char folder[CHECKPOINT_PATH];
    checkpoint_facts facts;
    text differing = {0};
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(weights, '/') - weights), weights);
    berlu_status status = BERLU_OK;
    TRY(checkpoint_facts_read(&facts, folder));
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

/* Finds the settings that describe a run's network and images, and the path of its weights. */
static berlu_status settings_of_run(const eval_request *r, train_settings *s, char weights[CHECKPOINT_PATH])
{
    run_facts facts;
    if (!run_exists(r->run))
        return run_missing(r->run);
    TRY(run_settings(s, &facts, r->run));
    s->algorithms_record = NULL; /* chosen for the shapes of training; an evaluation chooses its own */
    TRY(network_weights(weights, CHECKPOINT_PATH, r->run, r->which, r->ema ? "ema.safetensors" : "model.safetensors",
                        r->log));
    if (facts.format > 0)
        TRY(run_record_check(s, weights));
    return data_settings(r, s);
}

/* The same for a model's name and a file of weights. */
static berlu_status settings_of_weights(const eval_request *r, train_settings *s, char weights[CHECKPOINT_PATH])
{
    if (!r->data)
        return berlu_fail(BERLU_ERR_ARG, "data: say what to evaluate on, --data DATA");
    if (strlen(r->weights) >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "weights: the path is too long");
    strcpy(weights, r->weights);
    TRY(recipe_set(s, "model", r->run));
    TRY(data_settings(r, s));
    TRY(network_sizes(s, weights));
    for (size_t i = 0; i < r->act_count; i++)
        TRY(recipe_set(s, "act", r->acts[i]));
    if (r->act_count == 0)
        TRY(network_acts(s, weights, &(int){0})); /* none named: the model's default */
    return recipe_complete(s);
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
    if (o.only_count)
        TRY(subset_choose(only, data, o.split, o.part, o.holdout, o.only_count,
                          r->train_split ? "train_images" : "test_images"));
    o.only = *only;
    TRY(image_options_idle(s, data_describe(data), side, 0));
    TRY(normalization_find(&n, s, data));
    memcpy(o.mean, n.mean, sizeof o.mean);
    memcpy(o.std, n.std, sizeof o.std);
    TRY(image_options_eval(&o.augment, s, side));
    return loader_open(out, data, &o);
}

/* Opens files of the caller in place of the images of `data`, prepared in the same way. */
static berlu_status files_open(loader **out, data_source *files, data_source *data, const train_settings *s,
                               const eval_request *r, int side)
{
    const data_info *info = data_describe(data);
    loader_options o = {.split = DATA_TEST, .batch = (size_t)r->batch};
    normalization n;
    TRY(normalization_find(&n, s, data));
    TRY(image_options_eval(&o.augment, s, side));
    if (o.augment.crop_pct == 0 && info->width > 0 && info->width == info->height)
        o.augment.crop_pct = 1; /* as for the square images of the training */
    memcpy(o.mean, n.mean, sizeof o.mean);
    memcpy(o.std, n.std, sizeof o.std);
    return loader_open(out, files, &o);
}

/* The step in a checkpoint's path, with the links `last` and `best` resolved. */
static uint64_t step_of(const char *weights)
{
    char real[PATH_MAX];
    const char *at = realpath(weights, real) ? strstr(real, "/step-") : NULL;
    return at ? strtoull(at + strlen("/step-"), NULL, 10) : 0;
}

static berlu_status report_fill(eval_report *out, const train_settings *s, const model *m, const data_info *info,
                                const char *weights)
{
    text acts = {0};
    for (int i = 0; i < m->act_count; i++)
        text_add(&acts, "%s%s", i ? "; " : "", berlu_act_spec(m->acts[i]));
    berlu_status status;
    TRY_DONE(text_status(&acts));
    out->model = arena_strdup(&out->memory, m->config.name);
    out->data = arena_strdup(&out->memory, s->data);
    out->act = arena_strdup(&out->memory, acts.data ? acts.data : "");
    out->step = step_of(weights);
    out->classes = (size_t)m->config.classes;
    out->class_names = ARENA_ARRAY(&out->memory, const char *, out->classes);
    TRY_DONE(out->model && out->data && out->act && out->class_names ? BERLU_OK : BERLU_ERR_MEMORY);
    for (size_t i = 0; i < out->classes; i++) {
        char number[32];
        snprintf(number, sizeof number, "%zu", i);
        out->class_names[i] = arena_strdup(&out->memory, i < info->classes ? info->class_names[i] : number);
        TRY_DONE(out->class_names[i] ? BERLU_OK : BERLU_ERR_MEMORY);
    }
done:
    text_free(&acts);
    return status;
}

/* As evaluate(), passing every row to the caller. */
static berlu_status visit(engine *e, loader *l, score *out, const eval_request *r)
{
    const loader_batch *b;
    size_t classes = (size_t)tensor_channels(graph_tensor(engine_graph(e), graph_logits(engine_graph(e))));
    *out = (score){0};
    TRY(loader_start(l, 0, 0));
    for (;;) {
        TRY(loader_next(l, &b));
        if (!b)
            return BERLU_OK;
        engine_borrow_input(e, b->images);
        TRY(engine_forward(e, &(engine_step){0}));
        const float *logits = engine_logits(e);
        if (!logits)
            return BERLU_ERR_DEVICE;
        for (size_t i = 0; i < b->count; i++) {
            score_add(out, logits + i * classes, classes, (size_t)b->labels[i]);
            r->each(r->context, (size_t)b->indices[i], logits + i * classes, classes, (size_t)b->labels[i]);
        }
        if (r->tick)
            r->tick(r->context, out->images);
    }
}

/* Refuses weights that are not finite: their accuracy would be meaningless. */
static berlu_status weights_finite(engine *e, const char *path)
{
    not_finite found;
    TRY(finite_look(e, ARRAY_WEIGHT, &found));
    if (found.name)
        return berlu_fail(BERLU_ERR_NUMERIC, "%s: %zu of %zu numbers of %s are not finite; these weights are of no use",
                          path, found.bad, found.count, found.name);
    return BERLU_OK;
}

/* ---- classes of the data --------------------------------------------------------------------- */

/* Opens the images, which must have as many classes as the run was trained on. */
static berlu_status images_find(data_source **out, size_t *classes, train_settings *s, const eval_request *r)
{
    size_t trained = (size_t)s->classes;                     /* 0: a run of berlu 0.1.0, or weights */
    if (strcmp(s->data, "synthetic") != 0 || trained != 100) /* it has 10 or, when asked, 100 */
        s->classes = 0;
    TRY(network_data(out, classes, s, r->log));
    if (!trained || *classes == trained)
        return BERLU_OK;
    data_close(*out);
    *out = NULL;
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s: has %zu classes, and %s was trained on %zu; give data of the same classes, or train on "
                      "these (berlu train --init %s)",
                      s->data, *classes, r->run, trained, r->run);
}

static int has_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* Labels are compared by number: the same names in another order would count wrong classes as
 * right, and other names may mean other things. Runs whose record has no names are not compared. */
static berlu_status classes_compare(const eval_request *r, const train_settings *s, const data_info *info)
{
    arena memory = {0};
    char path[CHECKPOINT_PATH];
    const char **names;
    size_t count, differ = 0, first = 0, known = 0;
    berlu_status status = BERLU_OK;
    if (r->weights || snprintf(path, sizeof path, "%s/run.json", r->run) >= (int)sizeof path)
        return BERLU_OK;
    TRY_DONE(run_json_classes(&names, &count, &memory, path));
    for (size_t i = 0; count == info->classes && i < count; i++) {
        const char *here = info->class_names[i];
        if (strcmp(names[i], here) == 0 || here[utf8_span(here)]) /* run.json holds UTF-8 alone */
            continue;
        first = differ++ ? first : i;
        known += (size_t)has_name(names, count, here);
    }
    if (differ && known == differ)
        status = berlu_fail(BERLU_ERR_INPUT,
                            "%s: has the classes of %s in another order (%zu is %s, not %s): its labels would be other "
                            "classes; give the --class-order of the run, or rename the folders",
                            s->data, r->run, first, info->class_names[first], names[first]);
    else if (differ)
        log_line(r->log, BERLU_LOG_WARNING,
                 "%zu of %zu classes of %s have other names than those of %s (%zu is %s, not %s): labels are compared "
                 "by number",
                 differ, count, s->data, r->run, first, info->class_names[first], names[first]);
done:
    arena_free(&memory);
    return status;
}

/* Opens the request's files with the classes that run.json names, so that a prediction does without
 * the set. Older records have no names or no normalization; *out is then NULL. */
static berlu_status files_by_record(data_source **out, arena *memory, const train_settings *s, const eval_request *r)
{
    char path[CHECKPOINT_PATH];
    const char **names;
    data_info like = {.class_order = "fixed"};
    if (!*s->mean || snprintf(path, sizeof path, "%s/run.json", r->run) >= (int)sizeof path)
        return BERLU_OK;
    TRY(run_json_classes(&names, &like.classes, memory, path));
    like.class_names = names;
    return like.classes ? data_open_files(out, r->files, r->file_count, &like) : BERLU_OK;
}

/* Limits the batch to the size of the set. */
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
    data_source *data = NULL, *files = NULL, *like; /* like: whose classes and normalization are meant */
    model *m = NULL;
    engine *e = NULL;
    loader *l = NULL;
    uint64_t *only = NULL;
    arena memory = {0};
    size_t classes = 0;
    engine_options o = {.mode = ENGINE_INFER, .threads = r->threads};
    recipe_init(&s);
    berlu_status status;
    TRY_DONE(r->weights ? settings_of_weights(r, &s, weights) : settings_of_run(r, &s, weights));
    TRY_DONE(recipe_idle(&s));
    if (r->file_count)
        TRY_DONE(files_by_record(&files, &memory, &s, r));
    if (!files) {
        TRY_DONE(images_find(&data, &classes, &s, r));
        TRY_DONE(classes_compare(r, &s, data_describe(data)));
    }
    like = files ? files : data;
    r->batch = o.batch = batch_of(request, data, &s);
    TRY_DONE(network_create(&m, &s, files ? data_describe(files)->classes : classes));
    TRY_DONE(network_device(&o, &s));
    TRY_DONE(engine_create(&e, m->graph, &o));
    TRY_DONE(weights_load_path(e, weights));
    if (r->report)
        TRY_DONE(report_fill(r->report, &s, m, data_describe(like), weights));
    if (r->file_count && !files)
        TRY_DONE(data_open_files(&files, r->files, r->file_count, data_describe(like)));
    TRY_DONE(weights_finite(e, weights));
    TRY_DONE(files ? files_open(&l, files, like, &s, r, m->config.image_size)
                   : eval_images_open(&l, &only, data, &s, r, m->config.image_size));
    TRY_DONE(r->each ? visit(e, l, out, r) : evaluate(e, l, out, NULL, NULL, r->tick, r->context));
    data_bad_warn(like, &(size_t){0}, r->log);
    if (!isfinite(score_loss(out)))
        TRY_DONE(berlu_fail(BERLU_ERR_NUMERIC, "%s: the weights are finite, but the network's output is not", weights));
done:
    loader_close(l);
    free(only);
    data_close(files);
    engine_free(e);
    model_free(m);
    data_close(data);
    arena_free(&memory);
    recipe_free(&s);
    return status;
}
