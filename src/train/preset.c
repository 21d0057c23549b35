/* preset.c - presets, derived settings and conflicts between settings.
 * SPDX-License-Identifier: MIT
 *
 * `paper` has the values stated in the BerLU paper (AdamW, decay 0.05, clip 1, cosine with warm-up,
 * cross entropy, 100 epochs) and the commonest choice for what it leaves open. `deit` and
 * `convnext` follow the official scripts of those models; `plain` is minimal. Every cell is written
 * out, so that a change of a default changes no preset. */
#include <math.h>
#include <string.h>

#include "models/timm.h"
#include "train/constraint.h"
#include "train/recipe.h"

enum { AUGMENT_STRONG = 2 }; /* from here on the choices of --augment have RandAugment */

typedef struct preset_value {
    const char *key, *value;
} preset_value;

static const preset_value preset_paper[] = {
    {"epochs", "100"},
    {"optimizer", "adamw"},
    {"weight_decay", "0.05"},
    {"beta1", "0.9"},
    {"beta2", "0.999"},
    {"adam_eps", "1e-8"},
    {"clip", "1"},
    {"batch", "1024"},
    {"lr", "auto"},
    {"schedule", "cosine-step"},
    {"warmup", "5"},
    {"warmup_lr", "1e-6"},
    {"min_lr", "1e-5"},
    {"smoothing", "0"},
    {"augment", "none"},
    {"mixup", "0"},
    {"cutmix", "0"},
    {"repeats", "1"},
    {"drop_path", "0"},
    {"ema", "0"},
    {"normalize", "own"},
    {"distill", "none"},
    {NULL, NULL},
};
static const preset_value preset_deit[] = {
    {"epochs", "300"},    {"optimizer", "adamw"}, {"weight_decay", "0.05"},
    {"beta1", "0.9"},     {"beta2", "0.999"},     {"adam_eps", "1e-8"},
    {"clip", "0"},        {"batch", "1024"},      {"lr", "auto"},
    {"schedule", "deit"}, {"warmup", "5"},        {"warmup_lr", "1e-6"},
    {"min_lr", "1e-5"},   {"smoothing", "0.1"},   {"augment", "deit"},
    {"mixup", "0.8"},     {"cutmix", "1"},        {"repeats", "3"},
    {"drop_path", "0.1"}, {"ema", "0.99996"},     {"normalize", "imagenet"},
    {"distill", "none"},  {NULL, NULL},
};
static const preset_value preset_convnext[] = {
    {"epochs", "300"},
    {"optimizer", "adamw"},
    {"weight_decay", "0.05"},
    {"beta1", "0.9"},
    {"beta2", "0.999"},
    {"adam_eps", "1e-8"},
    {"clip", "0"},
    {"batch", "4096"},
    {"lr", "4e-3"}, /* the script does not scale it with the batch */
    {"schedule", "convnext"},
    {"warmup", "20"},
    {"warmup_lr", "0"},
    {"min_lr", "1e-6"},
    {"smoothing", "0.1"},
    {"augment", "convnext"},
    {"mixup", "0.8"},
    {"cutmix", "1"},
    {"repeats", "1"},
    {"drop_path", "0.1"},
    {"ema", "0.9999"},
    {"normalize", "imagenet"},
    {"distill", "none"},
    {NULL, NULL},
};
static const preset_value preset_plain[] = {
    {"epochs", "100"},
    {"optimizer", "adamw"},
    {"weight_decay", "0.01"},
    {"beta1", "0.9"},
    {"beta2", "0.999"},
    {"adam_eps", "1e-8"},
    {"clip", "0"},
    {"batch", "128"},
    {"lr", "1e-3"},
    {"schedule", "constant"},
    {"warmup", "0"},
    {"warmup_lr", "0"},
    {"min_lr", "0"},
    {"smoothing", "0"},
    {"augment", "none"},
    {"mixup", "0"},
    {"cutmix", "0"},
    {"repeats", "1"},
    {"drop_path", "0"},
    {"ema", "0"},
    {"normalize", "own"},
    {"distill", "none"},
    {NULL, NULL},
};

const char *const recipe_names[] = {"paper", "deit", "convnext", "plain", NULL};
static const preset_value *const presets[] = {preset_paper, preset_deit, preset_convnext, preset_plain};

/* One batch repeated, without randomness or regularization: its loss must fall to zero. */
static const preset_value overfit[] = {
    {"epochs", "1"},       {"schedule", "constant"}, {"warmup", "0"},    {"warmup_lr", "0"},
    {"weight_decay", "0"}, {"augment", "none"},      {"mixup", "0"},     {"cutmix", "0"},
    {"smoothing", "0"},    {"repeats", "1"},         {"drop_path", "0"}, {"holdout", "0"},
    {"ema", "0"},          {"batch", "32"},          {"lr", "2e-3"},     {NULL, NULL},
};

