/* run_hash.h - SHA-256 of what a finished run came to. SPDX-License-Identifier: MIT
 *
 * Two runs of one key on one kind of machine must agree to the bit; these hashes say whether they
 * do when the files themselves are gone. The weights are those of the newest checkpoint; their hash
 * is kept beside the results in RUN/weights.sha256, so that a finished run is whole without its
 * checkpoints. */
#ifndef STUDY_RUN_HASH_H
#define STUDY_RUN_HASH_H

#include "base/status.h"
#include "data/sha256.h"

typedef struct run_hash {
    char weights[SHA256_TEXT], metrics[SHA256_TEXT], correct[SHA256_TEXT]; /* "": not there */
} run_hash;

/* A file that is missing or cannot be read leaves its hash empty: results stand without it. Writes
 * weights.sha256 where it is missing and there is a checkpoint; failing to is no error either. */
void run_hash_read(run_hash *out, const char *run);

#endif
