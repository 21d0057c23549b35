/* resize_vnni.c - the two loops of resize.c with AVX-512's dot products of bytes: the same sums.
 * SPDX-License-Identifier: MIT
 *
 * vpdpbusd adds four products of an unsigned and a signed byte to a 32-bit sum. A weight of 23 bits
 * is therefore written in three signed digits, w = 65536 a + 256 b + c; each digit has its own
 * sums, combined once per pixel, which is exact. Pixels are bytes already, so nothing is widened:
 * one shuffle puts four taps of each channel side by side. Reference: resize.c. */
#include "data/resize_pass.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

enum { DIGITS = 3, LANES = 4, TAPS_AT_ONCE = 4, VECTOR = 64, GROUPS_MOST = 128 };

/* The digits of four weights, one dword of four bytes per digit: what vpdpbusd multiplies four
 * neighbouring taps with. */
static void digits_of(int32_t out[DIGITS], const int32_t *k, int count)
{
    int8_t digits[DIGITS][TAPS_AT_ONCE] = {{0}};
    for (int t = 0; t < TAPS_AT_ONCE && t < count; t++) {
        int32_t low = (int8_t)(uint8_t)k[t], rest = (k[t] - low) / 256, middle = (int8_t)(uint8_t)rest;
        digits[0][t] = (int8_t)low;
        digits[1][t] = (int8_t)middle;
        digits[2][t] = (int8_t)((rest - middle) / 256);
    }
    memcpy(out, digits, sizeof digits);
}

typedef struct sums {
    __m512i digit[DIGITS];
} sums;

VNNI static inline void sums_add(sums *s, __m512i bytes, __m512i low, __m512i middle, __m512i high)
{
    s->digit[0] = _mm512_dpbusd_epi32(s->digit[0], bytes, low);
    s->digit[1] = _mm512_dpbusd_epi32(s->digit[1], bytes, middle);
    s->digit[2] = _mm512_dpbusd_epi32(s->digit[2], bytes, high);
}

VNNI static inline __m512i sums_join(const sums *s)
{
    __m512i half = _mm512_set1_epi32(1 << (RESIZE_BITS - 1));
    __m512i middle = _mm512_slli_epi32(s->digit[1], 8), high = _mm512_slli_epi32(s->digit[2], 16);
    __m512i all = _mm512_add_epi32(_mm512_add_epi32(s->digit[0], half), _mm512_add_epi32(middle, high));
    return _mm512_srai_epi32(all, RESIZE_BITS);
}

/* ---- across: a vector is four neighbouring output pixels, a 128-bit lane each ---------------- */

static int block_groups(const resize_axis *axis, int first)
{
    int most = 1;
    for (int x = first; x < first + LANES && x < axis->out; x++)
        most = axis->count[x] > most ? axis->count[x] : most;
    return (most + TAPS_AT_ONCE - 1) / TAPS_AT_ONCE;
}

/* The pixels of a block are given the same number of taps. Where that would reach over the end of a
 * row, the run begins earlier and its first weights are zero; a row shorter than a run is overread
 * by less than IMAGE_SLACK. */
VNNI static void prepare(resize_axis *axis)
{
    int8_t *to = (int8_t *)axis->packed;
    for (int first = 0; first < axis->out; first += LANES) {
        int groups = block_groups(axis, first), taps = groups * TAPS_AT_ONCE;
        memset(to, 0, (size_t)groups * DIGITS * VECTOR);
        for (int x = first; x < first + LANES && x < axis->out; x++) {
            const int32_t *k = axis->weights + (size_t)x * (size_t)axis->taps;
            int over = axis->low[x] + taps - axis->in, early = over > 0 ? over : 0;
            early = early < axis->low[x] ? early : axis->low[x];
            axis->low[x] -= early;
            for (int g = 0; g < groups; g++) {
                int32_t four[TAPS_AT_ONCE], digits[DIGITS];
                for (int t = 0, j = g * TAPS_AT_ONCE - early; t < TAPS_AT_ONCE; t++, j++)
                    four[t] = j >= 0 && j < axis->count[x] ? k[j] : 0;
                digits_of(digits, four, TAPS_AT_ONCE);
                for (int d = 0; d < DIGITS; d++)
                    for (int channel = 0; channel < 4; channel++)
                        memcpy(to + (g * DIGITS + d) * VECTOR + (x - first) * 16 + channel * 4, &digits[d], 4);
            }
        }
        for (int x = first; x < first + LANES && x < axis->out; x++)
            axis->count[x] = taps; /* from here on: of the block */
        to += groups * DIGITS * VECTOR;
    }
}

/* Four taps of four pixels: red of all taps, green, blue, and bytes that are not used. */
VNNI static inline __m512i block_load(const uint8_t *row, const int32_t *low)
{
    const __m128i order = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row + 3 * low[0])));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row + 3 * low[1])), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row + 3 * low[2])), 2);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row + 3 * low[3])), 3);
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(order));
}

/* Twelve bytes are wanted and sixteen written where another block follows in this row and
 * overwrites the rest. */
