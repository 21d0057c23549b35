/* safetensors.c - reads files of named tensors; input is untrusted. SPDX-License-Identifier: MIT
 *
 * The header is JSON, parsed by jansson; since a parser allocates whatever the text describes,
 * header_scan() first bounds the text: nesting, the number of objects and commas, no sign outside a
 * string. After that every entry is checked alone (entry_read) and all of them together: sorted by
 * offset they must tile the data without hole, overlap or rest (tensors_tile). Values are not read
 * here: an entry has their offset. Read header_parse() first. Values are read by
 * safetensors_values.c; the writer is safetensors_write.c. */
#include "io/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file_in.h"
#include "io/json_parse.h"

struct safetensors {
    arena memory; /* names, entries, metadata */
    file_in in;   /* closed when the bytes are the caller's */
    const char *path;
    st_tensor *tensors; /* sorted by name */
    size_t count;
    st_text *metadata;
    size_t texts;
};

/* ---- the header as bytes --------------------------------------------------------------------- */

/* Upper bounds for a legal header: one object around it, one for the metadata, one per tensor; and
 * per tensor ten commas inside (rank 8) and one after it; the rest of fourteen is for metadata.
 * Bounded before the parser allocates, so a hostile header costs a constant factor of its own
 * size. */
enum { DEPTH_MAX = 4, OBJECTS_MAX = ST_TENSORS_MAX + 2, COMMAS_MAX = 14 * ST_TENSORS_MAX };

static berlu_status header_scan(const unsigned char *header, size_t size, const char *path)
{
    int depth = 0, in_text = 0;
    size_t objects = 0, commas = 0;
    if (size == 0 || header[0] != '{')
        return berlu_fail(BERLU_ERR_INPUT, "%s: the header does not begin with '{'", path);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = header[i];
        if (in_text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_text = 0;
            continue;
        }
        if (c == '"')
            in_text = 1;
        else if (c == '{' || c == '[')
            depth++, objects += c == '{';
        else if (c == '}' || c == ']')
            depth--;
        else if (c == ',')
            commas++;
        else if (c == '-' || c == '+')
            return berlu_fail(BERLU_ERR_INPUT,
                              "%s: header byte %zu: a signed number; sizes and offsets are plain digits", path, i);
        if (depth > DEPTH_MAX)
            return berlu_fail(BERLU_ERR_INPUT, "%s: header byte %zu: nested deeper than %d", path, i, DEPTH_MAX);
        if (objects > OBJECTS_MAX || commas > COMMAS_MAX)
            return berlu_fail(BERLU_ERR_INPUT, "%s: the header lists more than %d tensors", path, ST_TENSORS_MAX);
    }
    return BERLU_OK;
}

/* torch.save() writes a zip archive, before version 1.6 a bare pickle. */
static int is_pytorch(const unsigned char *bytes)
{
    return memcmp(bytes, "PK\3\4", 4) == 0 || (bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5);
}

/* The length of the header, from the first eight bytes of a file of `size`. */
static berlu_status header_find(const unsigned char *bytes, uint64_t size, const char *path, size_t *header)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: the header is said to be empty; is this a safetensors file?", path);
    if ((length > ST_HEADER_MAX || length > size - 8) && is_pytorch(bytes))
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: is a file of PyTorch (pickle), not of safetensors; convert it in Python: "
                          "safetensors.torch.save_file(torch.load('%s', weights_only=True), 'model.safetensors')",
                          path, path);
    if (length > ST_HEADER_MAX)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: a header of %llu bytes is more than the %d allowed; is this a safetensors file?", path,
                          (unsigned long long)length, ST_HEADER_MAX);
    if (length > size - 8)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: a header of %llu bytes is announced, the file ends after %llu; it is cut short", path,
                          (unsigned long long)length, (unsigned long long)size - 8);
    *header = (size_t)length;
    return BERLU_OK;
}

/* ---- one entry ------------------------------------------------------------------------------- */

static berlu_status name_check(const char *name, const char *path)
{
    size_t length = strlen(name);
    if (length == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: a tensor without a name", path);
    if (length > ST_NAME_MAX)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%.40s...': a name of %zu bytes, at most %d are allowed", path,
                          name, length, ST_NAME_MAX);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return berlu_fail(BERLU_ERR_INPUT, "%s: a tensor's name holds the control character 0x%02x at byte %zu",
                              path, (unsigned char)*c, (size_t)(c - name));
    return BERLU_OK;
}

