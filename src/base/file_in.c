/* file_in.c - reads a file in parts with pread(). SPDX-License-Identifier: MIT
 *
 * Every read names its offset, so threads share a descriptor without a lock, and goes on after an
 * interruption. A file that ends before its size at opening has been cut: an error that says so. */
#include "base/file_in.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

berlu_status file_in_open(file_in *out, const char *path)
{
    return file_in_open_in(out, NULL, path, path);
}

berlu_status file_in_open_in(file_in *out, const folder_handle *in, const char *name, const char *path)
{
    struct stat info;
    *out = (file_in){.fd = -1, .path = path};
    do
        out->fd = openat(in ? in->fd : AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    while (out->fd < 0 && errno == EINTR);
    if (out->fd < 0)
        return file_fail_read(path);
    if (fstat(out->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        file_in_close(out);
        return berlu_fail(BERLU_ERR_INPUT, "%s: is not a regular file", path);
    }
    out->size = (uint64_t)info.st_size;
    return BERLU_OK;
}

void file_in_close(file_in *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

berlu_status file_in_read(const file_in *f, uint64_t at, void *bytes, size_t count)
{
    assert(f->fd >= 0);
    unsigned char *to = bytes;
    while (count) {
        ssize_t got = pread(f->fd, to, count, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_fail_read(f->path);
        if (got == 0)
            return berlu_fail(BERLU_ERR_INPUT,
                              "%s: ends at byte %llu; it had %llu bytes when it was opened and has been cut since",
                              f->path, (unsigned long long)at, (unsigned long long)f->size);
        to += got;
        at += (uint64_t)got;
        count -= (size_t)got;
    }
    return BERLU_OK;
}

berlu_status file_in_each(const file_in *f, uint64_t count, file_in_take *take, void *context)
{
    unsigned char piece[FILE_IN_PIECE];
    for (uint64_t at = 0; at < count; at += sizeof piece) {
        size_t some = count - at < sizeof piece ? (size_t)(count - at) : sizeof piece;
        TRY(file_in_read(f, at, piece, some));
        take(context, piece, some);
    }
    return BERLU_OK;
}

berlu_status file_in_all(unsigned char **out, size_t *size, const char *path)
{
    file_in f;
    TRY(file_in_open(&f, path));
    unsigned char *bytes = f.size < SIZE_MAX ? malloc((size_t)f.size + 1) : NULL;
    berlu_status status = bytes ? file_in_read(&f, 0, bytes, (size_t)f.size) : berlu_fail_memory((size_t)f.size, path);
    if (status == BERLU_OK) {
        bytes[f.size] = 0;
        *size = (size_t)f.size;
        *out = bytes;
        bytes = NULL;
    }
    free(bytes);
    file_in_close(&f);
    return status;
}
