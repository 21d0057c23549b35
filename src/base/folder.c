/* folder.c - folders, renames and links, each made durable by an fsync of the parent.
 * SPDX-License-Identifier: MIT
 *
 * A rename or a new entry survives a power cut only once the folder that holds the name is on
 * disk. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static berlu_status fail_folder(const char *path, const char *step)
{
    return berlu_fail(BERLU_ERR_IO, "%s: %s: %s", path, step, strerror(errno));
}

int file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

int folder_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

berlu_status folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_folder(path, "cannot be opened to sync it");
    berlu_status status = BERLU_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) /* these two: the file system has nothing to sync */
        status = fail_folder(path, "cannot be synced");
    close(fd);
    return status;
}

/* Works on the stack: it follows a rename that has happened already, so it should not be able to
 * fail for lack of memory. */
berlu_status folder_sync_of(const char *path)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (slash == path ? 1 : (size_t)(slash - path)) : 0;
    if (length >= sizeof folder)
        return berlu_fail(BERLU_ERR_IO, "%s: this path is too long", path);
    if (length) {
        memcpy(folder, path, length);
        folder[length] = 0;
    }
    return folder_sync(folder);
}

static berlu_status folder_make_one(const char *path)
{
    if (folder_exists(path))
        return BERLU_OK;
    if (mkdir(path, 0777) == 0)
        return folder_sync_of(path);
    if (errno == EEXIST && folder_exists(path)) /* another process was faster */
        return BERLU_OK;
    return fail_folder(path, "this folder cannot be made");
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
        status = folder_make_one(part);
        *slash = '/';
    }
    if (status == BERLU_OK)
        status = folder_make_one(part);
    free(part);
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

berlu_status folder_remove(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 && errno == ENOENT)
        return BERLU_OK;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return fail_folder(path, "this folder cannot be removed");
    return BERLU_OK;
}

berlu_status path_rename(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        return berlu_fail(BERLU_ERR_IO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
    return folder_sync_of(to);
}

berlu_status link_replace(const char *target, const char *path)
{
    size_t room = strlen(path) + 32;
    char *temporary = malloc(room);
    if (!temporary)
        return berlu_fail_memory(room, path);
    snprintf(temporary, room, "%s.%ld.tmp", path, (long)getpid());
    (void)unlink(temporary); /* left behind by a process of the same number */
    berlu_status status;
    if (symlink(target, temporary) != 0) {
        status = fail_folder(path, "the link cannot be made");
    } else if (rename(temporary, path) != 0) {
        status = fail_folder(path, "the link cannot be replaced");
        (void)unlink(temporary);
    } else {
        status = folder_sync_of(path);
    }
    free(temporary);
    return status;
}
