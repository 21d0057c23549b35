/* trainer_settle.c - resolves settings: every "the model's own" becomes a value, every row without
 * effect is marked. SPDX-License-Identifier: MIT
 *
 * run.json, the checkpoints and the start-up table show resolved settings, so that a run can be
 * repeated from its record alone and compared with others by it. Resolving never changes a result:
 * each value is the one that the model, the loader or the engine would have used. */
#include <string.h>

#include "train/content.h"
#include "train/settings_hash.h"
#include "train/trainer_internal.h"

static void sizes_settle(train_settings *s, const model_config *m)
{
    s->image_size = m->image_size;
    s->patch = m->patch;
    s->stride = m->stride;
    s->stem = m->stem;
    s->classes = m->classes;
}

/* The common standard deviation of all weights that init_std applies to; 0 where there is none. */
static double own_deviation(const graph *g)
{
    double found = 0;
    for (int p = 0; p < graph_param_count(g); p++) {
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        if (!info->decay || info->init.kind != INIT_NORMAL)
            continue;
        if (found > 0 && info->init.value != found)
            return 0;
        found = info->init.value;
    }
    return found;
}

static void deviation_settle(train_settings *s, const graph *g)
{
    if (s->init_std == 0)
        s->init_std = own_deviation(g);
    if (s->init_std_fc1 == 0 && graph_site_count(g) > 0)
        s->init_std_fc1 = s->init_std;
}

static void images_settle(trainer *t)
{
    train_settings *s = &t->settings;
    int side = t->model->config.image_size;
    s->eval_crop = image_options_squashed(s, side) ? RECIPE_CROP_SQUASH : RECIPE_CROP_CENTER;
    if (s->crop_pct == 0 && s->eval_crop == RECIPE_CROP_CENTER)
        s->crop_pct = augment_crop_pct(data_describe(t->data), side);
    if (s->mix_group == 0 && (s->mixup > 0 || s->cutmix > 0))
        s->mix_group = (int64_t)mix_group_for((size_t)s->batch);
}

int learns_activations(const graph *g)
{
    for (int p = 0; p < graph_param_count(g); p++)
        if (graph_tensor(g, graph_param(g, p))->activation)
            return 1;
    return 0;
}

static void leave_out(trainer *t, const char *key, int idle)
{
    if (idle)
        t->leave_out[recipe_find(key) - train_settings_table] = 1;
}

/* Marks rows without effect for this network, this set and the other settings, and values that mean
 * "none" or "all". */
static void effect_settle(trainer *t)
{
    const train_settings *s = &t->settings;
    const data_info *info = data_describe(t->data);
    const graph *g = t->model->graph;
    static const char *const of_learned[] = {"act_lr", "act_decay", "act_freeze", "act_constraint", "act_params"};
    static const char *const zero_is_none[] = {"patch",        "stride",          "stem",        "init_std",
                                               "holdout",      "train_images",    "test_images", "max_steps",
                                               "init_std_fc1", "checkpoint_every"};
    recipe_idle_rows(s, t->leave_out);
    for (size_t i = 0; i < COUNT(of_learned); i++)
        leave_out(t, of_learned[i], !learns_activations(g));
    for (size_t i = 0; i < COUNT(zero_is_none); i++)
        leave_out(t, zero_is_none[i], recipe_is_zero(s, recipe_find(zero_is_none[i])));
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (row->kind == SETTING_TEXT)
            leave_out(t, row->key, !**(const char *const *)((const char *)s + row->offset));
    }
    leave_out(t, "act", s->acts == 0);
    leave_out(t, "max_bad", s->max_bad < 0);
    leave_out(t, "labels", strcmp(info->kind, "cifar100") != 0 && !s->labels);
    leave_out(t, "class_order", strcmp(info->class_order, "fixed") == 0);
    leave_out(t, "interpolation", !image_options_resized(s, info, t->model->config.image_size, s->augment));
}

berlu_status trainer_settle(trainer *t)
{
    train_settings *s = &t->settings;
    sizes_settle(s, &t->model->config);
    for (size_t i = 0; i < s->acts; i++)
        s->act[i] = berlu_act_spec(t->model->acts[i]);
    deviation_settle(s, t->model->graph);
    images_settle(t);
    TRY(init_settle(t));
    effect_settle(t);
    return *t->data_hash ? BERLU_OK : content_of_data(t->data_hash, t->data); /* known: train_canonical() */
}

berlu_status trainer_identify(trainer *t)
{
    settings_text(&t->settings, t->leave_out, t->data_hash, t->teacher.hash, &t->settings_text);
    TRY(text_status(&t->settings_text));
    settings_hash(t->settings_hash, t->settings_text.data);
    return BERLU_OK;
}

const char *trainer_settings_hash(const trainer *t)
{
    return t->settings_hash;
}
