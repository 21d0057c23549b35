/* export.c - writes ONNX, or a folder with weights and settings for timm.
 * SPDX-License-Identifier: MIT
 *
 * exported_open() makes the network of a run and loads its weights; models/onnx.h writes the graph.
 * A folder is written under a temporary name and renamed. */
#include "train/export.h"

#include <stdio.h>
#include <string.h>

#include "backends.h"
#include "models/onnx.h"
#include "models/timm.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/checkpoint_files.h"
#include "train/eval_run.h"
#include "train/image_options.h"
#include "train/network.h"
#include "train/run_folder.h"
#include "train/run_missing.h"

/* The network of a checkpoint with its weights in host memory. */
typedef struct exported {
    train_settings settings;
    model *model;
    engine *engine;
    network_facts facts;
} exported;

static void exported_close(exported *x)
{
    engine_free(x->engine);
    model_free(x->model);
    recipe_free(&x->settings);
}

static berlu_status exported_open(exported *x, const export_request *r)
{
    char weights[CHECKPOINT_PATH];
    run_facts facts;
    engine_options o = {.mode = ENGINE_INFER, .batch = 1, .threads = 1};
    *x = (exported){0};
    recipe_init(&x->settings);
    if (!run_exists(r->run))
        return run_missing(r->run);
    TRY(run_settings(&x->settings, &facts, r->run));
    TRY(network_weights(weights, sizeof weights, r->run, r->which, r->ema ? "ema.safetensors" : "model.safetensors",
                        r->log));
    if (facts.format > 0)
        TRY(run_record_check(&x->settings, weights));
    TRY(network_create(&x->model, &x->settings, (size_t)x->settings.classes));
    TRY(backend_find(&o.backend, "cpu"));
    TRY(engine_create(&x->engine, x->model->graph, &o));
    TRY(weights_load_path(x->engine, weights));
    network_describe(&x->facts, &x->model->config, x->settings.mean, x->settings.std);
    return BERLU_OK;
}

static berlu_status activations_write(text *out, const model *m)
{
    for (int i = 0; i < m->act_count; i++)
        text_add(out, "%s%s", i ? "\n" : "", berlu_act_spec(m->acts[i]));
    return text_status(out);
}

berlu_status export_onnx(const export_request *r, const char *file, int functions)
{
    exported x;
    text acts = {0};
    st_text all[NETWORK_FACTS + 1];
    size_t count = 0;
    berlu_status status;
    TRY_DONE(exported_open(&x, r));
    TRY_DONE(activations_write(&acts, x.model));
    if (acts.length)
        all[count++] = (st_text){CHECKPOINT_ACTIVATION, acts.data};
    for (size_t i = 0; i < x.facts.count; i++)
        all[count++] = x.facts.list[i];
    TRY_DONE(model_write_onnx(file, x.model, x.engine,
                              &(onnx_options){.functions = functions, .metadata = all, .texts = count}));
done:
    text_free(&acts);
    exported_close(&x);
    return status;
}

/* Writes both files under a temporary name first: a folder that has its final name is complete. */
static berlu_status folder_write(const char *folder, exported *x, const text *config)
{
    char part[CHECKPOINT_PATH];
    folder_handle in;
    int length = snprintf(part, sizeof part, "%s.part", folder);
    if (length < 0 || (size_t)length >= sizeof part)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    TRY(folder_remove(part));
    TRY(folder_make(part));
    TRY(folder_hold(&in, part));
    berlu_status status =
        weights_write(&in, "model.safetensors", x->engine, ARRAY_WEIGHT, x->facts.list, x->facts.count);
    if (status == BERLU_OK)
        status = file_write_atomic_in(&in, "config.json", config->data, config->length);
    folder_release(&in);
    if (status == BERLU_OK)
        status = path_rename(part, folder);
    if (status == BERLU_OK)
        return BERLU_OK;
    kept_failure first;
    failure_keep(&first, status);
    (void)folder_remove(part);
    return failure_report(&first);
}

berlu_status export_timm(const export_request *r, const char *folder)
{
    exported x;
    text config = {0};
    char name[CHECKPOINT_PATH];
    snprintf(name, sizeof name, "%s", folder);
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
        name[end - 1] = 0;
    if (folder_exists(name) || file_exists(name))
        return berlu_fail(BERLU_ERR_ARG, "%s: is there already; give the name of a folder to be made", name);
    berlu_status status;
    TRY_DONE(exported_open(&x, r));
    const timm_images images = {.mean = x.settings.mean,
                                .std = x.settings.std,
                                .filter = x.settings.interpolation == RECIPE_BILINEAR ? "bilinear" : "bicubic",
                                .mode = image_options_squashed(&x.settings, x.model->config.image_size) ? "squash"
                                                                                                        : "center",
                                .crop_pct = x.settings.crop_pct};
    TRY_DONE(timm_config(&config, x.model, &images));
    TRY_DONE(folder_write(name, &x, &config));
done:
    text_free(&config);
    exported_close(&x);
    return status;
}
