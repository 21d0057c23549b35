/* run_missing.c - see run_missing.h. SPDX-License-Identifier: MIT */
#include "train/run_missing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "models/models.h"
#include "train/run_folder.h"

enum { PLACE = 4096 };

/* Counts the runs directly inside a folder and copies the name of one. */
static size_t runs_inside(const char *path, char one[256])
{
    size_t count = 0;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char place[PLACE];
        int length = snprintf(place, sizeof place, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof place || !run_exists(place))
            continue;
        if (count++ == 0 || strcmp(entry->d_name, one) < 0)
            snprintf(one, 256, "%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return count;
}

static int holds(const char *path, const char *name)
{
    char place[PLACE];
    int length = snprintf(place, sizeof place, "%s/%s", path, name);
    return length > 0 && (size_t)length < sizeof place && file_exists(place);
}

berlu_status run_hidden(const char *path)
{
    char place[PLACE];
    struct stat about;
    int length = snprintf(place, sizeof place, "%s/run.json", path);
    if (length < 0 || (size_t)length >= sizeof place || stat(place, &about) == 0 || errno == ENOENT || errno == ENOTDIR)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
}

berlu_status run_missing(const char *path)
{
    TRY(run_hidden(path));
    model_config config;
    char one[256] = "";
    if (!folder_exists(path) && !file_exists(path) && model_configure(&config, path, NULL) == BERLU_OK)
        return berlu_fail(
            BERLU_ERR_INPUT,
            "%s: is a model; give the folder of a run (or, to `berlu eval`, its --weights FILE and --data too)", path);
    if (!folder_exists(path))
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s", path,
                          file_exists(path) ? "is a file, not the folder of a run" : "no such folder of a run");
    if (holds(path, "model.safetensors"))
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: is a checkpoint; give the folder of its run, and --which STEP to choose among them",
                          path);
    size_t count = runs_inside(path, one);
    if (count)
        return berlu_fail(BERLU_ERR_INPUT, "%s: holds %zu run%s; name one of them, for example %s/%s", path, count,
                          count == 1 ? "" : "s", path, one);
    return berlu_fail(BERLU_ERR_INPUT, "%s: holds no run (there is no run.json)", path);
}
