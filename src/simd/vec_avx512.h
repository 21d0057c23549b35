/* vec_avx512.h - the vocabulary of vec.h on AVX-512 (F, DQ, BW, VL), sixteen lanes.
 * SPDX-License-Identifier: MIT
 *
 * vminps and vmaxps return their second operand on NaN and on equal zeros; the order of operands
 * below makes them the compare-selects of vec.h. */
#ifndef SIMD_VEC_AVX512_H
#define SIMD_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define V_FN       static inline __attribute__((always_inline))
#define V_TABLE    static const _Alignas(64)
#define V_LANES    16
#define V_ISA_TEXT "avx512"

typedef __m512 v_f32;
typedef __m512i v_i32;
typedef __mmask16 v_mask;

V_FN __mmask16 v_first_lanes(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

/* Memory */
V_FN v_f32 v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
V_FN void v_store(float *p, v_f32 a)
{
    _mm512_storeu_ps(p, a);
}
V_FN void v_stream(float *p, v_f32 a)
{
    _mm512_stream_ps(p, a);
}
V_FN void v_stream_end(void)
{
    _mm_sfence();
}
V_FN v_f32 v_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(v_first_lanes(n), p);
}
V_FN void v_store_n(float *p, v_f32 a, size_t n)
{
    _mm512_mask_storeu_ps(p, v_first_lanes(n), a);
}
V_FN v_f32 v_widen_bf16(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
V_FN __m256i v_narrow_bf16(v_f32 a) /* add 0x7fff and the last kept bit, cut; NaN: keep the top and set the quiet bit */
{
    __m512i bits = _mm512_castps_si512(a), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(near, nan, high, _mm512_set1_epi32(0x40)));
}
V_FN v_f32 v_load_bf16(const uint16_t *p)
{
    return v_widen_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
V_FN void v_store_bf16(uint16_t *p, v_f32 a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v_narrow_bf16(a));
}
V_FN void v_stream_bf16(uint16_t *p, v_f32 a)
{
    _mm256_stream_si256((__m256i *)(void *)p, v_narrow_bf16(a));
}
V_FN v_f32 v_load_n_bf16(const uint16_t *p, size_t n)
{
    return v_widen_bf16(_mm256_maskz_loadu_epi16(v_first_lanes(n), p));
}
V_FN void v_store_n_bf16(uint16_t *p, v_f32 a, size_t n)
{
    _mm256_mask_storeu_epi16(p, v_first_lanes(n), v_narrow_bf16(a));
}
#define V_PAIRS_BF16 1                                        /* replaces the one-by-one versions of vec.h */
V_FN void v_load2_bf16(const uint16_t *p, v_f32 *a, v_f32 *b) /* the even words, then the odd: no shuffle */
{
    __m512i words = _mm512_loadu_si512((const void *)p);
    *a = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    *b = _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000)));
}
V_FN __m512i v_near_bf16(v_f32 a) /* rounded, in the upper half; not for NaN */
{
    __m512i bits = _mm512_castps_si512(a), near = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    return _mm512_mask_add_epi32(near, odd, near, _mm512_set1_epi32(1));
}
V_FN __m512i v_narrow2_bf16(v_f32 a, v_f32 b)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(v_near_bf16(a), 16), v_near_bf16(b));
}
V_FN void v_store2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm512_storeu_si512((void *)p, v_narrow2_bf16(a, b));
}
V_FN void v_stream2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm512_stream_si512((__m512i *)(void *)p, v_narrow2_bf16(a, b));
}
#define V_EXACT_BF16 1
V_FN __m512i v_cut2_bf16(v_f32 a, v_f32 b)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(a), 16), _mm512_castps_si512(b));
}
V_FN void v_store2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm512_storeu_si512((void *)p, v_cut2_bf16(a, b));
}
V_FN void v_stream2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    _mm512_stream_si512((__m512i *)(void *)p, v_cut2_bf16(a, b));
}
V_FN void v_pick2(v_f32 *a, v_f32 *b, __m512i first, __m512i second) /* lane numbers: those of a, then those of b */
{
    v_f32 picked = _mm512_permutex2var_ps(*a, first, *b);
    *b = _mm512_permutex2var_ps(*a, second, *b);
    *a = picked;
}
V_FN void v_order2(v_f32 *a, v_f32 *b)
{
    __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    v_pick2(a, b, first, _mm512_add_epi32(first, _mm512_set1_epi32(8)));
}
V_FN void v_deal2(v_f32 *a, v_f32 *b)
{
    __m512i first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    v_pick2(a, b, first, _mm512_add_epi32(first, _mm512_set1_epi32(1)));
}
V_FN __m256i v_narrow_f16(v_f32 a)
{
    return _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
V_FN v_f32 v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
V_FN void v_store_f16(uint16_t *p, v_f32 a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v_narrow_f16(a));
}
V_FN void v_stream_f16(uint16_t *p, v_f32 a)
{
    _mm256_stream_si256((__m256i *)(void *)p, v_narrow_f16(a));
}
V_FN v_f32 v_load_n_f16(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_first_lanes(n), p));
}
V_FN void v_store_n_f16(uint16_t *p, v_f32 a, size_t n)
{
    _mm256_mask_storeu_epi16(p, v_first_lanes(n), v_narrow_f16(a));
}
V_FN v_f32 v_lookup16(const float *table, v_i32 j) /* vpermps reads the low four bits of j by itself */
{
    return _mm512_permutexvar_ps(j, _mm512_load_ps(table));
}
V_FN v_f32 v_lookup8(const float *table, v_i32 j)
{
    return v_lookup16(table, j);
}
V_FN v_f32 v_lookup32(const float *table, v_i32 j) /* vpermt2ps likewise the low five */
{
    return _mm512_permutex2var_ps(_mm512_load_ps(table), j, _mm512_load_ps(table + 16));
}