static const char *preset_find(const preset_value *preset, const char *key)
{
    for (; preset->key; preset++)
        if (strcmp(preset->key, key) == 0)
            return preset->value;
    return NULL;
}

static const preset_value *preset_named(const char *name)
{
    for (size_t i = 0; recipe_names[i]; i++)
        if (strcmp(recipe_names[i], name) == 0)
            return presets[i];
    return NULL;
}

/* Fills settings that were not given, from the overfit check, the preset or the table, in this
 * order. */
static berlu_status fill_rest(train_settings *s)
{
    if (!s->recipe)
        s->recipe = recipe_names[0];
    const preset_value *preset = preset_named(s->recipe);
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (s->given[i] || row->choices == recipe_names || row->kind == SETTING_LIST)
            continue;
        const char *value = s->overfit_batch ? preset_find(overfit, row->key) : NULL;
        value = value ? value : preset_find(preset, row->key);
        TRY(recipe_fill(s, row, value ? value : row->value));
    }
    return BERLU_OK;
}

/* A preset's warm-up is scaled with the run where the run is shorter than the warm-up. */
static void derive(train_settings *s)
{
    double epochs = (double)s->epochs, usual = 0;
    const char *whole = preset_find(preset_named(s->recipe), "epochs");
    if (!recipe_present(s, "warmup") && s->warmup >= epochs && number_parse(whole, &usual))
        s->warmup = s->warmup / usual * epochs;
    if (s->device == RECIPE_CUDA && !recipe_present(s, "eval_batch"))
        s->eval_batch = 1024; /* the CPU's 100 would leave a GPU idle */
    if (isnan(s->lr))
        s->lr = 1e-3 * (double)(s->batch * s->accumulate) / 1024;
    if (!recipe_present(s, "min_lr")) /* the default may exceed the peak of a small batch */
        s->min_lr = fmin(s->min_lr, s->lr);
}

typedef struct idle_rule {
    const char *key, *because;
    int idle;
} idle_rule;
enum { IDLE_RULES = 31 };

static void idle_rules(const train_settings *s, idle_rule out[IDLE_RULES])
{
    const idle_rule rules[] = {
        {"momentum", "optimizer is adamw", s->optimizer == RECIPE_ADAMW},
        {"nesterov", "optimizer is adamw", s->optimizer == RECIPE_ADAMW},
        {"nesterov", "momentum is 0", s->momentum == 0 && s->nesterov},
        {"min_lr", "schedule is constant", s->schedule == SCHEDULE_CONSTANT},
        {"beta1", "optimizer is sgd", s->optimizer == RECIPE_SGD},
        {"beta2", "optimizer is sgd", s->optimizer == RECIPE_SGD},
        {"adam_eps", "optimizer is sgd", s->optimizer == RECIPE_SGD},
        {"step_every", "schedule is not step", s->schedule != SCHEDULE_STEP},
        {"step_factor", "schedule is not step", s->schedule != SCHEDULE_STEP},
        {"mix_prob", "mixup and cutmix are 0", s->mixup == 0 && s->cutmix == 0},
        {"mix_group", "mixup and cutmix are 0", s->mixup == 0 && s->cutmix == 0},
        {"mix_switch", "mixup and cutmix are not both on", s->mixup == 0 || s->cutmix == 0},
        {"teacher", "distill is none", s->distill == RECIPE_DISTILL_NONE},
        {"teacher_act", "distill is none", s->distill == RECIPE_DISTILL_NONE},
        {"distill_alpha", "distill is none", s->distill == RECIPE_DISTILL_NONE},
        {"distill_tau", "distill is not soft", s->distill != RECIPE_DISTILL_SOFT},
        {"act_lr", "act_freeze is set", s->act_freeze},
        {"act_decay", "act_freeze is set", s->act_freeze},
        {"act_constraint", "act_freeze is set", s->act_freeze},
        {"decay_all", "weight_decay is 0", s->weight_decay == 0 && s->decay_all},
        {"warmup_lr", "warmup is 0", s->warmup == 0},
        {"jitter", "RandAugment of this --augment takes its place", s->augment >= AUGMENT_STRONG},
        {"hue", "RandAugment of this --augment takes its place", s->augment >= AUGMENT_STRONG},
        {"crop_pct", "eval_crop is squash", s->eval_crop == RECIPE_CROP_SQUASH},
        {"normalize", "mean and std are given", *s->mean || *s->std},
        {"synthetic_images", "data is not synthetic", s->data && strcmp(s->data, "synthetic") != 0},
        {"precision", "device is cpu", s->device == RECIPE_CPU},
        {"residual", "device is cpu", s->device == RECIPE_CPU},
        {"residual", "precision is not bf16", s->precision != RECIPE_BF16},
        {"algorithms", "device is cpu", s->device == RECIPE_CPU},
        {"init_sha256", "init names no file", !s->init || !*s->init},
    };
    _Static_assert(COUNT(rules) == IDLE_RULES, "the table of rules has another length");
    memcpy(out, rules, sizeof rules);
}

