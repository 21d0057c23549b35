/* normal.h - a standard normal number from one random word, by the inverse distribution function.
 * SPDX-License-Identifier: MIT
 *
 * One word, one number, no rejection and no state. Only + - * / and sqrt of double are used, all
 * correctly rounded, and no function of the C library: so every machine draws the same weights,
 * CUDA included (contraction off, as everywhere).
 *
 * quantile(p) = y g(w) with y = 2 p - 1, w = -log(1 - y^2) (Giles, "Approximating the erfinv
 * function", 2012). g is a polynomial in w in the centre and in sqrt(w) in the tails; relative
 * error below 2^-32. tools/coefficients/make_normal.py computes its coefficients. */
#ifndef SIMD_NORMAL_H
#define SIMD_NORMAL_H

#include <math.h>
#include <string.h>

#include "base/philox.h"

/* log(v) for normal v > 0: v = 2^k m, m in [sqrt(1/2), sqrt 2); log m = 2 (s + s^3/3 + s^5/5 +
 * ...), s = (m - 1) / (m + 1) */
PHILOX_FN double normal_log(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int64_t k = (int64_t)(bits - 0x3fe6a09e667f3bcdull) >> 52; /* from the bits of sqrt(1/2) */
    bits -= (uint64_t)k << 52;
    memcpy(&v, &bits, sizeof v);
    double s = (v - 1) / (v + 1), s2 = s * s, sum = 0;
    for (int i = 21; i > 0; i -= 2)
        sum = sum * s2 + 2.0 / i;
    return (double)k * 0.69314718055994530942 + s * sum;
}

/* p in [2^-33, 1 - 2^-33], both ends exact in double */
PHILOX_FN double normal_quantile(double p)
{
    const double centre[] = {
        2.3386207098791902,      0.33963495841098951,     -0.008532898610958255,   -0.001047510279741882,
        0.00026408117753414889,  -1.9634343637279082e-05, -1.9304852656982878e-06, 5.9963359295679914e-07,
        -4.1307641028586525e-08, -6.0069710575063467e-09, 1.5235937728466653e-09,  -5.0160020234613079e-11,
        -2.2397098065063403e-11, 1.8254980860277215e-12,  1.4283019211802639e-13,
    };
    const double tail[] = {
        4.7170891383392108,      1.424634644285961,       0.0046341799252999083,   -0.0029179439888305514,
        0.0015464930369253893,   -0.00096023580955717502, 0.00060854260426718154,  -0.00032198878544764664,
        0.00011296514270420221,  -2.5851404073518047e-06, -2.2326382371984366e-05, 1.0185994819306154e-05,
        -1.3020554578413446e-06,
    };
    double y = 2 * p - 1, w = -normal_log(4 * p * (1 - p)), sum = 0;
    if (w < 6.25)
        for (int i = 14; i >= 0; i--)
            sum = sum * (w - 3.125) + centre[i];
    else
        for (int i = 12; i >= 0; i--)
            sum = sum * (sqrt(w) - 3.5) + tail[i];
    return y * sum;
}

/* A word of philox_draw() as a standard normal, between -6.34 and 6.34. */
PHILOX_FN double normal_of_word(uint32_t word)
{
    return normal_quantile(philox_f64(word));
}

#endif