/* Constants */
V_FN v_f32 v_set(float c)
{
    return _mm512_set1_ps(c);
}
V_FN v_f32 v_zero(void)
{
    return _mm512_setzero_ps();
}
V_FN v_f32 v_one(void)
{
    return _mm512_set1_ps(1.0f);
}
/* Integer constants are broadcast from memory, as float constants are: compilers tend to move them
 * from a general register, which occupies one of the two vector ports each time. */
V_FN v_i32 v_iset(int32_t i)
{
    union {
        int32_t i;
        float f;
    } same = {i};
    __m512 c = _mm512_set1_ps(same.f);
    __asm__("" : "+v"(c));
    return _mm512_castps_si512(c);
}

/* Arithmetic */
V_FN v_f32 v_add(v_f32 a, v_f32 b)
{
    return _mm512_add_ps(a, b);
}
V_FN v_f32 v_sub(v_f32 a, v_f32 b)
{
    return _mm512_sub_ps(a, b);
}
V_FN v_f32 v_mul(v_f32 a, v_f32 b)
{
    return _mm512_mul_ps(a, b);
}
V_FN v_f32 v_div(v_f32 a, v_f32 b)
{
    return _mm512_div_ps(a, b);
}
V_FN v_f32 v_sqrt(v_f32 a)
{
    return _mm512_sqrt_ps(a);
}
V_FN v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
V_FN v_f32 v_fms(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm512_fmsub_ps(a, b, c);
}
V_FN v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

/* Signs, integers */
V_FN v_i32 v_bits(v_f32 a)
{
    return _mm512_castps_si512(a);
}
V_FN v_f32 v_float(v_i32 i)
{
    return _mm512_castsi512_ps(i);
}
V_FN v_f32 v_abs(v_f32 a)
{
    return v_float(_mm512_and_si512(v_bits(a), _mm512_set1_epi32(0x7fffffff)));
}
V_FN v_f32 v_neg(v_f32 a)
{
    return v_float(_mm512_xor_si512(v_bits(a), _mm512_set1_epi32(INT32_MIN)));
}
V_FN v_f32 v_copysign(v_f32 magnitude, v_f32 sign) /* 0xd8: bit by bit, third ? second : first */
{
    return v_float(_mm512_ternarylogic_epi32(v_bits(magnitude), v_bits(sign), v_iset(INT32_MIN), 0xd8));
}
V_FN v_i32 v_iadd(v_i32 a, v_i32 b)
{
    return _mm512_add_epi32(a, b);
}
V_FN v_i32 v_isub(v_i32 a, v_i32 b)
{
    return _mm512_sub_epi32(a, b);
}
V_FN v_i32 v_shift_left(v_i32 a, int count)
{
    return _mm512_slli_epi32(a, (unsigned)count);
}
V_FN v_i32 v_shift_right_signed(v_i32 a, int count)
{
    return _mm512_srai_epi32(a, (unsigned)count);
}
V_FN v_i32 v_truncate(v_f32 a)
{
    return _mm512_cvttps_epi32(a);
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return _mm512_cvtepi32_ps(i);
}

/* Choice */
V_FN v_mask v_less(v_f32 a, v_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
V_FN v_mask v_less_equal(v_f32 a, v_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
V_FN v_mask v_equal(v_f32 a, v_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
V_FN v_mask v_is_nan(v_f32 a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
V_FN v_mask v_either_nan(v_f32 a, v_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
V_FN v_mask v_is_negative(v_f32 a)
{
    return _mm512_movepi32_mask(v_bits(a));
}
V_FN v_mask v_and(v_mask a, v_mask b)
{
    return (v_mask)(a & b);
}
V_FN v_mask v_or(v_mask a, v_mask b)
{
    return (v_mask)(a | b);
}
V_FN v_mask v_not(v_mask a)
{
    return (v_mask)~a;
}
V_FN int v_any(v_mask m)
{
    return __builtin_expect(m != 0, 0);
}
V_FN int v_all(v_mask m)
{
    return __builtin_expect(m == 0xffff, 1);
}
V_FN v_f32 v_select(v_mask m, v_f32 yes, v_f32 no)
{
    return _mm512_mask_blend_ps(m, no, yes);
}
V_FN v_i32 v_iselect(v_mask m, v_i32 yes, v_i32 no)
{
    return _mm512_mask_blend_epi32(m, no, yes);
}
V_FN v_f32 v_min(v_f32 x, v_f32 limit)
{
    return _mm512_min_ps(limit, x);
}
V_FN v_f32 v_max(v_f32 x, v_f32 limit)
{
    return _mm512_max_ps(limit, x);
}
V_FN v_f32 v_min_abs(v_f32 x, v_f32 limit) /* vrangeps: 2 is the smaller magnitude, 8 clears the sign */
{
    return _mm512_range_ps(x, limit, 2 | 8);
}
V_FN v_f32 v_max_abs(v_f32 x, v_f32 y) /* 3 is the larger one */
{
    return _mm512_range_ps(x, y, 3 | 8);
}
V_FN v_f32 v_max_bits(v_f32 a, v_f32 b)
{
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
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
