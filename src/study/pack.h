/* pack.h - finished runs in one file, to move them between machines. SPDX-License-Identifier: MIT
 *
 * An archive (POSIX tar) with study/study.db, a snapshot of the index, and study/runs/KEY/ with the
 * regular files of every run that is done or failed. Checkpoints are left out: a finished run is
 * complete without them (run_hash.h). Before them comes study/SHA256SUMS with a line for each file,
 * as sha256sum(1) reads it: tar itself has no sums of contents. Unpacking trusts nothing
 * (data/archive.h): names that lead outside, links, too many files or bytes are refused. */
#ifndef STUDY_PACK_H
#define STUDY_PACK_H

#include "study/store.h"

/* `folder` holds study.db and runs/. `count` becomes the number of finished runs in the index,
 * whose folders go in where they are here. */
berlu_status study_pack(const char *folder, const char *out, size_t *count);

/* Whether a file looks like one: it is a tar. */
int study_is_pack(const char *path);

/* Adds the runs of a pack to an open store in `folder`, and their folders to folder/runs; nothing
 * of one with a file that differs from the list or is missing. A folder that is done or in training
 * there stays; an interrupted one is replaced by the finished one. */
berlu_status study_unpack(store *into, const char *folder, const char *pack, size_t *added);

#endif
