/* archive.h - extracts files from an untrusted archive. SPDX-License-Identifier: MIT */
#ifndef DATA_ARCHIVE_H
#define DATA_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The SHA-256 of a file must be `expected` (64 hexadecimal digits). */
berlu_status tarball_check(const char *path, const char *expected);
berlu_status tarball_hash_fail(const char *path, const char *found, const char *expected); /* says so */

/* Reads named files (whatever folder they are in) into given memory; each must be there once and
 * have exactly that size. */
typedef struct tarball_file {
    const char *name;
    void *bytes;
    size_t size;
} tarball_file;
berlu_status tarball_read(const char *path, const tarball_file *files, size_t count);
berlu_status tarball_read_memory(const void *bytes, size_t size, const tarball_file *files, size_t count);

/* Unpacks `folder` of the archive as `target`, which must not exist yet; it appears atomically.
 * Only plain files and folders are accepted: an absolute name, "..", a link, a device, more than
 * `most_bytes` in all or more than `most_files` entries refuse the whole archive. Entries outside
 * `folder` are an error too. */
typedef struct tarball_limits {
    uint64_t most_bytes;
    size_t most_files;
} tarball_limits;
berlu_status tarball_unpack(const char *path, const char *folder, const char *target, tarball_limits limits);

#endif
