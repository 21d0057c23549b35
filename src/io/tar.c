/* tar.c - ustar archives, block by block. SPDX-License-Identifier: MIT
 *
 * A file is a header of 512 bytes, its content and zeros up to the next block; two blocks of zeros
 * end the archive. Fields that vary between machines (owner, time, mode) are constants. */
#include "io/tar.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file_in.h"

enum { BLOCK = 512, PIECE = 1 << 16 };

/* Fields of a ustar header, in place. */
typedef struct tar_header {
    char name[TAR_NAME], mode[8], owner[8], group[8], size[12], time[12], sum[8], type, link[100], magic[6], version[2],
        rest[80], folder[TAR_FOLDER], end[12];
} tar_header;
_Static_assert(sizeof(tar_header) == BLOCK, "a header is one block");

static berlu_status header_write(tar_out *t, const char *name, uint64_t size)
{
    tar_header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    const char *slash = strlen(name) < sizeof h.name ? NULL : strrchr(name, '/');
    const char *own = slash ? slash + 1 : name;
    size_t folder = slash ? (size_t)(slash - name) : 0;
    if (strlen(own) >= sizeof h.name || folder >= sizeof h.folder || size >> 33)
        return berlu_fail(BERLU_ERR_ARG, "%s: '%s' is too long for an archive", t->path, name);
    snprintf(h.name, sizeof h.name, "%s", own);
    snprintf(h.folder, sizeof h.folder, "%.*s", (int)folder, name);
    snprintf(h.mode, sizeof h.mode, "%07o", 0644u);
    snprintf(h.owner, sizeof h.owner, "%07o", 0u);
    snprintf(h.group, sizeof h.group, "%07o", 0u);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)size);
    snprintf(h.time, sizeof h.time, "%011o", 0u);
    memset(h.sum, ' ', sizeof h.sum); /* the sum counts itself as spaces */
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(h.sum, sizeof h.sum, "%06o", sum);
    return file_out_write(t->file, &h, sizeof h);
}

static berlu_status blocks_fill(tar_out *t, uint64_t size)
{
    static const char zeros[BLOCK];
    size_t over = (size_t)(size % BLOCK);
    return over ? file_out_write(t->file, zeros, BLOCK - over) : BERLU_OK;
}

berlu_status tar_open(tar_out *t, const char *path)
{
    *t = (tar_out){.path = path};
    return file_out_open(&t->file, path);
}

/* Read in pieces: the size is taken once, and a file that shrinks meanwhile is an error of the
 * reader. */
berlu_status tar_add_file(tar_out *t, const char *name, const char *path)
{
    file_in in;
    char piece[PIECE];
    berlu_status status;
    TRY(file_in_open(&in, path));
    TRY_DONE(header_write(t, name, in.size));
    for (uint64_t at = 0; at < in.size; at += PIECE) {
        size_t count = in.size - at < PIECE ? (size_t)(in.size - at) : PIECE;
        TRY_DONE(file_in_read(&in, at, piece, count));
        TRY_DONE(file_out_write(t->file, piece, count));
    }
    status = blocks_fill(t, in.size);
done:
    file_in_close(&in);
    return status;
}

berlu_status tar_add_bytes(tar_out *t, const char *name, const void *bytes, size_t count)
{
    TRY(header_write(t, name, count));
    TRY(file_out_write(t->file, bytes, count));
    return blocks_fill(t, count);
}

berlu_status tar_commit(tar_out *t)
{
    static const char end[2 * BLOCK];
    berlu_status status = file_out_write(t->file, end, sizeof end);
    if (status == BERLU_OK)
        status = file_out_commit(t->file);
    else
        file_out_discard(t->file);
    t->file = NULL;
    return status;
}

void tar_discard(tar_out *t)
{
    file_out_discard(t->file);
    t->file = NULL;
}
