/* resize_avx2.c - the two loops of resize.c with AVX2: the same integer sums, so the same bytes.
 * SPDX-License-Identifier: MIT
 *
 * Across a row, a weight of 23 bits is too wide for the fast 16-bit multiply-add, so it is split
 * into 2048 * high + low with 0 <= low < 2048; both halves are summed separately and combined once
 * per pixel, which is exact. Four pixels are taken at a time: 12 bytes are shuffled into pairs (r0
 * r1 g0 g1 b0 b1 - - r2 r3 ...), widened and multiplied by pairs of weights. A 16-byte load may
 * reach past the row, hence IMAGE_SLACK after every image; weights past the count are zero. Down
 * the columns the 32-bit product is as fast. Reference: resize.c. */
#include "data/resize_pass.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

enum { SPLIT_BITS = 11, TAPS_AT_ONCE = 4 };

/* Eight lanes of 16 bits: the weights of two neighbouring pixels, repeated for the channels. */
AVX2 static inline __m256i pairs_low(__m128i k)
{
    __m128i low = _mm_and_si128(k, _mm_set1_epi32((1 << SPLIT_BITS) - 1));
    low = _mm_packs_epi32(low, low);
    return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(low), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

AVX2 static inline __m256i pairs_high(__m128i k)
{
    __m128i high = _mm_srai_epi32(k, SPLIT_BITS);
    high = _mm_packs_epi32(high, high);
    return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(high), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

/* Weights of one output pixel for the lanes above: TAPS_AT_ONCE taps as one vector each of high and
 * low halves. Rows share them, so they are prepared once per image. */
AVX2 static void prepare(resize_axis *axis)
{
    for (int x = 0; x < axis->out; x++) {
        const int32_t *k = axis->weights + (size_t)x * (size_t)axis->taps;
        for (int j = 0; j < axis->count[x]; j += TAPS_AT_ONCE) {
            int32_t four[TAPS_AT_ONCE] = {0};
            for (int t = 0; t < TAPS_AT_ONCE && j + t < axis->count[x]; t++)
                four[t] = k[j + t];
            __m128i v = _mm_loadu_si128((const __m128i *)four);
            int16_t *to = axis->packed + ((size_t)x * (size_t)axis->groups + (size_t)(j / TAPS_AT_ONCE)) * 32;
            _mm256_storeu_si256((__m256i *)to, pairs_low(v));
            _mm256_storeu_si256((__m256i *)(to + 16), pairs_high(v));
        }
    }
}

/* Four taps of one row, both halves of the weights. */
AVX2 static inline void taps_add(__m256i *low, __m256i *high, const uint8_t *p, __m256i k_low, __m256i k_high)
{
    const __m128i order = _mm_setr_epi8(0, 3, 1, 4, 2, 5, -1, -1, 6, 9, 7, 10, 8, 11, -1, -1);
    __m256i v = _mm256_cvtepu8_epi16(_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), order));
    *low = _mm256_add_epi32(*low, _mm256_madd_epi16(v, k_low));
    *high = _mm256_add_epi32(*high, _mm256_madd_epi16(v, k_high));
}

/* The sums of a pixel (red, green, blue, nothing), rounded and shifted. The halves of the weights
 * are joined before the halves of the vector: all of it is exact, so the cheaper order may be
 * taken. */
AVX2 static inline __m128i sums_join(__m256i low, __m256i high)
{
    const __m128i half = _mm_set1_epi32(1 << (RESIZE_BITS - 1));
    __m256i both = _mm256_add_epi32(low, _mm256_slli_epi32(high, SPLIT_BITS));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    return _mm_srai_epi32(_mm_add_epi32(sum, half), RESIZE_BITS);
}

AVX2 static void row_across(uint8_t *out, const uint8_t *in, const resize_axis *axis)
{
    for (int x = 0; x < axis->out; x++) {
        const int16_t *k = axis->packed + (size_t)x * (size_t)axis->groups * 32;
        const uint8_t *p = in + (size_t)axis->low[x] * 3;
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int j = 0; j < axis->count[x]; j += TAPS_AT_ONCE, k += 32, p += 3 * TAPS_AT_ONCE)
            taps_add(&low, &high, p, _mm256_loadu_si256((const __m256i *)k),
                     _mm256_loadu_si256((const __m256i *)(k + 16)));
        __m128i sum = sums_join(low, high);
        sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
        uint32_t rgb = (uint32_t)_mm_cvtsi128_si32(sum);
        memcpy(out + 3 * x, &rgb, 3);
    }
}

