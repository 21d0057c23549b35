/* vec_cuda.h - the vocabulary of vec.h on CUDA: one thread, one lane. SPDX-License-Identifier: MIT
 *
 * The _rn intrinsics round once whatever the flags; the build has --fmad=false and no flush to
 * zero. v_any and v_all look at the own lane only, so only threads that need the rare path take it.
 * Streaming stores evict first. */
#ifndef SIMD_VEC_CUDA_H
#define SIMD_VEC_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stddef.h>
#include <stdint.h>

#define V_FN       static __device__ __forceinline__
#define V_TABLE    static __device__ const __align__(64)
#define V_LANES    1
#define V_ISA_TEXT "cuda"

typedef float v_f32;
typedef int32_t v_i32;
typedef bool v_mask;

/* Memory */
V_FN void v_stream(float *p, v_f32 a)
{
    __stcs(p, a);
}
V_FN v_f32 v_load_bf16(const uint16_t *p)
{
    return __uint_as_float((uint32_t)*p << 16);
}
V_FN uint16_t v_narrow_bf16(v_f32 a)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(a));
}
V_FN void v_store_bf16(uint16_t *p, v_f32 a)
{
    *p = v_narrow_bf16(a);
}
V_FN void v_stream_bf16(uint16_t *p, v_f32 a)
{
    __stcs(p, v_narrow_bf16(a));
}
V_FN v_f32 v_load_f16(const uint16_t *p)
{
    return __half2float(__ushort_as_half(*p));
}
V_FN uint16_t v_narrow_f16(v_f32 a)
{
    return __half_as_ushort(__float2half_rn(a));
}
V_FN void v_store_f16(uint16_t *p, v_f32 a)
{
    *p = v_narrow_f16(a);
}
V_FN void v_stream_f16(uint16_t *p, v_f32 a)
{
    __stcs(p, v_narrow_f16(a));
}

/* Arithmetic */
V_FN v_f32 v_add(v_f32 a, v_f32 b)
{
    return __fadd_rn(a, b);
}
V_FN v_f32 v_sub(v_f32 a, v_f32 b)
{
    return __fsub_rn(a, b);
}
V_FN v_f32 v_mul(v_f32 a, v_f32 b)
{
    return __fmul_rn(a, b);
}
V_FN v_f32 v_div(v_f32 a, v_f32 b)
{
    return __fdiv_rn(a, b);
}
V_FN v_f32 v_sqrt(v_f32 a)
{
    return __fsqrt_rn(a);
}
V_FN v_f32 v_fma(v_f32 a, v_f32 b, v_f32 c)
{
    return __fmaf_rn(a, b, c);
}
V_FN v_f32 v_fms(v_f32 a, v_f32 b, v_f32 c)
{
    return __fmaf_rn(a, b, -c);
}
V_FN v_f32 v_fnma(v_f32 a, v_f32 b, v_f32 c)
{
    return __fmaf_rn(-a, b, c);
}

/* Signs, integers */
V_FN v_i32 v_bits(v_f32 a)
{
    return __float_as_int(a);
}
V_FN v_f32 v_float(v_i32 i)
{
    return __int_as_float(i);
}
V_FN v_i32 v_truncate(v_f32 a)
{
    return __float2int_rz(a);
}
V_FN v_f32 v_from_int(v_i32 i)
{
    return __int2float_rn(i);
}

/* Choice */
V_FN int v_any(v_mask m)
{
    return m;
}
V_FN int v_all(v_mask m)
{
    return m;
}

#include "simd/vec_one.h"

#endif
