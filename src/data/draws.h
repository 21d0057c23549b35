/* draws.h - a row of random numbers for one question about one sample. SPDX-License-Identifier: MIT
 *
 * Philox gives four words a block; this hands them out one by one. The row depends on (seed, purpose, epoch, sample)
 * alone: whoever asks the same question gets the same row. */
#ifndef DATA_DRAWS_H
#define DATA_DRAWS_H

#include <math.h>

#include "base/philox.h"

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

/* A standard normal number: the inverse of the distribution function at one uniform number (Wichura 1988, AS 241, good to
 * 1e-16). Words are never nearer to 0 or 1 than 2^-33, so the far tail of that algorithm is not needed. */
static inline double draws_normal(draws *d)
{
    double p = philox_f64(draws_word(d)), q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        double a = ((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r + 6.7265770927008700853e+4) * r +
                       4.5921953931549871457e+4) *
                          r +
                      1.3731693765509461125e+4) *
                         r +
                     1.9715909503065514427e+3) *
                        r +
                    1.3314166789178437745e+2) *
                       r +
                   3.3871328727963666080;
        double b = ((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r + 3.9307895800092710610e+4) * r +
                       2.1213794301586595867e+4) *
                          r +
                      5.3941960214247511077e+3) *
                         r +
                     6.8718700749205790830e+2) *
                        r +
                    4.2313330701600911252e+1) *
                       r +
                   1;
        return q * a / b;
    }
    double r = sqrt(-log(q < 0 ? p : 1 - p)) - 1.6;
    double c = ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r +
                   1.27045825245236838258) *
                      r +
                  3.64784832476320460504) *
                     r +
                 5.76949722146069140550) *
                    r +
                4.63033784615654529590) *
                   r +
               1.42343711074968357734;
    double e = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r +
                   1.48103976427480074590e-1) *
                      r +
                  6.89767334985100004550e-1) *
                     r +
                 1.67638483018380384940) *
                    r +
                2.05319162663775882187) *
                   r +
               1;
    return q < 0 ? -c / e : c / e;
}

#endif
