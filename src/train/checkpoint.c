/* checkpoint.c - see checkpoint.h. SPDX-License-Identifier: MIT
 *
 * Read checkpoint_save() first: the order of its steps is what makes a kill at any moment harmless. */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "io/safetensors.h"
#include "models/weights.h"

enum { COUNTERS = 7, SUMS = 3, KEPT_NEWEST = 2 };
static const char format_name[] = "berlu training state 1";

static berlu_status path_join(char out[CHECKPOINT_PATH], const char *format, const char *folder, const char *name)
{
    int length = snprintf(out, CHECKPOINT_PATH, format, folder, name); /* formats are literals of this file */
    if (length < 0 || length >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    return BERLU_OK;
}

/* ---- state.safetensors ------------------------------------------------------------------------------------------- */

static void counters_put(const train_state *s, int64_t counters[COUNTERS], double sums[SUMS])
{
    const uint64_t c[COUNTERS] = {s->updates, s->epoch,         s->batches,     s->images,
                                  s->norms,   s->metrics_bytes, s->best_updates};
    for (int i = 0; i < COUNTERS; i++)
        counters[i] = (int64_t)c[i];
    sums[0] = s->loss_sum, sums[1] = s->norm_sum, sums[2] = s->best_top1;
}

static void counters_get(train_state *s, const int64_t counters[COUNTERS], const double sums[SUMS])
{
    uint64_t *c[COUNTERS] = {&s->updates, &s->epoch,         &s->batches,     &s->images,
                             &s->norms,   &s->metrics_bytes, &s->best_updates};
    for (int i = 0; i < COUNTERS; i++)
        *c[i] = (uint64_t)counters[i];
    s->loss_sum = sums[0], s->norm_sum = sums[1], s->best_top1 = sums[2];
}

static const struct {
    engine_array array;
    const char *prefix;
} moments[] = {{ARRAY_MOMENT1, "moment1."}, {ARRAY_MOMENT2, "moment2."}};

/* A parameter's values: in place where the memory is the host's, else copied into the arena. */
static const float *values_of(engine *e, engine_array array, int parameter, size_t count, arena *memory)
{
    const float *place = engine_host(e, array, parameter);
    if (place)
        return place;
    float *copy = ARENA_ARRAY(memory, float, count);
    return copy && engine_get(e, array, parameter, copy) == BERLU_OK ? copy : NULL;
}

static int moment_put(engine *e, size_t which, int parameter, arena *memory, st_tensor *out)
{
    const graph *g = engine_graph(e);
    const tensor_info *info = graph_tensor(g, graph_param(g, parameter));
    *out = (st_tensor){.dtype = ST_F32, .rank = info->rank};
    for (int d = 0; d < info->rank; d++)
        out->shape[d] = (uint64_t)info->size[d];
    out->name = arena_printf(memory, "%s%s", moments[which].prefix, info->name);
    out->data = values_of(e, moments[which].array, parameter, (size_t)tensor_elements(info), memory);
    return out->name && out->data;
}

static berlu_status state_write(const char *path, engine *e, const train_state *s)
{
    int parameters = graph_param_count(engine_graph(e));
    int64_t counters[COUNTERS];
    double sums[SUMS];
    arena memory = {0};
    berlu_status status = BERLU_ERR_MEMORY;
    st_tensor *list = ARENA_ARRAY(&memory, st_tensor, 2 * (size_t)parameters + 3);
    size_t count = 0;
    if (!list)
        goto done;
    for (size_t m = 0; m < COUNT(moments); m++)
        for (int p = 0; engine_has(e, moments[m].array) && p < parameters; p++)
            if (!moment_put(e, m, p, &memory, &list[count++]))
                goto done;
    counters_put(s, counters, sums);
    list[count++] = (st_tensor){.name = "counters", .dtype = ST_I64, .rank = 1, .shape = {COUNTERS}, .data = counters};
    list[count++] = (st_tensor){.name = "sums", .dtype = ST_F64, .rank = 1, .shape = {SUMS}, .data = sums};
    list[count++] =
        (st_tensor){.name = "figures", .dtype = ST_F64, .rank = 1, .shape = {s->figure_count}, .data = s->figures};
    status = safetensors_write(path, list, count, &(st_text){"format", format_name}, 1);
done:
    arena_free(&memory);
    return status;
}

static const st_tensor *tensor_need(const safetensors *file, const char *name, st_dtype dtype, size_t count)
{
    const st_tensor *t = safetensors_find(file, name);
    if (!t || t->dtype != dtype || t->count != count) {
        berlu_fail(BERLU_ERR_INPUT, "%s: '%s' is missing or has another size; the checkpoint belongs to another run",
                   safetensors_path(file), name);
        return NULL;
    }
    return t;
}

/* One array of the engine from tensors named prefix + parameter; with `set` 0 it only looks whether they are all there. */
static berlu_status array_read(engine *e, engine_array array, const safetensors *file, const char *prefix, int set)
{
    const graph *g = engine_graph(e);
    for (int p = 0; p < graph_param_count(g); p++) {
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        char name[ST_NAME_MAX + 16];
        snprintf(name, sizeof name, "%s%s", prefix, info->name);
        const st_tensor *t = tensor_need(file, name, ST_F32, (size_t)tensor_elements(info));
        if (!t)
            return BERLU_ERR_INPUT;
        if (!set)
            continue;
        float *values = malloc(t->bytes + 1);
        if (!values)
            return berlu_fail_memory(t->bytes, name);
        berlu_status status = st_read_f32(t, values);
        if (status == BERLU_OK)
            status = engine_set(e, array, p, values);
        free(values);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

static berlu_status state_read(const safetensors *file, engine *e, train_state *s, int set)
{
    const char *format = safetensors_metadata(file, "format");
    if (!format || strcmp(format, format_name) != 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: is not a training state of this version", safetensors_path(file));
    const st_tensor *counters = tensor_need(file, "counters", ST_I64, COUNTERS);
    const st_tensor *sums = counters ? tensor_need(file, "sums", ST_F64, SUMS) : NULL;
    const st_tensor *figures = sums ? tensor_need(file, "figures", ST_F64, s->figure_count) : NULL;
    if (!figures)
        return BERLU_ERR_INPUT;
    for (size_t m = 0; m < COUNT(moments); m++) {
        berlu_status status =
            engine_has(e, moments[m].array) ? array_read(e, moments[m].array, file, moments[m].prefix, set) : BERLU_OK;
        if (status != BERLU_OK)
            return status;
    }
    if (set) {
        int64_t c[COUNTERS];
        double d[SUMS];
        memcpy(c, counters->data, sizeof c);
        memcpy(d, sums->data, sizeof d);
        counters_get(s, c, d);
        if (figures->bytes)
            memcpy(s->figures, figures->data, figures->bytes);
    }
    return BERLU_OK;
}

/* ---- the folder ---------------------------------------------------------------------------------------------------- */

static int step_of(const char *name, uint64_t *step)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return 0;
    errno = 0;
    *step = strtoull(name + 5, &end, 10);
    return !*end && !errno;
}

/* The steps of all checkpoints, newest first; free() it. A folder that is not there has none. */
static berlu_status steps_list(const char *run, uint64_t **out, size_t *count)
{
    char folder[CHECKPOINT_PATH];
    berlu_status status = path_join(folder, "%s/%s", run, "checkpoints");
    uint64_t *steps = NULL;
    size_t n = 0;
    DIR *dir = status == BERLU_OK ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        uint64_t step, *grown;
        if (!step_of(entry->d_name, &step))
            continue;
        if (!(grown = realloc(steps, (n + 1) * sizeof *steps))) {
            status = berlu_fail_memory((n + 1) * sizeof *steps, folder);
            break;
        }
        steps = grown;
        size_t i = n++;
        for (; i > 0 && steps[i - 1] < step; i--)
            steps[i] = steps[i - 1];
        steps[i] = step;
    }
    if (dir)
        closedir(dir);
    if (status != BERLU_OK) {
        free(steps);
        return status;
    }
    *out = steps;
    *count = n;
    return BERLU_OK;
}

/* Marks before a step's name: in the making, set aside for a newer one of the same step, about to be deleted. */
static const char mark_fresh[] = ".tmp-", mark_aside[] = ".was-", mark_doomed[] = ".old-";

static berlu_status step_path(char out[CHECKPOINT_PATH], const char *run, const char *mark, uint64_t step)
{
    char name[64];
    snprintf(name, sizeof name, "%sstep-%08llu", mark, (unsigned long long)step);
    return path_join(out, "%s/checkpoints/%s", run, name);
}

/* Out of sight first, so that no half-deleted folder bears a step's name. */
static berlu_status step_remove(const char *run, uint64_t step)
{
    char from[CHECKPOINT_PATH], to[CHECKPOINT_PATH];
    berlu_status status = step_path(from, run, "", step);
    if (status == BERLU_OK)
        status = step_path(to, run, mark_doomed, step);
    if (status == BERLU_OK)
        status = folder_remove(to);
    if (status == BERLU_OK)
        status = path_rename(from, to);
    return status == BERLU_OK ? folder_remove(to) : status;
}

static berlu_status files_write(const char *folder, engine *e, const train_state *s)
{
    char path[CHECKPOINT_PATH];
    berlu_status status = path_join(path, "%s/%s", folder, "model.safetensors");
    if (status == BERLU_OK)
        status = weights_save(e, ARRAY_WEIGHT, path, NULL, 0);
    if (status == BERLU_OK && engine_has(e, ARRAY_EMA)) {
        status = path_join(path, "%s/%s", folder, "ema.safetensors");
        if (status == BERLU_OK)
            status = weights_save(e, ARRAY_EMA, path, NULL, 0);
    }
    if (status == BERLU_OK)
        status = path_join(path, "%s/%s", folder, "state.safetensors");
    return status == BERLU_OK ? state_write(path, e, s) : status;
}

static berlu_status link_renew(const char *run, const char *name, uint64_t step)
{
    char path[CHECKPOINT_PATH], target[64];
    snprintf(target, sizeof target, "step-%08llu", (unsigned long long)step);
    berlu_status status = path_join(path, "%s/checkpoints/%s", run, name);
    return status == BERLU_OK ? link_replace(target, path) : status;
}

/* The same step again: cut epochs do that, and broken ones. Whoever dies in here leaves one of the two to be found. */
static berlu_status step_replace(const char *run, uint64_t step, const char *fresh, const char *final)
{
    char aside[CHECKPOINT_PATH];
    berlu_status status = step_path(aside, run, mark_aside, step);
    if (status == BERLU_OK)
        status = folder_remove(aside);
    if (status == BERLU_OK)
        status = path_rename(final, aside);
    if (status == BERLU_OK)
        status = path_rename(fresh, final);
    if (status != BERLU_OK && folder_exists(aside) && !folder_exists(final))
        path_rename(aside, final); /* the failure above is what is told */
    return status;
}

berlu_status checkpoint_save(const char *run, engine *e, const train_state *s)
{
    char fresh[CHECKPOINT_PATH], final[CHECKPOINT_PATH];
    berlu_status status = step_path(fresh, run, mark_fresh, s->updates);
    if (status == BERLU_OK)
        status = step_path(final, run, "", s->updates);
    if (status == BERLU_OK)
        status = folder_remove(fresh); /* left by an earlier death */
    if (status == BERLU_OK)
        status = folder_make(fresh);
    if (status == BERLU_OK)
        status = files_write(fresh, e, s);
    if (status == BERLU_OK)
        status = folder_sync(fresh);
    if (status == BERLU_OK)
        status = folder_exists(final) ? step_replace(run, s->updates, fresh, final) : path_rename(fresh, final);
    return status == BERLU_OK ? checkpoint_settle(run, s->updates, s->best_updates) : status;
}

static int marked(const char *name, const char *mark)
{
    return strncmp(name, mark, strlen(mark)) == 0;
}

/* Names that begin with a mark are nobody's once a checkpoint is in place. */
static berlu_status leftovers_remove(const char *run)
{
    char folder[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
    berlu_status status = path_join(folder, "%s/%s", run, "checkpoints");
    DIR *dir = status == BERLU_OK ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && status == BERLU_OK && (entry = readdir(dir));) {
        if (!marked(entry->d_name, mark_fresh) && !marked(entry->d_name, mark_aside) &&
            !marked(entry->d_name, mark_doomed))
            continue;
        status = path_join(path, "%s/%s", folder, entry->d_name);
        if (status == BERLU_OK)
            status = folder_remove(path);
    }
    if (dir)
        closedir(dir);
    return status;
}

/* All but the two newest and the best. */
static berlu_status old_remove(const char *run, uint64_t best)
{
    uint64_t *steps;
    size_t count;
    berlu_status status = steps_list(run, &steps, &count);
    if (status != BERLU_OK)
        return status;
    for (size_t i = KEPT_NEWEST; status == BERLU_OK && i < count; i++)
        if (steps[i] != best)
            status = step_remove(run, steps[i]);
    free(steps);
    return status;
}

berlu_status checkpoint_settle(const char *run, uint64_t last, uint64_t best)
{
    char path[CHECKPOINT_PATH];
    berlu_status status = link_renew(run, "last", last);
    if (status == BERLU_OK)
        status = step_path(path, run, "", best);
    if (status == BERLU_OK && best && folder_exists(path))
        status = link_renew(run, "best", best);
    if (status == BERLU_OK)
        status = leftovers_remove(run);
    return status == BERLU_OK ? old_remove(run, best) : status;
}

berlu_status checkpoint_recover(const char *run)
{
    char folder[CHECKPOINT_PATH], from[CHECKPOINT_PATH], to[CHECKPOINT_PATH];
    berlu_status status = path_join(folder, "%s/%s", run, "checkpoints");
    DIR *dir = status == BERLU_OK ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && status == BERLU_OK && (entry = readdir(dir));) {
        uint64_t step;
        if (!marked(entry->d_name, mark_aside) || !step_of(entry->d_name + strlen(mark_aside), &step))
            continue;
        status = step_path(from, run, mark_aside, step);
        if (status == BERLU_OK)
            status = step_path(to, run, "", step);
        if (status == BERLU_OK && !folder_exists(to))
            status = path_rename(from, to);
    }
    if (dir)
        closedir(dir);
    return status;
}

static int files_readable(const char *folder, int ema)
{
    static const char *const names[] = {"model.safetensors", "state.safetensors", "ema.safetensors"};
    for (size_t i = 0; i < COUNT(names) - !ema; i++) {
        char path[CHECKPOINT_PATH];
        safetensors *file;
        if (path_join(path, "%s/%s", folder, names[i]) != BERLU_OK || safetensors_open(&file, path) != BERLU_OK)
            return 0;
        safetensors_close(file);
    }
    return 1;
}

berlu_status checkpoint_newest(const char *run, int ema, char path[CHECKPOINT_PATH], const berlu_log *log)
{
    uint64_t *steps;
    size_t count;
    berlu_status status = steps_list(run, &steps, &count);
    if (status != BERLU_OK)
        return status;
    for (size_t i = 0; status == BERLU_OK && i < count; i++) {
        status = step_path(path, run, "", steps[i]);
        if (status == BERLU_OK && files_readable(path, ema))
            goto done;
        log_line(log, BERLU_LOG_WARNING, "%s is broken and passed over: %s", path, berlu_last_error());
    }
    path[0] = 0;
done:
    free(steps);
    return status;
}

berlu_status checkpoint_load(const char *folder, engine *e, train_state *s)
{
    char path[CHECKPOINT_PATH];
    safetensors *state = NULL, *ema = NULL;
    berlu_status status = path_join(path, "%s/%s", folder, "state.safetensors");
    if (status == BERLU_OK)
        status = safetensors_open(&state, path);
    if (status == BERLU_OK)
        status = state_read(state, e, s, 0);
    if (status == BERLU_OK && engine_has(e, ARRAY_EMA)) {
        status = path_join(path, "%s/%s", folder, "ema.safetensors");
        if (status == BERLU_OK)
            status = safetensors_open(&ema, path);
        if (status == BERLU_OK)
            status = array_read(e, ARRAY_EMA, ema, "", 0);
    }
    if (status == BERLU_OK)
        status = path_join(path, "%s/%s", folder, "model.safetensors");
    if (status == BERLU_OK)
        status = weights_load_path(e, path); /* checks all before it sets anything */
    if (status == BERLU_OK && ema)
        status = array_read(e, ARRAY_EMA, ema, "", 1);
    if (status == BERLU_OK)
        status = state_read(state, e, s, 1);
    safetensors_close(ema);
    safetensors_close(state);
    return status;
}
