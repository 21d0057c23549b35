/* vec_avx2.h - the vocabulary of vec.h on AVX2 with FMA and F16C, eight lanes.
 * SPDX-License-Identifier: MIT
 *
 * A mask is a vector whose lanes are all ones or all zeros. vminps and vmaxps return their second
 * operand on NaN and on equal zeros; the order of operands below makes them the compare-selects of
 * vec.h. */
#ifndef SIMD_VEC_AVX2_H
#define SIMD_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V_FN            static inline __attribute__((always_inline))
#define V_TABLE         static const _Alignas(64)
#define V_LANES         8
#define V_ISA_TEXT      "avx2"
#define V_FEW_REGISTERS 1

typedef __m256 v_f32;
typedef __m256i v_i32;
typedef __m256 v_mask;

V_FN __m256i v_first_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Memory */
V_FN v_f32 v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
V_FN void v_store(float *p, v_f32 a)
{
    _mm256_storeu_ps(p, a);
}
V_FN void v_stream(float *p, v_f32 a)
{
    _mm256_stream_ps(p, a);
}
V_FN void v_stream_end(void)
{
    _mm_sfence();
}
V_FN v_f32 v_load_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, v_first_lanes(n));
}
V_FN void v_store_n(float *p, v_f32 a, size_t n)
{
    _mm256_maskstore_ps(p, v_first_lanes(n), a);
}
V_FN __m128i v_load_n_words(const uint16_t *p, size_t n) /* AVX2 has no masked 16-bit access: through a small buffer */
{
    uint16_t words[8] = {0};
    memcpy(words, p, n * sizeof *words);
    return _mm_loadu_si128((const __m128i *)(const void *)words);
}
V_FN void v_store_n_words(uint16_t *p, __m128i a, size_t n)
{
    uint16_t words[8];
    _mm_storeu_si128((__m128i *)(void *)words, a);
    memcpy(p, words, n * sizeof *words);
}
V_FN v_f32 v_widen_bf16(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
V_FN __m128i v_narrow_bf16(v_f32 a) /* add 0x7fff and the last kept bit, cut; NaN: keep the top and set the quiet bit */
{
    __m256i bits = _mm256_castps_si256(a), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i near = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i chosen = _mm256_blendv_epi8(near, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
    return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}
V_FN v_f32 v_load_bf16(const uint16_t *p)
{
    return v_widen_bf16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
V_FN void v_store_bf16(uint16_t *p, v_f32 a)
{
    _mm_storeu_si128((__m128i *)(void *)p, v_narrow_bf16(a));
}
V_FN void v_stream_bf16(uint16_t *p, v_f32 a)
{
    _mm_stream_si128((__m128i *)(void *)p, v_narrow_bf16(a));
}
V_FN v_f32 v_load_n_bf16(const uint16_t *p, size_t n)
{
    return v_widen_bf16(v_load_n_words(p, n));
}
V_FN void v_store_n_bf16(uint16_t *p, v_f32 a, size_t n)
{
    v_store_n_words(p, v_narrow_bf16(a), n);
}
#define V_PAIRS_BF16 1                                        /* replaces the one-by-one versions of vec.h */
V_FN void v_load2_bf16(const uint16_t *p, v_f32 *a, v_f32 *b) /* the even words, then the odd: no shuffle */
{
    __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)p);
    *a = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    *b = _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32((int)0xffff0000)));
}
/* Upper halves, plus one where the lower half, less one beside an even upper half, is at least
 * 0x8000 (a difference below 0 saturates) */
