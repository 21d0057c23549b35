/* cifar.c - CIFAR-10 and CIFAR-100 in their binary version. SPDX-License-Identifier: MIT
 *
 * A file is a sequence of records: one label byte (CIFAR-100: the coarse, then the fine label) and
 * 3072 bytes of red, green and blue planes, 32 x 32 each. Sizes, labels and the number of images
 * per class are checked before the first image is given out, so a truncated download cannot become
 * a smaller set unnoticed. Labels stay in memory; images of a folder are read on demand, and a
 * record whose label differs from that at opening means that the set was modified. The published
 * .tar.gz is unpacked into memory instead, after its SHA-256 was verified. cifar_layout.h describes
 * the sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/file_in.h"
#include "data/archive.h"
#include "data/cifar_layout.h"
#include "data/sha256.h"
#include "data/source.h"

enum { RECORD_MAX = 2 + 3 * CIFAR_PLANE, PIECE = 256 }; /* bytes of a record; records read at a time while opening */

typedef struct cifar_state {
    const cifar_layout *layout;
    int coarse;                                /* labels are the coarse ones of CIFAR-100 */
    file_in files[CIFAR_FILES];                /* of a folder; path NULL: never opened */
    unsigned char *memory;                     /* of an archive */
    const unsigned char *records[CIFAR_FILES]; /* of an archive; NULL: read from the file */
    unsigned char *labels[CIFAR_FILES];        /* label_bytes for each record */
} cifar_state;

typedef struct record_place {
    size_t file, within;
} record_place;

static record_place place_of(const cifar_state *c, data_split split, size_t index)
{
    if (split == DATA_TEST)
        return (record_place){c->layout->files - 1, index};
    return (record_place){index / c->layout->records[0], index % c->layout->records[0]};
}

static int cifar_label(const data_source *s, data_split split, size_t index)
{
    const cifar_state *c = s->state;
    record_place at = place_of(c, split, index);
    const unsigned char *label = c->labels[at.file] + at.within * c->layout->label_bytes;
    return c->layout->label_bytes == 2 && !c->coarse ? label[1] : label[0];
}

/* The record, in `own` or in the archive's memory. A file that changed is BERLU_ERR_IO: not one
 * image is broken, the set is. */
static berlu_status record_fetch(const cifar_state *c, record_place at, unsigned char own[RECORD_MAX],
                                 const unsigned char **out)
{
    size_t bytes = cifar_record_bytes(c->layout), labels = c->layout->label_bytes;
    *out = c->records[at.file] ? c->records[at.file] + at.within * bytes : own;
    if (c->records[at.file])
        return BERLU_OK;
    const file_in *file = &c->files[at.file];
    if (file_in_read(file, (uint64_t)at.within * bytes, own, bytes) != BERLU_OK)
        return BERLU_ERR_IO; /* with the message of the file */
    if (memcmp(own, c->labels[at.file] + at.within * labels, labels) != 0)
        return berlu_fail(BERLU_ERR_IO,
                          "%s: record %zu has another label than when the file was opened: it was changed", file->path,
                          at.within);
    return BERLU_OK;
}

static berlu_status cifar_read(data_source *s, data_split split, size_t index, const image_request *request, image *out)
{
    const cifar_state *c = s->state;
    unsigned char own[RECORD_MAX];
    const unsigned char *record;
    image_part part = image_ask(request, CIFAR_SIDE, CIFAR_SIDE);
    TRY(image_reserve(out, part.width, part.height));
    TRY(record_fetch(c, place_of(c, split, index), own, &record));
    const unsigned char *planes = record + c->layout->label_bytes;
    uint8_t *to = out->pixels;
    for (int y = part.top; y < part.top + part.height; y++) {
        const unsigned char *row = planes + y * CIFAR_SIDE + part.left;
        for (int x = 0; x < part.width; x++, to += 3) {
            to[0] = row[x];
            to[1] = row[x + CIFAR_PLANE];
            to[2] = row[x + 2 * CIFAR_PLANE];
        }
    }
    return BERLU_OK;
}

/* Labels in range, coarse fitting fine; counts them by class and keeps them. `first` is the number
 * of the first record. */
static berlu_status records_check(const cifar_layout *l, const char *name, const unsigned char *records, size_t first,
                                  size_t count, size_t *per_class, unsigned char *labels)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *r = records + i * cifar_record_bytes(l);
        unsigned fine = r[l->label_bytes - 1];
        if (fine >= l->classes)
            return berlu_fail(BERLU_ERR_INPUT, "%s: record %zu has label %u, labels are 0 to %zu", name, first + i,
                              fine, l->classes - 1);
        if (l->label_bytes == 2 && r[0] != l->coarse_of[fine])
            return berlu_fail(BERLU_ERR_INPUT, "%s: record %zu has coarse label %u where class %s belongs to %u", name,
                              first + i, r[0], l->names[fine], l->coarse_of[fine]);
        per_class[fine]++;
        memcpy(labels + (first + i) * l->label_bytes, r, l->label_bytes);
    }
    return BERLU_OK;
}

