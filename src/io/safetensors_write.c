/* safetensors_write.c - writes files of named tensors, byte for byte as the reference writer.
 * SPDX-License-Identifier: MIT
 *
 * Order: wider types first (the order of st_dtype), then names as bytes; metadata in front; compact
 * JSON; blanks until the data begins at a multiple of 8. So two programs that write the same
 * weights write the same file. The file is written under a temporary name and renamed
 * (base/file.h): a reader never sees a partial one. The reader is safetensors.c. */
#include "io/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/file_in.h"
#include "base/text.h"

/* jansson's escaping is the reference's: the quote, the backslash and control characters,
 * everything else as it is. */
static berlu_status json_text_add(text *t, const char *string)
{
    if (utf8_span(string) != strlen(string))
        return berlu_fail(BERLU_ERR_ARG, "safetensors: '%.40s' is not UTF-8", string);
    json_t *value = json_string(string);
    if (!value)
        return berlu_fail_memory(strlen(string), "a text of a safetensors header");
    char *quoted = json_dumps(value, JSON_ENCODE_ANY);
    json_decref(value);
    if (!quoted)
        return berlu_fail_memory(strlen(string), "a text of a safetensors header");
    text_string(t, quoted);
    free(quoted);
    return BERLU_OK;
}

/* A tensor and its size in the file. */
typedef struct piece {
    const st_tensor *t;
    size_t bytes;
} piece;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const piece *)a)->t->name, ((const piece *)b)->t->name);
}

static int by_file_order(const void *a, const void *b)
{
    int wide = (int)((const piece *)a)->t->dtype - (int)((const piece *)b)->t->dtype;
    return wide ? wide : by_name(a, b);
}

/* Checks the caller's list. */
static berlu_status piece_make(piece *p, const st_tensor *t, const char *path)
{
    if (!t->name || !*t->name || strlen(t->name) > ST_NAME_MAX || strcmp(t->name, "__metadata__") == 0)
        return berlu_fail(BERLU_ERR_ARG, "%s: a tensor's name must have 1 to %d bytes and not be __metadata__", path,
                          ST_NAME_MAX);
    for (const char *c = t->name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return berlu_fail(BERLU_ERR_ARG, "%s: a tensor's name holds the control character 0x%02x", path,
                              (unsigned char)*c);
    if ((unsigned)t->dtype >= ST_DTYPE_COUNT || t->rank < 0 || t->rank > ST_RANK_MAX)
        return berlu_fail(BERLU_ERR_ARG, "%s: tensor '%s': dtype or rank is out of range", path, t->name);
    *p = (piece){t, st_dtype_size(t->dtype)};
    for (int i = 0; i < t->rank; i++)
        if (!size_mul(p->bytes, t->shape[i], &p->bytes))
            return berlu_fail(BERLU_ERR_ARG, "%s: tensor '%s': the shape is too large", path, t->name);
    if (p->bytes && !t->data && !t->file)
        return berlu_fail(BERLU_ERR_ARG, "%s: tensor '%s': no data", path, t->name);
    return BERLU_OK;
}

/* Checks all tensors and sorts them into the order of the file. */
static berlu_status pieces_make(piece *pieces, const st_tensor *tensors, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        TRY(piece_make(&pieces[i], &tensors[i], path));
    }
    if (count)
        qsort(pieces, count, sizeof *pieces, by_name);
    for (size_t i = 1; i < count; i++)
        if (by_name(&pieces[i - 1], &pieces[i]) == 0)
            return berlu_fail(BERLU_ERR_ARG, "%s: two tensors are named '%s'", path, pieces[i].t->name);
    if (count)
        qsort(pieces, count, sizeof *pieces, by_file_order);
    return BERLU_OK;
}

static berlu_status metadata_add(text *header, const st_text *metadata, size_t texts)
{
    text_string(header, "\"__metadata__\":{");
    for (size_t i = 0; i < texts; i++) {
        if (i)
            text_string(header, ",");
        TRY(json_text_add(header, metadata[i].key));
        text_string(header, ":");
        TRY(json_text_add(header, metadata[i].value));
    }
    text_string(header, "}");
    return BERLU_OK;
}

static berlu_status entry_add(text *header, const piece *p, size_t begin)
{
    berlu_status status = json_text_add(header, p->t->name);
    text_add(header, ":{\"dtype\":\"%s\",\"shape\":[", st_dtype_name(p->t->dtype));
    for (int i = 0; i < p->t->rank; i++)
        text_add(header, "%s%" PRIu64, i ? "," : "", p->t->shape[i]);
    text_add(header, "],\"data_offsets\":[%zu,%zu]}", begin, begin + p->bytes);
    return status;
}

static berlu_status header_make(text *header, const piece *pieces, size_t count, const st_text *metadata, size_t texts)
{
    size_t begin = 0;
    text_string(header, "{");
    if (texts)
        TRY(metadata_add(header, metadata, texts));
    for (size_t i = 0; i < count; i++) {
        if (i || texts)
            text_string(header, ",");
        TRY(entry_add(header, &pieces[i], begin));
        begin += pieces[i].bytes;
    }
    text_string(header, "}");
    while (!header->failed && header->length % 8)
        text_string(header, " ");
    return text_status(header);
}

/* The values of one tensor; those of another open file are copied in pieces. */
static berlu_status values_write(file_out *file, const piece *p)
{
    unsigned char part[1 << 15];
    if (p->t->data || p->bytes == 0)
        return file_out_write(file, p->t->data, p->bytes);
    for (size_t at = 0; at < p->bytes; at += sizeof part) {
        size_t count = p->bytes - at < sizeof part ? p->bytes - at : sizeof part;
        TRY(file_in_read(p->t->file, p->t->offset + at, part, count));
        TRY(file_out_write(file, part, count));
    }
    return BERLU_OK;
}

static berlu_status file_fill(file_out *file, const text *header, const piece *pieces, size_t count)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header->length >> (8 * i));
    TRY(file_out_write(file, length, sizeof length));
    TRY(file_out_write(file, header->data, header->length));
    for (size_t i = 0; i < count; i++)
        TRY(values_write(file, &pieces[i]));
    return BERLU_OK;
}

berlu_status safetensors_write(const char *path, const st_tensor *tensors, size_t count, const st_text *metadata,
                               size_t texts)
{
    return safetensors_write_in(NULL, path, tensors, count, metadata, texts);
}

berlu_status safetensors_write_in(const folder_handle *in, const char *path, const st_tensor *tensors, size_t count,
                                  const st_text *metadata, size_t texts)
{
    text header = {0};
    file_out *file = NULL;
    piece *pieces = calloc(count + 1, sizeof *pieces);
    if (!pieces)
        return berlu_fail_memory((count + 1) * sizeof *pieces, path);
    berlu_status status;
    TRY_DONE(pieces_make(pieces, tensors, count, path));
    TRY_DONE(header_make(&header, pieces, count, metadata, texts));
    TRY_DONE(file_out_open_in(&file, in, path));
    TRY_DONE(file_fill(file, &header, pieces, count));
    status = file_out_commit(file); /* frees the file, whatever it returns */
    file = NULL;
done:
    file_out_discard(file);
    text_free(&header);
    free(pieces);
    return status;
}