V_FN __m256i v_narrow2_bf16(v_f32 a, v_f32 b)
{
    __m256i even = _mm256_castps_si256(a), odd = _mm256_castps_si256(b), one = _mm256_set1_epi16(1);
    __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
    __m256i lower = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xaa);
    __m256i past = _mm256_subs_epu16(lower, _mm256_andnot_si256(upper, one));
    return _mm256_add_epi16(upper, _mm256_srli_epi16(past, 15));
}
V_FN void v_store2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v_narrow2_bf16(a, b));
}
V_FN void v_stream2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm256_stream_si256((__m256i *)(void *)p, v_narrow2_bf16(a, b));
}
#define V_EXACT_BF16 1
V_FN __m256i v_cut2_bf16(v_f32 a, v_f32 b)
{
    return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(a), 16), _mm256_castps_si256(b), 0xaa);
}
V_FN void v_store2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v_cut2_bf16(a, b));
}
V_FN void v_stream2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm256_stream_si256((__m256i *)(void *)p, v_cut2_bf16(a, b));
}
V_FN void v_order2(v_f32 *a, v_f32 *b)
{
    __m256 low = _mm256_unpacklo_ps(*a, *b), high = _mm256_unpackhi_ps(*a, *b);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}
V_FN void v_deal2(v_f32 *a, v_f32 *b)
{
    __m256 even = _mm256_shuffle_ps(*a, *b, 0x88), odd = _mm256_shuffle_ps(*a, *b, 0xdd);
    *a = _mm256_castsi256_ps(_mm256_permute4x64_epi64(_mm256_castps_si256(even), 0xd8));
    *b = _mm256_castsi256_ps(_mm256_permute4x64_epi64(_mm256_castps_si256(odd), 0xd8));
}
V_FN __m128i v_narrow_f16(v_f32 a)
{
    return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
V_FN v_f32 v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
V_FN void v_store_f16(uint16_t *p, v_f32 a)
{
    _mm_storeu_si128((__m128i *)(void *)p, v_narrow_f16(a));
}
V_FN void v_stream_f16(uint16_t *p, v_f32 a)
{
    _mm_stream_si128((__m128i *)(void *)p, v_narrow_f16(a));
}
V_FN v_f32 v_load_n_f16(const uint16_t *p, size_t n)
{
    return _mm256_cvtph_ps(v_load_n_words(p, n));
}
V_FN void v_store_n_f16(uint16_t *p, v_f32 a, size_t n)
{
    v_store_n_words(p, v_narrow_f16(a), n);
}
V_FN v_f32 v_lookup16(const float *table,
                      v_i32 j) /* vpermps reads three bits of j; the fourth, moved to the sign, chooses */
{
    __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), j);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), j);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(j, 28)));
}
V_FN v_f32 v_lookup8(const float *table, v_i32 j)
{
    return _mm256_permutevar8x32_ps(_mm256_load_ps(table), j);
}
#define V_LOOKUP32_IN_HALVES 1 /* selecting from two results is cheaper than thirteen operations per coefficient */
V_FN v_f32 v_lookup32(const float *table, v_i32 j)
{
    __m256 fifth = _mm256_castsi256_ps(_mm256_slli_epi32(j, 27));
    return _mm256_blendv_ps(v_lookup16(table, j), v_lookup16(table + 16, j), fifth);
}
#include "simd/vec_avx2_lookups.h"

/* Constants */
V_FN v_f32 v_set(float c)
{
    return _mm256_set1_ps(c);
}
V_FN v_f32 v_zero(void)
{
    return _mm256_setzero_ps();
}
V_FN v_f32 v_one(void)
{
    return _mm256_set1_ps(1.0f);
}
V_FN v_i32 v_iset(int32_t i)
{
    return _mm256_set1_epi32(i);
}

/* Arithmetic */
V_FN v_f32 v_add(v_f32 a, v_f32 b)
{
    return _mm256_add_ps(a, b);
}
V_FN v_f32 v_sub(v_f32 a, v_f32 b)
{
    return _mm256_sub_ps(a, b);
}
V_FN v_f32 v_mul(v_f32 a, v_f32 b)
{
    return _mm256_mul_ps(a, b);
}
V_FN v_f32 v_div(v_f32 a, v_f32 b)
{
    return _mm256_div_ps(a, b);
}
V_FN v_f32 v_sqrt(v_f32 a)
{
    return _mm256_sqrt_ps(a);
}
V_FN v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm256_fmadd_ps(a, b, c);
}
V_FN v_f32 v_fms(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm256_fmsub_ps(a, b, c);
}
V_FN v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

