/* folder.c - images in folders: ROOT/train/CLASS/FILE and ROOT/val/CLASS/FILE, as in ImageNet.
 * SPDX-License-Identifier: MIT
 *
 * The test split is the first of val, valid, validation, test that exists. A root without a train
 * folder is itself the training split: ROOT/CLASS/FILE. Classes come from the training split and
 * are matched by name in the test split, so a test folder that lacks a class does not shift the
 * others (torchvision would). A flat val folder (ImageNet as it is shipped) needs a text file with
 * a line "FILENAME CLASS" for every image.
 *
 * A run over millions of files keeps their names (folder_scan.h) and nothing else; images are read
 * on demand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/file_in.h"
#include "data/folder_scan.h"
#include "data/source.h"

enum { LABEL_FILE_LIMIT = 64 << 20 };

typedef struct folder_split {
    const char *root;
    scan_list files;
    uint32_t *labels; /* by file */
} folder_split;

typedef struct folder_state {
    folder_split splits[DATA_SPLITS];
    int natural;
} folder_state;

static int folder_label(const data_source *s, data_split split, size_t index)
{
    const folder_state *f = s->state;
    return (int)f->splits[split].labels[index];
}

static const char *folder_name_of(const data_source *s, data_split split, size_t index, char *out, size_t size)
{
    const folder_split *f = &((const folder_state *)s->state)->splits[split];
    snprintf(out, size, "%s/%s", f->root, scan_path(&f->files, index));
    return out;
}

/* The whole file into a buffer that is kept; a file that gets shorter meanwhile is an error. */
static berlu_status file_into(image_file *buffer, const char *path, size_t *size)
{
    file_in in;
    berlu_status status;
    TRY(file_in_open(&in, path));
    if (in.size > IMAGE_FILE_LIMIT)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: a file of %llu bytes is over the limit of %d", path,
                            (unsigned long long)in.size, IMAGE_FILE_LIMIT));
    *size = (size_t)in.size;
    TRY_DONE(image_file_reserve(buffer, *size, path));
    status = file_in_read(&in, 0, buffer->bytes, *size);
done:
    file_in_close(&in);
    return status;
}

static berlu_status folder_read(data_source *s, data_split split, size_t index, const image_request *request,
                                image *out)
{
    char path[4096];
    size_t size = 0;
    image_file own = {0}, *file = request && request->file ? request->file : &own;
    folder_name_of(s, split, index, path, sizeof path);
    berlu_status status = file_into(file, path, &size);
    if (status == BERLU_OK) {
        status = image_decode(out, file->bytes, size, request);
        if (status == BERLU_ERR_INPUT)
            berlu_fail_in(status, path);
    }
    free(own.bytes);
    return status;
}

/* ---- classes --------------------------------------------------------------------------------- */

typedef struct class_names {
    const char **names;
    size_t count, capacity;
    int natural;
} class_names;

static int order_names(const class_names *c, const char *a, const char *b)
{
    int order = c->natural ? order_natural(a, b) : 0;
    return order ? order : strcmp(a, b);
}

static int order_name_pointers(const void *a, const void *b, void *classes)
{
    return order_names(classes, *(const char *const *)a, *(const char *const *)b);
}

static berlu_status class_add(class_names *c, const char *name)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 64;
        const char **grown = realloc(c->names, capacity * sizeof *grown);
        if (!grown)
            return berlu_fail_memory(capacity * sizeof *grown, "the names of classes");
        c->names = grown;
        c->capacity = capacity;
    }
    c->names[c->count++] = name;
    return BERLU_OK;
}

/* Files are sorted, so a class is almost always contiguous; sorting and removing duplicates handles
 * the rest. */
static berlu_status classes_collect(class_names *c, arena *memory, const scan_list *files, const char *root)
{
    const char *last = NULL;
    for (size_t i = 0; i < files->count; i++) {
        const scan_file *f = &files->files[i];
        const char *name = scan_path(files, i) + f->class_at;
        if (f->class_length == 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s/%s: an image outside of any class folder", root,
                              scan_path(files, i));
        if (last && strlen(last) == f->class_length && strncmp(last, name, f->class_length) == 0)
            continue;
        last = arena_printf(memory, "%.*s", (int)f->class_length, name);
        TRY(last ? class_add(c, last) : BERLU_ERR_MEMORY);
    }
    if (c->count == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no images (.jpg .jpeg .png) in class folders", root);
    qsort_r(c->names, c->count, sizeof *c->names, order_name_pointers, c);
    size_t kept = 1;
    for (size_t i = 1; i < c->count; i++)
        if (strcmp(c->names[i], c->names[kept - 1]) != 0)
            c->names[kept++] = c->names[i];
    c->count = kept;
    return BERLU_OK;
}

static long class_find(const class_names *c, const char *name)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = order_names(c, name, c->names[mid]);
        if (order == 0)
            return (long)mid;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return -1;
}

