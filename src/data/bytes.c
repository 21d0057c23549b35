/* bytes.c - many images of one size as one block of bytes, for devices that keep the set.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "data/source.h"

enum { BLOCKS = 64 };

typedef struct reading {
    data_source *source;
    data_split split;
    size_t first, count;
    uint8_t *out;
    kept_failure failures[BLOCKS];
} reading;

static berlu_status image_take(reading *r, size_t i, const image_request *request, image *decoded)
{
    const data_info *info = &r->source->info;
    size_t bytes = 3 * (size_t)info->width * (size_t)info->height;
    TRY(data_read(r->source, r->split, r->first + i, request, decoded));
    if (decoded->width != info->width || decoded->height != info->height)
        return berlu_fail(BERLU_ERR_INPUT, "%s: images of %d x %d and of %d x %d", info->path, info->width,
                          info->height, decoded->width, decoded->height);
    memcpy(r->out + i * bytes, decoded->pixels, bytes);
    return BERLU_OK;
}

static void block_read(void *context, size_t block)
{
    reading *r = context;
    image decoded = {0};
    image_file file = {0};
    image_request request = {.file = &file};
    size_t end = r->count * (block + 1) / BLOCKS;
    berlu_status status = BERLU_OK;
    for (size_t i = r->count * block / BLOCKS; i < end && status == BERLU_OK; i++)
        status = image_take(r, i, &request, &decoded);
    failure_keep(&r->failures[block], status);
    image_free(&decoded);
    free(file.bytes);
}

berlu_status data_bytes(data_source *source, data_split split, size_t first, size_t count, int threads, uint8_t *out)
{
    reading *r = calloc(1, sizeof *r);
    if (!r)
        return berlu_fail_memory(sizeof *r, "reading images");
    *r = (reading){.source = source, .split = split, .first = first, .count = count, .out = out};
    threads_for(threads, BLOCKS, block_read, r);
    berlu_status status = BERLU_OK;
    for (int b = 0; b < BLOCKS && status == BERLU_OK; b++)
        status = failure_report(&r->failures[b]);
    free(r);
    return status;
}