/* Signs, integers */
V_FN v_i32 v_bits(v_f32 a)
{
    return _mm256_castps_si256(a);
}
V_FN v_f32 v_float(v_i32 i)
{
    return _mm256_castsi256_ps(i);
}
V_FN v_f32 v_abs(v_f32 a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
V_FN v_f32 v_neg(v_f32 a)
{
    return _mm256_xor_ps(_mm256_set1_ps(-0.0f), a);
}
V_FN v_f32 v_copysign(v_f32 magnitude, v_f32 sign)
{
    return _mm256_or_ps(v_abs(magnitude), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
V_FN v_i32 v_iadd(v_i32 a, v_i32 b)
{
    return _mm256_add_epi32(a, b);
}
V_FN v_i32 v_isub(v_i32 a, v_i32 b)
{
    return _mm256_sub_epi32(a, b);
}
V_FN v_i32 v_shift_left(v_i32 a, int count)
{
    return _mm256_slli_epi32(a, count);
}
V_FN v_i32 v_shift_right_signed(v_i32 a, int count)
{
    return _mm256_srai_epi32(a, count);
}
V_FN v_i32 v_truncate(v_f32 a)
{
    return _mm256_cvttps_epi32(a);
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return _mm256_cvtepi32_ps(i);
}

/* Choice */
V_FN v_mask v_less(v_f32 a, v_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
V_FN v_mask v_less_equal(v_f32 a, v_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
V_FN v_mask v_equal(v_f32 a, v_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
V_FN v_mask v_is_nan(v_f32 a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
V_FN v_mask v_either_nan(v_f32 a, v_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
V_FN v_mask v_is_negative(v_f32 a)
{
    return _mm256_castsi256_ps(_mm256_srai_epi32(v_bits(a), 31));
}
V_FN v_mask v_and(v_mask a, v_mask b)
{
    return _mm256_and_ps(a, b);
}
V_FN v_mask v_or(v_mask a, v_mask b)
{
    return _mm256_or_ps(a, b);
}
V_FN v_mask v_not(v_mask a)
{
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
}
V_FN int v_any(v_mask m)
{
    return __builtin_expect(_mm256_movemask_ps(m) != 0, 0);
}
V_FN int v_all(v_mask m)
{
    return __builtin_expect(_mm256_movemask_ps(m) == 0xff, 1);
}
V_FN v_f32 v_select(v_mask m, v_f32 yes, v_f32 no)
{
    return _mm256_blendv_ps(no, yes, m);
}
V_FN v_i32 v_iselect(v_mask m, v_i32 yes, v_i32 no)
{
    return v_bits(v_select(m, v_float(yes), v_float(no)));
}
V_FN v_f32 v_min(v_f32 x, v_f32 limit)
{
    return _mm256_min_ps(limit, x);
}
V_FN v_f32 v_max(v_f32 x, v_f32 limit)
{
    return _mm256_max_ps(limit, x);
}
V_FN v_f32 v_min_abs(v_f32 x, v_f32 limit) /* by bits: any pipe of Zen 3 and 4 does it, two of four do vminps */
{
    return v_float(_mm256_min_epu32(v_bits(v_abs(x)), v_bits(limit)));
}
V_FN v_f32 v_max_abs(v_f32 x, v_f32 y)
{
    return _mm256_max_ps(v_abs(x), v_abs(y));
}
V_FN v_f32 v_max_bits(v_f32 a, v_f32 b)
{
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
V_FN v_f32 v_min0(v_f32 x)
{
    return v_min(x, v_zero());
}
V_FN v_f32 v_max0(v_f32 x)
{
    return v_max(x, v_zero());
}

#endif