static berlu_status split_label(folder_split *split, const class_names *c)
{
    size_t count = split->files.count;
    split->labels = malloc((count ? count : 1) * sizeof *split->labels);
    if (!split->labels)
        return berlu_fail_memory(count * sizeof *split->labels, "labels");
    for (size_t i = 0; i < count; i++) {
        const scan_file *f = &split->files.files[i];
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)f->class_length, scan_path(&split->files, i) + f->class_at);
        long label = class_find(c, name);
        if (label < 0 && f->class_length == 0)
            return berlu_fail(BERLU_ERR_INPUT,
                              "%s/%s: an image outside of any class folder; for a flat folder give --val-labels FILE "
                              "with lines \"FILENAME CLASS\"",
                              split->root, scan_path(&split->files, i));
        if (label < 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s/%s: class '%s' has no folder in the training split", split->root,
                              scan_path(&split->files, i), name);
        split->labels[i] = (uint32_t)label;
    }
    return BERLU_OK;
}

/* ---- a flat val folder ----------------------------------------------------------------------- */

typedef struct flat_line {
    const char *file, *name;
} flat_line;

static int order_lines(const void *a, const void *b)
{
    return strcmp(((const flat_line *)a)->file, ((const flat_line *)b)->file);
}

static berlu_status lines_cut(flat_line **out, size_t *count, char *bytes, const char *path)
{
    size_t capacity = 1;
    for (const char *p = bytes; *p; p++)
        capacity += *p == '\n' || *p == '\r'; /* either ends a line below */
    flat_line *lines = malloc(capacity * sizeof *lines);
    if (!lines)
        return berlu_fail_memory(capacity * sizeof *lines, path);
    *out = lines;
    *count = 0;
    char *rest = NULL;
    for (char *line = strtok_r(bytes, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        char *word = NULL, *file = strtok_r(line, " \t,", &word), *name = strtok_r(NULL, " \t,", &word);
        if (!file)
            continue;
        if (!name)
            return berlu_fail(BERLU_ERR_INPUT, "%s: line with '%s' names no class; expected FILENAME CLASS", path,
                              file);
        lines[(*count)++] = (flat_line){file, name};
    }
    qsort(lines, *count, sizeof *lines, order_lines);
    return BERLU_OK;
}

static berlu_status lines_apply(folder_split *split, const class_names *c, const flat_line *lines, size_t count,
                                const char *path)
{
    split->labels = malloc((split->files.count + 1) * sizeof *split->labels);
    if (!split->labels)
        return berlu_fail_memory(split->files.count * sizeof *split->labels, path);
    for (size_t i = 0; i < split->files.count; i++) {
        flat_line key = {scan_path(&split->files, i), NULL};
        const flat_line *line = count ? bsearch(&key, lines, count, sizeof *lines, order_lines) : NULL;
        if (!line)
            return berlu_fail(BERLU_ERR_INPUT, "%s: no line for '%s'", path, key.file);
        long label = class_find(c, line->name);
        if (label < 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s: class '%s' of '%s' has no folder in the training split", path,
                              line->name, key.file);
        split->labels[i] = (uint32_t)label;
    }
    return BERLU_OK;
}

static berlu_status split_label_flat(folder_split *split, const class_names *c, const char *path)
{
    char *bytes = NULL;
    size_t size, count = 0;
    flat_line *lines = NULL;
    berlu_status status;
    TRY_DONE(file_read_all(&bytes, &size, path, LABEL_FILE_LIMIT));
    TRY_DONE(lines_cut(&lines, &count, bytes, path));
    status = lines_apply(split, c, lines, count, path);
done:
    free(lines);
    free(bytes);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The first of `names` that is a folder in `root`; NULL where none is. */
static berlu_status first_folder(const char **out, arena *memory, const char *root, const char *const *names)
{
    *out = NULL;
    for (; *names && !*out; names++) {
        const char *path = arena_printf(memory, "%s/%s", root, *names);
        if (!path)
            return BERLU_ERR_MEMORY;
        *out = folder_exists(path) ? path : NULL;
    }
    return BERLU_OK;
}

/* torchvision calls a class folder without images an error; so a class cannot be lost unnoticed. */
static berlu_status classes_none_empty(const data_source *s)
{
    const folder_state *f = s->state;
    if (f->natural)
        return BERLU_OK; /* timm's classes are the folders that hold files, so none can be empty */
    return scan_empty_class(&f->splits[DATA_TRAIN].files, f->splits[DATA_TRAIN].root, s->info.class_names,
                            s->info.classes);
}

static berlu_status splits_scan(data_source *s, const char *path)
{
    static const char *const train[] = {"train", "training", NULL};
    static const char *const test[] = {"val", "valid", "validation", "test", NULL};
    folder_state *f = s->state;
    const char *root;
    TRY(first_folder(&root, &s->memory, path, train));
    f->splits[DATA_TRAIN].root = root ? root : s->info.path;
    TRY(root ? first_folder(&f->splits[DATA_TEST].root, &s->memory, path, test) : BERLU_OK);
    for (int i = 0; i < DATA_SPLITS; i++)
        if (f->splits[i].root)
            TRY(scan_folder(&f->splits[i].files, f->splits[i].root, f->natural));
    for (int i = 0; i < DATA_SPLITS; i++) {
        const char *message = f->splits[i].files.skipped;
        for (size_t k = 0; k < f->splits[i].files.skipped_count; k++) {
            TRY(data_report_skipped(s, message));
            message += strlen(message) + 1;
        }
    }
    return BERLU_OK;
}

static berlu_status classes_find(data_source *s, const data_options *o)
{
    folder_state *f = s->state;
    class_names c = {.natural = f->natural};
    folder_split *train = &f->splits[DATA_TRAIN], *test = &f->splits[DATA_TEST];
    berlu_status status;
    TRY_DONE(classes_collect(&c, &s->memory, &train->files, train->root));
    TRY_DONE(split_label(train, &c));
    if (test->root)
        TRY_DONE(o->val_labels ? split_label_flat(test, &c, o->val_labels) : split_label(test, &c));
    const char **names = ARENA_ARRAY(&s->memory, const char *, c.count);
    TRY_DONE(names ? BERLU_OK : BERLU_ERR_MEMORY);
    memcpy(names, c.names, c.count * sizeof *names);
    s->info.class_names = names;
    s->info.classes = c.count;
    status = classes_none_empty(s);
done:
    free(c.names);
    return status;
}

static berlu_status folder_open(data_source *s, const char *path, const data_options *o)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225}; /* ImageNet's, by convention */
    const char *order = o->class_order ? o->class_order : "torchvision";
    if (strcmp(order, "torchvision") != 0 && strcmp(order, "timm") != 0)
        return berlu_fail(BERLU_ERR_ARG, "class order '%s': torchvision or timm", order);
    if (!folder_exists(path))
        return berlu_fail(BERLU_ERR_INPUT,
                          file_exists(path) ? "%s: is a file; unpack an archive and give the folder of its images"
                                            : "%s: no such folder",
                          path);
    folder_state *f = s->state = calloc(1, sizeof *f);
    if (!f)
        return berlu_fail_memory(sizeof *f, path);
    f->natural = strcmp(order, "timm") == 0;
    s->info.class_order = f->natural ? "timm" : "torchvision";
    memcpy(s->info.mean, mean, sizeof mean);
    memcpy(s->info.std, std, sizeof std);
    berlu_status status = splits_scan(s, path);
    if (status == BERLU_OK)
        status = classes_find(s, o);
    for (int i = 0; i < DATA_SPLITS; i++)
        s->info.images[i] = f->splits[i].files.count;
    return status;
}

static void folder_close(data_source *s)
{
    folder_state *f = s->state;
    for (int i = 0; f && i < DATA_SPLITS; i++) {
        scan_free(&f->splits[i].files);
        free(f->splits[i].labels);
    }
    free(f);
}

const data_kind data_folder = {
    .name = "folder",
    .help = "images in folders, ROOT/train/CLASS/FILE and ROOT/val/CLASS/FILE",
    .options = HAS_CLASS_ORDER | HAS_VAL_LABELS | HAS_FILES,
    .recognise = folder_exists,
    .open = folder_open,
    .label = folder_label,
    .read = folder_read,
    .name_of = folder_name_of,
    .close = folder_close,
};
