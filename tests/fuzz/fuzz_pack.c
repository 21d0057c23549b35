/* fuzz_pack.c - any bytes as a pack of a study: it is taken or refused, and leaves nothing lying
 * about. SPDX-License-Identifier: MIT
 *
 * The mutator takes the tar apart, changes one member, its name or the order of all, and puts them
 * together with right lengths and sums of headers; every other time SHA256SUMS is made anew, since
 * else no changed member would get beyond it. */
#include "study/pack.h"

#include <dirent.h>

#include "data/sha256.h"
#include "io/tar.h"
#include "mutate.h"
#include "scratch.h"

enum { BLOCK = 512, SIZE = 124, SUM = 148 };

static void folder_check(const char *folder)
{
    DIR *list = opendir(folder);
    if (!list)
        abort();
    for (const struct dirent *e; (e = readdir(list));)
        if (strstr(e->d_name, "incoming"))
            abort();
    closedir(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128], folder[128];
    store *s = NULL;
    text notes = {0};
    size_t added;
    scratch_write(scratch_path(path, "pack.tar"), bytes, size);
    scratch_path(folder, "into");
    if (study_is_pack(path)) {
        if (store_open(&s, folder, &notes) != BERLU_OK)
            abort(); /* an empty place */
        (void)study_unpack(s, folder, path, &added);
        if (store_close(s) != BERLU_OK)
            abort();
        folder_check(folder);
        if (folder_remove(folder) != BERLU_OK)
            abort();
    }
    text_free(&notes);
    unlink(path);
    return 0;
}

/* A piece is a header and its content. */
static void members_take(pieces *all, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size && bytes[at];) {
        char digits[12] = {0};
        memcpy(digits, bytes + at + SIZE, sizeof digits - 1);
        size_t content = strtoul(digits, NULL, 8), left = size - at - BLOCK;
        content = content < left ? content : left;
        piece_add(all, "file", 4, bytes + at, BLOCK + content);
        at += BLOCK + (content + BLOCK - 1) / BLOCK * BLOCK;
    }
}

static void header_repair(piece *p)
{
    char digits[12];
    unsigned sum = 0;
    snprintf(digits, sizeof digits, "%011o", (unsigned)(p->size - BLOCK) & 0xffffffffu);
    memcpy(p->bytes + SIZE, digits, sizeof digits);
    memset(p->bytes + SUM, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += p->bytes[i];
    snprintf(digits, sizeof digits, "%06o", sum);
    memcpy(p->bytes + SUM, digits, 7);
}

/* The first piece becomes the list of the others. */
static void sums_repair(pieces *all)
{
    char line[256];
    uint8_t *list = calloc(1, BLOCK + all->count * sizeof line);
    size_t size = BLOCK;
    if (!list)
        abort();
    memcpy(list, all->at[0].bytes, BLOCK);
    for (size_t i = 1; i < all->count; i++) {
        sha256 hash;
        char digest[SHA256_TEXT];
        const piece *p = &all->at[i];
        sha256_start(&hash);
        sha256_add(&hash, p->bytes + BLOCK, p->size - BLOCK);
        const char *name = (const char *)p->bytes, *in = memchr(name, '/', TAR_NAME);
        size += (size_t)snprintf((char *)list + size, sizeof line, "%s  %.99s\n", sha256_finish(&hash, digest),
                                 in ? in + 1 : name);
    }
    free(all->at[0].bytes);
    all->at[0].bytes = list;
    all->at[0].size = size;
}

static size_t members_put(uint8_t *bytes, size_t most, const pieces *all)
{
    size_t size = 0;
    for (size_t i = 0; i < all->count; i++) {
        const piece *p = &all->at[i];
        size_t whole = (p->size + BLOCK - 1) / BLOCK * BLOCK;
        if (size + whole > most)
            break;
        memset(bytes + size, 0, whole);
        memcpy(bytes + size, p->bytes, p->size);
        size += whole;
    }
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    dice d = dice_from(seed);
    pieces all = {0};
    members_take(&all, bytes, size);
    if (all.count == 0 || dice_next(&d) % 16 == 0) {
        pieces_free(&all);
        return LLVMFuzzerMutate(bytes, size, most);
    }
    piece *one = &all.at[dice_below(&d, all.count)];
    if (dice_next(&d) % 4 == 0) /* a name */
        LLVMFuzzerMutate(one->bytes, strnlen((char *)one->bytes, TAR_NAME), TAR_NAME - 1);
    else if (dice_next(&d) % 4 && one->size > BLOCK)
        LLVMFuzzerMutate(one->bytes + BLOCK, one->size - BLOCK, one->size - BLOCK);
    else
        pieces_mutate(&all, &d);
    for (size_t i = 0; i < all.count; i++) /* one that was cut within its header is gone */
        if (all.at[i].size < BLOCK) {
            free(all.at[i].bytes);
            memmove(&all.at[i], &all.at[i + 1], (--all.count - i) * sizeof *all.at);
            i--;
        }
    if (all.count && dice_next(&d) % 2)
        sums_repair(&all);
    for (size_t i = 0; i < all.count; i++)
        header_repair(&all.at[i]);
    size = members_put(bytes, most, &all);
    pieces_free(&all);
    return size;
}
