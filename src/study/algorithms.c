/* algorithms.c - copies files of product algorithms between runs. SPDX-License-Identifier: MIT
 *
 * common.txt, then KEY.txt of a worker, then algorithms.txt of its finished run, then common.txt
 * again if it knows more. A copy that fails is no failure of a run, which only has to measure
 * again. */
#include "study/algorithms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { BYTES = 4 << 20 };

int study_algorithms_wanted(const study_cell *cell)
{
    int cuda = 0;
    for (size_t i = 0; i < cell->settings.count; i++) {
        const study_setting *s = &cell->settings.items[i];
        if (strcmp(s->key, "algorithms") == 0)
            return 0;
        cuda |= strcmp(s->key, "device") == 0 && strncmp(s->values[0], "cuda", 4) == 0;
    }
    return cuda;
}

static int path_in(char out[STUDY_PATH], const char *folder, const char *name)
{
    return snprintf(out, STUDY_PATH, "%s/algorithms/%s.txt", folder, name) < STUDY_PATH;
}

/* Returns how many bytes were copied; 0 when there is nothing to copy or it failed. */
static size_t copy(const char *from, const char *to)
{
    char *bytes = NULL;
    size_t count = 0;
    if (!file_exists(from) || file_read_all(&bytes, &count, from, BYTES) != BERLU_OK)
        return 0;
    if (file_write_atomic(to, bytes, count) != BERLU_OK)
        count = 0;
    free(bytes);
    return count;
}

berlu_status study_algorithms_prepare(char path[STUDY_PATH], const char *folder, const char *key)
{
    char common[STUDY_PATH];
    if (snprintf(common, sizeof common, "%s/algorithms", folder) >= STUDY_PATH || !path_in(path, folder, key))
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    TRY(folder_make(common));
    if (!file_exists(path) && path_in(common, folder, "common"))
        (void)copy(common, path);
    return BERLU_OK;
}

static size_t bytes_of(const char *path)
{
    char *bytes = NULL;
    size_t count = 0;
    if (!file_exists(path) || file_read_all(&bytes, &count, path, BYTES) != BERLU_OK)
        return 0;
    free(bytes);
    return count;
}

void study_algorithms_keep(const char *folder, const study_entry *run)
{
    char own[STUDY_PATH], common[STUDY_PATH], kept[STUDY_PATH + 32];
    if (!path_in(own, folder, run->key) || !path_in(common, folder, "common"))
        return;
    snprintf(kept, sizeof kept, "%s/algorithms.txt", run->path);
    if (copy(own, kept) > bytes_of(common))
        (void)copy(own, common);
}

void study_algorithms_recall(const char *folder, const char *key, const char *run)
{
    char own[STUDY_PATH], kept[STUDY_PATH + 32];
    snprintf(kept, sizeof kept, "%.4000s/algorithms.txt", run);
    if (study_algorithms_prepare(own, folder, key) == BERLU_OK)
        (void)copy(kept, own);
}

/* The device begins the second line: "NVIDIA H200, 132 processors|13.1.0|...". */
void study_algorithms_machine(char out[STUDY_MACHINE], const char *run)
{
    char path[STUDY_PATH + 32], *bytes = NULL;
    size_t count = 0;
    *out = 0;
    snprintf(path, sizeof path, "%.4000s/algorithms.txt", run);
    if (!file_exists(path) || file_read_all(&bytes, &count, path, BYTES) != BERLU_OK)
        return;
    const char *line = strchr(bytes, '\n');
    if (line)
        snprintf(out, STUDY_MACHINE, "%.*s", (int)strcspn(line + 1, "|\n"), line + 1);
    free(bytes);
}