static berlu_status dtype_read(st_tensor *t, const json_t *value, const char *path)
{
    if (!json_is_string(value))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': no dtype", path, t->name);
    for (size_t i = 0; i < ST_DTYPE_COUNT; i++)
        if (strcmp(json_string_value(value), st_dtype_name((st_dtype)i)) == 0) {
            t->dtype = (st_dtype)i;
            return BERLU_OK;
        }
    return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': dtype '%.20s' is not one of I64 F64 F32 I32 BF16 F16 U8", path,
                      t->name, json_string_value(value));
}

static berlu_status shape_read(st_tensor *t, const json_t *value, const char *path)
{
    if (!json_is_array(value))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': no shape", path, t->name);
    if (json_array_size(value) > ST_RANK_MAX)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': %zu dimensions, at most %d are allowed", path, t->name,
                          json_array_size(value), ST_RANK_MAX);
    t->rank = (int)json_array_size(value);
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        const json_t *size = json_array_get(value, (size_t)i);
        if (!json_is_integer(size))
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': dimension %d is not a whole number", path, t->name, i);
        t->shape[i] = (uint64_t)json_integer_value(size);
        if (!size_mul(t->count, t->shape[i], &t->count))
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': the shape is too large", path, t->name);
    }
    if (!size_mul(t->count, st_dtype_size(t->dtype), &t->bytes))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': the shape is too large", path, t->name);
    return BERLU_OK;
}

/* The offsets must lie inside the data and span exactly the bytes of dtype and shape. */
static berlu_status offsets_read(st_tensor *t, const json_t *value, uint64_t data_size, const char *path)
{
    const json_t *first = json_array_get(value, 0), *last = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': data_offsets must be two whole numbers", path, t->name);
    unsigned long long begin = (unsigned long long)json_integer_value(first);
    unsigned long long end = (unsigned long long)json_integer_value(last);
    if (begin > end)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': its data ends (%llu) before it begins (%llu)", path,
                          t->name, end, begin);
    if (end > data_size)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: tensor '%s': its data ends at byte %llu, the file holds %llu; it is cut short", path,
                          t->name, end, (unsigned long long)data_size);
    char shape[ST_SHAPE_TEXT];
    if (end - begin != t->bytes)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': %llu bytes of data, but %s of %s needs %zu", path, t->name,
                          end - begin, st_shape_text(shape, t->shape, t->rank), st_dtype_name(t->dtype), t->bytes);
    t->offset = begin;
    return BERLU_OK;
}

static berlu_status entry_read(st_tensor *t, json_t *entry, uint64_t data_size, const char *path)
{
    if (!json_is_object(entry))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': its entry is not an object", path, t->name);
    const char *key;
    json_t *value;
    json_object_foreach(entry, key, value)
    {
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 && strcmp(key, "data_offsets") != 0)
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': unknown key '%.40s'", path, t->name, key);
    }
    TRY(dtype_read(t, json_object_get(entry, "dtype"), path));
    TRY(shape_read(t, json_object_get(entry, "shape"), path));
    return offsets_read(t, json_object_get(entry, "data_offsets"), data_size, path);
}

/* ---- all entries ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const st_tensor *)a)->name, ((const st_tensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const st_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Sorts by offset and requires that the tensors cover the data exactly once. */
static berlu_status tensors_tile(st_tensor *tensors, size_t count, uint64_t data_size, const char *path)
{
    uint64_t next = 0;
    if (count)
        qsort(tensors, count, sizeof *tensors, by_place);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = tensors[i].offset;
        if (begin < next)
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': its data overlaps that of '%s'", path, tensors[i].name,
                              tensors[i - 1].name);
        if (begin > next)
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s': %llu bytes before its data belong to no tensor", path,
                              tensors[i].name, (unsigned long long)(begin - next));
        next = begin + tensors[i].bytes;
    }
    if (next != data_size)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %llu bytes at the end belong to no tensor", path,
                          (unsigned long long)(data_size - next));
    return BERLU_OK;
}

static berlu_status metadata_read(safetensors *file, json_t *object)
{
    if (!json_is_object(object))
        return berlu_fail(BERLU_ERR_INPUT, "%s: __metadata__ is not an object", file->path);
    file->metadata = ARENA_ARRAY(&file->memory, st_text, json_object_size(object) + 1);
    if (!file->metadata)
        return BERLU_ERR_MEMORY;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return berlu_fail(BERLU_ERR_INPUT, "%s: __metadata__: '%.40s' is not a text", file->path, key);
        st_text *pair = &file->metadata[file->texts++];
        pair->key = arena_strdup(&file->memory, key);
        pair->value = arena_strdup(&file->memory, json_string_value(value));
        if (!pair->key || !pair->value)
            return BERLU_ERR_MEMORY;
    }
    return BERLU_OK;
}

