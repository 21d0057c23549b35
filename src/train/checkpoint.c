/* checkpoint.c - the folders of checkpoints: which one is whole, which one goes. SPDX-License-Identifier: MIT
 *
 * Read checkpoint_save() first: the order of its steps is what makes a kill at any moment harmless. What stands in the
 * files is in checkpoint_files.c. */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "models/weights.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_sums.h"

enum { KEPT_NEWEST = 2 };

static berlu_status path_join(char out[CHECKPOINT_PATH], const char *format, const char *folder, const char *name)
{
    int length = snprintf(out, CHECKPOINT_PATH, format, folder, name); /* formats are literals of this file */
    if (length < 0 || length >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
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

/* The files of a checkpoint; the last is there only where an average is kept. */
static const char *const file_names[] = {"model.safetensors", "state.safetensors", "ema.safetensors"};

static size_t files_of(int ema)
{
    return ema ? COUNT(file_names) : COUNT(file_names) - 1;
}

static berlu_status files_write(const char *folder, engine *e, const train_state *s)
{
    char path[CHECKPOINT_PATH];
    berlu_status status = path_join(path, "%s/%s", folder, "model.safetensors");
    if (status == BERLU_OK)
        status = weights_write(path, e, ARRAY_WEIGHT);
    if (status == BERLU_OK && engine_has(e, ARRAY_EMA)) {
        status = path_join(path, "%s/%s", folder, "ema.safetensors");
        if (status == BERLU_OK)
            status = weights_write(path, e, ARRAY_EMA);
    }
    if (status == BERLU_OK)
        status = path_join(path, "%s/%s", folder, "state.safetensors");
    if (status == BERLU_OK)
        status = state_write(path, e, s);
    return status == BERLU_OK ? sums_write(folder, file_names, files_of(engine_has(e, ARRAY_EMA))) : status;
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
    if (status == BERLU_OK)
        return checkpoint_settle(run, s->updates, s->best_updates);
    char sentence[1024]; /* what failed first is told, whatever becomes of what it left: a full disk needs the room */
    snprintf(sentence, sizeof sentence, "%s", berlu_last_error());
    folder_remove(fresh);
    return berlu_fail(status, "%s", sentence);
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

int checkpoint_has_average(const char *folder)
{
    char path[CHECKPOINT_PATH];
    return path_join(path, "%s/%s", folder, file_names[2]) == BERLU_OK && file_exists(path);
}

berlu_status checkpoint_check(const char *folder, int ema)
{
    for (size_t i = 0; i < files_of(ema); i++) {
        char path[CHECKPOINT_PATH];
        safetensors *file;
        berlu_status status = path_join(path, "%s/%s", folder, file_names[i]);
        if (status == BERLU_OK)
            status = safetensors_open(&file, path);
        if (status != BERLU_OK)
            return status;
        safetensors_close(file);
    }
    return sums_check(folder, file_names, files_of(ema));
}

berlu_status checkpoint_newest(const char *run, int ema, char path[CHECKPOINT_PATH], const berlu_log *log)
{
    uint64_t *steps;
    size_t count;
    berlu_status status = steps_list(run, &steps, &count), broken = BERLU_OK;
    if (status != BERLU_OK)
        return status;
    for (size_t i = 0; status == BERLU_OK && i < count; i++) {
        status = step_path(path, run, "", steps[i]);
        if (status == BERLU_OK && (broken = checkpoint_check(path, ema)) == BERLU_OK)
            goto done;
        log_line(log, BERLU_LOG_WARNING, "%s is broken and passed over: %s", path, berlu_last_error());
    }
    path[0] = 0;
    if (status == BERLU_OK &&
        broken != BERLU_OK) { /* not a run that has none yet: nothing of it is to be written over */
        char sentence[1024];
        snprintf(sentence, sizeof sentence, "%s", berlu_last_error());
        status = berlu_fail(BERLU_ERR_INPUT, "%s: none of its %zu checkpoints can be read: %s", run, count, sentence);
    }
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
