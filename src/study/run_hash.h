/* run_hash.h - SHA-256 of the results of a finished run. SPDX-License-Identifier: MIT
 *
 * Two runs of one key on one kind of machine must agree to the bit; these hashes tell whether they
 * do when the files themselves are gone. The weights are those of the newest checkpoint; their hash
 * is stored next to the results in RUN/weights.sha256, so that a finished run is complete without
 * its checkpoints. */
#ifndef STUDY_RUN_HASH_H
#define STUDY_RUN_HASH_H

#include "base/status.h"
#include "data/sha256.h"

typedef struct run_hash {
    char weights[SHA256_TEXT], metrics[SHA256_TEXT], correct[SHA256_TEXT]; /* "": missing */
} run_hash;

/* A file that is missing or unreadable leaves its hash empty: the results count without it. Writes
 * weights.sha256 where it is missing and a checkpoint exists; a failure to do so is no error
 * either. */
void run_hash_read(run_hash *out, const char *run);

#endif
