/* file.h - reading by mmap, writing so that a cut at any byte loses nothing.
 * SPDX-License-Identifier: MIT
 *
 * A new file appears whole or not at all: it is written under a temporary name in the same folder,
 * fsynced, renamed, and the folder is fsynced. Failures name the path and the system's reason;
 * reading failures are BERLU_ERR_INPUT, writing failures BERLU_ERR_IO. A target that is no regular
 * file (a pipe, /dev/null) is written directly. System calls are called by their plain names, so
 * that tests can make the n-th one fail. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A file as memory, read-only. An empty file has size 0 and data NULL. */
typedef struct file_map {
    const unsigned char *data;
    size_t size;
} file_map;
berlu_status file_map_open(file_map *out, const char *path);
void file_map_close(file_map *map);

/* A file in the making. Write with file_out_write(); commit makes it appear under `path`, discard
 * leaves no trace. After any failure only discard is allowed. */
typedef struct file_out file_out;
berlu_status file_out_open(file_out **out, const char *path);
berlu_status file_out_write(file_out *f, const void *bytes, size_t count);
berlu_status file_out_commit(file_out *f); /* frees f, also when it fails: the old file is still there, whole, or the
                                            * new one is when only the folder's fsync failed */
void file_out_discard(file_out *f);        /* frees f; NULL is allowed */

/* Opens, writes and commits. */
berlu_status file_write_atomic(const char *path, const void *bytes, size_t count);
berlu_status file_read_all(char **out, size_t *size, const char *path, size_t limit); /* NUL added; free() it */

/* Appends whole bytes, fsyncs if `sync`, creates the file. For logs and metrics. */
berlu_status file_append(const char *path, const void *bytes, size_t count, int sync);
berlu_status file_truncate(const char *path, uint64_t size);

int file_exists(const char *path);
int folder_exists(const char *path);
berlu_status folder_make(const char *path);                      /* with parents, like mkdir -p */
berlu_status folder_sync(const char *path);                      /* fsync of the folder itself */
berlu_status folder_sync_of(const char *path);                   /* fsync of the folder that holds `path` */
berlu_status folder_remove(const char *path);                    /* recursively; a missing folder is fine */
berlu_status path_rename(const char *from, const char *to);      /* and fsync of the target's folder */
berlu_status link_replace(const char *target, const char *path); /* a symbolic link, replaced by rename */

#endif
