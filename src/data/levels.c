/* levels.c - see levels.h. SPDX-License-Identifier: MIT
 *
 * The table is the definition. The vector loop computes the same values eight at a time: a quotient
 * by a known divisor is the product with its inverse, corrected once by the remainder, which rounds
 * correctly (Markstein). levels_make() verifies this for these means and deviations with all 768
 * values; otherwise the table is used. */
#include "data/levels.h"

#include <math.h>
#include <stddef.h>

#include "base/cpu.h"

void levels_apply_plain(const levels *l, float *planes, const image *in, int mirrored)
{
    size_t width = (size_t)in->width, plane = width * (size_t)in->height;
    const uint8_t *p = in->pixels;
    ptrdiff_t step = mirrored ? -1 : 1; /* writing a row from its right end is cheaper than reversing the bytes */
    for (int y = 0; y < in->height; y++) {
        float *r = planes + (size_t)y * width + (mirrored ? width - 1 : 0), *g = r + plane, *b = g + plane;
        for (size_t x = 0; x < width; x++, p += 3, r += step, g += step, b += step) {
            *r = l->table[0][p[0]];
            *g = l->table[1][p[1]];
            *b = l->table[2][p[2]];
        }
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

enum { LANES = 8, STREAM_BYTES = 1 << 18 };

/* x / d, d's inverse rounded. */
AVX2 static inline __m256 divide(__m256 x, float d, float inverse)
{
    __m256 i = _mm256_set1_ps(inverse), q = _mm256_mul_ps(x, i);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, _mm256_set1_ps(d), x), i, q);
}

AVX2 static inline __m256 level_of(const levels *l, int c, __m256i bytes)
{
    __m256 x = divide(_mm256_cvtepi32_ps(bytes), 255.0f, 1 / 255.0f);
    return divide(_mm256_sub_ps(x, _mm256_set1_ps(l->mean[c])), l->std[c], l->inverse[c]);
}

/* Byte c of eight pixels out of 24 bytes: `low` holds bytes 0 to 15, `high` 8 to 23. */
AVX2 static inline __m256i channel_of(__m128i low, __m128i high, int c, int mirrored)
{
    __m128i step = _mm_setr_epi8(0, 3, 6, 9, 12, 15, 18, 21, -1, -1, -1, -1, -1, -1, -1, -1);
    if (mirrored)
        step = _mm_setr_epi8(21, 18, 15, 12, 9, 6, 3, 0, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i place = _mm_add_epi8(step, _mm_set1_epi8((char)c));
    __m128i above = _mm_cmpgt_epi8(place, _mm_set1_epi8(15));
    __m128i from_low = _mm_shuffle_epi8(low, _mm_or_si128(place, above));
    __m128i from_high = _mm_shuffle_epi8(high, _mm_sub_epi8(place, _mm_set1_epi8(8)));
    return _mm256_cvtepu8_epi32(_mm_blendv_epi8(from_low, from_high, above));
}

/* One row. Large images use streaming stores: they are not read before the batch is complete, and
 * the decoder needs the cache. */
AVX2 static inline void row_apply(const levels *l, float *out, size_t plane, const uint8_t *p, size_t width,
                                  int mirrored, int stream)
{
    for (size_t x = 0; x < width; x += LANES) {
        size_t from = x + LANES <= width ? x : width - LANES; /* the last vector overlaps the one before */
        __m128i low = _mm_loadu_si128((const __m128i *)(p + 3 * from));
        __m128i high = _mm_loadu_si128((const __m128i *)(p + 3 * from + 8));
        float *to = out + (mirrored ? width - LANES - from : from);
        for (int c = 0; c < 3; c++) {
            __m256 v = level_of(l, c, channel_of(low, high, c, mirrored));
            if (stream)
                _mm256_stream_ps(to + (size_t)c * plane, v);
            else
                _mm256_storeu_ps(to + (size_t)c * plane, v);
        }
    }
}

AVX2 static void apply_vector(const levels *l, float *planes, const image *in, int mirrored)
{
    size_t width = (size_t)in->width, plane = width * (size_t)in->height;
    int stream = 3 * plane * sizeof(float) >= STREAM_BYTES && width % LANES == 0 && (uintptr_t)planes % 32 == 0;
    for (size_t y = 0; y < (size_t)in->height; y++) {
        float *out = planes + y * width;
        const uint8_t *p = in->pixels + 3 * y * width;
        if (stream && mirrored)
            row_apply(l, out, plane, p, width, 1, 1);
        else if (stream)
            row_apply(l, out, plane, p, width, 0, 1);
        else if (mirrored)
            row_apply(l, out, plane, p, width, 1, 0);
        else
            row_apply(l, out, plane, p, width, 0, 0);
    }
    _mm_sfence();
}

AVX2 static int vector_agrees(const levels *l)
{
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v += LANES) {
            float got[LANES];
            _mm256_storeu_ps(
                got, level_of(l, c, _mm256_add_epi32(_mm256_set1_epi32(v), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))));
            for (int i = 0; i < LANES; i++)
                if (got[i] != l->table[c][v + i])
                    return 0;
        }
    return 1;
}

static int vector_usable(const levels *l)
{
    cpu_isa isa;
    return cpu_isa_pick(&isa) == BERLU_OK && (isa == CPU_AVX2 || isa == CPU_AVX512) && vector_agrees(l);
}
#else
enum { LANES = 8 };
static void apply_vector(const levels *l, float *planes, const image *in, int mirrored)
{
    levels_apply_plain(l, planes, in, mirrored);
}

static int vector_usable(const levels *l)
{
    (void)l;
    return 0;
}
#endif

berlu_status levels_make(levels *out, const double mean[3], const double std[3])
{
    for (int c = 0; c < 3; c++) {
        if (!(std[c] > 0) || !isfinite(mean[c]) || !isfinite(std[c]))
            return berlu_fail(BERLU_ERR_ARG, "normalisation of channel %d by mean %g, std %g is impossible", c, mean[c],
                              std[c]);
        out->mean[c] = (float)mean[c];
        out->std[c] = (float)std[c];
        out->inverse[c] = 1 / out->std[c];
        for (int v = 0; v < 256; v++)
            out->table[c][v] = ((float)v / 255.0f - out->mean[c]) / out->std[c];
    }
    out->vector = vector_usable(out);
    return BERLU_OK;
}

void levels_apply(const levels *l, float *planes, const image *in, int mirrored)
{
    if (l->vector && in->width >= LANES)
        apply_vector(l, planes, in, mirrored);
    else
        levels_apply_plain(l, planes, in, mirrored);
}
