/* cache.c - the packed form of a set: one mapped file of equal pictures. SPDX-License-Identifier: MIT
 *
 * Decoding a JPEG takes a millisecond, copying 150 KB out of the page cache takes twenty microseconds: a set that is read
 * many times is worth unpacking once. Layout, numbers little-endian:
 *
 *     header      magic "BERLUPK1", u64 side, classes, train, test, bytes of names; zeros up to byte 4096
 *     pictures    side * side * 3 bytes each, train then test
 *     labels      u32 per picture; bit 31 marks one that was broken
 *     names       mean and std (six doubles), kind, class order, each class name; texts end in NUL
 *     checksum    u32, CRC32C of header, labels and names
 *
 * All of it but the pictures is checked on opening, and the length of the file must be exact. Pictures are not hashed:
 * that would read the whole file each time. Writing is one pass, and the file appears whole or not at all. */
#include "data/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/augment_plan.h"
#include "data/source.h"

static const char magic[8] = {'B', 'E', 'R', 'L', 'U', 'P', 'K', '1'};
enum { HEADER = 4096, SIDE_MOST = 4096, CLASSES_MOST = 1 << 20, NAMES_MOST = 64 << 20 };
enum { GROUPS = 16, PER_GROUP = 4, BLOCK = GROUPS * PER_GROUP };
#define BROKEN      ((uint32_t)1 << 31)
#define IMAGES_MOST ((uint64_t)1 << 40)

typedef struct packed_header {
    char magic[8];
    uint64_t side, classes, train, test, names;
} packed_header;

static uint32_t packed_checksum(const packed_header *h, const void *labels, const void *names)
{
    uint32_t crc = crc32c(0, h, sizeof *h);
    crc = crc32c(crc, labels, (h->train + h->test) * sizeof(uint32_t));
    return crc32c(crc, names, h->names);
}

/* ---- writing ---- */

typedef struct packing {
    data_source *source;
    const data_info *info;
    size_t bytes, first, count; /* of a picture; the block in hand, as places over both splits */
    uint8_t *pixels;            /* of a block */
    uint32_t *labels;           /* of all */
    augment_plan plan;
    augment_scratch scratch[GROUPS];
    berlu_status status[BLOCK];
    char sentences[BLOCK][512];
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
    p->status[i] = augment_image(&p->plan, p->source, split, index, 0, 0, w);
    if (p->status[i] == BERLU_OK) {
        memcpy(p->pixels + i * p->bytes, w->picture.pixels, p->bytes);
    } else { /* told by the one thread that goes on from here, in order */
        snprintf(p->sentences[i], sizeof p->sentences[i], "%s", berlu_last_error());
        memset(p->pixels + i * p->bytes, 0, p->bytes);
        label |= BROKEN;
    }
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
        berlu_status status = p->status[i];
        if (status == BERLU_OK)
            continue;
        size_t index;
        data_split split = split_of(p->info, p->first + i, &index);
        berlu_fail(status, "%s", p->sentences[i]);
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
    char front[HEADER] = {0};
    size_t all = h->train + h->test;
    memcpy(front, h, sizeof *h);
    berlu_status status = file_out_write(file, front, sizeof front);
    for (p->first = 0; p->first < all && status == BERLU_OK; p->first += p->count) {
        p->count = all - p->first < BLOCK ? all - p->first : BLOCK;
        threads_for(threads, GROUPS, pack_group, p);
        status = block_settle(p);
        if (status == BERLU_OK)
            status = file_out_write(file, p->pixels, p->count * p->bytes);
        if (progress)
            progress(context, p->first + p->count, all);
    }
    uint32_t checksum = packed_checksum(h, p->labels, names->data);
    if (status == BERLU_OK)
        status = file_out_write(file, p->labels, all * sizeof *p->labels);
    if (status == BERLU_OK)
        status = file_out_write(file, names->data, names->length);
    return status == BERLU_OK ? file_out_write(file, &checksum, sizeof checksum) : status;
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
                   .labels = malloc((all + 1) * sizeof *p->labels)};
    if (!p->pixels || !p->labels)
        return berlu_fail_memory(BLOCK * bytes + all * sizeof *p->labels, "packing");
    return augment_prepare(&p->plan, &o, info, info->mean, info->std, 0);
}

