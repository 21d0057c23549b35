/* run_json.c - writes and reads run.json. SPDX-License-Identifier: MIT
 *
 * run_json_write() writes the document in its order, run_json_parse() takes the settings by the
 * table of train/settings.h. run_engine_differences() lists what may change bits on a resume. */
#include "train/run_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/threads.h"
#include "io/json_parse.h"

enum { JSON_LIMIT = 16 << 20 };

/* ---- writing --------------------------------------------------------------------------------- */

/* A text from outside the settings (a word of the command line, a host) may hold any bytes: those
 * that are not UTF-8 become question marks. */
static void any_string(text *out, const char *value)
{
    text before = *out;
    recipe_json_string(out, value);
    if (!out->failed || before.failed)
        return;
    out->failed = 0;
    out->length = before.length;
    text plain = {0};
    for (const char *c = value; *c; c++)
        text_add(&plain, "%c", *c >= ' ' && *c <= '~' ? *c : '?');
    recipe_json_string(out, plain.data ? plain.data : "");
    out->failed |= plain.failed;
    text_free(&plain);
}

static void key_string(text *out, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    text_add(out, "  \"%s\": ", key);
    any_string(out, value);
    text_string(out, ",\n");
}

static void settings_write(const run_about *a, text *out)
{
    unsigned char leave_out[RECIPE_KEYS_MAX] = {0};
    for (size_t i = 0; i < train_settings_count; i++) {
        const char *key = train_settings_table[i].key;
        int elsewhere = strcmp(key, "run") == 0 || strcmp(key, "threads") == 0 || strcmp(key, "workers") == 0 ||
                        strcmp(key, "data_on") == 0;
        leave_out[i] = (unsigned char)(elsewhere || (a->leave_out && a->leave_out[i]));
    }
    text_string(out, "  \"settings\": ");
    recipe_json(a->settings, leave_out, out);
    text_string(out, ",\n");
}

static void data_write(const run_about *a, text *out)
{
    if (!a->data_hash)
        return;
    text_add(out, "  \"data\": {\"hash\": \"%s\", \"kind\": \"%s\", \"train_images\": %zu, ", a->data_hash,
             a->data_kind, a->train_images);
    text_add(out, "\"test_images\": %zu, \"classes\": %zu", a->test_images, a->classes);
    for (size_t i = 0; a->class_names && i < a->classes; i++) {
        text_string(out, i ? ", " : ", \"class_names\": [");
        any_string(out, a->class_names[i]);
    }
    text_string(out, a->class_names && a->classes ? "]},\n" : "},\n");
}

static void command_write(const run_about *a, text *out)
{
    if (!a->command)
        return;
    text_string(out, "  \"command\": [");
    for (size_t i = 0; a->command[i]; i++) {
        text_string(out, i ? ", " : "");
        any_string(out, a->command[i]);
    }
    text_string(out, "],\n");
}

static void hardware_write(const run_about *a, text *out)
{
    char processor[64], path[4096] = "";
    struct utsname system = {0};
    const train_settings *s = a->settings;
    uname(&system);
    text_string(out, "  \"hardware\": {\n    \"processor\": ");
    any_string(out, cpu_model(processor, sizeof processor));
    text_add(out, ",\n    \"threads\": %d,\n    \"workers\": %d,\n    \"system\": ",
             s->threads > 0 ? (int)s->threads : threads_default(),
             s->workers > 0 ? (int)s->workers : threads_default());
    snprintf(path, sizeof path, "%s %s %s", system.sysname, system.release, system.machine);
    any_string(out, path);
    if (a->data_on)
        text_add(out, ",\n    \"data_on\": \"%s\"", a->data_on);
    text_string(out, ",\n    \"run\": ");
    any_string(out, s->run ? s->run : "");
    text_string(out, "\n  }\n");
}

static void engine_write(const run_engine *e, text *out)
{
    text_string(out, "  \"engine\": {\"products\": ");
    any_string(out, e->products);
    text_string(out, ", \"instructions\": ");
    any_string(out, e->instructions);
    text_string(out, ", \"device\": ");
    any_string(out, e->device);
    text_string(out, "},\n");
}

/* A list of lines. */
static void algorithms_write(const char *lines, text *out)
{
    if (!lines)
        return;
    text_string(out, "  \"algorithms\": [");
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        text one = {0};
        text_add(&one, "%.*s", (int)length, line);
        text_string(out, line == lines ? "\n    " : ",\n    ");
        any_string(out, one.data ? one.data : "");
        out->failed |= one.failed;
        text_free(&one);
        line += length + (line[length] == '\n');
    }
    text_string(out, "\n  ],\n");
}

void run_json_write(const run_about *a, text *out)
{
    char started[32] = "", host[256] = "";
    time_t now = time(NULL);
    struct tm when;
    struct utsname system = {0};
    if (gmtime_r(&now, &when))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &when);
    if (uname(&system) == 0)
        snprintf(host, sizeof host, "%s", system.nodename);
    text_add(out, "{\n  \"berlu\": \"%s\",\n  \"format\": %d,\n", berlu_version(), RUN_FORMAT);
    key_string(out, "settings_hash", a->settings_hash);
    settings_write(a, out);
    data_write(a, out);
    command_write(a, out);
    key_string(out, "commit", a->commit);
    key_string(out, "started", started);
    key_string(out, "host", host);
    if (a->history && *a->history)
        text_string(out, "  \"history\": "), text_string(out, a->history), text_string(out, ",\n");
    engine_write(&a->engine, out);
    algorithms_write(a->algorithms, out);
    hardware_write(a, out);
    text_string(out, "}\n");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void text_take(char *out, size_t size, const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(out, size, "%s", value ? value : "");
}