/* overfit_batch fixes the settings of its preset, except these. */
static int overfit_fixes(const train_settings *s, const char *key)
{
    static const char *const may[] = {"batch", "lr", "weight_decay"};
    for (size_t k = 0; k < COUNT(may); k++)
        if (strcmp(may[k], key) == 0)
            return 0;
    return s->overfit_batch && preset_find(overfit, key) != NULL;
}

void recipe_idle_rows(const train_settings *s, unsigned char idle[RECIPE_KEYS_MAX])
{
    idle_rule rules[IDLE_RULES];
    idle_rules(s, rules);
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].idle)
            idle[recipe_find(rules[i].key) - train_settings_table] = 1;
    for (size_t i = 0; i < train_settings_count; i++)
        idle[i] |= (unsigned char)overfit_fixes(s, train_settings_table[i].key);
}

/* Refuses settings without effect: silence would hide the user's mistake. */
berlu_status recipe_idle(const train_settings *s)
{
    idle_rule rules[IDLE_RULES];
    idle_rules(s, rules);
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].idle && recipe_given(s, rules[i].key))
            return berlu_fail(BERLU_ERR_ARG, "%s: has no effect because %s; leave one of them out", rules[i].key,
                              rules[i].because);
    for (size_t i = 0; i < train_settings_count; i++)
        if (s->given[i] == GIVEN && overfit_fixes(s, train_settings_table[i].key))
            return berlu_fail(BERLU_ERR_ARG, "%s: overfit_batch fixes it; leave it out", train_settings_table[i].key);
    return BERLU_OK;
}

static berlu_status check_mix(const train_settings *s)
{
    if (s->mixup == 0 && s->cutmix == 0)
        return BERLU_OK;
    if (s->batch % 2)
        return berlu_fail(BERLU_ERR_ARG, "batch: mixup and cutmix pair images, so %lld must be even",
                          (long long)s->batch);
    if (s->mix_group && (s->mix_group % 2 || s->batch % s->mix_group))
        return berlu_fail(BERLU_ERR_ARG, "mix_group: %lld must be even and divide the batch of %lld",
                          (long long)s->mix_group, (long long)s->batch);
    return BERLU_OK;
}

static berlu_status check(const train_settings *s)
{
    if (!*s->model)
        return berlu_fail(BERLU_ERR_ARG, "model: say which network to train, for example --model vit_micro");
    if (!*s->data)
        return berlu_fail(BERLU_ERR_ARG, "data: say what to train on, for example --data synthetic");
    if (s->acts == 0 && strcmp(s->model, "linear") != 0) /* the only network without an activation */
        return berlu_fail(BERLU_ERR_ARG, "act: say which activation to use, for example --act berlu");
    if (s->distill != RECIPE_DISTILL_NONE && !*s->teacher)
        return berlu_fail(BERLU_ERR_ARG, "distill: needs a teacher, --teacher RUN or --teacher MODEL:FILE");
    if (s->beta1 == 0 && s->beta2 == 0 && s->adam_eps == 0)
        return berlu_fail(BERLU_ERR_ARG, "adam_eps: betas and eps cannot all be 0");
    if (!(s->lr > 0))
        return berlu_fail(BERLU_ERR_ARG, "lr: with 0 nothing is learned; give a rate above it, or leave --lr out");
    if (s->min_lr > s->lr && s->schedule != SCHEDULE_CONSTANT)
        return berlu_fail(BERLU_ERR_ARG, "min_lr: %g is above lr, %g, where the schedule begins to fall; lower it",
                          s->min_lr, s->lr);
    TRY(recipe_idle(s));
    TRY(check_mix(s));
    constraint bounds;
    TRY(constraint_parse(&bounds, s->act_constraint));
    return constraint_idle(s->act_constraint, s->act, s->acts);
}

berlu_status recipe_complete(train_settings *s)
{
    TRY(fill_rest(s));
    s->model = model_canonical(s->model); /* run.json has one name per network */
    if (!*s->mean != !*s->std)
        return berlu_fail(BERLU_ERR_ARG, "%s: mean and std belong together; give both", *s->mean ? "std" : "mean");
    derive(s);
    return BERLU_OK;
}

berlu_status recipe_resolve(train_settings *s)
{
    TRY(recipe_complete(s));
    return check(s);
}
