/* run_folder.c - finds, creates, locks and closes the folder of a run. SPDX-License-Identifier: MIT
 *
 * run_folder.h has the rules. run_check() refuses early, without writing; run_take() takes the lock
 * and looks again under it; run_begin() writes run.json. Network file systems may show old names
 * for a minute, so folders are opened anew before a name counts as missing. */
#include "train/run_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static berlu_status path_in(char out[RUN_PATH], const char *folder, const char *name)
{
    if (snprintf(out, RUN_PATH, "%s/%s", folder, name) >= RUN_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    return BERLU_OK;
}

/* A client of NFS may keep for a minute that a name is not there. Opening a folder makes it ask the
 * server for the folder's state and so forget such names: each folder of the path is opened, from
 * the root on, because any of them may be new. Where that fails, the names are as before. */
static void folders_reopen(const char *path)
{
    char part[RUN_PATH];
    size_t length = strlen(path);
    for (size_t i = 0; i <= length && i < sizeof part; i++) {
        if (i && path[i] && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        int fd = open(i ? part : *path == '/' ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
}

int run_exists(const char *path)
{
    char json[RUN_PATH];
    if (path_in(json, path, "run.json") != BERLU_OK)
        return 0;
    if (file_exists(json))
        return 1;
    folders_reopen(path);
    return file_exists(json);
}

/* Whether the folder holds nothing but a lock and leftovers of an interrupted write. */
static berlu_status folder_empty(const char *path, int *empty)
{
    DIR *dir = opendir(path);
    if (!dir)
        return file_fail_read(path); /* its content is unknown */
    const struct dirent *entry;
    berlu_status status;
    *empty = 1;
    while ((status = folder_next(&entry, dir, path)) == BERLU_OK && entry)
        *empty &= entry->d_name[0] == '.' || strcmp(entry->d_name, "lock") == 0;
    closedir(dir);
    return status;
}

/* A line that cannot be written to log.txt does not stop a run; the next checkpoint reports a full
 * or failed disk. */
static void log_write(void *context, berlu_log_level level, const char *line)
{
    run_folder *run = context;
    text t = {0};
    text_add(&t, "%s%s\n", level == BERLU_LOG_WARNING ? "warning: " : "", line);
    if (!t.failed && run->folder.fd >= 0)
        file_append_in(&run->folder, "log.txt", t.data, t.length, 0);
    text_free(&t);
    if (run->echo && run->echo->write)
        run->echo->write(run->echo->context, level, line);
}

berlu_status run_begin(run_folder *run, const run_about *about)
{
    text t = {0};
    run_json_write(about, &t);
    berlu_status status = file_write_text(&run->folder, "run.json", &t);
    text_free(&t);
    return status;
}

/* Refuses a folder that holds a run or anything else. */
static berlu_status place_check(const char *path)
{
    if (run_exists(path))
        return berlu_fail(BERLU_ERR_ARG,
                          "%s: holds a run already; add --resume to continue it, or choose another folder", path);
    int empty = 1;
    if (folder_exists(path))
        TRY(folder_empty(path, &empty));
    if (!empty)
        return berlu_fail(BERLU_ERR_ARG, "%s: is not empty and holds no run; choose another folder", path);
    return BERLU_OK;
}

/* The folder, or the nearest existing one above it, must be writable. */
static berlu_status writable_check(const char *path)
{
    char place[RUN_PATH];
    snprintf(place, sizeof place, "%s", path);
    while (access(place, F_OK) != 0 && errno != EACCES) {
        char *slash = strrchr(place, '/');
        if (!slash) {
            strcpy(place, ".");
            break;
        }
        slash[slash == place] = 0; /* the root keeps its slash */
    }
    if (!folder_exists(place) && strcmp(place, path) == 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: is a file, not a folder; choose another name", path);
    if (!folder_exists(place))
        return berlu_fail(BERLU_ERR_ARG, "%s: cannot be made because %s is no folder", path, place);
    if (access(place, W_OK | X_OK) != 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s cannot be written: %s; choose another folder", path, place,
                          strerror(errno));
    return BERLU_OK;
}

static berlu_status path_check(const char *path)
{
    return strlen(path) < RUN_PATH - 64 ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "run: the path is too long");
}

berlu_status run_check(const char *path, int resume)
{
    int held = 0;
    run_record record = {0};
    TRY(path_check(path));
    if (folder_exists(path))
        TRY(run_record_read(&record, &held, path));
    if (!(resume && (run_exists(path) || record.attempt > 0)))
        TRY(place_check(path));
    TRY(writable_check(path));
    if (held)
        return berlu_fail(BERLU_ERR_BUSY,
                          "%s: another process is training in this run (process %lld on %s); --wait SECONDS "
                          "waits for it",
                          path, (long long)record.process, record.host);
    return BERLU_OK;
}

void run_init(run_folder *run)
{
    *run = (run_folder){.folder = {.fd = -1}, .lock = {.fd = -1}};
}

/* An NFS client may cache names, including that a name does not exist, for a minute. Changing the
 * folder makes it ask the server again; a failure here is harmless. */
static void names_refresh(const run_folder *run)
{
    static const char *const names[] = {".refresh", "checkpoints/.refresh"};
    for (size_t i = 0; i < COUNT(names); i++) {
        int fd = openat(run->folder.fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0)
            close(fd);
        (void)unlinkat(run->folder.fd, names[i], 0);
    }
}

/* Looks for a run under the lock, so that the second of two processes finds the first one's run.
 * The record in the locked file reveals a run whose other files this machine may not see yet
 * (NFS). */
static berlu_status locked_check(const run_folder *run, int resume, int *there)
{
    *there = file_exists_in(&run->folder, "run.json");
    if (*there && !resume)
        return place_check(run->path);
    int empty = 1;
    if (!*there && run->lock.record.attempt > 0) {
        TRY(folder_empty(run->path, &empty));
    }
    if (!empty)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: its lock file tells of a run but run.json is not there; if another machine "
                          "just began it, try again in a minute, else put run.json back",
                          run->path);
    return *there ? BERLU_OK : place_check(run->path);
}

berlu_status run_take(run_folder *out, const char *path, const run_taking *how, int *there)
{
    char lock[RUN_PATH];
    berlu_status status;
    run_init(out);
    TRY(path_check(path));
    strcpy(out->path, path);
    out->echo = how->echo;
    out->log = (berlu_log){.write = log_write, .context = out};
    TRY_DONE(writable_check(path));
    if (!run_exists(path) && !(path_in(lock, path, "lock") == BERLU_OK && file_exists(lock)))
        TRY_DONE(place_check(path)); /* before anything is written; locked_check() decides */
    TRY_DONE(folder_make(path));
    TRY_DONE(folder_hold(&out->folder, out->path));
    TRY_DONE(run_lock_take(&out->lock, &out->folder, how->wait, how->stop));
    if (out->lock.record.attempt > 0)
        names_refresh(out);
    TRY_DONE(locked_check(out, how->resume, there));
    TRY_DONE(run_in_place(out));
    return BERLU_OK;
done:
    run_close(out);
    return status;
}

void run_close(run_folder *run)
{
    run_lock_drop(&run->lock);
    folder_release(&run->folder);
    run_init(run);
}

berlu_status run_mark(run_folder *run, run_state state, uint64_t step)
{
    assert(run->lock.fd >= 0);
    run->lock.record.state = state;
    run->lock.record.step = step;
    return run_lock_write(&run->lock, &run->folder);
}

berlu_status run_in_place(const run_folder *run)
{
    if (!folder_in_place(&run->folder))
        return berlu_fail(BERLU_ERR_IO,
                          "%s: the folder was moved, removed or replaced while the run was training in it", run->path);
    if (run_lock_named(&run->lock, &run->folder) != 1)
        return berlu_fail(BERLU_ERR_IO, "%s/lock: was removed or replaced while the run was training here", run->path);
    return BERLU_OK;
}

berlu_status run_intact(const run_folder *run)
{
    TRY(run_in_place(run));
    if (!file_exists_in(&run->folder, "run.json"))
        return berlu_fail(BERLU_ERR_IO, "%s/run.json: was removed while the run was training here; put it back",
                          run->path);
    return BERLU_OK;
}

berlu_status run_settings(train_settings *out, run_facts *facts, const char *folder)
{
    char path[RUN_PATH];
    TRY(path_in(path, folder, "run.json"));
    return run_json_read(out, facts, path);
}
