/* draws.h - a stream of random numbers for one decision about one sample.
 * SPDX-License-Identifier: MIT
 *
 * Philox gives four words a block; this returns them one by one. The stream depends on (seed,
 * purpose, epoch, sample) alone. */
#ifndef DATA_DRAWS_H
#define DATA_DRAWS_H

#include "base/philox.h"
#include "simd/normal.h"

typedef struct draws {
    uint64_t seed, index;
    philox_purpose purpose;
    uint32_t epoch, block;
    philox_words words;
    int left;
} draws;

static inline draws draws_for(uint64_t seed, philox_purpose purpose, uint32_t epoch, uint64_t index)
{
    return (draws){.seed = seed, .index = index, .purpose = purpose, .epoch = epoch};
}

static inline uint32_t draws_word(draws *d)
{
    if (d->left == 0) {
        d->words = philox_draw(d->seed, d->purpose, d->epoch, d->index, d->block++);
        d->left = 4;
    }
    return d->words.w[--d->left];
}

/* The number of words handed out, and the row from there on: what is drawn later can begin where
 * this left off. */
static inline uint32_t draws_taken(const draws *d)
{
    return 4 * d->block - (uint32_t)d->left;
}

static inline void draws_go(draws *d, uint32_t taken)
{
    d->block = taken / 4;
    d->left = 0;
    for (uint32_t i = 0; i < taken % 4; i++)
        (void)draws_word(d);
}

static inline double draws_uniform(draws *d, double low, double high)
{
    return low + (high - low) * philox_f64(draws_word(d));
}

static inline int draws_below(draws *d, int n) /* 0 .. n-1 */
{
    return (int)philox_below(draws_word(d), (uint32_t)n);
}

static inline int draws_chance(draws *d, double probability)
{
    return philox_f64(draws_word(d)) < probability;
}

static inline double draws_normal(draws *d) /* standard normal, one word each */
{
    return normal_of_word(draws_word(d));
}

#endif
