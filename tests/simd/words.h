/* words.h - every word of the vocabulary as a function over sixteen elements, one table per target.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_SIMD_WORDS_H
#define TESTS_SIMD_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { WORDS_LANES = 16 };

typedef enum word_kind {
    WORD_FLOAT, /* 16 floats; NaN compares as a class */
    WORD_BITS,  /* 16 x 32 bits, exactly */
    WORD_BF16,  /* 16 x 16 bits; NaN as a class */
    WORD_F16
} word_kind;

typedef struct word {
    const char *name;
    word_kind kind;
    /* a, b, c: 16 floats each, also read as integers or as 32 sixteen-bit elements; out: zeroed
     * memory for 16 x 32 bits. n is for the words that take a length; they leave the rest of out
     * alone. */
    void (*apply)(void *out, const float *a, const float *b, const float *c, size_t n);
    int integral; /* a must hold numbers that v_truncate allows */
} word;

extern const word words_scalar[], words_avx2[], words_avx512[], words_neon[]; /* name NULL ends each */

#endif
