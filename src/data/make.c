/* make.c - writes a set as folders of PNG files (`berlu data make`). SPDX-License-Identifier: MIT
 *
 * Everything is written under a temporary name beside the target. Thousands of small files are not
 * synced one by one: the file system is synced once, then the folder is renamed. */
#include "data/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "io/png.h"

enum { BLOCK = 128 };

typedef struct making {
    data_source *source;
    const char *folder; /* the temporary one */
    data_split split;
    size_t first, count; /* the current block */
    kept_failure failures[BLOCK];
} making;

/* The test split is called val, where folder.c and others look first. */
static const char *const split_folders[DATA_SPLITS] = {"train", "val"};

static berlu_status bytes_write(const char *path, const unsigned char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return berlu_fail(BERLU_ERR_IO, "%s: %s", path, strerror(errno));
    berlu_status status = BERLU_OK;
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            status = berlu_fail(BERLU_ERR_IO, "%s: %s", path, strerror(errno));
            break;
        }
        bytes += wrote;
        size -= (size_t)wrote;
    }
    if (close(fd) != 0 && status == BERLU_OK)
        status = berlu_fail(BERLU_ERR_IO, "%s: %s", path, strerror(errno));
    return status;
}

static berlu_status image_write(const making *m, size_t index)
{
    const data_info *info = data_describe(m->source);
    int label = data_label(m->source, m->split, index);
    image read = {0};
    void *png = NULL;
    size_t size;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s/%06zu.png", m->folder, split_folders[m->split], info->class_names[label],
             index);
    berlu_status status;
    TRY_DONE(data_read(m->source, m->split, index, NULL, &read));
    TRY_DONE(png_encode(&png, &size, read.pixels, read.width, read.height));
    status = bytes_write(path, png, size);
done:
    free(png);
    image_free(&read);
    return status;
}

static void image_make(void *context, size_t i)
{
    making *m = context;
    failure_keep(&m->failures[i], image_write(m, m->first + i));
}

static berlu_status block_make(making *m, int threads)
{
    threads_for(threads, m->count, image_make, m);
    for (size_t i = 0; i < m->count; i++)
        TRY(failure_report(&m->failures[i]));
    return BERLU_OK;
}

static berlu_status split_make(making *m, int threads, make_progress progress, void *context, size_t before)
{
    const data_info *info = data_describe(m->source);
    size_t all = info->images[DATA_TRAIN] + info->images[DATA_TEST], here = info->images[m->split];
    for (size_t k = 0; k < info->classes && here; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/%s", m->folder, split_folders[m->split], info->class_names[k]);
        TRY(folder_make(path));
    }
    for (m->first = 0; m->first < here; m->first += m->count) {
        m->count = here - m->first < BLOCK ? here - m->first : BLOCK;
        TRY(block_make(m, threads));
        if (progress)
            progress(context, before + m->first + m->count, all);
    }
    return BERLU_OK;
}

static berlu_status folder_flush(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0) {
        berlu_status status = berlu_fail(BERLU_ERR_IO, "%s: %s", folder, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    return BERLU_OK;
}

static berlu_status making_run(making *m, const char *folder, int threads, make_progress progress, void *context)
{
    const data_info *info = data_describe(m->source);
    berlu_status status;
    kept_failure first;
    TRY_DONE(folder_remove(m->folder));
    for (int split = 0; split < DATA_SPLITS; split++) {
        m->split = (data_split)split;
        TRY_DONE(split_make(m, threads, progress, context, split ? info->images[DATA_TRAIN] : 0));
    }
    TRY_DONE(folder_flush(m->folder));
    TRY_DONE(path_rename(m->folder, folder));
    return BERLU_OK;
done:
    failure_keep(&first, status);
    folder_remove(m->folder);
    return failure_report(&first);
}

berlu_status make_folder(data_source *source, const char *folder, int threads, make_progress progress, void *context)
{
    if (folder_exists(folder) || file_exists(folder))
        return berlu_fail(BERLU_ERR_ARG, "%s: already there; remove it or choose another name", folder);
    text temporary = {0};
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    text_add(&temporary, "%.*s.tmp-%ld", (int)length, folder, (long)getpid());
    making *m = calloc(1, sizeof *m);
    berlu_status status;
    TRY_DONE(m ? text_status(&temporary) : berlu_fail_memory(sizeof *m, folder));
    m->source = source;
    m->folder = temporary.data;
    status = making_run(m, folder, threads, progress, context);
done:
    free(m);
    text_free(&temporary);
    return status;
}
