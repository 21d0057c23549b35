/* run_folder.c - see run_folder.h. SPDX-License-Identifier: MIT */
#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/threads.h"

enum { JSON_LIMIT = 16 << 20 };

static berlu_status path_in(char out[RUN_PATH], const char *folder, const char *name)
{
    if (snprintf(out, RUN_PATH, "%s/%s", folder, name) >= RUN_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    return BERLU_OK;
}

berlu_status run_path(char out[RUN_PATH], const run_folder *run, const char *name)
{
    return path_in(out, run->path, name);
}

int run_exists(const char *path)
{
    char json[RUN_PATH];
    return path_in(json, path, "run.json") == BERLU_OK && file_exists(json);
}

static int folder_empty(const char *path)
{
    int found = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        found |= entry->d_name[0] != '.'; /* what a cut write left does not count */
    if (dir)
        closedir(dir);
    return !found;
}

/* log.txt is for people: a line that cannot be written is no reason to stop a run, the next checkpoint will tell. */
static void log_write(void *context, berlu_log_level level, const char *line)
{
    run_folder *run = context;
    char path[RUN_PATH];
    text t = {0};
    text_add(&t, "%s%s\n", level == BERLU_LOG_WARNING ? "warning: " : "", line);
    if (!t.failed && run->path[0] && run_path(path, run, "log.txt") == BERLU_OK)
        file_append(path, t.data, t.length, 0);
    text_free(&t);
    if (run->echo && run->echo->write)
        run->echo->write(run->echo->context, level, line);
}

/* On the folder itself: it is there before run.json is, and no rename ever replaces it. */
static berlu_status lock_take(run_folder *run)
{
    run->lock = open(run->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s", run->path, strerror(errno));
    if (flock(run->lock, LOCK_EX | LOCK_NB) == 0)
        return BERLU_OK;
    close(run->lock);
    run->lock = -1;
    return berlu_fail(BERLU_ERR_ARG, "%s: another process is training in this run", run->path);
}

/* Settings, version and machine. Written before anything else of the run. */
static berlu_status json_write(const run_folder *run, const train_settings *s, const char *extra)
{
    char path[RUN_PATH], processor[64];
    struct utsname system = {0};
    text t = {0};
    uname(&system);
    text_add(&t, "{\n  \"berlu\": \"%s\",\n  \"settings\": ", berlu_version());
    recipe_json(s, &t);
    text_add(&t, ",\n  \"hardware\": {\n    \"processor\": \"%s\",\n    \"threads\": %d,\n",
             cpu_model(processor, sizeof processor), threads_default());
    text_add(&t, "    \"system\": \"%s %s %s\"\n  }%s%s\n}\n", system.sysname, system.release, system.machine,
             extra && *extra ? ",\n  " : "", extra ? extra : "");
    berlu_status status = text_status(&t);
    if (status == BERLU_OK)
        status = run_path(path, run, "run.json");
    if (status == BERLU_OK)
        status = file_write_atomic(path, t.data, t.length);
    text_free(&t);
    return status;
}

static berlu_status folder_start(run_folder *out, const char *path, const berlu_log *echo)
{
    *out = (run_folder){.lock = -1, .echo = echo};
    if (strlen(path) >= RUN_PATH - 64)
        return berlu_fail(BERLU_ERR_ARG, "run: the path is too long");
    strcpy(out->path, path);
    out->log = (berlu_log){.write = log_write, .context = out};
    return BERLU_OK;
}

/* What is there must not be in the way of a new run. */
static berlu_status place_check(const char *path)
{
    if (run_exists(path))
        return berlu_fail(BERLU_ERR_ARG,
                          "%s: holds a run already; add --resume to continue it, or choose another folder", path);
    if (folder_exists(path) && !folder_empty(path))
        return berlu_fail(BERLU_ERR_ARG, "%s: is not empty and holds no run; choose another folder", path);
    return BERLU_OK;
}

/* The folder itself, or the nearest one above it that is there, must take new files. */
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

berlu_status run_check(const char *path, int resume)
{
    if (strlen(path) >= RUN_PATH - 64)
        return berlu_fail(BERLU_ERR_ARG, "run: the path is too long");
    berlu_status status = resume && run_exists(path) ? BERLU_OK : place_check(path);
    return status == BERLU_OK ? writable_check(path) : status;
}

/* Of a folder that is locked, so that of two that ask at once one finds the other's run. */
static berlu_status folder_fill(run_folder *run, const train_settings *s, const char *extra_json)
{
    berlu_status status = place_check(run->path);
    return status == BERLU_OK ? json_write(run, s, extra_json) : status;
}

berlu_status run_create(run_folder *out, const char *path, const train_settings *s, const char *extra_json,
                        const berlu_log *echo)
{
    berlu_status status = folder_start(out, path, echo);
    if (status == BERLU_OK)
        status = writable_check(path); /* what is inside counts only once the folder is locked */
    if (status == BERLU_OK)
        status = folder_make(path);
    if (status == BERLU_OK)
        status = lock_take(out);
    if (status == BERLU_OK)
        status = folder_fill(out, s, extra_json);
    if (status != BERLU_OK)
        run_close(out);
    return status;
}

berlu_status run_open(run_folder *out, const char *path, const berlu_log *echo)
{
    berlu_status status = folder_start(out, path, echo);
    return status == BERLU_OK ? lock_take(out) : status;
}

void run_close(run_folder *run)
{
    if (run->lock >= 0)
        close(run->lock);
    *run = (run_folder){.lock = -1};
}

berlu_status run_settings_parse(train_settings *out, const char *bytes, size_t count, const char *path)
{
    json_error_t error;
    train_settings s;
    json_t *root = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return berlu_fail(BERLU_ERR_INPUT, "%s:%d: %s", path, error.line, error.text);
    recipe_init(&s);
    const json_t *settings = json_object_get(root, "settings");
    berlu_status status = recipe_from_json(&s, settings, path);
    if (status == BERLU_OK && s.normalize == RECIPE_OWN && !json_object_get(settings, "mean"))
        s.normalize = RECIPE_CUSTOMARY; /* what `own` meant before a run kept its mean */
    json_decref(root);
    if (status != BERLU_OK) {
        recipe_free(&s);
        return status;
    }
    *out = s;
    return BERLU_OK;
}

berlu_status run_settings(train_settings *out, const char *folder)
{
    char path[RUN_PATH], *bytes;
    size_t count;
    berlu_status status = path_in(path, folder, "run.json");
    if (status == BERLU_OK)
        status = file_read_all(&bytes, &count, path, JSON_LIMIT);
    if (status != BERLU_OK)
        return status;
    status = run_settings_parse(out, bytes, count, path);
    free(bytes);
    return status;
}
