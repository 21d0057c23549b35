/* recipe.c - the table of settings and how a value gets in and out of it. SPDX-License-Identifier: MIT
 *
 * Read the table first; presets and conflicts are in preset.c, JSON and printing in recipe_text.c. */
#include "train/recipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(train_settings, field)
#define MANY      1e15

static const char *const layer_or_channel[] = {"layer", "channel", NULL};
static const char *const optimizers[] = {"adamw", "sgd", NULL};
static const char *const augments[] = {"none", "crop-flip", "deit", "convnext", NULL};
static const char *const normalizations[] = {"own", "imagenet", NULL};
static const char *const distillations[] = {"none", "hard", "soft", NULL};
static const char *const keeps[] = {"input", "both", "output", NULL};
static const char *const devices[] = {"cpu", "cuda", NULL};

/* clang-format off */
const setting train_settings_table[] = {
    /* what is trained */
    {"model", SETTING_TEXT, AT(model), "", 0, 0, NULL, "NAME", "the network, for example vit_micro or vit_tiny_cifar", 0},
    {"data", SETTING_TEXT, AT(data), "", 0, 0, NULL, "DATA", "synthetic, a folder or archive, or KIND:PATH", 0},
    {"act", SETTING_LIST, AT(act), "", 0, 0, NULL, "ACT", "activation NAME[:key=value,...]; once, or once per site", 0},
    {"run", SETTING_TEXT, AT(run), "", 0, 0, NULL, "DIR", "where the run is kept", 1},
    {"recipe", SETTING_CHOICE, AT(recipe), "paper", 0, 0, recipe_names, "NAME", "preset for everything not given", 1},
    {"image_size", SETTING_COUNT, AT(image_size), "0", 0, 4096, NULL, "N", "side of the input; 0: the model's own", 0},
    {"patch", SETTING_COUNT, AT(patch), "0", 0, 4096, NULL, "N", "patch size; 0: the model's own", 0},
    {"stride", SETTING_COUNT, AT(stride), "0", 0, 4096, NULL, "N", "stride of TNT's pixel embedding; 0: the model's own", 0},
    {"stem", SETTING_COUNT, AT(stem), "0", 0, 4, NULL, "1|2|4", "stem of ConvNeXt; 0: the model's own", 0},
    {"classes", SETTING_COUNT, AT(classes), "0", 0, 1000000, NULL, "N", "0: as many as the data has", 0},
    {"drop_path", SETTING_REAL, AT(drop_path), "0", 0, 0.99, NULL, "P", "stochastic depth of the last block", 0},
    {"init_std", SETTING_REAL, AT(init_std), "0", 0, 10, NULL, "S", "deviation of initial weights; 0: the model's own", 0},
    {"init_std_fc1", SETTING_REAL, AT(init_std_fc1), "0", 0, 10, NULL, "S", "the same for fc1 alone, in front of the activation", 0},
    {"act_params", SETTING_CHOICE, AT(act_per_channel), "layer", 0, 0, layer_or_channel, "WHICH", "learned parameters per layer or per channel", 0},
    /* optimizer */
    {"optimizer", SETTING_CHOICE, AT(optimizer), "adamw", 0, 0, optimizers, "NAME", "update rule", 0},
    {"lr", SETTING_REAL, AT(lr), "auto", 0, 1e6, NULL, "LR", "peak learning rate; auto: 1e-3 * images per update / 1024", 0},
    {"weight_decay", SETTING_REAL, AT(weight_decay), "0.05", 0, 1e6, NULL, "D", "on matrices only, unless decay_all", 0},
    {"beta1", SETTING_REAL, AT(beta1), "0.9", 0, 0.999999, NULL, "B", "AdamW", 0},
    {"beta2", SETTING_REAL, AT(beta2), "0.999", 0, 0.999999999, NULL, "B", "AdamW", 0},
    {"adam_eps", SETTING_REAL, AT(adam_eps), "1e-8", 0, 1, NULL, "E", "AdamW", 0},
    {"momentum", SETTING_REAL, AT(momentum), "0.9", 0, 0.999999, NULL, "M", "SGD", 0},
    {"nesterov", SETTING_FLAG, AT(nesterov), "0", 0, 1, NULL, NULL, "SGD", 0},
    {"clip", SETTING_REAL, AT(clip), "1", 0, 1e30, NULL, "C", "largest norm of all gradients; 0: no limit", 0},
    {"decay_all", SETTING_FLAG, AT(decay_all), "0", 0, 1, NULL, NULL, "decay every parameter, norms and alpha too", 0},
    {"act_lr", SETTING_REAL, AT(act_lr), "1", 0, 1e6, NULL, "X", "learning rate of activation parameters, as a multiple", 0},
    {"act_decay", SETTING_REAL, AT(act_decay), "0", 0, 1e6, NULL, "D", "weight decay of activation parameters", 0},
    {"act_freeze", SETTING_FLAG, AT(act_freeze), "0", 0, 1, NULL, NULL, "activation parameters do not learn", 0},
    {"act_constraint", SETTING_TEXT, AT(act_constraint), "none", 0, 0, NULL, "RULE", "none, or alpha:LOW:HIGH and eps:LOW:HIGH, joined by commas", 0},
    /* schedule */
    {"schedule", SETTING_CHOICE, AT(schedule), "cosine-step", 0, 0, schedule_names, "NAME", "how the learning rate moves", 0},
    {"epochs", SETTING_COUNT, AT(epochs), "100", 1, 1e9, NULL, "N", "passes over the data", 0},
    {"warmup", SETTING_REAL, AT(warmup), "5", 0, 1e9, NULL, "EPOCHS", "linear warm-up", 0},
    {"warmup_lr", SETTING_REAL, AT(warmup_lr), "1e-6", 0, 1e6, NULL, "LR", "where the warm-up starts", 0},
    {"min_lr", SETTING_REAL, AT(min_lr), "1e-5", 0, 1e6, NULL, "LR", "where the schedule ends", 0},
    {"step_every", SETTING_REAL, AT(step_every), "30", 0, 1e9, NULL, "EPOCHS", "schedule step", 0},
    {"step_factor", SETTING_REAL, AT(step_factor), "0.1", 0, 1e6, NULL, "F", "schedule step", 0},
    /* batches and pictures */
    {"batch", SETTING_COUNT, AT(batch), "1024", 1, 1e7, NULL, "N", "images per pass", 0},
    {"accumulate", SETTING_COUNT, AT(accumulate), "1", 1, 1e6, NULL, "N", "passes per update", 0},
    {"eval_batch", SETTING_COUNT, AT(eval_batch), "100", 1, 1e7, NULL, "N", "images per pass of an evaluation", 0},
    {"augment", SETTING_CHOICE, AT(augment), "none", 0, 0, augments, "NAME", "what is done to training images", 0},
    {"repeats", SETTING_COUNT, AT(repeats), "1", 1, 64, NULL, "N", "repeated augmentation", 0},
    {"mixup", SETTING_REAL, AT(mixup), "0", 0, 1000, NULL, "A", "alpha of mixup; 0: off", 0},
    {"cutmix", SETTING_REAL, AT(cutmix), "0", 0, 1000, NULL, "A", "alpha of cutmix; 0: off", 0},
    {"mix_prob", SETTING_REAL, AT(mix_prob), "1", 0, 1, NULL, "P", "how often a batch is mixed", 0},
    {"mix_switch", SETTING_REAL, AT(mix_switch), "0.5", 0, 1, NULL, "P", "share of cutmix where both are on", 0},
    {"mix_group", SETTING_COUNT, AT(mix_group), "0", 0, 1e7, NULL, "N", "images that share a draw; 0: 256 where it divides the batch", 0},
    {"smoothing", SETTING_REAL, AT(smoothing), "0", 0, 0.999, NULL, "S", "label smoothing", 0},
    {"normalize", SETTING_CHOICE, AT(normalize), "own", 0, 0, normalizations, "WHICH", "mean and deviation of the set, or ImageNet's", 0},
    {"holdout", SETTING_COUNT, AT(holdout), "0", 0, MANY, NULL, "N", "training images kept for evaluation instead of the test split", 0},
    {"max_bad", SETTING_COUNT, AT(max_bad), "-1", -1, MANY, NULL, "N", "broken files that are skipped; -1: one in a thousand", 1},
    {"workers", SETTING_COUNT, AT(workers), "0", 0, 1024, NULL, "N", "threads that prepare images; 0: as many as cores", 1},
    {"synthetic_images", SETTING_COUNT, AT(synthetic_images), "10000", 1, MANY, NULL, "N", "training images of data synthetic", 0},
    /* what else acts on the loss and the weights */
    {"teacher", SETTING_TEXT, AT(teacher), "", 0, 0, NULL, "RUN|MODEL:FILE", "whom a distilled model learns from", 0},
    {"distill", SETTING_CHOICE, AT(distill), "none", 0, 0, distillations, "HOW", "none, hard labels or soft ones", 0},
    {"distill_alpha", SETTING_REAL, AT(distill_alpha), "0.5", 0, 1, NULL, "A", "share of the teacher in the loss", 0},
    {"distill_tau", SETTING_REAL, AT(distill_tau), "1", 1e-6, 1e6, NULL, "T", "temperature of soft labels", 0},
    {"ema", SETTING_REAL, AT(ema), "0", 0, 0.99999999, NULL, "D", "decay of the averaged weights; 0: none are kept", 0},
    /* the run itself */
    {"seed", SETTING_COUNT, AT(seed), "0", 0, 9e15, NULL, "N", "of weights, order, augmentation, drop path", 0},
    {"max_steps", SETTING_COUNT, AT(max_steps), "0", 0, MANY, NULL, "N", "stop after so many updates; the schedule stays", 1},
    {"checkpoint_every", SETTING_COUNT, AT(checkpoint_every), "0", 0, MANY, NULL, "STEPS", "besides one per epoch", 1},
    {"keep", SETTING_CHOICE, AT(keep), "input", 0, 0, keeps, "WHICH", "what an activation keeps for the backward pass", 0},
    {"device", SETTING_CHOICE, AT(device), "cpu", 0, 0, devices, "WHICH", "where the network runs", 0},
    {"threads", SETTING_COUNT, AT(threads), "0", 0, 4096, NULL, "N", "0: as many as cores", 1},
    {"overfit_batch", SETTING_FLAG, AT(overfit_batch), "0", 0, 1, NULL, NULL, "train on the first batch alone, as a check", 0},
};
/* clang-format on */
const size_t train_settings_count = COUNT(train_settings_table);
_Static_assert(COUNT(train_settings_table) <= RECIPE_KEYS_MAX, "train_settings.given is too short");

