/* check_words.c - every word of every target gives the bits of the scalar word.
 * SPDX-License-Identifier: MIT
 *
 * On specials crossed with specials (zeros, subnormals, powers of two, largest, infinities, quiet
 * and signalling NaN), on random bit patterns, and for every length. NaN results count as a class.
 * Without a test library, so that the same program runs alone under an emulator for NEON. Prints
 * the differences; the exit status is 0 when there are none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/philox.h"
#include "simd/words.h"

static const uint32_t specials[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x33800000,
    0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001, 0x3fc00000, 0x40490fdb,
    0x42b17218, 0xc2aeac50, 0x477fe000, 0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x387fc000,
    0x4b000000, 0x4b400000, 0x4effffff, 0x4f000000, 0xcf000000, 0x7effffff, 0x7f7f8000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff8fffff, 0x7fffffff,
};
enum { SPECIALS = sizeof specials / sizeof *specials, RANDOM_ROUNDS = 20000 };

typedef struct numbers {
    _Alignas(64) float a[WORDS_LANES], b[WORDS_LANES], c[WORDS_LANES];
} numbers;

static void put(float *out, uint32_t bits)
{
    memcpy(out, &bits, sizeof bits);
}

/* a runs through the specials lane by lane, b and c are the same in all lanes */
static void fill_specials(numbers *x, unsigned round)
{
    unsigned b = round % SPECIALS, c = round / SPECIALS % SPECIALS, first = round / SPECIALS / SPECIALS * WORDS_LANES;
    for (unsigned i = 0; i < WORDS_LANES; i++) {
        put(x->a + i, specials[(first + i) % SPECIALS]);
        put(x->b + i, specials[b]);
        put(x->c + i, specials[c]);
    }
}

static void fill_random(numbers *x, uint32_t round)
{
    for (uint32_t i = 0; i < WORDS_LANES; i++) {
        philox_words w = philox_draw(13, PURPOSE_TEST, 0, round, i);
        uint32_t near = w.w[3] % 3; /* sometimes operands of like size, where sums cancel */
        put(x->a + i, w.w[0]);
        put(x->b + i, near ? w.w[1] : (w.w[0] ^ 0x80000000u) + w.w[1] % 5);
        put(x->c + i, w.w[2]);
    }
}

static int same(word_kind kind, const unsigned char *want, const unsigned char *got)
{
    if (memcmp(want, got, WORDS_LANES * 4) == 0)
        return 1;
    if (kind == WORD_BITS)
        return 0;
    for (size_t i = 0; i < WORDS_LANES; i++) {
        float u, v;
        uint16_t s, t, infinity = kind == WORD_BF16 ? 0x7f80 : 0x7c00;
        memcpy(&u, want + 4 * i, 4), memcpy(&v, got + 4 * i, 4);
        memcpy(&s, want + 2 * i, 2), memcpy(&t, got + 2 * i, 2);
        if (kind == WORD_FLOAT ? memcmp(&u, &v, 4) && !(isnan(u) && isnan(v))
                               : s != t && !((s & 0x7fff) > infinity && (t & 0x7fff) > infinity))
            return 0;
    }
    return 1;
}

static int compare(const word *want, const word *got, const numbers *x, size_t n)
{
    _Alignas(64) unsigned char right[WORDS_LANES * 4] = {0}, other[WORDS_LANES * 4] = {0};
    numbers in = *x;
    if (want->integral)
        for (int i = 0; i < WORDS_LANES; i++)
            in.a[i] = fabsf(in.a[i]) < 0x1p31f ? in.a[i] : 1.5f;
    want->apply(right, in.a, in.b, in.c, n);
    got->apply(other, in.a, in.b, in.c, n);
    if (same(want->kind, right, other))
        return 1;
    for (int i = 0; i < WORDS_LANES; i++) {
        uint32_t u, v;
        memcpy(&u, right + 4 * i, 4), memcpy(&v, other + 4 * i, 4);
        if (u != v)
            printf("%s(%a, %a, %a), n %zu: %08x, scalar %08x\n", want->name, in.a[i], in.b[i], in.c[i], n, v, u);
    }
    return 0;
}

static int check(const char *isa, const word *words)
{
    int wrong = 0;
    numbers x;
    const unsigned rounds = SPECIALS * SPECIALS * ((SPECIALS + WORDS_LANES - 1) / WORDS_LANES);
    for (size_t w = 0; words_scalar[w].name && wrong < 20; w++) {
        for (unsigned r = 0; r < rounds && wrong < 20; r++) {
            fill_specials(&x, r);
            wrong += !compare(words_scalar + w, words + w, &x, r % (WORDS_LANES + 1));
        }
        for (uint32_t r = 0; r < RANDOM_ROUNDS && wrong < 20; r++) {
            fill_random(&x, r);
            wrong += !compare(words_scalar + w, words + w, &x, r % (WORDS_LANES + 1));
        }
    }
    printf("%s: %s\n", isa, wrong ? "differs from scalar" : "every word gives the bits of scalar");
    return wrong;
}

int main(void)
{
    int wrong = 0;
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2))
        wrong += check("avx2", words_avx2);
    if (cpu_has(CPU_AVX512))
        wrong += check("avx512", words_avx512);
#elif defined(__aarch64__)
    wrong += check("neon", words_neon);
#endif
    return wrong != 0;
}
