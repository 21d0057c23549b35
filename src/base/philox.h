/* philox.h - random numbers as a function of (seed, purpose, epoch, index, draw).
 * SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): a counter goes in, four random words come out.
 * There is no state to save, and any worker on any device computes the same number. The key is the
 * seed; the counter words are (draw, index low, epoch, purpose << 16 | index high). Integer
 * operations only, so CPU and CUDA agree to the bit. */
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define PHILOX_FN static __host__ __device__ inline
#else
#define PHILOX_FN static inline
#endif

/* The use of a random number. Two purposes never share a counter. Add at the end; the numbers are
 * part of a run. */
typedef enum philox_purpose {
    PURPOSE_INIT = 1,    /* initial weights: index is the element, the epoch word names the parameter */
    PURPOSE_SHUFFLE = 2, /* the order of an epoch */
    PURPOSE_CROP = 3,
    PURPOSE_FLIP = 4,
    PURPOSE_AUGMENT = 5, /* RandAugment, colour jitter */
    PURPOSE_ERASE = 6,
    PURPOSE_MIX = 7, /* mixup and cutmix */
    PURPOSE_DROPOUT = 8,
    PURPOSE_DROP_PATH = 9,
    PURPOSE_SYNTHETIC = 10, /* the procedural data set */
    PURPOSE_TEST = 11,
    PURPOSE_HOLDOUT = 12,
    PURPOSE_ANALYZE = 13
} philox_purpose;

typedef struct philox_words {
    uint32_t w[4];
} philox_words;

PHILOX_FN philox_words philox_block(philox_words counter, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = 0xD2511F53ull * counter.w[0], b = 0xCD9E8D57ull * counter.w[2];
        philox_words next = {{(uint32_t)(b >> 32) ^ counter.w[1] ^ k0, (uint32_t)b,
                              (uint32_t)(a >> 32) ^ counter.w[3] ^ k1, (uint32_t)a}};
        counter = next;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

/* Four words for draw number `draw` of element `index` (48 bits) of this purpose in this epoch. */
PHILOX_FN philox_words philox_draw(uint64_t seed, philox_purpose purpose, uint32_t epoch, uint64_t index, uint32_t draw)
{
    philox_words counter = {{draw, (uint32_t)index, epoch, (uint32_t)purpose << 16 | (uint32_t)(index >> 32 & 0xffff)}};
    return philox_block(counter, seed);
}

/* A word as a float in [0, 1): 24 bits, exact. As a double in (0, 1): 32 bits and a half, never 0
 * or 1. */
PHILOX_FN float philox_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
PHILOX_FN double philox_f64(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

/* A word as an integer in [0, n): the high half of a product; the bias is below n / 2^32. */
PHILOX_FN uint32_t philox_below(uint32_t word, uint32_t n)
{
    return (uint32_t)((uint64_t)word * n >> 32);
}

#endif