static void packing_free(packing *p)
{
    for (int g = 0; p && g < GROUPS; g++)
        augment_scratch_free(&p->scratch[g]);
    if (p) {
        free(p->pixels);
        free(p->labels);
    }
    free(p);
}

berlu_status cache_write(data_source *source, const char *path, int side, int threads, cache_progress progress,
                         void *context)
{
    const data_info *info = data_describe(source);
    if (side < 1 || side > SIDE_MOST)
        return berlu_fail(BERLU_ERR_ARG, "a packed set of pictures of %d pixels; 1 to %d", side, SIDE_MOST);
    packing *p = NULL;
    text names = {0};
    file_out *file = NULL;
    names_write(&names, info);
    packed_header h = {.side = (uint64_t)side,
                       .classes = info->classes,
                       .train = info->images[DATA_TRAIN],
                       .test = info->images[DATA_TEST],
                       .names = names.length};
    memcpy(h.magic, magic, sizeof magic);
    berlu_status status = text_status(&names);
    if (status == BERLU_OK)
        status = packing_make(&p, source, side);
    if (status == BERLU_OK)
        status = file_out_open(&file, path);
    if (status == BERLU_OK)
        status = pack_file(p, file, &h, &names, threads, progress, context);
    if (status == BERLU_OK)
        status = file_out_commit(file);
    else
        file_out_discard(file);
    packing_free(p);
    text_free(&names);
    return status;
}

/* ---- reading ---- */

typedef struct packed_state {
    file_map map;
    packed_header h;
    const unsigned char *pictures, *labels;
} packed_state;

static size_t place_of(const data_source *s, data_split split, size_t index)
{
    return split == DATA_TEST ? s->info.images[DATA_TRAIN] + index : index;
}

static uint32_t label_word(const data_source *s, data_split split, size_t index)
{
    const packed_state *p = s->state;
    uint32_t label; /* any alignment */
    memcpy(&label, p->labels + place_of(s, split, index) * sizeof label, sizeof label);
    return label;
}

static int packed_label(const data_source *s, data_split split, size_t index)
{
    return (int)(label_word(s, split, index) & ~BROKEN);
}

static berlu_status packed_read(data_source *s, data_split split, size_t index, const image_request *request,
                                image *out)
{
    const packed_state *p = s->state;
    int side = (int)p->h.side;
    if (label_word(s, split, index) & BROKEN)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s picture %zu was broken when it was packed", s->info.path,
                          data_split_names[split], index);
    return image_copy_part(out, p->pictures + place_of(s, split, index) * p->h.side * p->h.side * 3, side,
                           image_ask(request, side, side));
}

static berlu_status packed_refuse(const char *path, const char *why)
{
    return berlu_fail(BERLU_ERR_INPUT, "%s: %s; make it again (berlu data pack)", path, why);
}

