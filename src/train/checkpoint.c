/* checkpoint.c - writes, replaces and removes checkpoint folders. SPDX-License-Identifier: MIT
 *
 * Read checkpoint_save() first: the order of its steps makes a kill at any moment harmless.
 * checkpoint_read.c reads a folder, checkpoint_files.c defines the content of its files. */
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
#include "train/checkpoint_files.h"
#include "train/checkpoint_sums.h"

enum { KEPT_NEWEST = 2 };

/* ---- names ----------------------------------------------------------------------------------- */

static int step_of(const char *name, uint64_t *step)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return 0;
    errno = 0;
    *step = strtoull(name + 5, &end, 10);
    return !*end && !errno;
}

/* Prefixes of a step's name: being written, set aside for a newer one of the same step, about to be
 * deleted, damaged. */
static const char mark_fresh[] = ".tmp-", mark_aside[] = ".was-", mark_doomed[] = ".old-", mark_damaged[] = "damaged-";

/* Relative to the run's folder. `copy` numbers further folders of the same mark and step. */
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

/* BERLU_OK with NULL where there is no folder. An unreadable one is an error: otherwise the run
 * would silently start from the beginning. */
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

/* The steps of all checkpoints, newest first; free() it. */
static berlu_status steps_list(const folder_handle *run, uint64_t **out, size_t *count)
{
    uint64_t *steps = NULL;
    size_t n = 0;
    DIR *dir;
    const struct dirent *entry;
    berlu_status status = checkpoints_open(&dir, run);
    while (dir && (status = folder_next(&entry, dir, run->path)) == BERLU_OK && entry) {
        uint64_t step, *grown;
        if (!step_of(entry->d_name, &step))
            continue;
        if (!(grown = realloc(steps, (n + 1) * sizeof *steps)))
            TRY_DONE(berlu_fail_memory((n + 1) * sizeof *steps, run->path));
        steps = grown;
        size_t i = n++;
        for (; i > 0 && steps[i - 1] < step; i--)
            steps[i] = steps[i - 1];
        steps[i] = step;
    }
done:
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

/* ---- removing -------------------------------------------------------------------------------- */

/* Failing to remove an old folder must not end a run: on NFS a file that a reader has open keeps
 * its folder (.nfs...) alive. Reports it once; every later checkpoint_settle() retries. */
static void warn_once(checkpoint_store *store, berlu_status status)
{
    if (status == BERLU_OK || store->warned)
        return;
    store->warned = 1;
    log_line(store->log, BERLU_LOG_WARNING, "%s; the run goes on and will try again", berlu_last_error());
}

/* Finds an unused name of this mark and step, removing leftovers where possible. */
static berlu_status free_name(char out[NAME], checkpoint_store *store, const char *mark, uint64_t step)
{
    for (int copy = 0; copy < COPIES; copy++) {
        step_name(out, mark, step, copy);
        if (folder_remove_in(store->run, out) == BERLU_OK)
            return BERLU_OK;
    }
    return BERLU_ERR_IO; /* folder_remove_in() left the message */
}

/* Renames before deleting, so that no half-deleted folder has a step's name. */
static void step_remove(checkpoint_store *store, uint64_t step)
{
    char from[NAME], to[NAME];
    berlu_status status;
    TRY_DONE(free_name(to, store, mark_doomed, step));
    TRY_DONE(path_rename_in(store->run, step_name(from, "", step, 0), to));
    status = folder_remove_in(store->run, to);
done:
    warn_once(store, status);
}

/* Marked folders are leftovers once a checkpoint is in place. */
static void leftovers_remove(checkpoint_store *store)
{
    DIR *dir;
    (void)checkpoints_open(&dir, store->run); /* the next checkpoint_settle() retries */
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[NAME + 256];
        if (!marked(entry->d_name, mark_fresh) && !marked(entry->d_name, mark_aside) &&
            !marked(entry->d_name, mark_doomed))
            continue;
        snprintf(name, sizeof name, "checkpoints/%s", entry->d_name);
        warn_once(store, folder_remove_in(store->run, name));
    }
    if (dir)
        closedir(dir);
}