/* All records of one file, in pieces where they are not in memory. */
static berlu_status file_check(cifar_state *c, size_t f, const char *path, size_t *per_class)
{
    const cifar_layout *l = c->layout;
    size_t bytes = cifar_record_bytes(l), all = l->records[f];
    c->labels[f] = malloc(all * l->label_bytes);
    unsigned char *piece = c->records[f] ? NULL : malloc(PIECE * bytes);
    berlu_status status = BERLU_OK;
    if (!c->labels[f] || (!piece && !c->records[f]))
        TRY_DONE(berlu_fail_memory(PIECE * bytes, l->file_names[f]));
    for (size_t first = 0; status == BERLU_OK && first < all; first += PIECE) {
        size_t count = all - first < PIECE ? all - first : PIECE;
        if (piece)
            TRY_DONE(file_in_read(&c->files[f], (uint64_t)first * bytes, piece, count * bytes));
        status = records_check(l, l->file_names[f], piece ? piece : c->records[f] + first * bytes, first, count,
                               per_class, c->labels[f]);
        if (status != BERLU_OK)
            berlu_fail_in(status, path);
    }
done:
    free(piece);
    return status;
}

static berlu_status split_check(const cifar_layout *l, const char *where, const size_t *per_class, size_t expected)
{
    for (size_t k = 0; k < l->classes; k++)
        if (per_class[k] != expected)
            return berlu_fail(BERLU_ERR_INPUT, "%s: %zu images of class %s, the published set has %zu", where,
                              per_class[k], l->names[k], expected);
    return BERLU_OK;
}

static berlu_status cifar_check(cifar_state *c, const char *path)
{
    const cifar_layout *l = c->layout;
    size_t per_class[100] = {0}, train = 0;
    for (size_t f = 0; f < l->files; f++) {
        int test = f == l->files - 1;
        if (test) {
            TRY(split_check(l, path, per_class, train / l->classes));
            memset(per_class, 0, sizeof per_class);
        }
        TRY(file_check(c, f, path, per_class));
        train += test ? 0 : l->records[f];
    }
    return split_check(l, path, per_class, l->records[l->files - 1] / l->classes);
}

static berlu_status size_check(const cifar_layout *l, size_t f, const char *path, uint64_t size)
{
    size_t expected = l->records[f] * cifar_record_bytes(l);
    if (size == expected)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_INPUT, "%s: %llu bytes, but %s of %s has %zu; fetch it again (berlu data get %s)", path,
                      (unsigned long long)size, l->file_names[f], l->kind, expected, l->kind);
}

/* The folder itself, or the one inside it that the archive contains; NULL without memory. */
static const char *folder_of(arena *a, const cifar_layout *l, const char *path)
{
    const char *inner = arena_printf(a, "%s/%s", path, l->folder);
    return inner && !folder_exists(inner) ? path : inner;
}

static berlu_status open_folder(data_source *s, const char *path)
{
    cifar_state *c = s->state;
    const char *folder = folder_of(&s->memory, c->layout, path);
    if (!folder)
        return BERLU_ERR_MEMORY;
    for (size_t f = 0; f < c->layout->files; f++) {
        const char *file = arena_printf(&s->memory, "%s/%s", folder, c->layout->file_names[f]);
        if (!file)
            return BERLU_ERR_MEMORY;
        if (!file_exists(file))
            return berlu_fail(BERLU_ERR_INPUT,
                              "%s: missing; berlu reads the binary version of %s (berlu data get %s, or %s)", file,
                              c->layout->kind, c->layout->kind, c->layout->url);
        TRY(file_in_open(&c->files[f], file));
        TRY(size_check(c->layout, f, file, c->files[f].size));
    }
    return BERLU_OK;
}

static const cifar_layout *const published[] = {&cifar10_layout, &cifar100_layout};

berlu_status cifar_archive_check(const cifar_layout *l, const char *path, const char *hash)
{
    char found[SHA256_TEXT];
    struct stat about;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (folder_exists(path))
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: is a folder, not the archive %s; an unpacked set is used as it is: "
                          "--data %s:%s",
                          path, l->archive, l->kind, path);
    TRY(sha256_file(found, path));
    if (strcasecmp(found, hash ? hash : l->sha256) == 0)
        return BERLU_OK;
    for (size_t i = 0; i < COUNT(published); i++)
        if (strcmp(published[i]->kind, l->kind) != 0 && strcmp(found, published[i]->sha256) == 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s: is the archive of %s, not of %s; name that set", path,
                              published[i]->kind, l->kind);
    if (strstr(base, "python"))
        return berlu_fail(BERLU_ERR_INPUT, "%s: is the Python version, which is not read; fetch the binary one, %s",
                          path, l->url);
    if (!hash && stat(path, &about) == 0 && (uint64_t)about.st_size != l->archive_bytes)
        return berlu_fail(
            BERLU_ERR_INPUT, "%s: has %llu bytes (SHA-256 %s), and %s has %llu: %s; fetch it again, %s", path,
            (unsigned long long)about.st_size, found, l->archive, (unsigned long long)l->archive_bytes,
            (uint64_t)about.st_size < l->archive_bytes ? "cut short, or another file" : "another file", l->url);
    return tarball_hash_fail(path, found, hash ? hash : l->sha256);
}