VNNI static inline void block_store(uint8_t *out, const sums *s, int left)
{
    const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m512i clipped = _mm512_max_epi32(sums_join(s), _mm512_setzero_si512());
    __m128i bytes = _mm_shuffle_epi8(_mm512_cvtusepi32_epi8(clipped), order);
    if (left >= 2 * LANES)
        _mm_storeu_si128((__m128i *)out, bytes);
    else
        _mm_mask_storeu_epi8(out, (__mmask16)((1u << 3 * (left < LANES ? left : LANES)) - 1), bytes);
}

/* Two rows share the weights. The last row of an odd number is computed twice, to the same
 * bytes. */
VNNI static void two_rows_across(uint8_t *out, uint8_t *out2, const uint8_t *in, const uint8_t *in2,
                                 const resize_axis *axis)
{
    const int8_t *k = (const int8_t *)axis->packed;
    for (int x = 0; x < axis->out; x += LANES) {
        int32_t low[LANES] = {0};
        int left = axis->out - x, groups = axis->count[x] / TAPS_AT_ONCE;
        memcpy(low, axis->low + x, (size_t)(left < LANES ? left : LANES) * sizeof *low);
        sums a = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()}}, b = a;
        for (int g = 0; g < groups; g++, k += DIGITS * VECTOR) {
            __m512i k0 = _mm512_loadu_si512(k), k1 = _mm512_loadu_si512(k + VECTOR);
            __m512i k2 = _mm512_loadu_si512(k + 2 * VECTOR);
            sums_add(&a, block_load(in + g * 3 * TAPS_AT_ONCE, low), k0, k1, k2);
            sums_add(&b, block_load(in2 + g * 3 * TAPS_AT_ONCE, low), k0, k1, k2);
        }
        block_store(out + 3 * x, &a, left);
        block_store(out2 + 3 * x, &b, left);
    }
}

VNNI static void rows_across(uint8_t *out, const uint8_t *in, size_t in_row, int rows, const resize_axis *axis)
{
    size_t out_row = (size_t)axis->out * 3;
    for (int y = 0; y < rows; y += 2) {
        size_t here = (size_t)y, next = y + 1 < rows ? here + 1 : here;
        two_rows_across(out + here * out_row, out + next * out_row, in + here * in_row, in + next * in_row, axis);
    }
}

/* ---- down: a vector is 64 neighbouring bytes of a row ---------------------------------------- */

/* Four rows, transposed so that the four bytes of a column are adjacent. Unpacking works inside
 * 128-bit lanes, and so does the packing at the end, which puts everything back in order. */
VNNI static inline void columns_load(__m512i out[4], const uint8_t *const rows[4], size_t x, __mmask64 mask)
{
    __m512i a = _mm512_maskz_loadu_epi8(mask, rows[0] + x), b = _mm512_maskz_loadu_epi8(mask, rows[1] + x);
    __m512i c = _mm512_maskz_loadu_epi8(mask, rows[2] + x), d = _mm512_maskz_loadu_epi8(mask, rows[3] + x);
    __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    out[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
    out[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
    out[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
    out[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

VNNI static void columns_down(uint8_t *out, const uint8_t *in, size_t bytes, size_t x, int32_t (*digits)[DIGITS],
                              int count)
{
    __mmask64 mask = bytes - x >= VECTOR ? ~(__mmask64)0 : ((__mmask64)1 << (bytes - x)) - 1;
    sums s[4];
    memset(s, 0, sizeof s);
    for (int j = 0; j < count; j += TAPS_AT_ONCE) {
        const uint8_t *rows[TAPS_AT_ONCE];
        const int32_t *k = digits[j / TAPS_AT_ONCE];
        __m512i columns[4];
        for (int t = 0; t < TAPS_AT_ONCE; t++) /* past the last row it is read again; its weight there is zero */
            rows[t] = in + (size_t)(j + t < count ? j + t : count - 1) * bytes;
        columns_load(columns, rows, x, mask);
        for (int i = 0; i < 4; i++)
            sums_add(&s[i], columns[i], _mm512_set1_epi32(k[0]), _mm512_set1_epi32(k[1]), _mm512_set1_epi32(k[2]));
    }
    __m512i first = _mm512_packs_epi32(sums_join(&s[0]), sums_join(&s[1]));
    __m512i second = _mm512_packs_epi32(sums_join(&s[2]), sums_join(&s[3]));
    _mm512_mask_storeu_epi8(out + x, mask, _mm512_packus_epi16(first, second));
}

VNNI static void row_down(uint8_t *out, const uint8_t *in, size_t bytes, const int32_t *k, int count)
{
    int32_t digits[GROUPS_MOST][DIGITS];
    if (count > GROUPS_MOST * TAPS_AT_ONCE) { /* reduction by a hundred and more: speed does not matter */
        resize_passes_plain.down(out, in, bytes, k, count);
        return;
    }
    for (int j = 0; j < count; j += TAPS_AT_ONCE)
        digits_of(digits[j / TAPS_AT_ONCE], k + j, count - j);
    for (size_t x = 0; x < bytes; x += VECTOR)
        columns_down(out, in, bytes, x, digits, count);
}

const resize_passes resize_passes_vnni = {prepare, rows_across, row_down};
#endif
