/* eval_run.c - see eval_run.h. SPDX-License-Identifier: MIT */
#include "train/eval_run.h"

#include <string.h>

#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/image_options.h"
#include "train/network.h"
#include "train/run_folder.h"
#include "train/run_missing.h"

/* What was asked for. The numbers of classes are what the network learned and stay, in their order; a list of labels, their
 * kind and how many files may be broken are of one set. */
static berlu_status data_settings(const eval_request *r, train_settings *s)
{
    berlu_status status = r->data ? recipe_set(s, "data", r->data) : BERLU_OK;
    static const char *const of_one_set[][2] = {{"val_labels", ""}, {"labels", "fine"}, {"max_bad", "-1"}};
    for (size_t i = 0; status == BERLU_OK && r->data && i < sizeof of_one_set / sizeof of_one_set[0]; i++)
        status = recipe_set(s, of_one_set[i][0], of_one_set[i][1]);
    for (size_t i = 0; status == BERLU_OK && i < r->setting_count; i++)
        status = recipe_set(s, r->settings[i][0], r->settings[i][1]);
    return status;
}

/* The settings that describe the network and its images, and where its weights are. */
static berlu_status request_settings(const eval_request *r, train_settings *s, char weights[CHECKPOINT_PATH])
{
    if (!r->weights) {
        if (!run_exists(r->run))
            return run_missing(r->run);
        berlu_status status = run_settings(s, r->run);
        if (status == BERLU_OK)
            status = data_settings(r, s);
        const char *file = r->ema ? "ema.safetensors" : "model.safetensors";
        return status == BERLU_OK ? network_weights(weights, CHECKPOINT_PATH, r->run, r->which, file) : status;
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

static berlu_status images_open(loader **out, data_source *data, const train_settings *s, const eval_request *r,
                                int side)
{
    loader_options o = {.split = r->train_split ? DATA_TRAIN : DATA_TEST, .batch = (size_t)r->batch};
    if (s->holdout) {
        o.split = DATA_TRAIN;
        o.part = r->train_split ? PART_KEPT : PART_HELD;
        o.holdout = (size_t)s->holdout;
    }
    if (data_describe(data)->images[o.split] == 0)
        return berlu_fail(BERLU_ERR_ARG, "data: %s has no %s images", s->data, data_split_names[o.split]);
    normalization n;
    berlu_status status = image_options_idle(s, data_describe(data), side, 0);
    if (status == BERLU_OK)
        status = normalization_find(&n, s, data);
    if (status != BERLU_OK)
        return status;
    memcpy(o.mean, n.mean, sizeof o.mean);
    memcpy(o.std, n.std, sizeof o.std);
    status = image_options_eval(&o.augment, s, side);
    return status == BERLU_OK ? loader_open(out, data, &o) : status;
}

berlu_status eval_run(const eval_request *r, score *out)
{
    char weights[CHECKPOINT_PATH];
    train_settings s;
    data_source *data = NULL;
    model *m = NULL;
    engine *e = NULL;
    loader *l = NULL;
    size_t classes;
    engine_options o = {.mode = ENGINE_INFER, .batch = r->batch, .threads = r->threads};
    recipe_init(&s);
    berlu_status status = request_settings(r, &s, weights);
    if (status == BERLU_OK)
        status = recipe_idle(&s);
    if (status == BERLU_OK)
        status = network_data(&data, &classes, &s, NULL);
    if (status == BERLU_OK)
        status = network_create(&m, &s, classes);
    if (status == BERLU_OK)
        status = network_backend(&o.backend, &s);
    if (status == BERLU_OK)
        status = engine_create(&e, m->graph, &o);
    if (status == BERLU_OK)
        status = weights_load_path(e, weights);
    if (status == BERLU_OK)
        status = images_open(&l, data, &s, r, m->config.image_size);
    if (status == BERLU_OK)
        status = evaluate(e, l, out, NULL, r->tick, r->context);
    loader_close(l);
    engine_free(e);
    model_free(m);
    data_close(data);
    recipe_free(&s);
    return status;
}