void recipe_init(train_settings *s)
{
    *s = (train_settings){0};
}

void recipe_free(train_settings *s)
{
    arena_free(&s->memory);
    *s = (train_settings){0};
}

const setting *recipe_find(const char *key)
{
    for (const setting *row = train_settings_table; row < train_settings_table + train_settings_count; row++) {
        size_t i = 0;
        while (row->key[i] && (key[i] == row->key[i] || (key[i] == '-' && row->key[i] == '_')))
            i++;
        if (!row->key[i] && !key[i])
            return row;
    }
    return NULL;
}

static berlu_status fail_unknown(const char *key)
{
    const char *names[RECIPE_KEYS_MAX + 1] = {0};
    for (size_t i = 0; i < train_settings_count; i++)
        names[i] = train_settings_table[i].key;
    const char *near = nearest_name(key, names);
    return berlu_fail(BERLU_ERR_ARG, "%s: there is no such setting%s%s%s", key, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "");
}

static berlu_status fail_choice(const setting *row, const char *value)
{
    char list[256] = "";
    for (const char *const *c = row->choices; *c; c++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", *c);
    return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is none of %s", row->key, value, list);
}

/* The recipe's choice is kept as its text, all others as their number. */
static berlu_status set_choice(train_settings *s, const setting *row, const char *value)
{
    for (int64_t i = 0; row->choices[i]; i++) {
        if (strcmp(value, row->choices[i]) != 0)
            continue;
        if (row->choices == recipe_names)
            *(const char **)((char *)s + row->offset) = row->choices[i];
        else
            *(int64_t *)((char *)s + row->offset) = i;
        return BERLU_OK;
    }
    return fail_choice(row, value);
}

static berlu_status set_number(train_settings *s, const setting *row, const char *value)
{
    double number;
    if (row->kind == SETTING_REAL && strcmp(value, "auto") == 0 && strcmp(row->value, "auto") == 0) {
        *(double *)((char *)s + row->offset) = NAN;
        return BERLU_OK;
    }
    if (!number_parse(value, &number))
        return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is not a number", row->key, value);
    if (!(number >= row->least && number <= row->most))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s lies outside %g to %g", row->key, value, row->least, row->most);
    if (row->kind == SETTING_REAL) {
        *(double *)((char *)s + row->offset) = number;
        return BERLU_OK;
    }
    if (number != floor(number))
        return berlu_fail(BERLU_ERR_ARG, "%s: %s is not a whole number", row->key, value);
    *(int64_t *)((char *)s + row->offset) = (int64_t)number;
    return BERLU_OK;
}

static berlu_status set_flag(train_settings *s, const setting *row, const char *value)
{
    static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(value, words[i]) == 0) {
            *(int64_t *)((char *)s + row->offset) = i % 2;
            return BERLU_OK;
        }
    return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is neither true nor false", row->key, value);
}