/* Sizes first, each bounded on its own so that their sum cannot overflow, then the checksum over what will be trusted. */
static berlu_status packed_check(packed_state *p, const char *path)
{
    if (p->map.size < HEADER)
        return packed_refuse(path, "too short for a packed set");
    memcpy(&p->h, p->map.data, sizeof p->h);
    const packed_header *h = &p->h;
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return packed_refuse(path, "not a packed set");
    if (h->side < 1 || h->side > SIDE_MOST || h->classes < 1 || h->classes > CLASSES_MOST || h->train > IMAGES_MOST ||
        h->test > IMAGES_MOST || h->names > NAMES_MOST)
        return packed_refuse(path, "its header is damaged");
    unsigned __int128 all = (unsigned __int128)h->train + h->test;
    unsigned __int128 size = HEADER + all * (h->side * h->side * 3 + sizeof(uint32_t)) + h->names + sizeof(uint32_t);
    if (size != p->map.size)
        return packed_refuse(path, "its length does not fit its header");
    p->pictures = p->map.data + HEADER;
    p->labels = p->pictures + (size_t)all * h->side * h->side * 3;
    const unsigned char *names = p->labels + (size_t)all * sizeof(uint32_t);
    uint32_t stored;
    memcpy(&stored, names + h->names, sizeof stored);
    return stored == packed_checksum(h, p->labels, names) ? BERLU_OK : packed_refuse(path, "its checksum is wrong");
}

static const char *name_next(const unsigned char **at, const unsigned char *end)
{
    const unsigned char *zero = memchr(*at, 0, (size_t)(end - *at));
    const char *name = (const char *)*at;
    if (!zero)
        return NULL;
    *at = zero + 1;
    return name;
}

static berlu_status packed_names(data_source *s, const packed_state *p, const char *path)
{
    const unsigned char *at = p->labels + (p->h.train + p->h.test) * sizeof(uint32_t), *end = at + p->h.names;
    data_info *info = &s->info;
    const char **names = ARENA_ARRAY(&s->memory, const char *, p->h.classes);
    if (!names)
        return BERLU_ERR_MEMORY;
    if (p->h.names < sizeof info->mean + sizeof info->std)
        return packed_refuse(path, "its names are cut");
    memcpy(info->mean, at, sizeof info->mean);
    memcpy(info->std, at + sizeof info->mean, sizeof info->std);
    at += sizeof info->mean + sizeof info->std;
    const char *kind = name_next(&at, end);
    if (!kind || !(info->class_order = name_next(&at, end)))
        return packed_refuse(path, "its names are cut");
    for (size_t k = 0; k < p->h.classes; k++)
        if (!(names[k] = name_next(&at, end)))
            return packed_refuse(path, "its names are cut");
    info->class_names = names;
    info->published = strcmp(kind, "folder") != 0 && strcmp(kind, "packed") != 0;
    return BERLU_OK;
}

static berlu_status packed_open(data_source *s, const char *path, const data_options *o)
{
    (void)o;
    packed_state *p = s->state = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, path);
    berlu_status status = file_map_open(&p->map, path);
    if (status == BERLU_OK)
        status = packed_check(p, path);
    if (status == BERLU_OK)
        status = packed_names(s, p, path);
    if (status != BERLU_OK)
        return status;
    s->info.images[DATA_TRAIN] = p->h.train;
    s->info.images[DATA_TEST] = p->h.test;
    s->info.classes = p->h.classes;
    s->info.width = s->info.height = (int)p->h.side;
    for (int split = 0; split < DATA_SPLITS; split++)
        for (size_t i = 0; i < s->info.images[split]; i++)
            if ((size_t)packed_label(s, (data_split)split, i) >= p->h.classes)
                return packed_refuse(path, "a label is out of range");
    return BERLU_OK;
}

static void packed_close(data_source *s)
{
    packed_state *p = s->state;
    if (p)
        file_map_close(&p->map);
    free(p);
}

static int packed_recognise(const char *path)
{
    char first[sizeof magic] = {0};
    FILE *f = file_exists(path) ? fopen(path, "rb") : NULL;
    size_t got = f ? fread(first, 1, sizeof first, f) : 0;
    if (f)
        fclose(f);
    return got == sizeof first && memcmp(first, magic, sizeof magic) == 0;
}

const data_kind data_packed = {
    .name = "packed",
    .help = "a set packed by `berlu data pack`",
    .options = HAS_FILES, /* pictures that were broken when they were packed */
    .recognise = packed_recognise,
    .open = packed_open,
    .label = packed_label,
    .read = packed_read,
    .close = packed_close,
};
