/* vec_scalar.h - the vocabulary of vec.h in plain C, one lane: the reference of the others.
 * SPDX-License-Identifier: MIT
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
V_FN void v_stream(float *p, v_f32 a)
{
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
V_FN v_i32 v_truncate(v_f32 a)
{
    return a > -2147483648.0f && a < 2147483648.0f ? (v_i32)a : INT32_MIN;
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return (v_f32)i;
}

/* Choice */
V_FN int v_any(v_mask m)
{
    return __builtin_expect(m, 0);
}
V_FN int v_all(v_mask m)
{
    return __builtin_expect(m, 1);
}

#include "simd/vec_one.h"

#endif
