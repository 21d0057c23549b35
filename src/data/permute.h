/* permute.h - a random order that is computed, not stored. SPDX-License-Identifier: MIT
 *
 * A permutation of 0 .. n-1 chosen by (seed, purpose, epoch): a Feistel network over the next power
 * of two, each of whose eight rounds adds a Philox word of one half to the other half, and cycle
 * walking: a value outside the range is permuted again until it falls inside. Both steps are
 * invertible, so the whole is a bijection for any words. */
#ifndef DATA_PERMUTE_H
#define DATA_PERMUTE_H

#include "base/philox.h"

typedef struct permutation {
    uint64_t n, seed;
    philox_purpose purpose;
    uint32_t epoch;
} permutation;

static inline uint64_t permutation_once(const permutation *p, uint64_t value, int low_bits, int high_bits)
{
    uint32_t low = (uint32_t)(value & (((uint64_t)1 << low_bits) - 1)), high = (uint32_t)(value >> low_bits);
    uint32_t low_mask = (uint32_t)(((uint64_t)1 << low_bits) - 1),
             high_mask = (uint32_t)(((uint64_t)1 << high_bits) - 1);
    for (uint32_t round = 0; round < 8; round += 2) {
        high ^= philox_draw(p->seed, p->purpose, p->epoch, low, round).w[0] & high_mask;
        low ^= philox_draw(p->seed, p->purpose, p->epoch, high, round + 1).w[0] & low_mask;
    }
    return (uint64_t)high << low_bits | low;
}

/* The image of i < n. n up to 2^60. Under two calls of the network on average. */
static inline uint64_t permutation_at(const permutation *p, uint64_t i)
{
    int bits = 2;
    while (((uint64_t)1 << bits) < p->n)
        bits++;
    do
        i = permutation_once(p, i, bits / 2, bits - bits / 2);
    while (i >= p->n);
    return i;
}

#endif
