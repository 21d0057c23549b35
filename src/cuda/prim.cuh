/* prim.cuh - words of the kernels that own the hot path: vectors by dtype, asynchronous copies,
 * sums over lanes, launches. SPDX-License-Identifier: MIT
 *
 * Where storage.cuh branches on the dtype at run time, kernels that must keep the memory busy have
 * it as a template parameter: vectors are then whole 16 bytes, and registers are counted at compile
 * time. The build compiles CUDA with --fmad=false, so a fused multiply-add is written fmaf()
 * wherever one is meant. tests/cuda/emulate.cuh gives the CUDA words used here a meaning on the
 * host (every thread of a block is a fiber), so that the kernels run in a debugger and on machines
 * without a GPU.
 *
 * Read on: cuda/tile.cuh for the tensor-core words, cuda/norm.cu for a kernel that uses most of
 * this file. */
#ifndef CUDA_PRIM_CUH
#define CUDA_PRIM_CUH

#include <math.h>
#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#ifdef CUDA_EMULATED
#include "emulate.cuh"
#else
#define DEVICE             static __device__ __forceinline__
/* The dynamic shared memory of a block; a macro because the emulation has no such array. */
#define SHARED_BYTES(NAME) extern __shared__ __align__(128) unsigned char NAME[]
#endif

#include "cuda/storage.cuh"

/* ---- elements -------------------------------------------------------------------------------- */

DEVICE float float_low(uint32_t pair) /* the first of two bf16 */
{
    return __uint_as_float(pair << 16);
}

DEVICE float float_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

#ifndef CUDA_EMULATED
/* Two floats rounded to nearest even as a pair of bf16. */
DEVICE uint32_t bf16_pair(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* 2^x within 2 ulp; 0 for -infinity. For results that are rounded to bf16. */
DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 16 or 8 bytes of device memory in one instruction. Of several such stores in a row the compiler
 * (13.0) writes the first element by element, in accesses of 4 bytes that lie 16 apart between
 * lanes. Not always faster: measure both. */
DEVICE void vector_store(void *to, uint4 v)
{
    asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

DEVICE void vector_store(void *to, uint2 v)
{
    asm volatile("st.global.v2.b32 [%0], {%1,%2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
}

/* ---- asynchronous copies to shared memory ---------------------------------------------------- */

DEVICE uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Copies BYTES (8 or 16), or writes zeros where `there` is false; then `from` is not read. */
template <int BYTES> DEVICE void copy_async(void *to, const void *from, bool there)
{
    static_assert(BYTES == 8 || BYTES == 16, "what cp.async copies");
    int bytes = there ? BYTES : 0;
    if constexpr (BYTES == 16) /* past L1: the data is used once */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                     : "memory");
}

DEVICE void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most LEFT of this thread's groups are in flight. */
template <int LEFT> DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
#endif

/* ---- order ----------------------------------------------------------------------------------- */

/* The library's products take rows from the first to the last, and what they wrote last is still in
 * L2. Kernels beside them therefore take rows from the last to the first: they find it there, and
 * leave the first rows in L2 for the product that follows. No row's bits depend on it
 * (docs/performance-kernels.md has what it gains). */
DEVICE int64_t last_first(int64_t index, int64_t count)
{
    return count - 1 - index;
}

/* ---- vectors of elements --------------------------------------------------------------------- */

/* COUNT elements from an address aligned to COUNT * sizeof(T) or 16 bytes, whichever is less. */
template <typename T, int COUNT> DEVICE void elements_load(float *out, const void *from)
{
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
            float4 v = *(const float4 *)((const float *)from + i);
            out[i] = v.x, out[i + 1] = v.y, out[i + 2] = v.z, out[i + 3] = v.w;
        }
    } else {
        uint32_t pair[COUNT / 2];
        if constexpr (COUNT == 8) {
            uint4 v = *(const uint4 *)from;
            pair[0] = v.x, pair[1] = v.y, pair[2] = v.z, pair[3] = v.w;
        } else {
            uint2 v = *(const uint2 *)from;
            pair[0] = v.x, pair[1] = v.y;
        }
#pragma unroll
        for (int i = 0; i < COUNT / 2; i++)
            out[2 * i] = float_low(pair[i]), out[2 * i + 1] = float_high(pair[i]);
    }
}

template <typename T, int COUNT> DEVICE void elements_store(void *to, const float *v)
{
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            *(float4 *)((float *)to + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    } else if constexpr (COUNT == 8) {
        *(uint4 *)to =
            make_uint4(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]), bf16_pair(v[4], v[5]), bf16_pair(v[6], v[7]));
    } else {
        *(uint2 *)to = make_uint2(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]));
    }
}

/* COUNT elements as they lie in memory, 8 or 16 bytes: half the registers of their floats, or all
 * of them. */
template <typename T, int COUNT> struct packed {
    uint32_t word[COUNT * sizeof(T) / 4];
};

template <typename T, int COUNT> DEVICE packed<T, COUNT> packed_load(const void *from)
{
    packed<T, COUNT> p;
    if constexpr (sizeof p == 16) {
        uint4 v = *(const uint4 *)from;
        p.word[0] = v.x, p.word[1] = v.y, p.word[2] = v.z, p.word[3] = v.w;
    } else {
        static_assert(sizeof p == 8, "what one access moves");
        uint2 v = *(const uint2 *)from;
        p.word[0] = v.x, p.word[1] = v.y;
    }
    return p;
}

template <typename T, int COUNT> DEVICE void packed_floats(float *out, const packed<T, COUNT> &p)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        out[i] = sizeof(T) == 4 ? __uint_as_float(p.word[i])
                 : i % 2        ? float_high(p.word[i / 2])
                                : float_low(p.word[i / 2]);
}

/* ---- sums over lanes ------------------------------------------------------------------------- */

/* Sum over groups of LANES neighbouring lanes (a power of two); every lane gets it, by the same
 * tree. */
template <int LANES> DEVICE float lane_sum(float v)
{
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2)
        v += __shfl_xor_sync(0xffffffffu, v, mask);
    return v;
}

template <int LANES> DEVICE float lane_max(float v)
{
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, mask));
    return v;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Vector accesses need rows of whole vectors, and this. */
static inline bool array_aligned(const array &a)
{
    return (uintptr_t)a.data % 16 == 0;
}

/* More than 48 KiB of shared memory must be requested. cuda_launched() checks whether CUDA accepted
 * the launch. */
template <typename... P, typename... A>
static void kernel_launch(cudaStream_t stream, void (*kernel)(P...), int64_t blocks, int threads, size_t shared,
                          A... args)
{
#ifdef CUDA_EMULATED
    (void)stream;
    emulate_launch(blocks, threads, shared, [&] { kernel(args...); });
#else
    if (shared > 48 * 1024)
        (void)cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    kernel<<<(unsigned)blocks, threads, shared, stream>>>(args...);
#endif
}

#endif
