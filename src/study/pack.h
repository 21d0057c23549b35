/* pack.h - finished runs in one file, to carry them between machines. SPDX-License-Identifier: MIT
 *
 * An archive (POSIX tar) with study/study.db, the index as it was at one moment, and
 * study/runs/KEY/ with the plain files of every run that is done or failed. Checkpoints stay
 * behind: a finished run is whole without them (run_hash.h). Any tar can read it. Unpacking trusts
 * nothing (data/archive.h): names that lead elsewhere, links, too many files or bytes refuse it. */
#ifndef STUDY_PACK_H
#define STUDY_PACK_H

#include "study/store.h"

/* `folder` holds study.db and runs/. `count` becomes the number of run folders that went in. */
berlu_status study_pack(const char *folder, const char *out, size_t *count);

/* Adds the runs of a pack to a store that is open and lies in `folder`, and their folders to
 * folder/runs. A folder that is done or being trained there stays; one that was cut gives way to
 * the finished one. */
berlu_status study_unpack(store *into, const char *folder, const char *pack, size_t *added);

#endif
