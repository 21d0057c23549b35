/* tar.h - writing an archive of plain files (POSIX ustar). SPDX-License-Identifier: MIT
 *
 * Files only, each with a name below 100 bytes in a folder below 155; owner, times and modes are
 * the same for all, so equal files give equal archives. The archive appears whole or not at all
 * (base/file.h). Reading is data/archive.h's. */
#ifndef IO_TAR_H
#define IO_TAR_H

#include "base/file.h"

enum { TAR_NAME = 100, TAR_FOLDER = 155 };

typedef struct tar_out {
    file_out *file;
    const char *path; /* for messages; borrowed */
} tar_out;

berlu_status tar_open(tar_out *t, const char *path);
berlu_status tar_add_file(tar_out *t, const char *name, const char *path);
berlu_status tar_add_bytes(tar_out *t, const char *name, const void *bytes, size_t count);
berlu_status tar_commit(tar_out *t); /* ends it, also when this fails */
void tar_discard(tar_out *t);        /* one that is not open is fine */

#endif
