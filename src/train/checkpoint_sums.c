/* checkpoint_sums.c - see checkpoint_sums.h. SPDX-License-Identifier: MIT
 *
 * A bit flipped on disk leaves weights that load without an error, and a run that continues from
 * wrong values. The sum is four chains of h = (h ^ word) * odd over 64-bit words: both operations
 * are invertible, so a change within one word is always detected, and four independent chains keep
 * up with memory bandwidth. It detects accidents, not tampering. */
#include "train/checkpoint_sums.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"
#include "base/text.h"
#include "train/checkpoint_files.h"

enum { CHAINS = 4, SUMS_LIMIT = 1 << 16 };

static const uint64_t odd = 0x9E3779B97F4A7C15u;

typedef struct chains {
    uint64_t chain[CHAINS], count;
} chains;

/* Adds a piece; all but the last are multiples of four words. The remainder of the last is padded
 * with zeros and always mixed in, even if empty (chains_end()). */
static void chains_add(void *context, const void *piece, size_t count)
{
    chains *s = context;
    const unsigned char *bytes = piece;
    uint64_t word[CHAINS];
    assert(s->count % sizeof word == 0);
    s->count += count;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(word, bytes, sizeof word);
        for (int k = 0; k < CHAINS; k++)
            s->chain[k] = (s->chain[k] ^ word[k]) * odd;
    }
    memset(word, 0, sizeof word);
    memcpy(word, bytes, count);
    for (int k = 0; k < CHAINS && count; k++)
        s->chain[k] = (s->chain[k] ^ word[k]) * odd;
}

static uint64_t chains_end(const chains *s)
{
    uint64_t sum = s->count;
    for (int k = 0; k < CHAINS; k++) {
        uint64_t last = s->count % (CHAINS * sizeof sum) ? s->chain[k] : s->chain[k] * odd;
        sum = (sum ^ last ^ last >> 32) * odd;
    }
    return sum;
}

/* Appends the line of one file, "SUM NAME". */
static berlu_status line_make(text *out, const folder_handle *in, const char *folder, const char *name)
{
    char path[CHECKPOINT_PATH], shown[FILE_SHOWN];
    file_in file = {.fd = -1};
    chains sum = {.chain = {1, 2, 3, 4}};
    TRY(checkpoint_path(path, folder, name));
    berlu_status status = file_in_open_in(&file, in, path, file_shown(shown, in, path));
    if (status == BERLU_OK)
        status = file_in_each(&file, file.size, chains_add, &sum);
    file_in_close(&file);
    TRY(status);
    text_add(out, "%016llx %s\n", (unsigned long long)chains_end(&sum), name);
    return text_status(out);
}

berlu_status sums_write(const folder_handle *in, const char *folder, const char *const *names, size_t count)
{
    char path[CHECKPOINT_PATH];
    text list = {0};
    berlu_status status;
    TRY(checkpoint_path(path, folder, "checksums"));
    for (size_t i = 0; i < count; i++)
        TRY_DONE(line_make(&list, in, folder, names[i]));
    status = file_write_text(in, path, &list);
done:
    text_free(&list);
    return status;
}

berlu_status sums_check(const char *folder, const char *const *names, size_t count, int required)
{
    char path[CHECKPOINT_PATH], *list = NULL;
    TRY(checkpoint_path(path, folder, "checksums"));
    if (!required && !file_exists(path))
        return BERLU_OK;
    if (!file_exists(path))
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: is missing, so nothing tells whether the checkpoint is as it was written; put the file "
                          "back, or remove the folder to go on from the checkpoint before it",
                          path);
    TRY(file_read_all(&list, NULL, path, SUMS_LIMIT));
    berlu_status status = BERLU_OK;
    for (size_t i = 0; status == BERLU_OK && i < count; i++) {
        text line = {0};
        status = line_make(&line, NULL, folder, names[i]);
        if (status == BERLU_OK && !strstr(list, line.data))
            status = berlu_fail(BERLU_ERR_INPUT,
                                "%s/%s: its bytes are not those that were written; put the file back, or remove the "
                                "folder to go on from the checkpoint before it",
                                folder, names[i]);
        text_free(&line);
    }
    free(list);
    return status;
}
