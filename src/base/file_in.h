/* file_in.h - a file that is read in parts and may change while it is open.
 * SPDX-License-Identifier: MIT
 *
 * A mapped file that another program cuts ends this one with SIGBUS at the next access. Bytes read
 * with pread() end in a status instead, so whatever people keep for long (packed sets, CIFAR's
 * files, weights, checkpoints) is read through here. A file that is replaced by rename or removed
 * stays as it was for whoever has it open. Any number of threads may read. */
#ifndef BASE_FILE_IN_H
#define BASE_FILE_IN_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

typedef struct file_in {
    int fd;           /* -1: closed */
    uint64_t size;    /* when it was opened */
    const char *path; /* borrowed from the caller, who keeps it as long as the file is open */
} file_in;

/* A regular file; anything else is BERLU_ERR_INPUT, which names the path. On failure `out` is
 * closed. The second form finds `name` in a folder held open; its path is only for messages
 * (file_shown()). */
berlu_status file_in_open(file_in *out, const char *path);
berlu_status file_in_open_in(file_in *out, const folder_handle *in, const char *name, const char *path);
void file_in_close(file_in *f); /* also of a closed one */

/* Exactly `count` bytes from byte `at` on. BERLU_ERR_INPUT when they cannot be read, or are no
 * longer there: the message then says how long the file was and that it has been cut. */
berlu_status file_in_read(const file_in *f, uint64_t at, void *bytes, size_t count);

/* Hands the first `count` bytes on in order, in pieces of FILE_IN_PIECE; only the last is shorter.
 * Fails as file_in_read() does, after the pieces before the failure. */
enum { FILE_IN_PIECE = 1 << 16 };
typedef void file_in_take(void *context, const void *bytes, size_t count);
berlu_status file_in_each(const file_in *f, uint64_t count, file_in_take *take, void *context);

/* The whole of a file in memory of exactly its size (and a NUL after it); free() it. */
berlu_status file_in_all(unsigned char **out, size_t *size, const char *path);

#endif
