/* vec_avx2_lookups.h - look-ups for four vectors at once; part of vec_avx2.h.
 * SPDX-License-Identifier: MIT
 *
 * vpshufb finds thirty-two bytes among sixteen, so a table of sixteen floats is four tables of
 * bytes, constants that the compiler makes, and four look-ups and eight unpacks serve four vectors:
 * three cheap operations each, where vpermps takes two cycles (Zen 1 to 3) or one port has all
 * permutes (Intel). */
#ifndef SIMD_VEC_AVX2_LOOKUPS_H
#define SIMD_VEC_AVX2_LOOKUPS_H

#define V_LOOKUPS 4
typedef __m256i v_index; /* j mod 32 in bytes, in the order of vpack: unpacking restores the vectors */
V_FN v_index v_index_of(const v_i32 *j)
{
    __m256i mask = _mm256_set1_epi32(31);
    __m256i low = _mm256_packs_epi32(_mm256_and_si256(j[0], mask), _mm256_and_si256(j[1], mask));
    __m256i high = _mm256_packs_epi32(_mm256_and_si256(j[2], mask), _mm256_and_si256(j[3], mask));
    return _mm256_packus_epi16(low, high);
}
V_FN char v_byte(const float *p, int byte)
{
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return (char)(bits >> 8 * byte);
}
V_FN __m256i v_find_byte(const float *t, int b, v_index i)
{
    __m128i bytes = _mm_setr_epi8(v_byte(t, b), v_byte(t + 1, b), v_byte(t + 2, b), v_byte(t + 3, b), v_byte(t + 4, b),
                                  v_byte(t + 5, b), v_byte(t + 6, b), v_byte(t + 7, b), v_byte(t + 8, b),
                                  v_byte(t + 9, b), v_byte(t + 10, b), v_byte(t + 11, b), v_byte(t + 12, b),
                                  v_byte(t + 13, b), v_byte(t + 14, b), v_byte(t + 15, b));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), i);
}
V_FN void v_join_bytes(v_f32 *r, const __m256i *byte)
{
    __m256i low01 = _mm256_unpacklo_epi8(byte[0], byte[1]), high01 = _mm256_unpackhi_epi8(byte[0], byte[1]);
    __m256i low23 = _mm256_unpacklo_epi8(byte[2], byte[3]), high23 = _mm256_unpackhi_epi8(byte[2], byte[3]);
    r[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low01, low23));
    r[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low01, low23));
    r[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(high01, high23));
    r[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(high01, high23));
}
V_FN void v_lookups16(v_f32 *r, const float *table, v_index i)
{
    __m256i byte[] = {v_find_byte(table, 0, i), v_find_byte(table, 1, i), v_find_byte(table, 2, i),
                      v_find_byte(table, 3, i)};
    v_join_bytes(r, byte);
}
/* vpshufb gives 0 where the sign of an index is set: each half of the table is asked with the other
 * half's indices negative, and any pipe can join the results. */
V_FN __m256i v_find_byte32(const float *t, int b, v_index i)
{
    __m256i first = _mm256_add_epi8(i, _mm256_set1_epi8(0x70)), second = _mm256_sub_epi8(i, _mm256_set1_epi8(0x10));
    return _mm256_or_si256(v_find_byte(t, b, first), v_find_byte(t + 16, b, second));
}
V_FN void v_lookups32(v_f32 *r, const float *table, v_index i)
{
    __m256i byte[] = {v_find_byte32(table, 0, i), v_find_byte32(table, 1, i), v_find_byte32(table, 2, i),
                      v_find_byte32(table, 3, i)};
    v_join_bytes(r, byte);
}

#endif
