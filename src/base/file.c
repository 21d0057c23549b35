/* file.c - files that appear whole. SPDX-License-Identifier: MIT
 *
 * Read file_out_open(), file_out_commit(); the rest is loops around system calls. Folders and links
 * are in folder.c. What exists under the path and is not a regular file (a pipe, /dev/null) cannot
 * be replaced by a rename without destroying it; such a target is written directly. Everything is
 * done relative to a folder_handle; an ordinary path is the case without one. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { BUFFER = 1 << 16, TRIES = 100 };

struct file_out {
    int fd;
    int at; /* the folder that names are relative to; AT_FDCWD for an ordinary path */
    size_t buffered;
    char *path;       /* for messages */
    const char *name; /* the end of `path` that is relative to `at` */
    char *temporary;  /* relative to `at`; NULL when the target is written directly */
    unsigned char buffer[BUFFER];
};

berlu_status file_fail_read(const char *path)
{
    int limit = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return berlu_fail(limit ? BERLU_ERR_IO : BERLU_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
}

berlu_status folder_next(const struct dirent **out, DIR *folder, const char *path)
{
    errno = 0;
    *out = readdir(folder);
    return *out || errno == 0 ? BERLU_OK : file_fail_read(path);
}

static berlu_status fail_write(const char *path, const char *step)
{
    return berlu_fail(BERLU_ERR_IO, "%s: cannot be written (%s): %s", path, step, strerror(errno));
}

static int open_again(int at, const char *name, int flags)
{
    int fd;
    do
        fd = openat(at, name, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static int at_of(const folder_handle *in)
{
    return in ? in->fd : AT_FDCWD;
}

static berlu_status write_all(int fd, const char *path, const unsigned char *bytes, size_t count)
{
    while (count) {
        ssize_t done = write(fd, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_write(path, "write");
        bytes += done;
        count -= (size_t)done;
    }
    return BERLU_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads to the end of any readable file, pipes included, so the size is not known beforehand. */
static berlu_status read_all(int fd, const char *path, size_t limit, char **data, size_t *size)
{
    size_t capacity = 0;
    for (;;) {
        if (capacity - *size < 2) {
            size_t larger = capacity ? capacity * 2 : 4096;
            char *grown = realloc(*data, larger);
            if (!grown)
                return berlu_fail_memory(larger, path);
            *data = grown;
            capacity = larger;
        }
        ssize_t got = read(fd, *data + *size, capacity - *size - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_fail_read(path);
        *size += (size_t)got;
        (*data)[*size] = 0;
        if (*size > limit)
            return berlu_fail(BERLU_ERR_INPUT, "%s: is larger than the %zu bytes allowed here", path, limit);
        if (got == 0)
            return BERLU_OK;
    }
}

berlu_status file_read_all(char **out, size_t *size, const char *path, size_t limit)
{
    char *data = NULL;
    size_t length = 0;
    int fd = open_again(AT_FDCWD, path, O_RDONLY);
    if (fd < 0)
        return file_fail_read(path);
    berlu_status status = read_all(fd, path, limit, &data, &length);
    close(fd);
    if (status != BERLU_OK) {
        free(data);
        return status;
    }
    *out = data;
    if (size)
        *size = length;
    return BERLU_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Opens an unused name in the target's folder: ".NAME.PID-TRY.tmp". */
static berlu_status open_temporary(file_out *f)
{
    const char *slash = strrchr(f->name, '/');
    size_t folder = slash ? (size_t)(slash - f->name) + 1 : 0, capacity = strlen(f->name) + 48;
    f->temporary = malloc(capacity);
    if (!f->temporary)
        return berlu_fail_memory(capacity, f->path);
    for (int n = 0; n < TRIES; n++) {
        snprintf(f->temporary, capacity, "%.*s.%s.%ld-%d.tmp", (int)folder, f->name, f->name + folder, (long)getpid(),
                 n);
        f->fd = open_again(f->at, f->temporary, O_WRONLY | O_CREAT | O_EXCL);
        if (f->fd >= 0)
            return BERLU_OK;
        if (errno != EEXIST)
            break;
    }
    berlu_status status = fail_write(f->path, "open");
    free(f->temporary);
    f->temporary = NULL; /* not ours to remove */
    return status;
}

/* /dev/stdout and /dev/fd/9 are links, which a rename would replace: as root, for everybody. */
static int is_descriptor(const file_out *f)
{
    struct stat info;
    return (strncmp(f->name, "/dev/", 5) == 0 || strncmp(f->name, "/proc/", 6) == 0) &&
           fstatat(f->at, f->name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

static berlu_status open_target(file_out *f)
{
    struct stat info;
    if (is_descriptor(f)) { /* a file that a shell has opened is continued, never cut */
        f->fd = open_again(f->at, f->name, O_WRONLY | O_APPEND);
        return f->fd < 0 ? fail_write(f->path, "open") : BERLU_OK;
    }
    if (fstatat(f->at, f->name, &info, 0) != 0 || S_ISREG(info.st_mode))
        return open_temporary(f);
    if (S_ISDIR(info.st_mode))
        return berlu_fail(BERLU_ERR_IO, "%s: cannot be written: it is a folder", f->path);
    f->fd = open_again(f->at, f->name, O_WRONLY);
    return f->fd < 0 ? fail_write(f->path, "open") : BERLU_OK;
}

berlu_status file_out_open(file_out **out, const char *path)
{
    return file_out_open_in(out, NULL, path);
}

berlu_status file_out_open_in(file_out **out, const folder_handle *in, const char *name)
{
    *out = NULL;
    file_out *f = calloc(1, sizeof *f);
    if (!f)
        return berlu_fail_memory(sizeof *f, name);
    f->fd = -1;
    f->at = at_of(in);
    size_t before = in ? strlen(in->path) + 1 : 0, bytes = before + strlen(name) + 1;
    f->path = malloc(bytes);
    berlu_status status = f->path ? BERLU_OK : berlu_fail_memory(bytes, name);
    if (status == BERLU_OK) {
        snprintf(f->path, bytes, "%s%s%s", in ? in->path : "", in ? "/" : "", name);
        f->name = f->path + before;
        status = open_target(f);
    }
    if (status != BERLU_OK) {
        file_out_discard(f);
        return status;
    }
    *out = f;
    return BERLU_OK;
}

static berlu_status buffer_flush(file_out *f)
{
    berlu_status status = write_all(f->fd, f->path, f->buffer, f->buffered);
    f->buffered = 0;
    return status;
}

berlu_status file_out_write(file_out *f, const void *bytes, size_t count)
{
    if (count > BUFFER - f->buffered) {
        TRY(buffer_flush(f));
    }
    if (count >= BUFFER)
        return write_all(f->fd, f->path, bytes, count);
    if (count)
        memcpy(f->buffer + f->buffered, bytes, count);
    f->buffered += count;
    return BERLU_OK;
}

static berlu_status out_finish(file_out *f)
{
    TRY(buffer_flush(f));
    if (f->temporary && fsync(f->fd) != 0)
        return fail_write(f->path, "fsync");
    int fd = f->fd;
    f->fd = -1; /* closed even when close() reports a failure */
    if (close(fd) != 0)
        return fail_write(f->path, "close");
    if (!f->temporary)
        return BERLU_OK;
    if (renameat(f->at, f->temporary, f->at, f->name) != 0)
        return fail_write(f->path, "rename");
    free(f->temporary);
    f->temporary = NULL;
    return folder_sync_above(f->at, f->name, f->path);
}

berlu_status file_out_commit(file_out *f)
{
    berlu_status status = out_finish(f);
    file_out_discard(f);
    return status;
}

void file_out_discard(file_out *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    if (f->temporary)
        unlinkat(f->at, f->temporary, 0);
    free(f->temporary);
    free(f->path);
    free(f);
}

berlu_status file_write_atomic(const char *path, const void *bytes, size_t count)
{
    return file_write_atomic_in(NULL, path, bytes, count);
}

berlu_status file_write_atomic_in(const folder_handle *in, const char *name, const void *bytes, size_t count)
{
    file_out *f;
    TRY(file_out_open_in(&f, in, name));
    berlu_status status = file_out_write(f, bytes, count);
    if (status == BERLU_OK)
        return file_out_commit(f);
    file_out_discard(f);
    return status;
}

berlu_status file_write_text(const folder_handle *in, const char *name, const text *t)
{
    TRY(text_status(t));
    return file_write_atomic_in(in, name, t->data ? t->data : "", t->length);
}

berlu_status file_append_in(const folder_handle *in, const char *name, const void *bytes, size_t count, int sync)
{
    char shown[FILE_SHOWN];
    const char *path = file_shown(shown, in, name);
    int fd = open_again(at_of(in), name, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return fail_write(path, "open");
    off_t before = lseek(fd, 0, SEEK_END);
    berlu_status status = write_all(fd, path, bytes, count);
    if (status == BERLU_OK && sync && fsync(fd) != 0)
        status = fail_write(path, "fsync");
    if (status != BERLU_OK && before >= 0 && ftruncate(fd, before) != 0)
        (void)0; /* half a line stays behind; the failure is reported either way */
    if (close(fd) != 0 && status == BERLU_OK)
        status = fail_write(path, "close");
    return status;
}

berlu_status file_truncate_in(const folder_handle *in, const char *name, uint64_t size)
{
    char shown[FILE_SHOWN];
    const char *path = file_shown(shown, in, name);
    int fd = open_again(at_of(in), name, O_WRONLY);
    if (fd < 0)
        return fail_write(path, "open");
    berlu_status status = BERLU_OK;
    if (ftruncate(fd, (off_t)size) != 0)
        status = fail_write(path, "truncate");
    else if (fsync(fd) != 0)
        status = fail_write(path, "fsync");
    if (close(fd) != 0 && status == BERLU_OK)
        status = fail_write(path, "close");
    return status;
}
