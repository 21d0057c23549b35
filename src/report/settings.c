/* settings.c - see settings.h. SPDX-License-Identifier: MIT
 *
 * A run's settings are the JSON object of its run.json; a cell's are the lines "key=value" of its
 * file and axes. Imported results may have neither. */
#include "report/settings.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <berlu/act.h>

#include "base/text.h"

enum { PAPER_EPOCHS = 100 };

/* Settings of recipe `paper` (recipes: docs/training.md) that change results. A cell with another
 * value is not a cell of the paper's tables. Settings that a run does not record are not compared.
 * */
static const struct {
    const char *key, *value;
} pins[] = {{"lr", "0.001"},           {"batch", "1024"},   {"weight_decay", "0.05"}, {"clip", "1"},
            {"warmup", "5"},           {"augment", "none"}, {"mixup", "0"},           {"cutmix", "0"},
            {"smoothing", "0"},        {"ema", "0"},        {"drop_path", "0"},       {"init_std", "0.02"},
            {"init_std_fc1", "0.02"},  {"holdout", "0"},    {"act_params", "layer"},  {"act_lr", "1"},
            {"act_constraint", "none"}};

typedef struct reader {
    const view_cell *c;
    const json_t *settings; /* NULL: no run has any */
    arena *memory;
    int lost; /* an allocation failed */
} reader;

/* Notes a copy that failed; "" stands for it. */
static const char *checked(reader *r, const char *copy)
{
    r->lost |= !copy;
    return copy ? copy : "";
}

/* The first value of a key among the cell's lines "key=value", up to the end of its line; NULL when
 * there is none. */
