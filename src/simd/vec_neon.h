/* vec_neon.h - the vocabulary of vec.h on NEON (AArch64), four lanes. SPDX-License-Identifier: MIT
 *
 * fmin and fmax order zeros and differ in NaN from vec.h, so minimum and maximum are a compare and
 * a select. The intrinsics have no streaming stores; ordinary ones take their place. */
#ifndef SIMD_VEC_NEON_H
#define SIMD_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define V_FN       static inline __attribute__((always_inline))
#define V_TABLE    static const _Alignas(64)
#define V_LANES    4
#define V_ISA_TEXT "neon"

typedef float32x4_t v_f32;
typedef int32x4_t v_i32;
typedef uint32x4_t v_mask;

/* Memory */
V_FN v_f32 v_load(const float *p)
{
    return vld1q_f32(p);
}
V_FN void v_store(float *p, v_f32 a)
{
    vst1q_f32(p, a);
}
V_FN void v_stream(float *p, v_f32 a)
{
    vst1q_f32(p, a);
}
V_FN void v_stream_end(void)
{
}
V_FN v_f32 v_load_n(const float *p, size_t n)
{
    float lanes[4] = {0};
    memcpy(lanes, p, n * sizeof *lanes);
    return vld1q_f32(lanes);
}
V_FN void v_store_n(float *p, v_f32 a, size_t n)
{
    float lanes[4];
    vst1q_f32(lanes, a);
    memcpy(p, lanes, n * sizeof *lanes);
}
V_FN uint16x4_t v_load_n_words(const uint16_t *p, size_t n)
{
    uint16_t words[4] = {0};
    memcpy(words, p, n * sizeof *words);
    return vld1_u16(words);
}
V_FN void v_store_n_words(uint16_t *p, uint16x4_t a, size_t n)
{
    uint16_t words[4];
    vst1_u16(words, a);
    memcpy(p, words, n * sizeof *words);
}
V_FN v_f32 v_widen_bf16(uint16x4_t bits)
{
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
}
V_FN uint16x4_t
v_narrow_bf16(v_f32 a) /* add 0x7fff and the last kept bit, cut; NaN: keep the top and set the quiet bit */
{
    uint32x4_t bits = vreinterpretq_u32_f32(a), high = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    uint32x4_t near = vshrq_n_u32(vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
    uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(a, a), near, quiet));
}
V_FN v_f32 v_load_bf16(const uint16_t *p)
{
    return v_widen_bf16(vld1_u16(p));
}
V_FN void v_store_bf16(uint16_t *p, v_f32 a)
{
    vst1_u16(p, v_narrow_bf16(a));
}
V_FN void v_stream_bf16(uint16_t *p, v_f32 a)
{
    v_store_bf16(p, a);
}
V_FN v_f32 v_load_n_bf16(const uint16_t *p, size_t n)
{
    return v_widen_bf16(v_load_n_words(p, n));
}
V_FN void v_store_n_bf16(uint16_t *p, v_f32 a, size_t n)
{
    v_store_n_words(p, v_narrow_bf16(a), n);
}
V_FN v_f32 v_widen_f16(uint16x4_t bits)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}
V_FN uint16x4_t v_narrow_f16(v_f32 a)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(a));
}
V_FN v_f32 v_load_f16(const uint16_t *p)
{
    return v_widen_f16(vld1_u16(p));
}
V_FN void v_store_f16(uint16_t *p, v_f32 a)
{
    vst1_u16(p, v_narrow_f16(a));
}
V_FN void v_stream_f16(uint16_t *p, v_f32 a)
{
    v_store_f16(p, a);
}
V_FN v_f32 v_load_n_f16(const uint16_t *p, size_t n)
{
    return v_widen_f16(v_load_n_words(p, n));
}
V_FN void v_store_n_f16(uint16_t *p, v_f32 a, size_t n)
{
    v_store_n_words(p, v_narrow_f16(a), n);
}
V_FN v_f32 v_lookup16(const float *table, v_i32 j) /* tbl works on bytes: entry j is the bytes 4 j to 4 j + 3 of 64 */
{
    uint8x16x4_t bytes = vld1q_u8_x4((const uint8_t *)table);
    uint32x4_t first = vmulq_n_u32(vandq_u32(vreinterpretq_u32_s32(j), vdupq_n_u32(15)), 0x04040404u);
    uint32x4_t index = vaddq_u32(first, vdupq_n_u32(0x03020100u));
    return vreinterpretq_f32_u8(vqtbl4q_u8(bytes, vreinterpretq_u8_u32(index)));
}
V_FN v_f32 v_lookup8(const float *table, v_i32 j) /* two registers of bytes instead of four */
{
    uint8x16x2_t bytes = vld1q_u8_x2((const uint8_t *)table);
    uint32x4_t first = vmulq_n_u32(vandq_u32(vreinterpretq_u32_s32(j), vdupq_n_u32(7)), 0x04040404u);
    uint32x4_t index = vaddq_u32(first, vdupq_n_u32(0x03020100u));
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(index)));
}
/* tbx keeps lanes whose index is out of range: bytes 64 to 127 come second */
V_FN v_f32 v_lookup32(const float *table, v_i32 j)
{
    uint8x16x4_t low = vld1q_u8_x4((const uint8_t *)table), high = vld1q_u8_x4((const uint8_t *)(table + 16));
    uint32x4_t first = vmulq_n_u32(vandq_u32(vreinterpretq_u32_s32(j), vdupq_n_u32(31)), 0x04040404u);
    uint8x16_t index = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100u)));
    return vreinterpretq_f32_u8(vqtbx4q_u8(vqtbl4q_u8(low, index), high, vsubq_u8(index, vdupq_n_u8(64))));
}