static berlu_status facts_take(run_facts *out, const json_t *root, const char *path)
{
    const json_t *format = json_object_get(root, "format"), *engine = json_object_get(root, "engine");
    *out = (run_facts){.format = format ? (int)json_integer_value(format) : 0};
    if (format && (!json_is_integer(format) || out->format < 1))
        return berlu_fail(BERLU_ERR_INPUT, "%s: format is not a number from 1 on", path);
    if (out->format > RUN_FORMAT)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: has format %d, and this version of berlu reads formats up to %d; use a later version",
                          path, out->format, RUN_FORMAT);
    text_take(out->settings_hash, sizeof out->settings_hash, root, "settings_hash");
    text_take(out->data_hash, sizeof out->data_hash, json_object_get(root, "data"), "hash");
    text_take(out->engine.version, sizeof out->engine.version, root, "berlu");
    text_take(out->engine.products, sizeof out->engine.products, engine, "products");
    text_take(out->engine.instructions, sizeof out->engine.instructions, engine, "instructions");
    text_take(out->engine.device, sizeof out->engine.device, engine, "device");
    return BERLU_OK;
}

static berlu_status algorithms_take(train_settings *s, const json_t *lines, const char *path)
{
    text all = {0};
    if (lines && !json_is_array(lines))
        return berlu_fail(BERLU_ERR_INPUT, "%s: algorithms is not a list of lines", path);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));
        if (!line || strchr(line, '\n')) {
            text_free(&all);
            return berlu_fail(BERLU_ERR_INPUT, "%s: algorithms is not a list of lines", path);
        }
        text_add(&all, "%s\n", line);
    }
    berlu_status status = text_status(&all);
    if (status == BERLU_OK)
        status = recipe_take_algorithms(s, all.data);
    text_free(&all);
    return status;
}

static berlu_status settings_take(train_settings *out, const json_t *root, const char *path)
{
    train_settings s;
    recipe_init(&s);
    const json_t *settings = json_object_get(root, "settings");
    berlu_status status;
    TRY_DONE(recipe_from_json(&s, settings, path));
    if (s.normalize == RECIPE_OWN && !json_object_get(settings, "mean"))
        s.normalize = RECIPE_CUSTOMARY; /* the meaning of `own` before run.json recorded the mean */
    TRY_DONE(algorithms_take(&s, json_object_get(root, "algorithms"), path));
done:
    if (status != BERLU_OK) {
        recipe_free(&s);
        return status;
    }
    *out = s;
    return BERLU_OK;
}

static berlu_status root_take(train_settings *settings, run_facts *facts, const json_t *root, const char *path)
{
    run_facts found;
    TRY(facts_take(&found, root, path));
    if (settings)
        TRY(settings_take(settings, root, path));
    if (facts)
        *facts = found;
    return BERLU_OK;
}

berlu_status run_json_parse(train_settings *settings, run_facts *facts, const char *bytes, size_t count,
                            const char *path)
{
    json_t *root;
    TRY(json_parse(&root, bytes, count, path, NULL));
    berlu_status status = root_take(settings, facts, root, path);
    json_decref(root);
    return status;
}

berlu_status run_json_load(json_t **out, const char *path)
{
    char *bytes;
    size_t count;
    *out = NULL;
    TRY(file_read_all(&bytes, &count, path, JSON_LIMIT));
    berlu_status status = json_parse(out, bytes, count, path, NULL);
    free(bytes);
    return status;
}

berlu_status run_json_read(train_settings *settings, run_facts *facts, const char *path)
{
    json_t *root;
    TRY(run_json_load(&root, path));
    berlu_status status = root_take(settings, facts, root, path);
    json_decref(root);
    return status;
}

berlu_status run_json_classes(const char ***names, size_t *count, arena *memory, const char *path)
{
    json_t *root;
    berlu_status status = BERLU_OK;
    *names = NULL, *count = 0;
    TRY(run_json_load(&root, path));
    const json_t *list = json_object_get(json_object_get(root, "data"), "class_names");
    if (!json_array_size(list))
        goto done;
    *names = ARENA_ARRAY(memory, const char *, json_array_size(list));
    for (size_t i = 0; *names && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        (*names)[i] = arena_strdup(memory, name ? name : "");
        TRY_DONE((*names)[i] ? BERLU_OK : BERLU_ERR_MEMORY);
    }
    *count = json_array_size(list);
    status = *names ? BERLU_OK : BERLU_ERR_MEMORY;
done:
    json_decref(root);
    return status;
}

int run_json_knew(const char *path, const char *hash)
{
    size_t i;
    json_t *root, *record;
    int found = 0;
    if (run_json_load(&root, path) != BERLU_OK)
        return 0;
    json_array_foreach(json_object_get(root, "history"), i, record)
    {
        const char *there = json_string_value(json_object_get(record, "settings_hash"));
        found |= there && strcmp(there, hash) == 0;
    }
    json_decref(root);
    return found;
}

/* ---- what computed --------------------------------------------------------------------------- */

size_t run_engine_differences(const run_engine *then, const run_engine *now, text *out)
{
    const struct {
        const char *what, *then, *now;
    } rows[] = {{"berlu", then->version, now->version},
                {"matrix library", then->products, now->products},
                {"instruction set", then->instructions, now->instructions},
                {"device", then->device, now->device}};
    size_t count = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (*rows[i].then && strcmp(rows[i].then, rows[i].now) != 0)
            text_add(out, "%s%s (%s then, %s now)", count++ ? ", " : "", rows[i].what, rows[i].then, rows[i].now);
    return count;
}