static const char *line_of(const store_cell *c, const char *key, size_t length)
{
    for (const char *at = c->settings; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static const char *line_value(reader *r, const char *key)
{
    const char *value = line_of(r->c->of, key, strlen(key));
    return value ? checked(r, arena_printf(r->memory, "%.*s", (int)strcspn(value, "\n"), value)) : NULL;
}

/* A setting of a cell as a text, "" where neither a run nor the file has it. */
static const char *word_at(reader *r, const char *key)
{
    const json_t *value = json_object_get(r->settings, key);
    if (json_is_array(value)) /* one activation for all sites is a list of one */
        value = json_array_size(value) == 1 ? json_array_get(value, 0) : NULL;
    if (json_is_string(value))
        return checked(r, arena_strdup(r->memory, json_string_value(value)));
    if (json_is_number(value)) {
        char number[NUMBER_TEXT];
        return checked(r, arena_strdup(r->memory, number_text(number, json_number_value(value))));
    }
    const char *written = line_value(r, key);
    return written ? written : "";
}

static double number_at(reader *r, const char *key)
{
    double value;
    return number_parse(word_at(r, key), &value) ? value : NAN;
}

/* ---- what the paper would call it ------------------------------------------------------------ */

/* The models that represent the paper's rows; sizes as its text gives them. */
static const struct {
    const char *prefix, *family, *whole;
} families[] = {
    {"vit_", "vit", "vit_tiny_cifar"},
    {"deit_", "deit", "deit_tiny_distilled_cifar"},
    {"tnt_", "tnt", "tnt_s_cifar"},
    {"convnext_", "convnext", "convnext_tiny_cifar"},
};

/* The first setting that is not the paper's; NULL. */
static const char *pin_find(reader *r, const char **value)
{
    for (size_t i = 0; i < COUNT(pins); i++) {
        double is, wanted;
        *value = word_at(r, pins[i].key);
        if (!**value || strcmp(*value, pins[i].value) == 0)
            continue;
        if (!number_parse(*value, &is) || !number_parse(pins[i].value, &wanted) || is != wanted)
            return pins[i].key;
    }
    return NULL;
}

static void differs_find(view_cell *c, reader *r)
{
    const char *value, *pin = pin_find(r, &value);
    c->own_recipe = pin != NULL;
    double part = number_at(r, "train_images");
    const char *whole = "";
    c->family = "";
    for (size_t i = 0; i < COUNT(families); i++)
        if (strncmp(c->model, families[i].prefix, strlen(families[i].prefix)) == 0) {
            c->family = families[i].family;
            whole = families[i].whole;
        }
    if (strncmp(c->data, "cifar10", 7) != 0)
        c->differs = "not the paper's data";
    else if (*whole && strcmp(c->model, whole) != 0)
        c->differs = checked(r, arena_printf(r->memory, "%s is not the paper's model", c->model));
    else if (!isnan(c->epochs) && c->epochs != PAPER_EPOCHS)
        c->differs = checked(r, arena_printf(r->memory, "%g epochs, the paper's are %d", c->epochs, PAPER_EPOCHS));
    else if (part > 0)
        c->differs = checked(r, arena_printf(r->memory, "%g training images, the paper's are all", part));
    else if (pin)
        c->differs = checked(r, arena_printf(r->memory, "%s %s is not the paper's", pin, value));
    else
        c->differs = "";
}

/* Whether two texts make the same activation. */
static berlu_status act_same(const berlu_act *act, const char *spec, int *same)
{
    berlu_act *other = NULL;
    berlu_status status = berlu_act_make(&other, spec);
    *same = status == BERLU_OK && strcmp(berlu_act_spec(other), berlu_act_spec(act)) == 0;
    berlu_act_free(other);
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
}

/* Its name if every parameter is the default, and BerLU's eps if only that is not. */
static berlu_status act_find(view_cell *c, const char *spec, reader *r)
{
    berlu_act *act = NULL;
    berlu_act_param_info info;
    int same = 0;
    c->act = "";
    c->eps = NAN;
    berlu_status status = *spec ? berlu_act_make(&act, spec) : BERLU_OK;
    if (!act) /* several sites, or a missing file */
        return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
    const char *name = berlu_act_name(act);
    status = act_same(act, name, &same);
    if (same)
        c->act = checked(r, arena_strdup(r->memory, name));
    int eps = berlu_act_param_find(act, "eps");
    if (status == BERLU_OK && strcmp(name, "berlu") == 0 && berlu_act_param(act, (size_t)eps, &info) == BERLU_OK) {
        char wide[64], number[NUMBER_TEXT];
        snprintf(wide, sizeof wide, "berlu:eps=%s", number_text(number, info.value));
        status = act_same(act, wide, &same);
        c->eps = same ? info.value : NAN;
    }
    berlu_act_free(act);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void word_quoted(text *out, const char *word, size_t length)
{
    int plain = length > 0;
    for (size_t i = 0; i < length; i++)
        plain = plain && (strchr("-_./:=,+@%", word[i]) || (word[i] >= '0' && word[i] <= '9') ||
                          (word[i] >= 'a' && word[i] <= 'z') || (word[i] >= 'A' && word[i] <= 'Z'));
    text_string(out, plain ? "" : "'");
    for (size_t i = 0; i < length; i++)
        if (word[i] == '\'')
            text_string(out, "'\\''");
        else
            text_bytes(out, word + i, 1);
    text_string(out, plain ? "" : "'");
}

/* The file's settings as options of `berlu train`: short, as a person would type them. */
static berlu_status command_find(const char **found, const view_cell *c, int with_act, arena *memory)
{
    text out = {0};
    for (const char *at = c->of->settings; at && *at;) {
        size_t line = strcspn(at, "\n"), key = strcspn(at, "=");
        int is_act = strncmp(at, "act=", 4) == 0, is_workers = strncmp(at, "workers=", 8) == 0; /* changes no number */
        if (key < line && !is_workers && (with_act || !is_act)) {
            text_string(&out, " --");
            for (size_t i = 0; i < key; i++)
                text_bytes(&out, at[i] == '_' ? "-" : at + i, 1);
            text_string(&out, " ");
            word_quoted(&out, at + key + 1, line - key - 1);
        }
        at += line + (at[line] == '\n');
    }
    berlu_status status = text_status(&out);
    *found = arena_strdup(memory, out.data ? out.data : "");
    text_free(&out);
    return status == BERLU_OK && !*found ? BERLU_ERR_MEMORY : status;
}

/* Whether the cells of a group have different values of a key; no line is a value too. */
static int key_differs(const view_study *s, size_t group, const char *key, size_t length, const char *value)
{
    for (size_t c = 0; c < s->cell_count; c++) {
        const char *other = s->cells[c].group == group ? line_of(s->cells[c].of, key, length) : value;
        if (!other || strcspn(other, "\n") != strcspn(value, "\n") || strncmp(other, value, strcspn(value, "\n")) != 0)
            return 1;
    }
    return 0;
}

static int is_listed(const text *list, const char *key, size_t length)
{
    for (const char *at = list->data; at && (at = strstr(at, " ")); at++)
        if (strncmp(at + 1, key, length) == 0 && strchr(",", at[1 + length]))
            return 1;
    return 0;
}

berlu_status settings_factors(const char **found, const view_study *s, size_t group, arena *memory)
{
    text list = {0};
    for (size_t c = 0; c < s->cell_count; c++) {
        const char *at = s->cells[c].group == group ? s->cells[c].of->settings : NULL;
        for (; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
            size_t key = strcspn(at, "=\n");
            if (at[key] == '=' && !is_listed(&list, at, key) && key_differs(s, group, at, key, at + key + 1))
                text_add(&list, "%s %.*s", list.length ? "," : "", (int)key, at);
        }
    }
    berlu_status status = text_status(&list);
    *found = arena_strdup(memory, !list.length || strcmp(list.data, " act") == 0 ? "" : list.data + 1);
    text_free(&list);
    return status == BERLU_OK && !*found ? BERLU_ERR_MEMORY : status;
}

berlu_status settings_read(view_cell *c, arena *memory)
{
    json_t *settings = NULL;
    for (size_t i = 0; i < c->of->count && !settings; i++)
        if (*c->of->runs[i].settings)
            settings = json_loads(c->of->runs[i].settings, 0, NULL);
    reader r = {c, settings, memory, 0};
    c->model = word_at(&r, "model");
    c->data = word_at(&r, "data");
    double held = number_at(&r, "holdout");
    c->judged_on = held > 0 ? checked(&r, arena_printf(memory, "held-out %s", c->data)) : c->data;
    c->epochs = number_at(&r, "epochs");
    c->classes = number_at(&r, "classes");
    /* Prefers the file's spelling: a resolved one names every parameter. */
    const char *spec = line_value(&r, "act");
    berlu_status status = act_find(c, spec ? spec : word_at(&r, "act"), &r);
    differs_find(c, &r);
    if (status == BERLU_OK)
        status = command_find(&c->command, c, 1, memory);
    if (status == BERLU_OK)
        status = command_find(&c->others, c, 0, memory);
    json_decref(settings);
    return status == BERLU_OK && r.lost ? BERLU_ERR_MEMORY : status;
}
