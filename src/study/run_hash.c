/* run_hash.c - see run_hash.h. SPDX-License-Identifier: MIT */
#include "study/run_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/sha256.h"
#include "train/checkpoint.h"

enum { PATH = CHECKPOINT_PATH + 64 };

static void file_hash(char out[SHA256_TEXT], const char *run, const char *name)
{
    char path[PATH];
    *out = 0;
    if (snprintf(path, sizeof path, "%s/%s", run, name) >= (int)sizeof path || !file_exists(path) ||
        sha256_file(out, path) != BERLU_OK)
        *out = 0;
}

/* Reads the recorded hash: 64 digits and the name of the file, as sha256sum writes them. */
static int record_read(char out[SHA256_TEXT], const char *path)
{
    char *bytes = NULL;
    size_t count = 0;
    if (!file_exists(path) || file_read_all(&bytes, &count, path, 4096) != BERLU_OK)
        return 0;
    int whole = count > SHA256_TEXT && strspn(bytes, "0123456789abcdef") == SHA256_TEXT - 1;
    if (whole)
        snprintf(out, SHA256_TEXT, "%.64s", bytes);
    free(bytes);
    return whole;
}

static void weights_hash(char out[SHA256_TEXT], const char *run)
{
    char record[PATH], newest[CHECKPOINT_PATH], line[SHA256_TEXT + 32];
    *out = 0;
    if (snprintf(record, sizeof record, "%s/weights.sha256", run) >= (int)sizeof record || record_read(out, record))
        return;
    if (checkpoint_newest(run, 0, newest, NULL) != BERLU_OK || !*newest)
        return;
    file_hash(out, newest, "model.safetensors");
    if (*out) {
        int count = snprintf(line, sizeof line, "%s  model.safetensors\n", out);
        (void)file_write_atomic(record, line, (size_t)count);
    }
}

void run_hash_read(run_hash *out, const char *run)
{
    weights_hash(out->weights, run);
    file_hash(out->metrics, run, "metrics.csv");
    file_hash(out->correct, run, "correct.bin");
}