static berlu_status set_text(train_settings *s, const setting *row, const char *value)
{
    const char *copy = arena_strdup(&s->memory, value);
    if (!copy)
        return BERLU_ERR_MEMORY;
    if (row->kind == SETTING_TEXT) {
        *(const char **)((char *)s + row->offset) = copy;
        return BERLU_OK;
    }
    if (s->acts == RECIPE_ACTS_MAX)
        return berlu_fail(BERLU_ERR_ARG, "%s: more than %d", row->key, RECIPE_ACTS_MAX);
    s->act[s->acts++] = copy;
    return BERLU_OK;
}

berlu_status recipe_fill(train_settings *s, const setting *row, const char *value)
{
    switch (row->kind) {
    case SETTING_TEXT:
    case SETTING_LIST:
        return set_text(s, row, value);
    case SETTING_CHOICE:
        return set_choice(s, row, value);
    case SETTING_FLAG:
        return set_flag(s, row, value);
    default:
        return set_number(s, row, value);
    }
}

berlu_status recipe_set(train_settings *s, const char *key, const char *value)
{
    const setting *row = recipe_find(key);
    if (!row)
        return fail_unknown(key);
    berlu_status status = recipe_fill(s, row, value);
    if (status == BERLU_OK)
        s->given[row - train_settings_table] = 1;
    return status;
}

