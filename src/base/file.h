/* file.h - writing so that a cut at any byte loses nothing, and reading small files whole.
 * SPDX-License-Identifier: MIT
 *
 * A new file appears whole or not at all: it is written under a temporary name in the same folder,
 * fsynced, renamed, and the folder is fsynced. Failures name the path and the system's reason;
 * reading failures are BERLU_ERR_INPUT (but see file_fail_read()), writing failures BERLU_ERR_IO. A
 * target that is no regular file (a pipe, /dev/null) is written directly. System calls are called
 * by their plain names, so that tests can make the n-th one fail. No file is ever mapped: one that
 * shrinks under a mapping ends the process with SIGBUS. Large files are read through file_in.h. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A folder held open. What is named relative to it is found through its descriptor, so that nothing
 * lands elsewhere when the folder is moved or another one takes its name. `path` is for messages
 * and belongs to the caller. Functions that end in _in take one; NULL there means that the name is
 * an ordinary path. */
typedef struct folder_handle {
    int fd; /* -1: closed */
    const char *path;
} folder_handle;
berlu_status folder_hold(folder_handle *out, const char *path);
void folder_release(folder_handle *f);
int folder_in_place(const folder_handle *f); /* whether its path still leads to it */

/* `name` as messages show it: "PATH/NAME", in `out` or the name itself. */
enum { FILE_SHOWN = 4352 };
const char *file_shown(char out[FILE_SHOWN], const folder_handle *in, const char *name);

/* "PATH: cannot be read: ..." by errno. What is wrong with the path or the disk under it is
 * BERLU_ERR_INPUT; a limit of open files or memory is not the file's fault: BERLU_ERR_IO, so that
 * nobody takes a whole file for a broken one. */
berlu_status file_fail_read(const char *path);

/* The next entry of a folder, NULL after the last: what a failing disk does not list is not taken
 * for missing. */
berlu_status folder_next(const struct dirent **out, DIR *folder, const char *path);

/* A file in the making. Write with file_out_write(); commit makes it appear under `path`, discard
 * leaves no trace. After any failure only discard is allowed. */
typedef struct file_out file_out;
berlu_status file_out_open(file_out **out, const char *path);
berlu_status file_out_open_in(file_out **out, const folder_handle *in, const char *name);
berlu_status file_out_write(file_out *f, const void *bytes, size_t count);
berlu_status file_out_commit(file_out *f); /* frees f, also when it fails: the old file is still there, whole, or the
                                            * new one is when only the folder's fsync failed */
void file_out_discard(file_out *f);        /* frees f; NULL is allowed */

/* Opens, writes and commits. */
berlu_status file_write_atomic(const char *path, const void *bytes, size_t count);
berlu_status file_write_atomic_in(const folder_handle *in, const char *name, const void *bytes, size_t count);
struct text;                                                                                   /* base/text.h */
berlu_status file_write_text(const folder_handle *in, const char *name, const struct text *t); /* its failure first */
berlu_status file_read_all(char **out, size_t *size, const char *path, size_t limit); /* NUL added; free() it */

/* Appends whole bytes, fsyncs if `sync`, creates the file. For logs and metrics. */
berlu_status file_append_in(const folder_handle *in, const char *name, const void *bytes, size_t count, int sync);
berlu_status file_truncate_in(const folder_handle *in, const char *name, uint64_t size);

int file_exists(const char *path);
int file_exists_in(const folder_handle *in, const char *name);
int folder_exists(const char *path);
int folder_exists_in(const folder_handle *in, const char *name);
berlu_status folder_make(const char *path);                 /* with parents, like mkdir -p */
berlu_status folder_sync(const char *path);                 /* fsync of the folder itself */
berlu_status folder_remove(const char *path);               /* recursively; a missing folder is fine */
berlu_status path_rename(const char *from, const char *to); /* and fsync of the target's folder */

/* The same relative to a folder held open; folder_make_in() makes one level and no parents. */
berlu_status folder_make_in(const folder_handle *in, const char *name);
berlu_status folder_sync_in(const folder_handle *in, const char *name);
berlu_status folder_sync_above(int at, const char *name, const char *shown); /* of the folder that holds `name` */
berlu_status folder_remove_in(const folder_handle *in, const char *name);
berlu_status path_rename_in(const folder_handle *in, const char *from, const char *to);
berlu_status link_replace_in(const folder_handle *in, const char *target,
                             const char *name); /* a symbolic link, replaced by rename */

#endif
