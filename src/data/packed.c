/* packed.c - reads a packed set, one image at a time, and checks each one.
 * SPDX-License-Identifier: MIT
 *
 * All of the file but the images is read and checked on opening, and its length must be exact.
 * Images are read on demand, with pread into the worker's own buffer, and compared with their
 * checksum there: a file that shrinks, is overwritten or rots while a run reads it ends in a
 * message, not in SIGBUS and not in a model trained on noise. Such a failure is BERLU_ERR_IO, since
 * it is the set that is damaged, not one image that --max-bad could allow. packed_format.h has the
 * layout, cache.c writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/file_in.h"
#include "data/packed_format.h"
#include "data/source.h"

enum { CLASSES_MAX = 1 << 20, NAMES_MAX = 64 << 20, MAGIC = 7 };
#define IMAGES_MAX ((uint64_t)1 << 40)

typedef struct packed_state {
    file_in file;
    packed_header h;
    int format;
    unsigned char *tail; /* sums, labels, names, checksum, as in the file */
    size_t tail_bytes;
    const unsigned char *sums, *labels, *names; /* in `tail`; sums is NULL in format 1 */
} packed_state;

/* ---- images ---------------------------------------------------------------------------------- */

static size_t number_of(const data_source *s, data_split split, size_t index)
{
    return split == DATA_TEST ? s->info.images[DATA_TRAIN] + index : index;
}

static uint32_t word_at(const unsigned char *words, size_t number)
{
    uint32_t word; /* any alignment */
    memcpy(&word, words + number * sizeof word, sizeof word);
    return word;
}

static int packed_label(const data_source *s, data_split split, size_t index)
{
    const packed_state *p = s->state;
    return (int)(word_at(p->labels, number_of(s, split, index)) & ~PACKED_BROKEN);
}

/* The whole image into `to`, checked. */
static berlu_status image_fetch(const packed_state *p, size_t number, const char *split, size_t index, uint8_t *to)
{
    size_t bytes = packed_image_bytes(&p->h);
    if (file_in_read(&p->file, PACKED_HEADER + (uint64_t)number * bytes, to, bytes) != BERLU_OK)
        return BERLU_ERR_IO; /* with the message of the file */
    if (p->sums && packed_image_sum(number, to, bytes) != word_at(p->sums, number))
        return berlu_fail(BERLU_ERR_IO,
                          "%s: %s image %zu is damaged: its checksum is wrong; pack the set again (berlu data pack)",
                          p->file.path, split, index);
    return BERLU_OK;
}

static berlu_status packed_read(data_source *s, data_split split, size_t index, const image_request *request,
                                image *out)
{
    const packed_state *p = s->state;
    size_t number = number_of(s, split, index);
    int side = (int)p->h.side;
    if (word_at(p->labels, number) & PACKED_BROKEN)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s image %zu was broken when it was packed", s->info.path,
                          data_split_names[split], index);
    image_part part = image_ask(request, side, side);
    if (part.width == side && part.height == side) {
        TRY(image_reserve(out, side, side));
        return image_fetch(p, number, data_split_names[split], index, out->pixels);
    }
    image_file own = {0}, *file = request->file ? request->file : &own;
    berlu_status status;
    TRY_DONE(image_file_reserve(file, packed_image_bytes(&p->h), s->info.path));
    TRY_DONE(image_fetch(p, number, data_split_names[split], index, file->bytes));
    status = image_copy_part(out, file->bytes, side, part);
done:
    free(own.bytes);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static berlu_status packed_refuse(const char *path, const char *why)
{
    return berlu_fail(BERLU_ERR_INPUT, "%s: %s; make it again (berlu data pack)", path, why);
}

/* Sizes, each bounded on its own so that their sum cannot overflow. */
static berlu_status header_check(packed_state *p)
{
    const packed_header *h = &p->h;
    const char *path = p->file.path;
    if (memcmp(h->magic, PACKED_MAGIC, MAGIC) != 0)
        return packed_refuse(path, "not a packed set");
    p->format = h->magic[MAGIC] - '0';
    if (p->format < 1 || p->format > PACKED_FORMAT)
        return berlu_fail(BERLU_ERR_INPUT, "%s: a packed set of format '%c'; this berlu reads 1 to %d", path,
                          h->magic[MAGIC] >= ' ' && h->magic[MAGIC] <= '~' ? h->magic[MAGIC] : '?', PACKED_FORMAT);
    if (h->side < 1 || h->side > PACKED_SIDE_MAX || h->classes < 1 || h->classes > CLASSES_MAX ||
        h->train > IMAGES_MAX || h->test > IMAGES_MAX || h->names > NAMES_MAX)
        return packed_refuse(path, "its header is damaged");
    unsigned __int128 all = (unsigned __int128)h->train + h->test, images = all * packed_image_bytes(h);
    unsigned __int128 tail = all * (p->format == 1 ? 1 : 2) * sizeof(uint32_t) + h->names + sizeof(uint32_t);
    if (PACKED_HEADER + images + tail != p->file.size)
        return packed_refuse(path, "its length does not fit its header");
    p->tail_bytes = (size_t)tail;
    return BERLU_OK;
}