int recipe_given(const train_settings *s, const char *key)
{
    const setting *row = recipe_find(key);
    return row && s->given[row - train_settings_table];
}

static berlu_status set_item(train_settings *s, const yaml_tree *tree, const setting *row, const yaml_item *item)
{
    if (item->kind == YAML_LIST && row->kind == SETTING_LIST) {
        for (const yaml_item *part = item->first; part; part = part->next) {
            berlu_status status = set_item(s, tree, row, part);
            if (status != BERLU_OK)
                return status;
        }
        return BERLU_OK;
    }
    if (item->kind != YAML_TEXT)
        return yaml_fail(tree, item, "%s takes one value", row->key);
    berlu_status status = recipe_fill(s, row, item->text);
    if (status != BERLU_ERR_ARG)
        return status;
    char place[320];
    snprintf(place, sizeof place, "%.250s:%d:%d", tree->name, item->line, item->column);
    return berlu_fail_in(BERLU_ERR_INPUT, place);
}

berlu_status recipe_set_yaml(train_settings *s, const yaml_tree *tree, const yaml_item *map)
{
    if (map->kind != YAML_MAP)
        return yaml_fail(tree, map, "settings are written as KEY: VALUE");
    for (const yaml_item *item = map->first; item; item = item->next) {
        const setting *row = recipe_find(item->key);
        if (!row) {
            fail_unknown(item->key);
            char place[320];
            snprintf(place, sizeof place, "%.250s:%d:%d", tree->name, item->line, item->column);
            return berlu_fail_in(BERLU_ERR_INPUT, place);
        }
        unsigned char *given = &s->given[row - train_settings_table];
        berlu_status status = *given ? BERLU_OK : set_item(s, tree, row, item);
        if (status != BERLU_OK)
            return status;
        *given = 1;
    }
    return BERLU_OK;
}
