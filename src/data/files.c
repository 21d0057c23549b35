/* files.c - a kind of data source over a list of paths. SPDX-License-Identifier: MIT
 *
 * A file is read and decoded when its image is requested; nothing is kept. Opening decodes each
 * once, so that a broken file is refused before the first batch. Read on: source.h for the
 * functions of a kind. */
#include "data/files.h"

#include <stdlib.h>

#include "base/file.h"
#include "data/source.h"

static berlu_status file_decode(image *out, const char *path, const image_request *request)
{
    char *bytes = NULL;
    size_t size = 0;
    berlu_status status = file_read_all(&bytes, &size, path, IMAGE_FILE_LIMIT);
    if (status == BERLU_OK) {
        status = image_decode(out, bytes, size, request);
        if (status == BERLU_ERR_INPUT)
            berlu_fail_in(status, path);
    }
    free(bytes);
    return status;
}

static berlu_status files_read(data_source *s, data_split split, size_t index, const image_request *request, image *out)
{
    const char *const *paths = s->state;
    (void)split;
    return file_decode(out, paths[index], request);
}

static const char *files_name_of(const data_source *s, data_split split, size_t index, char *out, size_t size)
{
    const char *const *paths = s->state;
    (void)split, (void)out, (void)size;
    return paths[index];
}

static int files_label(const data_source *s, data_split split, size_t index)
{
    (void)s, (void)split, (void)index;
    return 0;
}

static void files_close(data_source *s)
{
    (void)s; /* the paths are the caller's */
}

static const data_kind data_files = {
    .name = "files",
    .help = "images by their paths",
    .label = files_label,
    .read = files_read,
    .name_of = files_name_of,
    .close = files_close,
};

berlu_status data_open_files(data_source **out, const char *const *paths, size_t count, const data_info *like)
{
    image scratch = {0};
    berlu_status status = BERLU_OK;
    for (size_t i = 0; status == BERLU_OK && i < count; i++)
        status = file_decode(&scratch, paths[i], NULL);
    image_free(&scratch);
    TRY(status);
    data_source *s = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, "a list of images");
    pthread_mutex_init(&s->lock, NULL);
    s->kind = &data_files;
    s->state = (void *)(uintptr_t)paths;
    s->info = *like;
    s->info.kind = data_files.name;
    s->info.path = "";
    s->info.images[DATA_TRAIN] = 0;
    s->info.images[DATA_TEST] = count;
    s->info.width = s->info.height = 0; /* each has its own size */
    *out = s;
    return BERLU_OK;
}
