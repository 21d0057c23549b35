/* checkpoint.c - the folders of checkpoints: which one is whole, which one goes.
 * SPDX-License-Identifier: MIT
 *
 * Read checkpoint_save() first: the order of its steps is what makes a kill at any moment
 * harmless. What stands in the files is in checkpoint_files.c. */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int step_of(const char *name, uint64_t *step)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return 0;
    errno = 0;
    *step = strtoull(name + 5, &end, 10);
    return !*end && !errno;
}

/* Marks before a step's name: in the making, set aside for a newer one of the same step, about
 * to be deleted, damaged. */
static const char mark_fresh[] = ".tmp-", mark_aside[] = ".was-", mark_doomed[] = ".old-", mark_damaged[] = "damaged-";

/* Relative to the run's folder. `copy` above 0 tells further folders of the same mark and step
 * apart. */
enum { NAME = 96, COPIES = 100 };
static const char *step_name(char out[NAME], const char *mark, uint64_t step, int copy)
{
    char number[16] = "";
    if (copy)
        snprintf(number, sizeof number, "-%d", copy);
    snprintf(out, NAME, "checkpoints/%sstep-%08llu%s", mark, (unsigned long long)step, number);
    return out;
}

static int marked(const char *name, const char *mark)
{
    return strncmp(name, mark, strlen(mark)) == 0;
}

/* BERLU_OK with NULL where the folder is not there. One that cannot be read is an error: a run whose
 * checkpoints nobody sees would start from the beginning. */
