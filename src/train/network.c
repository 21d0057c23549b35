/* network.c - makes model, device, data and weights from settings; opens teachers.
 * SPDX-License-Identifier: MIT
 *
 * The one place where a name in the settings becomes an object, for training, evaluation, export
 * and analyses. Weights are found from a file, a run or a checkpoint's name (network_weights); a
 * teacher is a network of its own in evaluation (teacher_open). */
#include "train/network.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends.h"
#include "base/file.h"
#include "data/sha256.h"
#include "engine/image_set.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

berlu_status network_create(model **out, const train_settings *s, size_t classes)
{
    model_options o = {
        .image_size = (int)s->image_size,
        .patch = (int)s->patch,
        .stride = (int)s->stride,
        .stem = (int)s->stem,
        .classes = (int)classes,
        .drop_path = s->drop_path,
        .per_channel = (int)s->act_params,
        .acts = s->act,
        .act_count = (int)s->acts,
    };
    return model_create(out, s->model, &o);
}

/* The user's choice, else the algorithms the run used before: equal algorithms give equal bits. */
static const char *algorithms_of(const train_settings *s)
{
    if (s->algorithms_record && !recipe_given(s, "algorithms"))
        return s->algorithms_record;
    return *s->algorithms ? s->algorithms : NULL;
}

/* Locks the folder, because the file itself is replaced by a rename. */
int network_hold_algorithms(const train_settings *s)
{
    const char *file = algorithms_of(s), *slash;
    char folder[CHECKPOINT_PATH] = ".";
    if (s->device == RECIPE_CPU || !file || file == s->algorithms_record || strcmp(file, "first") == 0 ||
        strcmp(file, "new") == 0)
        return -1;
    if ((slash = strrchr(file, '/')))
        snprintf(folder, sizeof folder, "%.*s/", (int)(slash - file), file);
    int held = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (held >= 0 && flock(held, LOCK_EX) != 0) {
        close(held);
        held = -1;
    }
    return held;
}

berlu_status network_device(engine_options *out, const train_settings *s)
{
    if (s->device == RECIPE_CPU)
        return backend_find(&out->backend, "cpu");
    out->opening = (device_options){.precision = precision_names[s->precision],
                                    .residual = residual_names[s->residual],
                                    .algorithms = algorithms_of(s)};
    return backend_find(&out->backend, "cuda");
}

berlu_status network_data(data_source **out, size_t *classes, const train_settings *s, const berlu_log *log)
{
    data_source *data;
    data_options o = {
        .class_order = s->class_order ? "timm" : "torchvision",
        .labels = s->labels ? "coarse" : NULL, /* NULL: fine, the only labels of most sets */
        .val_labels = *s->val_labels ? s->val_labels : NULL,
        .max_bad_given = s->max_bad >= 0,
        .max_bad = s->max_bad >= 0 ? (size_t)s->max_bad : 0,
        .images = (size_t)s->synthetic_images,
        .classes = strcmp(s->data, "synthetic") == 0 ? (size_t)s->classes : 0,
        .threads = (int)s->workers,
        .log = log,
    };
    TRY(data_open(&data, s->data, &o));
    size_t there = data_describe(data)->classes;
    if (s->classes && (size_t)s->classes != there) {
        data_close(data);
        return berlu_fail(BERLU_ERR_ARG, "classes: %lld, but %s has %zu; leave --classes out", (long long)s->classes,
                          s->data, there);
    }
    *classes = there;
    *out = data;
    return BERLU_OK;
}

/* Finds the newest checkpoint itself, because the link `last` may lag behind. */
static berlu_status folder_last(char out[CHECKPOINT_PATH], const char *run, int ema, const berlu_log *log)
{
    char any[CHECKPOINT_PATH];
    if (ema && checkpoint_newest(run, 0, any, NULL) == BERLU_OK && *any && !checkpoint_has_average(any))
        return berlu_fail(BERLU_ERR_INPUT, "%s: keeps no average of the weights: it was trained without --ema", run);
    TRY(checkpoint_newest(run, ema, out, log));
    if (!*out)
        return berlu_fail(BERLU_ERR_INPUT, "%s: holds no checkpoint yet", run);
    return BERLU_OK;
}

static berlu_status folder_named(char out[CHECKPOINT_PATH], const char *run, const char *which)
{
    char *end, name[64] = "best";
    if (strcmp(which, "best") != 0) {
        unsigned long long step = strtoull(which, &end, 10);
        if (which[0] < '0' || which[0] > '9' || *end)
            return berlu_fail(BERLU_ERR_ARG, "which: '%s' is not last, best or the number of a step", which);
        snprintf(name, sizeof name, "step-%08llu", step);
    }
    int length = snprintf(out, CHECKPOINT_PATH, "%s/checkpoints/%s", run, name);
    if (length < 0 || length >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", run);
    if (!folder_exists(out))
        return berlu_fail(BERLU_ERR_INPUT, "%s: there is no such checkpoint; the two newest and the best are kept",
                          out);
    return BERLU_OK;
}

berlu_status network_weights(char *out, size_t size, const char *run, const char *which, const char *file,
                             const berlu_log *log)
{
    char folder[CHECKPOINT_PATH];
    int ema = strcmp(file, "ema.safetensors") == 0, last = strcmp(which, "last") == 0;
    TRY(last ? folder_last(folder, run, ema, log) : folder_named(folder, run, which));
    if (!last)
        TRY(checkpoint_check(folder, ema));
    int length = snprintf(out, size, "%s/%s", folder, file);
    return length > 0 && (size_t)length < size ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", run);
}

berlu_status network_acts(train_settings *s, const char *weights, int *found)
{
    safetensors *file;
    berlu_status status = BERLU_OK;
    TRY(safetensors_open(&file, weights));
    const char *line = safetensors_metadata(file, CHECKPOINT_ACTIVATION);
    *found = line != NULL;
    while (line && *line) {
        char spec[512];
        size_t length = strcspn(line, "\n");
        if (length >= sizeof spec)
            TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: the activation in its metadata is too long", weights));
        snprintf(spec, sizeof spec, "%.*s", (int)length, line);
        TRY_DONE(recipe_set(s, "act", spec));
        line += length + (line[length] == '\n');
    }
done:
    safetensors_close(file);
    return status;
}

berlu_status network_sizes(train_settings *s, const char *weights)
{
    static const char *const keys[] = {"image_size", "patch", "stride", "stem"};
    safetensors *file;
    berlu_status status = BERLU_OK;
    TRY(safetensors_open(&file, weights));
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *value = safetensors_metadata(file, keys[i]);
        if (value && !recipe_given(s, keys[i]))
            TRY_DONE(recipe_set(s, keys[i], value));
    }
done:
    safetensors_close(file);
    return status;
}

