/* mutate.h - what the structure-aware mutators share. SPDX-License-Identifier: MIT
 *
 * Random bytes hardly pass a checksum or a length field, so a fuzzer that flips bits keeps knocking
 * at the door. A target may define LLVMFuzzerCustomMutator(), which takes its format apart, changes
 * one part, and puts it together with right lengths and checksums. libFuzzer calls it; replay.c
 * does the same in builds without libFuzzer. LLVMFuzzerMutate() is the ordinary mutation of plain
 * bytes, of libFuzzer or of replay.c. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

/* A xorshift generator: the same seed gives the same mutant. */
typedef struct dice {
    uint64_t state;
} dice;

static inline dice dice_from(unsigned seed)
{
    return (dice){(uint64_t)seed * 0x9E3779B97F4A7C15u + 0x1234567u};
}

static inline uint32_t dice_next(dice *d)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return (uint32_t)(d->state >> 16);
}

static inline size_t dice_below(dice *d, size_t n) /* 0 for n = 0 */
{
    return n ? dice_next(d) % n : 0;
}

/* Numbers that break arithmetic, and small ones that keep a file whole. */
static inline uint64_t dice_number(dice *d)
{
    static const uint64_t odd[] = {0,       1,          2,          3,          4,          7,          8,
                                   16,      32,         255,        256,        4096,       65535,      65536,
                                   1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 53, INT64_MAX};
    return dice_next(d) % 4 ? odd[dice_below(d, sizeof odd / sizeof *odd)] : dice_next(d);
}

static inline void put_be32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline uint32_t get_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A part of a file, in memory of its own. */
typedef struct piece {
    uint8_t kind[4];
    uint8_t *bytes;
    size_t size;
} piece;
enum { PIECES_MAX = 64 };
typedef struct pieces {
    piece at[PIECES_MAX];
    size_t count;
} pieces;

static inline void piece_add(pieces *p, const void *kind, size_t kind_bytes, const uint8_t *bytes, size_t size)
{
    if (p->count == PIECES_MAX)
        return;
    piece *new = &p->at[p->count++];
    memset(new, 0, sizeof *new);
    memcpy(new->kind, kind, kind_bytes);
    new->bytes = malloc(size + 1);
    if (!new->bytes)
        abort();
    if (size)
        memcpy(new->bytes, bytes, size);
    new->size = size;
}

static inline void pieces_free(pieces *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i].bytes);
    p->count = 0;
}

/* Changes the order or the number of pieces, or the bytes of one. */
static inline void pieces_mutate(pieces *p, dice *d)
{
    enum { GROWTH = 64 };
    if (p->count == 0)
        return;
    size_t i = dice_below(d, p->count), k = dice_below(d, p->count);
    piece swap = p->at[i];
    switch (dice_next(d) % 8) {
    case 0: /* two change places */
        p->at[i] = p->at[k];
        p->at[k] = swap;
        break;
    case 1: /* one goes */
        free(p->at[i].bytes);
        memmove(&p->at[i], &p->at[i + 1], (p->count - i - 1) * sizeof *p->at);
        p->count--;
        break;
    case 2: /* one comes twice */
        piece_add(p, swap.kind, sizeof swap.kind, swap.bytes, swap.size);
        break;
    case 3: /* one ends early */
        p->at[i].size = dice_below(d, swap.size + 1);
        break;
    default: {
        uint8_t *grown = realloc(swap.bytes, swap.size + GROWTH);
        if (!grown)
            abort();
        p->at[i].bytes = grown;
        p->at[i].size = LLVMFuzzerMutate(grown, swap.size, swap.size + GROWTH);
    }
    }
}

#endif