static berlu_status checkpoints_open(DIR **out, const folder_handle *run)
{
    char shown[FILE_SHOWN];
    int fd = openat(run->fd, "checkpoints", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *out = fd >= 0 ? fdopendir(fd) : NULL;
    if (*out || (fd < 0 && errno == ENOENT))
        return BERLU_OK;
    berlu_status status = file_fail_read(file_shown(shown, run, "checkpoints"));
    if (fd >= 0)
        close(fd);
    return status;
}

/* The steps of all checkpoints, newest first; free() it. A folder that is not there has none. */
static berlu_status steps_list(const folder_handle *run, uint64_t **out, size_t *count)
{
    uint64_t *steps = NULL;
    size_t n = 0;
    DIR *dir;
    berlu_status status = checkpoints_open(&dir, run);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        uint64_t step, *grown;
        if (!step_of(entry->d_name, &step))
            continue;
        if (!(grown = realloc(steps, (n + 1) * sizeof *steps))) {
            status = berlu_fail_memory((n + 1) * sizeof *steps, run->path);
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

/* ---- removing -------------------------------------------------------------------------------------------------- */

/* Old folders are rubbish, and rubbish must not end a run: on NFS a reader's open file keeps its
 * folder (.nfs...) from being removed. Reported once; every later settling tries again. */
static void discard(checkpoint_store *store, const char *name)
{
    if (folder_remove_in(store->run, name) == BERLU_OK || store->told)
        return;
    store->told = 1;
    log_line(store->log, BERLU_LOG_WARNING, "%s; the run goes on and will try again", berlu_last_error());
}

/* A name of this mark and step that is free, after removing what can be removed. */
static berlu_status free_name(char out[NAME], checkpoint_store *store, const char *mark, uint64_t step)
{
    for (int copy = 0; copy < COPIES; copy++) {
        step_name(out, mark, step, copy);
        if (folder_remove_in(store->run, out) == BERLU_OK)
            return BERLU_OK;
    }
    return BERLU_ERR_IO; /* folder_remove_in() left the message */
}

/* Out of sight first, so that no half-deleted folder bears a step's name. */
static void step_remove(checkpoint_store *store, uint64_t step)
{
    char from[NAME], to[NAME];
    berlu_status status = free_name(to, store, mark_doomed, step);
    if (status == BERLU_OK)
        status = path_rename_in(store->run, step_name(from, "", step, 0), to);
    if (status == BERLU_OK) {
        discard(store, to);
    } else if (!store->told) {
        store->told = 1;
        log_line(store->log, BERLU_LOG_WARNING, "%s; the run goes on and will try again", berlu_last_error());
    }
}

/* Names that begin with a mark are nobody's once a checkpoint is in place. */
static void leftovers_remove(checkpoint_store *store)
{
    DIR *dir;
    (void)checkpoints_open(&dir, store->run); /* the next settling tries again */
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[NAME + 256];
        if (!marked(entry->d_name, mark_fresh) && !marked(entry->d_name, mark_aside) &&
            !marked(entry->d_name, mark_doomed))
            continue;
        snprintf(name, sizeof name, "checkpoints/%s", entry->d_name);
        discard(store, name);
    }
    if (dir)
        closedir(dir);
}

/* All but the two newest and the best. */
static berlu_status old_remove(checkpoint_store *store, uint64_t best)
{
    uint64_t *steps;
    size_t count;
    berlu_status status = steps_list(store->run, &steps, &count);
    if (status != BERLU_OK)
        return status;
    for (size_t i = KEPT_NEWEST; i < count; i++)
        if (steps[i] != best)
            step_remove(store, steps[i]);
    free(steps);
    return BERLU_OK;
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/* The files of a checkpoint; the last is there only where an average is kept. */
static const char *const file_names[] = {"model.safetensors", "state.safetensors", "ema.safetensors"};

static size_t files_of(int ema)
{
    return ema ? COUNT(file_names) : COUNT(file_names) - 1;
}

static berlu_status files_write(checkpoint_store *store, const char *folder, engine *e, const train_state *s)
{
    char name[CHECKPOINT_PATH];
    berlu_status status = path_join(name, "%s/%s", folder, "model.safetensors");
    if (status == BERLU_OK)
        status = weights_write(store->run, name, e, ARRAY_WEIGHT, store->facts, store->fact_count);
    if (status == BERLU_OK && engine_has(e, ARRAY_EMA)) {
        status = path_join(name, "%s/%s", folder, "ema.safetensors");
        if (status == BERLU_OK)
            status = weights_write(store->run, name, e, ARRAY_EMA, store->facts, store->fact_count);
    }
    if (status == BERLU_OK)
        status = path_join(name, "%s/%s", folder, "state.safetensors");
    if (status == BERLU_OK)
        status = state_write(store->run, name, e, s, store->settings);
    return status == BERLU_OK ? sums_write(store->run, folder, file_names, files_of(engine_has(e, ARRAY_EMA))) : status;
}

static berlu_status link_renew(checkpoint_store *store, const char *name, uint64_t step)
{
    char path[NAME], target[64];
    snprintf(target, sizeof target, "step-%08llu", (unsigned long long)step);
    snprintf(path, sizeof path, "checkpoints/%s", name);
    return link_replace_in(store->run, target, path);
}

/* The same step again: cut epochs do that, and broken ones. Whoever dies in here leaves one of
 * the two to be found. */
static berlu_status step_replace(checkpoint_store *store, uint64_t step, const char *fresh, const char *final)
{
    char aside[NAME], doomed[NAME];
    berlu_status status = BERLU_OK;
    step_name(aside, mark_aside, step, 0);
    if (folder_remove_in(store->run, aside) != BERLU_OK) { /* held by a reader: it can still be renamed */
        status = free_name(doomed, store, mark_doomed, step);
        if (status == BERLU_OK)
            status = path_rename_in(store->run, aside, doomed);
    }
    if (status == BERLU_OK)
        status = path_rename_in(store->run, final, aside);
    if (status == BERLU_OK)
        status = path_rename_in(store->run, fresh, final);
    if (status != BERLU_OK && folder_exists_in(store->run, aside) && !folder_exists_in(store->run, final))
        path_rename_in(store->run, aside, final); /* the failure above is what is reported */
    return status;
}

berlu_status checkpoint_save(checkpoint_store *store, engine *e, const train_state *s)
{
    char fresh[NAME], final[NAME];
    const folder_handle *run = store->run;
    step_name(final, "", s->updates, 0);
    berlu_status status = folder_make_in(run, "checkpoints");
    if (status == BERLU_OK)
        status = free_name(fresh, store, mark_fresh, s->updates); /* an earlier death may have left one */
    if (status != BERLU_OK)
        return status;
    status = folder_make_in(run, fresh);
    if (status == BERLU_OK)
        status = files_write(store, fresh, e, s);
    if (status == BERLU_OK)
        status = folder_sync_in(run, fresh);
    if (status == BERLU_OK)
        status = folder_exists_in(run, final) ? step_replace(store, s->updates, fresh, final)
                                              : path_rename_in(run, fresh, final);
    if (status == BERLU_OK)
        return checkpoint_settle(store, s->updates, s->best_updates);
    char message
        [1024]; /* the first failure is reported, whatever becomes of what it left: a full disk needs the space */
    snprintf(message, sizeof message, "%s", berlu_last_error());
    (void)folder_remove_in(run, fresh);
    return berlu_fail(status, "%s", message);
}

berlu_status checkpoint_settle(checkpoint_store *store, uint64_t last, uint64_t best)
{
    char name[NAME];
    berlu_status status = link_renew(store, "last", last);
    if (status == BERLU_OK && best && folder_exists_in(store->run, step_name(name, "", best, 0)))
        status = link_renew(store, "best", best);
    leftovers_remove(store);
    return status == BERLU_OK ? old_remove(store, best) : status;
}

berlu_status checkpoint_recover(checkpoint_store *store)
{
    DIR *dir;
    berlu_status status = checkpoints_open(&dir, store->run);
    for (struct dirent *entry; dir && status == BERLU_OK && (entry = readdir(dir));) {
        uint64_t step;
        char from[NAME], to[NAME];
        if (!marked(entry->d_name, mark_aside) || !step_of(entry->d_name + strlen(mark_aside), &step))
            continue;
        step_name(from, mark_aside, step, 0);
        if (!folder_exists_in(store->run, step_name(to, "", step, 0)))
            status = path_rename_in(store->run, from, to);
    }
    if (dir)
        closedir(dir);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

int checkpoint_has_average(const char *folder)
{
    char path[CHECKPOINT_PATH];
    return path_join(path, "%s/%s", folder, file_names[2]) == BERLU_OK && file_exists(path);
}

static berlu_status state_open(safetensors **out, const char *folder)
{
    char path[CHECKPOINT_PATH];
    berlu_status status = path_join(path, "%s/%s", folder, "state.safetensors");
    return status == BERLU_OK ? safetensors_open(out, path) : status;
}

berlu_status checkpoint_facts_read(checkpoint_facts *out, const char *folder)
{
    safetensors *file;
    *out = (checkpoint_facts){0};
    berlu_status status = state_open(&file, folder);
    if (status != BERLU_OK)
        return status;
    status = state_format(file, &out->format);
    const char *settings = safetensors_metadata(file, "settings");
    text_string(&out->settings, settings ? settings : "");
    safetensors_close(file);
    if (status == BERLU_OK)
        status = text_status(&out->settings);
    if (status != BERLU_OK)
        text_free(&out->settings);
    return status;
}

berlu_status checkpoint_check(const char *folder, int ema)
{
    checkpoint_facts facts;
    berlu_status status = checkpoint_facts_read(&facts, folder);
    if (status != BERLU_OK)
        return status;
    text_free(&facts.settings);
    for (size_t i = 0; i < files_of(ema); i++) {
        char path[CHECKPOINT_PATH];
        safetensors *file;
        status = path_join(path, "%s/%s", folder, file_names[i]);
        if (status == BERLU_OK)
            status = safetensors_open(&file, path);
        if (status != BERLU_OK)
            return status;
        safetensors_close(file);
    }
    return sums_check(folder, file_names, files_of(ema), facts.format > 0);
}

void checkpoint_best_check(checkpoint_store *store, uint64_t best, int ema)
{
    char name[NAME], aside[NAME], path[CHECKPOINT_PATH], reason[1024];
    if (!best)
        return;
    step_name(name, "", best, 0);
    if (path_join(path, "%s/%s", store->run->path, name) != BERLU_OK || checkpoint_check(path, ema) != BERLU_ERR_INPUT)
        return; /* whole, or not looked at for want of memory or files */
    snprintf(reason, sizeof reason, "%s", berlu_last_error());
    step_name(aside, mark_damaged, best, 0);
    int there = folder_exists_in(store->run, name);
    int kept =
        there && folder_remove_in(store->run, aside) == BERLU_OK && path_rename_in(store->run, name, aside) == BERLU_OK;
    (void)unlinkat(store->run->fd, "checkpoints/best", 0);
    log_line(
        store->log, BERLU_LOG_WARNING,
        "the best checkpoint, of step %llu, is damaged%s%s: %s; the run goes on without it until a better one comes",
        (unsigned long long)best, kept ? " and kept as " : "", kept ? aside : "", reason);
}

berlu_status checkpoint_newest(const char *run, int ema, char path[CHECKPOINT_PATH], const berlu_log *log)
{
    uint64_t *steps = NULL;
    size_t count = 0;
    folder_handle folder;
    char name[NAME];
    berlu_status status = BERLU_OK, broken = BERLU_OK;
    path[0] = 0;
    if (!folder_exists(run))
        return BERLU_OK; /* no folder, no checkpoint */
    if ((status = folder_hold(&folder, run)) != BERLU_OK)
        return status;
    status = steps_list(&folder, &steps, &count);
    folder_release(&folder);
    for (size_t i = 0; status == BERLU_OK && i < count; i++) {
        status = path_join(path, "%s/%s", run, step_name(name, "", steps[i], 0));
        if (status == BERLU_OK && (broken = checkpoint_check(path, ema)) == BERLU_OK)
            goto done;
        if (status == BERLU_OK && broken != BERLU_ERR_INPUT) { /* no memory, too many files: it may well be whole */
            status = broken;
            goto done;
        }
        log_line(log, BERLU_LOG_WARNING, "%s is broken and passed over: %s", path, berlu_last_error());
    }
    path[0] = 0;
    if (status == BERLU_OK &&
        broken != BERLU_OK) { /* not a run that has none yet: nothing of it is to be written over */
        char message[1024];
        snprintf(message, sizeof message, "%s", berlu_last_error());
        status = berlu_fail(BERLU_ERR_INPUT, "%s: none of its %zu checkpoints can be read: %s", run, count, message);
    }
done:
    free(steps);
    return status;
}

berlu_status checkpoint_load(const char *folder, engine *e, train_state *s)
{
    char path[CHECKPOINT_PATH];
    safetensors *state = NULL, *ema = NULL;
    berlu_status status = state_open(&state, folder);
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