/* Constants */
V_FN v_f32 v_set(float c)
{
    return vdupq_n_f32(c);
}
V_FN v_f32 v_zero(void)
{
    return vdupq_n_f32(0.0f);
}
V_FN v_f32 v_one(void)
{
    return vdupq_n_f32(1.0f);
}
V_FN v_i32 v_iset(int32_t i)
{
    return vdupq_n_s32(i);
}

/* Arithmetic */
V_FN v_f32 v_add(v_f32 a, v_f32 b)
{
    return vaddq_f32(a, b);
}
V_FN v_f32 v_sub(v_f32 a, v_f32 b)
{
    return vsubq_f32(a, b);
}
V_FN v_f32 v_mul(v_f32 a, v_f32 b)
{
    return vmulq_f32(a, b);
}
V_FN v_f32 v_div(v_f32 a, v_f32 b)
{
    return vdivq_f32(a, b);
}
V_FN v_f32 v_sqrt(v_f32 a)
{
    return vsqrtq_f32(a);
}
V_FN v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c)
{
    return vfmaq_f32(c, a, b);
}
V_FN v_f32 v_fms(v_f32 a, v_f32 b, v_f32 c)
{
    return vfmaq_f32(vnegq_f32(c), a, b);
}
V_FN v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c)
{
    return vfmsq_f32(c, a, b);
}

/* Signs, integers */
V_FN v_i32 v_bits(v_f32 a)
{
    return vreinterpretq_s32_f32(a);
}
V_FN v_f32 v_float(v_i32 i)
{
    return vreinterpretq_f32_s32(i);
}
V_FN v_f32 v_abs(v_f32 a)
{
    return vabsq_f32(a);
}
V_FN v_f32 v_neg(v_f32 a)
{
    return vnegq_f32(a);
}
V_FN v_f32 v_copysign(v_f32 magnitude, v_f32 sign)
{
    return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude);
}
V_FN v_i32 v_iadd(v_i32 a, v_i32 b)
{
    return vaddq_s32(a, b);
}
V_FN v_i32 v_isub(v_i32 a, v_i32 b)
{
    return vsubq_s32(a, b);
}
V_FN v_i32 v_shift_left(v_i32 a, int count)
{
    return vshlq_s32(a, vdupq_n_s32(count));
}
V_FN v_i32 v_shift_right_signed(v_i32 a, int count)
{
    return vshlq_s32(a, vdupq_n_s32(-count));
}
V_FN v_i32 v_truncate(v_f32 a)
{
    return vcvtq_s32_f32(a);
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return vcvtq_f32_s32(i);
}

/* Choice */
V_FN v_mask v_less(v_f32 a, v_f32 b)
{
    return vcltq_f32(a, b);
}
V_FN v_mask v_less_equal(v_f32 a, v_f32 b)
{
    return vcleq_f32(a, b);
}
V_FN v_mask v_equal(v_f32 a, v_f32 b)
{
    return vceqq_f32(a, b);
}
V_FN v_mask v_is_nan(v_f32 a)
{
    return vmvnq_u32(vceqq_f32(a, a));
}
V_FN v_mask v_either_nan(v_f32 a, v_f32 b)
{
    return vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)));
}
V_FN v_mask v_is_negative(v_f32 a)
{
    return vcltzq_s32(v_bits(a));
}
V_FN v_mask v_and(v_mask a, v_mask b)
{
    return vandq_u32(a, b);
}
V_FN v_mask v_or(v_mask a, v_mask b)
{
    return vorrq_u32(a, b);
}
V_FN v_mask v_not(v_mask a)
{
    return vmvnq_u32(a);
}
V_FN int v_any(v_mask m)
{
    return __builtin_expect(vmaxvq_u32(m) != 0, 0);
}
V_FN int v_all(v_mask m)
{
    return __builtin_expect(vminvq_u32(m) != 0, 1);
}
V_FN v_f32 v_select(v_mask m, v_f32 yes, v_f32 no)
{
    return vbslq_f32(m, yes, no);
}
V_FN v_i32 v_iselect(v_mask m, v_i32 yes, v_i32 no)
{
    return vbslq_s32(m, yes, no);
}
V_FN v_f32 v_min(v_f32 x, v_f32 limit)
{
    return vbslq_f32(vcltq_f32(limit, x), limit, x);
}
V_FN v_f32 v_max(v_f32 x, v_f32 limit)
{
    return vbslq_f32(vcltq_f32(x, limit), limit, x);
}
V_FN v_f32 v_min_abs(v_f32 x, v_f32 limit)
{
    return vbslq_f32(vcaltq_f32(x, limit), vabsq_f32(x), limit);
}
V_FN v_f32 v_max_abs(v_f32 x, v_f32 y)
{
    return vmaxq_f32(vabsq_f32(x), vabsq_f32(y));
}
V_FN v_f32 v_max_bits(v_f32 a, v_f32 b)
{
    return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
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
