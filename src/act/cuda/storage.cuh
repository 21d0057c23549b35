/* act/cuda/storage.cuh - sixteen bytes of f32, bf16 or f16 as floats, and single elements.
 * SPDX-License-Identifier: MIT
 *
 * The device side of berlu_dtype. Rounding to 16 bits is to nearest even, one conversion for two
 * elements. */
#ifndef ACT_CUDA_STORAGE_CUH
#define ACT_CUDA_STORAGE_CUH

#include <berlu/act.h>

#include "simd/vec.h"

template <int DTYPE> struct storage {
    typedef uint16_t element;
    static constexpr int WIDTH = 8;
};
template <> struct storage<BERLU_F32> {
    typedef float element;
    static constexpr int WIDTH = 4;
};

static __device__ __forceinline__ uint32_t pack2(float low, float high, int dtype)
{
    if (dtype == BERLU_BF16) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<uint32_t *>(&pair);
    }
    __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&pair);
}

template <int DTYPE> __device__ __forceinline__ void unpack(uint4 raw, float *out)
{
    const uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (DTYPE == BERLU_F32) {
            out[i] = __uint_as_float(word[i]);
        } else if (DTYPE == BERLU_BF16) {
            out[2 * i] = __uint_as_float(word[i] << 16);
            out[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
        } else {
            float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&word[i]));
            out[2 * i] = pair.x;
            out[2 * i + 1] = pair.y;
        }
    }
}

template <int DTYPE> __device__ __forceinline__ uint4 pack(const float *v)
{
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        word[i] = DTYPE == BERLU_F32 ? __float_as_uint(v[i]) : pack2(v[2 * i], v[2 * i + 1], DTYPE);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* Element j of sixteen bytes of 16-bit elements. */
static __device__ __forceinline__ uint32_t half_of(uint4 a, int j)
{
    uint32_t word = j < 2 ? a.x : j < 4 ? a.y : j < 6 ? a.z : a.w;
    return word >> 16 * (j % 2) & 0xffff;
}

static __device__ __forceinline__ float load_one(const void *p, int dtype, size_t i)
{
    if (dtype == BERLU_F32)
        return v_load((const float *)p + i);
    return dtype == BERLU_BF16 ? v_load_bf16((const uint16_t *)p + i) : v_load_f16((const uint16_t *)p + i);
}

static __device__ __forceinline__ float half_as_float(uint4 a, int j, int dtype)
{
    uint16_t bits = (uint16_t)half_of(a, j);
    return load_one(&bits, dtype, 0);
}

static __device__ __forceinline__ void store_one(void *p, int dtype, size_t i, float a)
{
    if (dtype == BERLU_F32)
        v_store((float *)p + i, a);
    else if (dtype == BERLU_BF16)
        v_store_bf16((uint16_t *)p + i, a);
    else
        v_store_f16((uint16_t *)p + i, a);
}

/* WIDTH elements from i on, aligned to 16 bytes. */
template <int DTYPE> __device__ __forceinline__ uint4 load_vector(const void *p, size_t i)
{
    return *reinterpret_cast<const uint4 *>((const typename storage<DTYPE>::element *)p + i);
}

template <int DTYPE> __device__ __forceinline__ void store_vector(void *p, size_t i, uint4 raw)
{
    *reinterpret_cast<uint4 *>((typename storage<DTYPE>::element *)p + i) = raw;
}

#endif