/* Reads what follows the images, and compares the checksum over it and the header. */
static berlu_status tail_read(packed_state *p, const unsigned char front[PACKED_HEADER])
{
    size_t all = (size_t)(p->h.train + p->h.test), words = all * sizeof(uint32_t);
    p->tail = malloc(p->tail_bytes);
    if (!p->tail)
        return berlu_fail_memory(p->tail_bytes, p->file.path);
    TRY(file_in_read(&p->file, p->file.size - p->tail_bytes, p->tail, p->tail_bytes));
    p->sums = p->format == 1 ? NULL : p->tail;
    p->labels = p->format == 1 ? p->tail : p->tail + words;
    p->names = p->labels + words;
    uint32_t sum = crc32c(0, front, p->format == 1 ? sizeof p->h : (size_t)PACKED_HEADER);
    sum = crc32c(sum, p->tail, p->tail_bytes - sizeof sum);
    return sum == word_at(p->names + p->h.names, 0) ? BERLU_OK : packed_refuse(p->file.path, "its checksum is wrong");
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

static berlu_status packed_names(data_source *s, const packed_state *p)
{
    const unsigned char *at = p->names, *end = at + p->h.names;
    data_info *info = &s->info;
    const char **names = ARENA_ARRAY(&s->memory, const char *, p->h.classes);
    if (!names)
        return BERLU_ERR_MEMORY;
    if (p->h.names < sizeof info->mean + sizeof info->std)
        return packed_refuse(info->path, "its names are cut");
    memcpy(info->mean, at, sizeof info->mean);
    memcpy(info->std, at + sizeof info->mean, sizeof info->std);
    at += sizeof info->mean + sizeof info->std;
    const char *kind = name_next(&at, end);
    if (!kind || !(info->class_order = name_next(&at, end)))
        return packed_refuse(info->path, "its names are cut");
    for (size_t k = 0; k < p->h.classes; k++)
        if (!(names[k] = name_next(&at, end)))
            return packed_refuse(info->path, "its names are cut");
    info->class_names = names;
    info->published = strcmp(kind, "folder") != 0 && strcmp(kind, "packed") != 0;
    return BERLU_OK;
}

static berlu_status labels_check(const data_source *s)
{
    for (int split = 0; split < DATA_SPLITS; split++)
        for (size_t i = 0; i < s->info.images[split]; i++)
            if ((size_t)packed_label(s, (data_split)split, i) >= s->info.classes)
                return packed_refuse(s->info.path, "a label is out of range");
    return BERLU_OK;
}

static berlu_status packed_open(data_source *s, const char *path, const data_options *o)
{
    (void)path; /* info.path is the copy that lives as long as the set */
    unsigned char front[PACKED_HEADER];
    packed_state *p = s->state = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, s->info.path);
    TRY(file_in_open(&p->file, s->info.path));
    if (p->file.size < PACKED_HEADER)
        return packed_refuse(s->info.path, "too short for a packed set");
    TRY(file_in_read(&p->file, 0, front, sizeof front));
    memcpy(&p->h, front, sizeof p->h);
    TRY(header_check(p));
    TRY(tail_read(p, front));
    TRY(packed_names(s, p));
    s->info.images[DATA_TRAIN] = p->h.train;
    s->info.images[DATA_TEST] = p->h.test;
    s->info.classes = p->h.classes;
    s->info.width = s->info.height = (int)p->h.side;
    s->info.unchecked = p->format == 1;
    if (s->info.unchecked)
        log_line(o->log, BERLU_LOG_WARNING,
                 "%s: packed by berlu 0.1.0, without checksums: its images are not checked; pack the set again",
                 s->info.path);
    return labels_check(s);
}

static void packed_close(data_source *s)
{
    packed_state *p = s->state;
    if (p) {
        file_in_close(&p->file);
        free(p->tail);
    }
    free(p);
}

/* Any format: opening says which ones are read. */
static int packed_recognise(const char *path)
{
    char first[MAGIC] = {0};
    FILE *f = file_exists(path) ? fopen(path, "rb") : NULL;
    size_t got = f ? fread(first, 1, sizeof first, f) : 0;
    if (f)
        fclose(f);
    return got == sizeof first && memcmp(first, PACKED_MAGIC, sizeof first) == 0;
}

const data_kind data_packed = {
    .name = "packed",
    .help = "a set packed by `berlu data pack`",
    .options = HAS_FILES, /* images that were broken when they were packed */
    .recognise = packed_recognise,
    .open = packed_open,
    .label = packed_label,
    .read = packed_read,
    .close = packed_close,
};