static berlu_status old_remove(checkpoint_store *store, uint64_t best)
{
    uint64_t *steps;
    size_t count;
    TRY(steps_list(store->run, &steps, &count));
    for (size_t i = KEPT_NEWEST; i < count; i++)
        if (steps[i] != best)
            step_remove(store, steps[i]);
    free(steps);
    return BERLU_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static berlu_status files_write(checkpoint_store *store, const char *folder, engine *e, const train_state *s)
{
    char name[CHECKPOINT_PATH];
    TRY(checkpoint_path(name, folder, "model.safetensors"));
    TRY(weights_write(store->run, name, e, ARRAY_WEIGHT, store->facts, store->fact_count));
    if (engine_has(e, ARRAY_EMA)) {
        TRY(checkpoint_path(name, folder, "ema.safetensors"));
        TRY(weights_write(store->run, name, e, ARRAY_EMA, store->facts, store->fact_count));
    }
    TRY(checkpoint_path(name, folder, "state.safetensors"));
    TRY(state_write(store->run, name, e, s, store->settings));
    return sums_write(store->run, folder, checkpoint_file_names, checkpoint_file_count(engine_has(e, ARRAY_EMA)));
}

static berlu_status link_renew(checkpoint_store *store, const char *name, uint64_t step)
{
    char path[NAME], target[64];
    snprintf(target, sizeof target, "step-%08llu", (unsigned long long)step);
    snprintf(path, sizeof path, "checkpoints/%s", name);
    return link_replace_in(store->run, target, path);
}

/* Replaces a checkpoint of the same step (a stopped epoch, or a damaged one). A kill in between
 * leaves one of the two, which checkpoint_recover() finds. */
static berlu_status step_replace(checkpoint_store *store, uint64_t step, const char *fresh, const char *final)
{
    char aside[NAME], doomed[NAME];
    berlu_status status = BERLU_OK;
    step_name(aside, mark_aside, step, 0);
    if (folder_remove_in(store->run, aside) != BERLU_OK) { /* a reader has it open: it can still be renamed */
        TRY_DONE(free_name(doomed, store, mark_doomed, step));
        TRY_DONE(path_rename_in(store->run, aside, doomed));
    }
    TRY_DONE(path_rename_in(store->run, final, aside));
    TRY_DONE(path_rename_in(store->run, fresh, final));
done:
    if (status != BERLU_OK && folder_exists_in(store->run, aside) && !folder_exists_in(store->run, final))
        path_rename_in(store->run, aside, final); /* report the failure above */
    return status;
}

berlu_status checkpoint_save(checkpoint_store *store, engine *e, const train_state *s)
{
    char fresh[NAME], final[NAME];
    const folder_handle *run = store->run;
    step_name(final, "", s->updates, 0);
    berlu_status status;
    kept_failure first;
    TRY(folder_make_in(run, "checkpoints"));
    TRY(free_name(fresh, store, mark_fresh, s->updates)); /* a killed process may have left one */
    TRY_DONE(folder_make_in(run, fresh));
    TRY_DONE(files_write(store, fresh, e, s));
    TRY_DONE(folder_sync_in(run, fresh));
    TRY_DONE(folder_exists_in(run, final) ? step_replace(store, s->updates, fresh, final)
                                          : path_rename_in(run, fresh, final));
    return checkpoint_settle(store, s->updates, s->best_updates);
done:
    failure_keep(&first, status);
    (void)folder_remove_in(run, fresh); /* a full disk needs the space */
    return failure_report(&first);
}

berlu_status checkpoint_link_best(checkpoint_store *store, uint64_t step)
{
    char name[NAME];
    return folder_exists_in(store->run, step_name(name, "", step, 0)) ? link_renew(store, "best", step) : BERLU_OK;
}

berlu_status checkpoint_settle(checkpoint_store *store, uint64_t last, uint64_t best)
{
    berlu_status status = link_renew(store, "last", last);
    if (status == BERLU_OK && best)
        status = checkpoint_link_best(store, best);
    else if (status == BERLU_OK)
        (void)unlinkat(store->run->fd, "checkpoints/best", 0); /* of an end within an epoch, which counts no more */
    leftovers_remove(store);
    return status == BERLU_OK ? old_remove(store, best) : status;
}

berlu_status checkpoint_recover(checkpoint_store *store)
{
    DIR *dir;
    const struct dirent *entry;
    berlu_status status = BERLU_OK;
    TRY(checkpoints_open(&dir, store->run));
    while (dir && (status = folder_next(&entry, dir, store->run->path)) == BERLU_OK && entry) {
        uint64_t step;
        char from[NAME], to[NAME];
        if (!marked(entry->d_name, mark_aside) || !step_of(entry->d_name + strlen(mark_aside), &step))
            continue;
        step_name(from, mark_aside, step, 0);
        if (!folder_exists_in(store->run, step_name(to, "", step, 0)))
            TRY_DONE(path_rename_in(store->run, from, to));
    }
done:
    if (dir)
        closedir(dir);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

void checkpoint_best_check(checkpoint_store *store, uint64_t best, int ema)
{
    char name[NAME], aside[NAME], path[CHECKPOINT_PATH], reason[1024];
    if (!best)
        return;
    step_name(name, "", best, 0);
    if (checkpoint_path(path, store->run->path, name) != BERLU_OK || checkpoint_check(path, ema) != BERLU_ERR_INPUT)
        return; /* intact, or not checked for lack of memory or file descriptors */
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
    TRY(folder_hold(&folder, run));
    status = steps_list(&folder, &steps, &count);
    folder_release(&folder);
    for (size_t i = 0; status == BERLU_OK && i < count; i++) {
        status = checkpoint_path(path, run, step_name(name, "", steps[i], 0));
        if (status == BERLU_OK && (broken = checkpoint_check(path, ema)) == BERLU_OK)
            goto done;
        if (status == BERLU_OK && broken != BERLU_ERR_INPUT) { /* lack of memory or descriptors: it may be intact */
            status = broken;
            goto done;
        }
        log_line(log, BERLU_LOG_WARNING, "%s is broken and passed over: %s", path, berlu_last_error());
    }
    path[0] = 0;
    if (status == BERLU_OK && broken != BERLU_OK) /* an error, because a new run would overwrite them */
        status = berlu_fail(BERLU_ERR_INPUT, "%s: none of its %zu checkpoints can be read: %s", run, count,
                            berlu_last_error());
done:
    free(steps);
    return status;
}