void network_describe(network_facts *out, const model_config *m, const char *mean, const char *std)
{
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"image_size", m->image_size},
                   {"patch", m->patch},
                   {"stride", m->stride},
                   {"stem", m->stem},
                   {"classes", m->classes}};
    *out = (network_facts){.list = {{"model", m->name}}, .count = 1};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        if (numbers[i].value == 0)
            continue;
        snprintf(out->numbers[i], sizeof out->numbers[i], "%d", numbers[i].value);
        out->list[out->count++] = (st_text){numbers[i].key, out->numbers[i]};
    }
    if (mean && *mean && std && *std) {
        out->list[out->count++] = (st_text){"mean", mean};
        out->list[out->count++] = (st_text){"std", std};
    }
}

/* ---- the teacher ----------------------------------------------------------------------------- */

static berlu_status teacher_from_run(train_settings *s, char *weights, size_t size, const train_settings *student,
                                     const berlu_log *log)
{
    if (*student->teacher_act)
        return berlu_fail(BERLU_ERR_ARG, "teacher_act: has no effect because %s is a run, which knows its activation",
                          student->teacher);
    TRY(run_settings(s, NULL, student->teacher));
    return network_weights(weights, size, student->teacher, "last", "model.safetensors", log);
}

/* The activation cannot be inferred from the weights, and a wrong one would give no error: it must
 * be named by the file or by the user. */
static berlu_status teacher_from_file(train_settings *s, const char *weights, const char *model_name,
                                      const train_settings *student)
{
    int found = 0;
    recipe_init(s);
    TRY(recipe_set(s, "model", model_name));
    TRY(network_sizes(s, weights));
    if (*student->teacher_act)
        TRY(recipe_set(s, "act", student->teacher_act));
    else
        TRY(network_acts(s, weights, &found));
    if (!*student->teacher_act && !found)
        return berlu_fail(BERLU_ERR_ARG,
                          "teacher: %s does not say its activation; give it, for example --teacher-act gelu", weights);
    return recipe_complete(s);
}

/* Finds the settings of a teacher and the path of its weights. */
static berlu_status teacher_find(train_settings *s, char *weights, size_t size, const train_settings *student,
                                 const berlu_log *log)
{
    const char *name = student->teacher, *colon = strchr(name, ':');
    char model_name[64];
    if (run_exists(name))
        return teacher_from_run(s, weights, size, student, log);
    if (!colon)
        return berlu_fail(BERLU_ERR_INPUT, "teacher: %s holds no run; give a run's folder or MODEL:FILE", name);
    snprintf(model_name, sizeof model_name, "%.*s", (int)(colon - name), name);
    snprintf(weights, size, "%s", colon + 1);
    return teacher_from_file(s, weights, model_name, student);
}

berlu_status teacher_open(teacher *out, const train_settings *student, const model_config *like, device *on,
                          const berlu_log *log)
{
    char weights[CHECKPOINT_PATH];
    train_settings s = {0};
    teacher t = {0};
    engine_options o = {
        .mode = ENGINE_INFER, .batch = (int)student->batch, .threads = (int)student->threads, .device = on};
    berlu_status status;
    TRY_DONE(teacher_find(&s, weights, sizeof weights, student, log));
    TRY_DONE(sha256_file(t.hash, weights));
    TRY_DONE(network_create(&t.model, &s, (size_t)like->classes));
    if (t.model->config.image_size != like->image_size)
        TRY_DONE(berlu_fail(BERLU_ERR_ARG, "teacher: takes images of %d pixels, the student of %d",
                            t.model->config.image_size, like->image_size));
    TRY_DONE(network_device(&o, student));
    TRY_DONE(engine_create(&t.engine, t.model->graph, &o));
    TRY_DONE(weights_load_path(t.engine, weights));
done:
    recipe_free(&s);
    if (status == BERLU_OK)
        *out = t;
    else
        teacher_close(&t);
    return status;
}

void teacher_close(teacher *t)
{
    engine_free(t->engine);
    model_free(t->model);
    *t = (teacher){0};
}

void network_feed(engine *e, const loader_batch *b)
{
    if (b->draws)
        engine_set_draws(e, b->draws);
    else
        engine_borrow_input(e, b->images);
}

berlu_status teacher_logits(teacher *t, const loader_batch *b, const float **logits)
{
    network_feed(t->engine, b);
    TRY(engine_forward(t->engine, &(engine_step){0}));
    *logits = engine_logits(t->engine);
    return *logits ? BERLU_OK : BERLU_ERR_DEVICE;
}