static berlu_status open_archive(data_source *s, const char *path, const char *hash)
{
    cifar_state *c = s->state;
    const cifar_layout *l = c->layout;
    tarball_file wanted[CIFAR_FILES];
    size_t total = 0;
    for (size_t f = 0; f < l->files; f++)
        total += l->records[f] * cifar_record_bytes(l);
    c->memory = malloc(total);
    if (!c->memory)
        return berlu_fail_memory(total, path);
    unsigned char *at = c->memory;
    for (size_t f = 0; f < l->files; f++) {
        wanted[f] = (tarball_file){l->file_names[f], at, l->records[f] * cifar_record_bytes(l)};
        c->records[f] = at;
        at += wanted[f].size;
    }
    TRY(cifar_archive_check(l, path, hash));
    return tarball_read(path, wanted, l->files);
}

static void describe(data_source *s)
{
    const cifar_state *c = s->state;
    const cifar_layout *l = c->layout;
    data_info *info = &s->info;
    for (size_t f = 0; f + 1 < l->files; f++)
        info->images[DATA_TRAIN] += l->records[f];
    info->images[DATA_TEST] = l->records[l->files - 1];
    info->classes = c->coarse ? l->coarse_classes : l->classes;
    info->class_names = c->coarse ? l->coarse_names : l->names;
    info->width = info->height = CIFAR_SIDE;
    memcpy(info->mean, l->mean, sizeof info->mean);
    memcpy(info->std, l->std, sizeof info->std);
    info->published = 1;
}

berlu_status cifar_open_layout(data_source *s, const char *path, const data_options *o, const cifar_layout *layout)
{
    cifar_state *c = s->state = calloc(1, sizeof *c);
    if (!c)
        return berlu_fail_memory(sizeof *c, path);
    c->layout = layout;
    if (o->labels && strcmp(o->labels, "fine") != 0 && strcmp(o->labels, "coarse") != 0)
        return berlu_fail(BERLU_ERR_ARG, "labels '%s': fine or coarse", o->labels);
    c->coarse = o->labels && strcmp(o->labels, "coarse") == 0;
    if (c->coarse && layout->label_bytes != 2)
        return berlu_fail(BERLU_ERR_ARG, "%s: %s has no coarse labels", path, layout->kind);
    TRY(folder_exists(path) ? open_folder(s, path) : open_archive(s, path, o->sha256));
    TRY(cifar_check(c, path));
    describe(s);
    return BERLU_OK;
}

static void cifar_close(data_source *s)
{
    cifar_state *c = s->state;
    if (!c)
        return;
    for (size_t f = 0; f < COUNT(c->files); f++) {
        if (c->files[f].path)
            file_in_close(&c->files[f]);
        free(c->labels[f]);
    }
    free(c->memory);
    free(c);
}

berlu_status cifar_verify(const cifar_layout *layout, const char *path)
{
    const data_options o = {0};
    data_source s = {0};
    berlu_status status = cifar_open_layout(&s, path, &o, layout);
    cifar_close(&s);
    arena_free(&s.memory);
    return status;
}

static int has_file(const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && file_exists(path);
}

/* The Python version is recognised too, so that the message names the archive to fetch. */
static int layout_recognise(const cifar_layout *l, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char inner[4096];
    if (strcmp(base, l->archive) == 0 && file_exists(path))
        return 1;
    int length = snprintf(inner, sizeof inner, "%s/%s", path, l->folder);
    if (length > 0 && (size_t)length < sizeof inner && folder_exists(inner))
        return 1;
    return has_file(path, l->file_names[0]) || (has_file(path, l->python_file) && has_file(path, l->python_meta));
}

static int recognise10(const char *path)
{
    return layout_recognise(&cifar10_layout, path);
}

static int recognise100(const char *path)
{
    return layout_recognise(&cifar100_layout, path);
}

static berlu_status open10(data_source *s, const char *path, const data_options *o)
{
    return cifar_open_layout(s, path, o, &cifar10_layout);
}

static berlu_status open100(data_source *s, const char *path, const data_options *o)
{
    return cifar_open_layout(s, path, o, &cifar100_layout);
}

const data_kind data_cifar10 = {
    .name = "cifar10",
    .help = "CIFAR-10, binary version, folder or .tar.gz",
    .options = HAS_ARCHIVE,
    .recognise = recognise10,
    .open = open10,
    .label = cifar_label,
    .read = cifar_read,
    .close = cifar_close,
};
const data_kind data_cifar100 = {
    .name = "cifar100",
    .help = "CIFAR-100, binary version, folder or .tar.gz",
    .options = HAS_ARCHIVE | HAS_COARSE,
    .recognise = recognise100,
    .open = open100,
    .label = cifar_label,
    .read = cifar_read,
    .close = cifar_close,
};
