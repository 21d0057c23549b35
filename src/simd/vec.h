/* vec.h - the vector vocabulary: every word a formula may use, chosen by compilation target.
 * SPDX-License-Identifier: MIT
 *
 * A formula (act/formulas/NAME.h) is written once over these words and compiled for scalar C, AVX2,
 * AVX-512, NEON and CUDA. Each word is either correctly rounded (IEEE 754), or works on bits and
 * integers, so all five targets give the same bits for every input; NaN counts as a class.
 * tests/simd compares each word of each target with scalar. There is no estimate, no rounding of a
 * product before a sum unless written so (contraction is off), and no flush to zero.
 *
 * Types: v_f32 (V_LANES floats), v_i32 (as many 32-bit integers, wrapping), v_mask (as many truth
 * values). V_FN begins every function over them. V_TABLE begins a constant table:
 * `V_TABLE float name[7][16] = {...};`. V_GROUP vectors make the sixteen lanes of a sum (element i
 * goes to lane i mod 16 on every target): v_f32 sum[V_GROUP]. V_ISA_TEXT names the target.
 *
 *     Memory      v_load v_store: any alignment.
 *                 v_load_n v_store_n: the first n < V_LANES elements (missing lanes are zero,
 *                 nothing beyond is touched).
 *                 v_stream: non-temporal store, p aligned to the vector; v_stream_end once after
 *                 the last of them.
 *                 Each also for 16-bit storage, as v_load_bf16 v_store_n_f16 v_stream_bf16 ...:
 *                 rounded to nearest even as by base/half.h, NaN stays NaN.
 *                 v_load2_bf16 v_store2_bf16 v_stream2_bf16 take two vectors at once and
 *                 distribute the elements over them in the cheapest order of the target
 *                 (v_stream2 wants p aligned to both; a NaN stored in pairs must have zeros in
 *                 its lower half, else it may become another number). v_order2(&a, &b) brings
 *                 such a pair into the order of the elements, v_deal2 reverts it.
 *                 v_store2_exact_bf16 v_stream2_exact_bf16: the same for floats whose lower half
 *                 is 0; nothing is rounded.
 *                 v_lookup16(table, j) is table[j mod 16], table aligned to 64 bytes (V_TABLE);
 *                 v_lookup32 likewise; v_lookup8 where j mod 16 is below 8 in every lane (for any
 *                 other j it is one of the sixteen).
 *                 Where V_LOOKUPS is defined, v_lookups16(r, table, index) and v_lookups32 find
 *                 those of so many vectors at once, index = v_index_of(their j); use them through
 *                 v_piecewises() and v_lookups() of vmath.h.
 *     Constants   v_set(c) v_zero() v_one(), v_iset(i)
 *     Arithmetic  v_add v_sub v_mul v_div v_sqrt; v_fma a*b + c, v_fms a*b - c, v_fnma c - a*b,
 *                 each rounded once
 *     Signs       v_abs v_neg v_copysign(magnitude, sign): bits only, NaN too
 *     Choice      v_less v_less_equal v_equal (false for NaN), v_is_nan, v_either_nan(a, b),
 *                 v_is_negative (the sign bit, so -0 and -NaN too)
 *                 v_and v_or v_not on masks; v_select(mask, yes, no), v_iselect of integers
 *                 v_min(x, limit) is limit < x ? limit : x, v_max(x, limit) is x < limit ? limit
 *                 : x: a NaN in x is kept, one in the limit is not, and equal zeros leave x as it
 *                 is. v_min0 and v_max0 are those with the limit +0.
 *                 v_min_abs(x, limit), for positive limits, is |x| < limit ? |x| : limit; a NaN
 *                 in x gives NaN or the limit.
 *                 v_max_abs(x, y) is the larger of |x| and |y|; where one is NaN, NaN or the
 *                 magnitude of the other.
 *                 v_max_bits(a, b) is the larger one by its bits without a sign: of magnitudes
 *                 the larger, and a NaN, -NaN too, before every number.
 *                 v_any v_all test whether some or every lane is true; both hint to the compiler
 *                 that the rare path is not taken (none, all).
 *     Integers    v_bits v_float (the same bits), v_iadd v_isub, v_shift_left
 *                 v_shift_right_signed by a constant; v_truncate (|x| < 2^31, else undefined),
 *                 v_from_int (nearest even)
 *
 * V_TARGET_SCALAR selects the scalar words whatever the compiler targets. Read on in vec_scalar.h,
 * which is the definition. */
#ifndef SIMD_VEC_H
#define SIMD_VEC_H

#if defined(__CUDACC__)
#include "simd/vec_cuda.h"
#elif defined(V_TARGET_SCALAR)
#include "simd/vec_scalar.h"
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include "simd/vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "simd/vec_avx2.h"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include "simd/vec_neon.h"
#else
#include "simd/vec_scalar.h"
#endif

#define V_GROUP (16 / V_LANES)

#if !defined(V_PAIRS_BF16) && !defined(__CUDACC__) /* nothing cheaper: one vector after the other */
V_FN void v_load2_bf16(const uint16_t *p, v_f32 *a, v_f32 *b)
{
    *a = v_load_bf16(p);
    *b = v_load_bf16(p + V_LANES);
}
V_FN void v_store2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    v_store_bf16(p, a);
    v_store_bf16(p + V_LANES, b);
}
V_FN void v_stream2_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    v_stream_bf16(p, a);
    v_stream_bf16(p + V_LANES, b);
}
V_FN void v_order2(v_f32 *a, v_f32 *b)
{
    (void)a;
    (void)b;
}
V_FN void v_deal2(v_f32 *a, v_f32 *b)
{
    (void)a;
    (void)b;
}
#endif

#if !defined(V_EXACT_BF16) && !defined(__CUDACC__) /* nothing cheaper: rounding changes no exact number */
V_FN void v_store2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    v_store2_bf16(p, a, b);
}
V_FN void v_stream2_exact_bf16(uint16_t *p, v_f32 a, v_f32 b)
{
    v_stream2_bf16(p, a, b);
}
#endif

/* A short loop of constant length that becomes straight code at any level of optimisation:
 * `V_FOR(int v = 0; v < 4; v++)`. */
#if defined(__clang__) || defined(__CUDACC__)
#define V_FOR(...) _Pragma("unroll") for (__VA_ARGS__)
#else
#define V_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#endif

#endif
