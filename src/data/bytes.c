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
    berlu_status status[BLOCKS];
    char message[BLOCKS][256];
} reading;

static berlu_status image_take(reading *r, size_t i, const image_request *request, image *decoded)
{
    const data_info *info = &r->source->info;
    size_t bytes = 3 * (size_t)info->width * (size_t)info->height;
    berlu_status status = data_read(r->source, r->split, r->first + i, request, decoded);
    if (status == BERLU_OK && (decoded->width != info->width || decoded->height != info->height))
        status = berlu_fail(BERLU_ERR_INPUT, "%s: images of %d x %d and of %d x %d", info->path, info->width,
                            info->height, decoded->width, decoded->height);
    if (status == BERLU_OK)
        memcpy(r->out + i * bytes, decoded->pixels, bytes);
    return status;
}

static void block_read(void *context, size_t block)
{
    reading *r = context;
    image decoded = {0};
    image_file file = {0};
    image_request request = {.file = &file};
    size_t end = r->count * (block + 1) / BLOCKS;
    for (size_t i = r->count * block / BLOCKS; i < end && r->status[block] == BERLU_OK; i++)
        r->status[block] = image_take(r, i, &request, &decoded);
    if (r->status[block] != BERLU_OK)
        snprintf(r->message[block], sizeof r->message[block], "%s", berlu_last_error());
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
        if (r->status[b] != BERLU_OK)
            status = berlu_fail(r->status[b], "%s", r->message[b]);
    free(r);
    return status;
}