static berlu_status header_read(safetensors *file, json_t *root, uint64_t data_size)
{
    file->tensors = ARENA_ARRAY(&file->memory, st_tensor, json_object_size(root) + 1);
    if (!file->tensors)
        return BERLU_ERR_MEMORY;
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            TRY(metadata_read(file, entry));
            continue;
        }
        st_tensor *t = &file->tensors[file->count++];
        TRY(name_check(name, file->path));
        if (!(t->name = arena_strdup(&file->memory, name)))
            return BERLU_ERR_MEMORY;
        TRY(entry_read(t, entry, data_size, file->path));
    }
    if (file->count > ST_TENSORS_MAX)
        return berlu_fail(BERLU_ERR_INPUT, "%s: the header lists more than %d tensors", file->path, ST_TENSORS_MAX);
    TRY(tensors_tile(file->tensors, file->count, data_size, file->path));
    if (file->count)
        qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    return BERLU_OK;
}

/* The header as text, for a file whose data follows it with `data_size` bytes. */
static berlu_status header_parse(safetensors *file, const unsigned char *header, size_t size, uint64_t data_size)
{
    json_error_t error;
    TRY(header_scan(header, size, file->path));
    json_t *root;
    berlu_status status = json_parse(&root, (const char *)header, size, file->path, &error);
    if (status == BERLU_ERR_INPUT)
        return berlu_fail(status, "%s: header byte %d: %s", file->path, error.position, error.text);
    if (status != BERLU_OK)
        return status;
    status = header_read(file, root, data_size);
    json_decref(root);
    return status;
}

static berlu_status file_make(safetensors **out, const char *path)
{
    safetensors *file = calloc(1, sizeof *file);
    if (!file)
        return berlu_fail_memory(sizeof *file, path);
    file->in.fd = -1;
    if (!(file->path = arena_strdup(&file->memory, path))) {
        safetensors_close(file);
        return BERLU_ERR_MEMORY;
    }
    *out = file;
    return BERLU_OK;
}

static berlu_status too_short(uint64_t size, const char *path)
{
    return berlu_fail(BERLU_ERR_INPUT, "%s: %llu bytes are too few for a safetensors file", path,
                      (unsigned long long)size);
}

berlu_status safetensors_parse(safetensors **out, const void *bytes, size_t size, const char *path)
{
    const unsigned char *at = bytes;
    size_t header = 0;
    safetensors *file = NULL;
    if (size < 8)
        return too_short(size, path);
    berlu_status status;
    TRY_DONE(header_find(at, size, path, &header));
    TRY_DONE(file_make(&file, path));
    TRY_DONE(header_parse(file, at + 8, header, size - 8 - header));
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i].data = at + 8 + header + file->tensors[i].offset;
    *out = file;
    file = NULL;
done:
    safetensors_close(file);
    return status;
}

/* The header of an open file, in memory for as long as it is parsed. */
static berlu_status header_load(safetensors *file)
{
    unsigned char first[8], *header = NULL;
    size_t size = 0;
    if (file->in.size < sizeof first)
        return too_short(file->in.size, file->path);
    berlu_status status;
    TRY_DONE(file_in_read(&file->in, 0, first, sizeof first));
    TRY_DONE(header_find(first, file->in.size, file->path, &size));
    header = malloc(size);
    TRY_DONE(header ? BERLU_OK : berlu_fail_memory(size, file->path));
    TRY_DONE(file_in_read(&file->in, sizeof first, header, size));
    TRY_DONE(header_parse(file, header, size, file->in.size - sizeof first - size));
    for (size_t i = 0; i < file->count; i++) {
        file->tensors[i].file = &file->in;
        file->tensors[i].offset += sizeof first + size;
    }
done:
    free(header);
    return status;
}

berlu_status safetensors_open(safetensors **out, const char *path)
{
    safetensors *file = NULL;
    berlu_status status;
    TRY_DONE(file_make(&file, path));
    TRY_DONE(file_in_open(&file->in, file->path));
    TRY_DONE(header_load(file));
    *out = file;
    file = NULL;
done:
    safetensors_close(file);
    return status;
}

void safetensors_close(safetensors *file)
{
    if (!file)
        return;
    file_in_close(&file->in);
    arena_free(&file->memory);
    free(file);
}

/* ---- queries --------------------------------------------------------------------------------- */

size_t safetensors_count(const safetensors *file)
{
    return file->count;
}

const st_tensor *safetensors_at(const safetensors *file, size_t i)
{
    return &file->tensors[i];
}

const st_tensor *safetensors_find(const safetensors *file, const char *name)
{
    const st_tensor wanted = {.name = name};
    return file->count ? bsearch(&wanted, file->tensors, file->count, sizeof wanted, by_name) : NULL;
}

const char *safetensors_metadata(const safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->texts; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

const char *safetensors_path(const safetensors *file)
{
    return file->path;
}
