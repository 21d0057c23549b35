/* checkpoint_sums.c - see checkpoint_sums.h. SPDX-License-Identifier: MIT
 *
 * A disk that flips a bit in the weights leaves a file that reads well and a run that goes on from nowhere. The sum is four
 * chains of h = (h ^ word) * odd over 64-bit words: both steps can be undone, so a change within one word is certain to
 * show, and four chains keep pace with memory. It guards against accidents, not against people. */
#include "train/checkpoint_sums.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_in.h"
#include "base/text.h"

enum { CHAINS = 4, SUMS_LIMIT = 1 << 16, PATH_ROOM = 4096 };

static const uint64_t odd = 0x9E3779B97F4A7C15u;

typedef struct chains {
    uint64_t chain[CHAINS], count;
} chains;

/* In pieces whose size is a multiple of the four words, up to the last; its rest is filled up with zeros and always
 * counted, also when there is none. */
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

static berlu_status path_in(char out[PATH_ROOM], const char *folder, const char *name)
{
    int length = snprintf(out, PATH_ROOM, "%s/%s", folder, name);
    return length > 0 && length < PATH_ROOM ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
}

/* The line of one file as it stands in the list. */
static berlu_status line_make(text *out, const folder_handle *in, const char *folder, const char *name)
{
    char path[PATH_ROOM];
    char shown[FILE_SHOWN];
    file_in file = {.fd = -1};
    chains sum = {.chain = {1, 2, 3, 4}};
    berlu_status status = path_in(path, folder, name);
    if (status == BERLU_OK)
        status = file_in_open_in(&file, in, path, file_shown(shown, in, path));
    if (status == BERLU_OK)
        status = file_in_each(&file, file.size, chains_add, &sum);
    file_in_close(&file);
    if (status != BERLU_OK)
        return status;
    text_add(out, "%016llx %s\n", (unsigned long long)chains_end(&sum), name);
    return text_status(out);
}

berlu_status sums_write(const folder_handle *in, const char *folder, const char *const *names, size_t count)
{
    char path[PATH_ROOM];
    text list = {0};
    berlu_status status = path_in(path, folder, "checksums");
    for (size_t i = 0; status == BERLU_OK && i < count; i++)
        status = line_make(&list, in, folder, names[i]);
    if (status == BERLU_OK)
        status = file_write_atomic_in(in, path, list.data, list.length);
    text_free(&list);
    return status;
}

berlu_status sums_check(const char *folder, const char *const *names, size_t count, int required)
{
    char path[PATH_ROOM], *list = NULL;
    berlu_status status = path_in(path, folder, "checksums");
    if (status == BERLU_OK && !required && !file_exists(path))
        return BERLU_OK;
    if (status == BERLU_OK && !file_exists(path))
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: is missing, so nothing tells whether the checkpoint is as it was written; put the file "
                          "back, or remove the folder to go on from the checkpoint before it",
                          path);
    if (status == BERLU_OK)
        status = file_read_all(&list, NULL, path, SUMS_LIMIT);
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
