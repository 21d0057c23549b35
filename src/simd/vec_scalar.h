/* vec_scalar.h - the vocabulary of vec.h in plain C, one lane: the definition the others are tested against. SPDX-License-Identifier: MIT
 *
 * fmaf is correct with or without hardware for it; clarity comes before speed here. */
#ifndef SIMD_VEC_SCALAR_H
#define SIMD_VEC_SCALAR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

#define V_FN       static inline __attribute__((always_inline))
#define V_TABLE    static const _Alignas(64)
#define V_LANES    1
#define V_ISA_TEXT "scalar"

typedef float v_f32;
typedef int32_t v_i32;
typedef int v_mask;

/* Memory */
V_FN v_f32 v_load(const float *p)
{
    return *p;
}
V_FN void v_store(float *p, v_f32 a)
{
    *p = a;
}
V_FN void v_stream(float *p, v_f32 a)
{
    *p = a;
}
V_FN void v_stream_end(void)
{
}
V_FN v_f32 v_load_n(const float *p, size_t n)
{
    return n ? *p : 0.0f;
}
V_FN void v_store_n(float *p, v_f32 a, size_t n)
{
    if (n)
        *p = a;
}
V_FN v_f32 v_load_bf16(const uint16_t *p)
{
    return bf16_to_f32(*p);
}
V_FN void v_store_bf16(uint16_t *p, v_f32 a)
{
    *p = bf16_from_f32(a);
}
V_FN void v_stream_bf16(uint16_t *p, v_f32 a)
{
    *p = bf16_from_f32(a);
}
V_FN v_f32 v_load_n_bf16(const uint16_t *p, size_t n)
{
    return n ? bf16_to_f32(*p) : 0.0f;
}
V_FN void v_store_n_bf16(uint16_t *p, v_f32 a, size_t n)
{
    if (n)
        *p = bf16_from_f32(a);
}
V_FN v_f32 v_load_f16(const uint16_t *p)
{
    return f16_to_f32(*p);
}
V_FN void v_store_f16(uint16_t *p, v_f32 a)
{
    *p = f16_from_f32(a);
}
V_FN void v_stream_f16(uint16_t *p, v_f32 a)
{
    *p = f16_from_f32(a);
}
V_FN v_f32 v_load_n_f16(const uint16_t *p, size_t n)
{
    return n ? f16_to_f32(*p) : 0.0f;
}
V_FN void v_store_n_f16(uint16_t *p, v_f32 a, size_t n)
{
    if (n)
        *p = f16_from_f32(a);
}
V_FN v_f32 v_lookup16(const float *table, v_i32 j)
{
    return table[j & 15];
}

/* Constants */
V_FN v_f32 v_set(float c)
{
    return c;
}
V_FN v_f32 v_zero(void)
{
    return 0.0f;
}
V_FN v_f32 v_one(void)
{
    return 1.0f;
}
V_FN v_i32 v_iset(int32_t i)
{
    return i;
}

/* Arithmetic */
V_FN v_f32 v_add(v_f32 a, v_f32 b)
{
    return a + b;
}
V_FN v_f32 v_sub(v_f32 a, v_f32 b)
{
    return a - b;
}
V_FN v_f32 v_mul(v_f32 a, v_f32 b)
{
    return a * b;
}
V_FN v_f32 v_div(v_f32 a, v_f32 b)
{
    return a / b;
}
V_FN v_f32 v_sqrt(v_f32 a)
{
    return sqrtf(a);
}
V_FN v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c)
{
    return fmaf(a, b, c);
}
V_FN v_f32 v_fms(v_f32 a, v_f32 b, v_f32 c)
{
    return fmaf(a, b, -c);
}
V_FN v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c)
{
    return fmaf(-a, b, c);
}

/* Signs, integers */
V_FN v_i32 v_bits(v_f32 a)
{
    v_i32 i;
    memcpy(&i, &a, sizeof i);
    return i;
}
V_FN v_f32 v_float(v_i32 i)
{
    v_f32 a;
    memcpy(&a, &i, sizeof a);
    return a;
}
V_FN v_f32 v_abs(v_f32 a)
{
    return v_float(v_bits(a) & 0x7fffffff);
}
V_FN v_f32 v_neg(v_f32 a)
{
    return v_float(v_bits(a) ^ INT32_MIN);
}
V_FN v_f32 v_copysign(v_f32 magnitude, v_f32 sign)
{
    return v_float((v_bits(magnitude) & 0x7fffffff) | (v_bits(sign) & INT32_MIN));
}
V_FN v_i32 v_iadd(v_i32 a, v_i32 b)
{
    return (v_i32)((uint32_t)a + (uint32_t)b);
}
V_FN v_i32 v_isub(v_i32 a, v_i32 b)
{
    return (v_i32)((uint32_t)a - (uint32_t)b);
}
V_FN v_i32 v_iand(v_i32 a, v_i32 b)
{
    return a & b;
}
V_FN v_i32 v_ior(v_i32 a, v_i32 b)
{
    return a | b;
}
V_FN v_i32 v_shift_left(v_i32 a, int count)
{
    return (v_i32)((uint32_t)a << count);
}
V_FN v_i32 v_shift_right(v_i32 a, int count)
{
    return (v_i32)((uint32_t)a >> count);
}
V_FN v_i32 v_shift_right_signed(v_i32 a, int count)
{
    return a >> count;
}
V_FN v_i32 v_truncate(v_f32 a)
{
    return a > -2147483648.0f && a < 2147483648.0f ? (v_i32)a : INT32_MIN;
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return (v_f32)i;
}

/* Choice */
V_FN v_mask v_less(v_f32 a, v_f32 b)
{
    return a < b;
}
V_FN v_mask v_less_equal(v_f32 a, v_f32 b)
{
    return a <= b;
}
V_FN v_mask v_equal(v_f32 a, v_f32 b)
{
    return a == b;
}
V_FN v_mask v_is_nan(v_f32 a)
{
    return a != a;
}
V_FN v_mask v_either_nan(v_f32 a, v_f32 b)
{
    return a != a || b != b;
}
V_FN v_mask v_is_negative(v_f32 a)
{
    return v_bits(a) < 0;
}
V_FN v_mask v_and(v_mask a, v_mask b)
{
    return a && b;
}
V_FN v_mask v_or(v_mask a, v_mask b)
{
    return a || b;
}
V_FN v_mask v_not(v_mask a)
{
    return !a;
}
V_FN int v_any(v_mask m)
{
    return __builtin_expect(m, 0);
}
V_FN int v_all(v_mask m)
{
    return __builtin_expect(m, 1);
}
V_FN v_f32 v_select(v_mask m, v_f32 yes, v_f32 no)
{
    return m ? yes : no;
}
V_FN v_f32 v_min(v_f32 x, v_f32 limit)
{
    return limit < x ? limit : x;
}
V_FN v_f32 v_max(v_f32 x, v_f32 limit)
{
    return x < limit ? limit : x;
}
V_FN v_f32 v_min_abs(v_f32 x, v_f32 limit)
{
    return v_abs(x) < limit ? v_abs(x) : limit;
}
V_FN v_f32 v_min0(v_f32 x)
{
    return v_min(x, 0.0f);
}
V_FN v_f32 v_max0(v_f32 x)
{
    return v_max(x, 0.0f);
}

#endif