/* Four bytes are stored for a pixel of three: the fourth is overwritten by the next pixel. The last
 * one of a row has no next pixel, and the next byte belongs to another row. */
AVX2 static inline void pixel_store(uint8_t *out, int rgb, int last)
{
    memcpy(out, &rgb, last ? 3 : 4);
}

/* Four rows share the weights and the packing; two pairs of rows keep everything in registers. */
AVX2 static void four_rows_across(uint8_t *out, size_t out_row, const uint8_t *in, size_t in_row,
                                  const resize_axis *axis)
{
    for (int x = 0; x < axis->out; x++) {
        const int16_t *k = axis->packed + (size_t)x * (size_t)axis->groups * 32;
        const uint8_t *p = in + (size_t)axis->low[x] * 3;
        __m256i l0 = _mm256_setzero_si256(), l1 = l0, l2 = l0, l3 = l0, h0 = l0, h1 = l0, h2 = l0, h3 = l0;
        for (int j = 0; j < axis->count[x]; j += TAPS_AT_ONCE, k += 32, p += 3 * TAPS_AT_ONCE) {
            __m256i k_low = _mm256_loadu_si256((const __m256i *)k),
                    k_high = _mm256_loadu_si256((const __m256i *)(k + 16));
            taps_add(&l0, &h0, p, k_low, k_high);
            taps_add(&l1, &h1, p + in_row, k_low, k_high);
            taps_add(&l2, &h2, p + 2 * in_row, k_low, k_high);
            taps_add(&l3, &h3, p + 3 * in_row, k_low, k_high);
        }
        __m128i a = _mm_packs_epi32(sums_join(l0, h0), sums_join(l1, h1));
        __m128i b = _mm_packs_epi32(sums_join(l2, h2), sums_join(l3, h3));
        __m128i bytes = _mm_packus_epi16(a, b);
        uint8_t *to = out + 3 * x;
        int last = x + 1 == axis->out;
        pixel_store(to, _mm_cvtsi128_si32(bytes), last);
        pixel_store(to + out_row, _mm_extract_epi32(bytes, 1), last);
        pixel_store(to + 2 * out_row, _mm_extract_epi32(bytes, 2), last);
        pixel_store(to + 3 * out_row, _mm_extract_epi32(bytes, 3), last);
    }
}

AVX2 static void rows_across(uint8_t *out, const uint8_t *in, size_t in_row, int rows, const resize_axis *axis)
{
    size_t out_row = (size_t)axis->out * 3;
    for (; rows >= 4; rows -= 4, in += 4 * in_row, out += 4 * out_row)
        four_rows_across(out, out_row, in, in_row, axis);
    for (; rows > 0; rows--, in += in_row, out += out_row)
        row_across(out, in, axis);
}

/* `in` is read eight bytes at a time; the remainder uses the reference loop. */
AVX2 static void row_down(uint8_t *out, const uint8_t *in, size_t bytes, const int32_t *k, int count)
{
    size_t x = 0;
    for (; x + 16 <= bytes; x += 16) {
        __m256i a = _mm256_set1_epi32(1 << (RESIZE_BITS - 1)), b = a;
        const uint8_t *p = in + x;
        for (int j = 0; j < count; j++, p += bytes) {
            __m256i weight = _mm256_set1_epi32(k[j]);
            __m128i v = _mm_loadu_si128((const __m128i *)p);
            a = _mm256_add_epi32(a, _mm256_mullo_epi32(weight, _mm256_cvtepu8_epi32(v)));
            b = _mm256_add_epi32(b, _mm256_mullo_epi32(weight, _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))));
        }
        a = _mm256_packs_epi32(_mm256_srai_epi32(a, RESIZE_BITS), _mm256_srai_epi32(b, RESIZE_BITS));
        a = _mm256_permute4x64_epi64(a, 0xd8);
        _mm_storeu_si128((__m128i *)(out + x),
                         _mm_packus_epi16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
    }
    if (x < bytes)
        resize_tail_down(out, in, bytes, x, k, count);
}

const resize_passes resize_passes_avx2 = {prepare, rows_across, row_down};
#endif
