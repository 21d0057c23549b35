/* replay.c - runs a fuzz target over its corpus without a fuzzer. SPDX-License-Identifier: MIT
 *
 * For builds without libFuzzer (and so for every `make test`): each file of the corpus folder goes
 * in whole, cut at several lengths, and with single bits turned over, all of it the same on every
 * run. Damages are spread evenly over a file and bounded in number and bytes, so that a large seed
 * costs no more than a small one. Where a target has a mutator of its own (mutate.h), chains of its
 * mutants follow. BERLU_REPLAY=N does an N-th of all that: 16 in `make valgrind`, 4 where an input
 * costs a millisecond (CMakeLists.txt). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) __attribute__((weak));
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

enum { DAMAGES = 512, LARGEST = 1 << 22, CHAINS = 24, STEPS = 8, MUTANT_MAX = 1 << 16 };

static uint64_t luck = 1;
static size_t shorter = 1; /* how many times less to do */

static size_t draw(size_t below)
{
    luck = luck * 6364136223846793005u + 1442695040888963407u;
    return below ? (size_t)(luck >> 33) % below : 0;
}

/* The ordinary mutation of bytes: a few are set, one comes or goes. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most)
{
    size_t changes = 1 + draw(4);
    for (size_t i = 0; i < changes && size; i++)
        bytes[draw(size)] = (uint8_t)draw(256);
    if (draw(4) == 0 && size > 1)
        size--;
    else if ((draw(4) == 0 || size == 0) && size < most)
        bytes[size++] = (uint8_t)draw(256);
    return size;
}

/* Each mutant is fed and mutated further. Returns whether the mutator kept to its bounds. */
static int run_mutants(const uint8_t *bytes, size_t size, unsigned seed)
{
    uint8_t *mutant = malloc(MUTANT_MAX);
    int good = mutant != NULL;
    for (unsigned chain = 0; good && chain < (CHAINS + shorter - 1) / shorter; chain++) {
        size_t now = size < MUTANT_MAX ? size : MUTANT_MAX;
        memcpy(mutant, bytes, now);
        for (unsigned step = 0; good && step < STEPS; step++) {
            now = LLVMFuzzerCustomMutator(mutant, now, MUTANT_MAX, seed + chain * STEPS + step);
            good = now <= MUTANT_MAX;
            uint8_t *exact = malloc(now ? now : 1);
            if (!exact)
                abort();
            memcpy(exact, mutant, good ? now : 0);
            LLVMFuzzerTestOneInput(exact, good ? now : 0);
            free(exact);
        }
    }
    free(mutant);
    return good;
}

/* A copy of exactly `size` bytes, so that a sanitizer sees the first one read past the end. */
static void run_exact(const uint8_t *bytes, size_t size, size_t flip)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    if (size)
        copy[flip / 8 % size] ^= (uint8_t)(1u << flip % 8);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_damages(const uint8_t *bytes, size_t size)
{
    size_t budget = (size_t)1 << 27; /* bytes handed to the target in all */
    size_t most = DAMAGES / shorter, damages = size * 8 < most ? size * 8 : most;
    for (size_t i = 0; i < damages && budget > size; i++, budget -= size) {
        run_exact(bytes, size, size * 8 / damages * i + i % 8);
        LLVMFuzzerTestOneInput(bytes, size * i / damages);
    }
}

static int run_file(const char *path)
{
    char *bytes;
    size_t size;
    if (file_read_all(&bytes, &size, path, LARGEST) != BERLU_OK) {
        fprintf(stderr, "%s\n", berlu_last_error());
        return 0;
    }
    LLVMFuzzerTestOneInput((uint8_t *)bytes, size);
    run_damages((uint8_t *)bytes, size);
    int good = !LLVMFuzzerCustomMutator || run_mutants((uint8_t *)bytes, size, 1);
    if (!good)
        fprintf(stderr, "%s: the mutator wrote past its bound\n", path);
    free(bytes);
    return good;
}

int main(int argc, char **argv)
{
    const char *replay = getenv("BERLU_REPLAY");
    int share = replay ? atoi(replay) : 1;
    shorter = share > 1 ? (size_t)share : 1;
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
    int good = 1, files = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        good &= run_file(path);
        files++;
    }
    if (folder)
        closedir(folder);
    printf("%d files of the corpus, each whole, cut and with bits turned over\n", files);
    return good && files ? 0 : 1; /* a target without a seed tests nothing */
}
