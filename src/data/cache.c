/* cache.c - writes the packed form of a set: one file of equal images. SPDX-License-Identifier: MIT
 *
 * Decoding a JPEG takes a millisecond, copying 150 KB out of the page cache takes twenty
 * microseconds: a set that is read many times is worth decoding once. packed_format.h has the
 * layout, packed.c the reader. Writing is one pass, and the file appears whole or not at all. */
#include "data/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/augment_plan.h"
#include "data/packed_format.h"
#include "data/source.h"

enum { GROUPS = 16, PER_GROUP = 4, BLOCK = GROUPS * PER_GROUP };

typedef struct packing {
    data_source *source;
    const data_info *info;
    size_t bytes, first, count; /* of an image; the current block, as indices over both splits */
    uint8_t *pixels;            /* of a block */
    uint32_t *sums, *labels;    /* of all */
    augment_plan plan;
    augment_scratch scratch[GROUPS];
    kept_failure failures[BLOCK]; /* reported by one thread, in order */
} packing;

static data_split split_of(const data_info *info, size_t place, size_t *index)
{
    int test = place >= info->images[DATA_TRAIN];
    *index = place - (test ? info->images[DATA_TRAIN] : 0);
    return test ? DATA_TEST : DATA_TRAIN;
}

static void pack_one(packing *p, size_t i, augment_scratch *w)
{
    size_t index;
    data_split split = split_of(p->info, p->first + i, &index);
    uint32_t label = (uint32_t)data_label(p->source, split, index);
    berlu_status status = augment_image(&p->plan, p->source, split, index, 0, 0, w);
    failure_keep(&p->failures[i], status);
    if (status == BERLU_OK) {
        memcpy(p->pixels + i * p->bytes, w->current.pixels, p->bytes);
    } else {
        memset(p->pixels + i * p->bytes, 0, p->bytes);
        label |= PACKED_BROKEN;
    }
    p->sums[p->first + i] = packed_image_sum(p->first + i, p->pixels + i * p->bytes, p->bytes);
    p->labels[p->first + i] = label;
}

static void pack_group(void *context, size_t group)
{
    packing *p = context;
    for (size_t i = group * PER_GROUP; i < (group + 1) * PER_GROUP && i < p->count; i++)
        pack_one(p, i, &p->scratch[group]);
}

static berlu_status block_settle(packing *p)
{
    for (size_t i = 0; i < p->count; i++) {
        size_t index;
        data_split split = split_of(p->info, p->first + i, &index);
        berlu_status status = failure_report(&p->failures[i]);
        if (status == BERLU_ERR_INPUT)
            status = data_report_bad(p->source, split, index);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}

static void names_write(text *t, const data_info *info)
{
    text_bytes(t, info->mean, sizeof info->mean);
    text_bytes(t, info->std, sizeof info->std);
    text_bytes(t, info->kind, strlen(info->kind) + 1);
    text_bytes(t, info->class_order, strlen(info->class_order) + 1);
    for (size_t k = 0; k < info->classes; k++)
        text_bytes(t, info->class_names[k], strlen(info->class_names[k]) + 1);
}

static berlu_status pack_file(packing *p, file_out *file, const packed_header *h, const text *names, int threads,
                              cache_progress progress, void *context)
{
    char front[PACKED_HEADER] = {0};
    size_t all = h->train + h->test;
    memcpy(front, h, sizeof *h);
    TRY(file_out_write(file, front, sizeof front));
    for (p->first = 0; p->first < all; p->first += p->count) {
        p->count = all - p->first < BLOCK ? all - p->first : BLOCK;
        threads_for(threads, GROUPS, pack_group, p);
        TRY(block_settle(p));
        TRY(file_out_write(file, p->pixels, p->count * p->bytes));
        if (progress)
            progress(context, p->first + p->count, all);
    }
    const struct {
        const void *bytes;
        size_t count;
    } tail[] = {{p->sums, all * sizeof *p->sums}, {p->labels, all * sizeof *p->labels}, {names->data, names->length}};
    uint32_t checksum = crc32c(0, front, sizeof front);
    for (size_t i = 0; i < COUNT(tail); i++) {
        checksum = crc32c(checksum, tail[i].bytes, tail[i].count);
        TRY(file_out_write(file, tail[i].bytes, tail[i].count));
    }
    return file_out_write(file, &checksum, sizeof checksum);
}

static berlu_status packing_make(packing **out, data_source *source, int side)
{
    const data_info *info = data_describe(source);
    size_t all = info->images[DATA_TRAIN] + info->images[DATA_TEST], bytes = (size_t)side * (size_t)side * 3;
    augment_options o = {.crop = CROP_EVAL, .image_size = side, .crop_pct = 1};
    packing *p = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, "packing");
    *out = p;
    *p = (packing){.source = source,
                   .info = info,
                   .bytes = bytes,
                   .pixels = malloc(BLOCK * bytes),
                   .sums = malloc((all + 1) * sizeof *p->sums),
                   .labels = malloc((all + 1) * sizeof *p->labels)};
    if (!p->pixels || !p->sums || !p->labels)
        return berlu_fail_memory(BLOCK * bytes + all * (sizeof *p->sums + sizeof *p->labels), "packing");
    return augment_prepare(&p->plan, &o, info, info->mean, info->std, 0);
}

static void packing_free(packing *p)
{
    for (int g = 0; p && g < GROUPS; g++)
        augment_scratch_free(&p->scratch[g]);
    if (p) {
        free(p->pixels);
        free(p->sums);
        free(p->labels);
    }
    free(p);
}

berlu_status cache_write(data_source *source, const char *path, int side, int threads, cache_progress progress,
                         void *context)
{
    const data_info *info = data_describe(source);
    if (side < 1 || side > PACKED_SIDE_MAX)
        return berlu_fail(BERLU_ERR_ARG, "a packed set of images of %d pixels; 1 to %d", side, PACKED_SIDE_MAX);
    packing *p = NULL;
    text names = {0};
    file_out *file = NULL;
    names_write(&names, info);
    packed_header h = {.side = (uint64_t)side,
                       .classes = info->classes,
                       .train = info->images[DATA_TRAIN],
                       .test = info->images[DATA_TEST],
                       .names = names.length};
    memcpy(h.magic, PACKED_MAGIC, sizeof h.magic - 1);
    h.magic[sizeof h.magic - 1] = '0' + PACKED_FORMAT;
    berlu_status status;
    TRY_DONE(text_status(&names));
    TRY_DONE(packing_make(&p, source, side));
    TRY_DONE(file_out_open(&file, path));
    TRY_DONE(pack_file(p, file, &h, &names, threads, progress, context));
done:
    if (status == BERLU_OK)
        status = file_out_commit(file);
    else
        file_out_discard(file);
    packing_free(p);
    text_free(&names);
    return status;
}
