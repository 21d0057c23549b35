/* folder.c - folders, renames and links, each made durable by an fsync of the parent.
 * SPDX-License-Identifier: MIT
 *
 * A rename or a new entry survives a power cut only once the folder that holds the name is on
 * disk. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int at_of(const folder_handle *in)
{
    return in ? in->fd : AT_FDCWD;
}

const char *file_shown(char out[FILE_SHOWN], const folder_handle *in, const char *name)
{
    if (!in)
        return name;
    snprintf(out, FILE_SHOWN, "%s/%s", in->path, name);
    return out;
}

static berlu_status fail_folder(const folder_handle *in, const char *name, const char *step)
{
    int error = errno;
    char shown[FILE_SHOWN];
    return berlu_fail(BERLU_ERR_IO, "%s: %s: %s", file_shown(shown, in, name), step, strerror(error));
}

/* ---- a folder held open ---------------------------------------------------------------------- */

berlu_status folder_hold(folder_handle *out, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return file_fail_read(path);
    *out = (folder_handle){.fd = fd, .path = path};
    return BERLU_OK;
}

void folder_release(folder_handle *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

int folder_in_place(const folder_handle *f)
{
    struct stat held, named;
    return fstat(f->fd, &held) == 0 && stat(f->path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

/* ---- what is there --------------------------------------------------------------------------- */

int file_exists_in(const folder_handle *in, const char *name)
{
    struct stat info;
    return fstatat(at_of(in), name, &info, 0) == 0 && S_ISREG(info.st_mode);
}

int file_exists(const char *path)
{
    return file_exists_in(NULL, path);
}

int folder_exists_in(const folder_handle *in, const char *name)
{
    struct stat info;
    return fstatat(at_of(in), name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

int folder_exists(const char *path)
{
    return folder_exists_in(NULL, path);
}

/* ---- syncing --------------------------------------------------------------------------------- */

berlu_status folder_sync_in(const folder_handle *in, const char *name)
{
    int fd = openat(at_of(in), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_folder(in, name, "cannot be opened to sync it");
    berlu_status status = BERLU_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) /* those two: this file system has nothing to sync */
        status = fail_folder(in, name, "cannot be synced");
    close(fd);
    return status;
}

berlu_status folder_sync(const char *path)
{
    return folder_sync_in(NULL, path);
}

/* On the stack: it follows a rename that has happened already, so it should not be able to fail for
 * lack of memory. */
berlu_status folder_sync_above(int at, const char *name, const char *shown)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(name, '/');
    size_t length = slash ? (slash == name ? 1 : (size_t)(slash - name)) : 0;
    if (length >= sizeof folder)
        return berlu_fail(BERLU_ERR_IO, "%s: this path is too long", shown);
    if (length) {
        memcpy(folder, name, length);
        folder[length] = 0;
    }
    if (at == AT_FDCWD)
        return folder_sync(folder);
    return folder_sync_in(&(folder_handle){.fd = at, .path = shown}, folder);
}

static berlu_status sync_above(const folder_handle *in, const char *name)
{
    return folder_sync_above(at_of(in), name, in ? in->path : name);
}

/* ---- making, renaming, removing -------------------------------------------------------------- */

berlu_status folder_make_in(const folder_handle *in, const char *name)
{
    if (folder_exists_in(in, name))
        return BERLU_OK;
    if (mkdirat(at_of(in), name, 0777) == 0)
        return sync_above(in, name);
    if (errno == EEXIST && folder_exists_in(in, name)) /* someone else was faster */
        return BERLU_OK;
    return fail_folder(in, name, "this folder cannot be made");
}

berlu_status folder_make(const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *part = malloc(bytes);
    if (!part)
        return berlu_fail_memory(bytes, path);
    memcpy(part, path, bytes);
    while (bytes > 2 && part[bytes - 2] == '/') /* no trailing slashes, so that each part has a name */
        part[--bytes - 1] = 0;
    berlu_status status = BERLU_OK;
    for (char *slash = strchr(part + (*part == '/'), '/'); slash && status == BERLU_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        status = folder_make_in(NULL, part);
        *slash = '/';
    }
    if (status == BERLU_OK)
        status = folder_make_in(NULL, part);
    free(part);
    return status;
}

/* Everything inside, then the thing itself. A link is removed, never followed. Returns 0, or -1
 * with errno. */
static int tree_remove(int at, const char *name, int depth)
{
    enum { DEEPEST = 64 };
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = depth < DEEPEST ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int failed = 0, error = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            tree_remove(fd, entry->d_name, depth + 1) != 0)
            failed = 1, error = errno;
    closedir(dir);
    if (unlinkat(at, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (failed)
        errno = error;
    return -1;
}

berlu_status folder_remove_in(const folder_handle *in, const char *name)
{
    return tree_remove(at_of(in), name, 0) == 0 ? BERLU_OK : fail_folder(in, name, "this folder cannot be removed");
}

berlu_status folder_remove(const char *path)
{
    return folder_remove_in(NULL, path);
}

berlu_status path_rename_in(const folder_handle *in, const char *from, const char *to)
{
    char shown[FILE_SHOWN];
    if (renameat(at_of(in), from, at_of(in), to) != 0)
        return berlu_fail(BERLU_ERR_IO, "%s: cannot be renamed to %s: %s", file_shown(shown, in, from), to,
                          strerror(errno));
    return sync_above(in, to);
}

berlu_status path_rename(const char *from, const char *to)
{
    return path_rename_in(NULL, from, to);
}

berlu_status link_replace_in(const folder_handle *in, const char *target, const char *name)
{
    size_t size = strlen(name) + 32;
    char *temporary = malloc(size);
    if (!temporary)
        return berlu_fail_memory(size, name);
    snprintf(temporary, size, "%s.%ld.tmp", name, (long)getpid());
    (void)unlinkat(at_of(in), temporary, 0); /* left behind by a process of the same number */
    berlu_status status;
    if (symlinkat(target, at_of(in), temporary) != 0) {
        status = fail_folder(in, name, "the link cannot be made");
    } else if (renameat(at_of(in), temporary, at_of(in), name) != 0) {
        status = fail_folder(in, name, "the link cannot be replaced");
        (void)unlinkat(at_of(in), temporary, 0);
    } else {
        status = sync_above(in, name);
    }
    free(temporary);
    return status;
}
