/* storage.cuh - elements in memory, f32 or bf16, and how launches are sized.
 * SPDX-License-Identifier: MIT
 *
 * Arithmetic is always in float; an element is rounded once, when it is stored. The dtype of an
 * operand is a uniform branch inside the load rather than a template parameter: roles mix freely
 * (an f32 residual stream around bf16 branches), the kernels that use this are bound by memory, and
 * a branch that all threads take alike costs them nothing. Vector accesses move four elements: 16
 * bytes of f32, 8 of bf16. */
#ifndef CUDA_STORAGE_CUH
#define CUDA_STORAGE_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "cuda/kernels.h"

struct array {
    void *data; /* NULL where the operand is missing */
    int bf16;
};

static inline array array_of(const op_operand *o)
{
    return array{o->data, o->dtype == DTYPE_BF16};
}

static __device__ __forceinline__ float load(const array &a, int64_t i)
{
    return a.bf16 ? __bfloat162float(((const __nv_bfloat16 *)a.data)[i]) : ((const float *)a.data)[i];
}

static __device__ __forceinline__ void store(const array &a, int64_t i, float x)
{
    if (a.bf16)
        ((__nv_bfloat16 *)a.data)[i] = __float2bfloat16_rn(x);
    else
        ((float *)a.data)[i] = x;
}

struct alignas(8) bf16x4 {
    __nv_bfloat162 low, high;
};

/* Elements i .. i + 3; i is a multiple of 4 and the array begins at a multiple of 16 bytes. */
static __device__ __forceinline__ float4 load4(const array &a, int64_t i)
{
    if (!a.bf16)
        return *(const float4 *)((const float *)a.data + i);
    bf16x4 v = *(const bf16x4 *)((const __nv_bfloat16 *)a.data + i);
    float2 low = __bfloat1622float2(v.low), high = __bfloat1622float2(v.high);
    return make_float4(low.x, low.y, high.x, high.y);
}

static __device__ __forceinline__ void store4(const array &a, int64_t i, float4 x)
{
    if (!a.bf16) {
        *(float4 *)((float *)a.data + i) = x;
        return;
    }
    bf16x4 v = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
    *(bf16x4 *)((__nv_bfloat16 *)a.data + i) = v;
}

/* WIDE elements from i on, 1 or 4 of them. */
template <int WIDE> static __device__ __forceinline__ void get(float to[WIDE], const array &a, int64_t i)
{
    if constexpr (WIDE == 4) {
        float4 v = load4(a, i);
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    } else
        to[0] = load(a, i);
}

template <int WIDE> static __device__ __forceinline__ void put(const array &a, int64_t i, const float from[WIDE])
{
    if constexpr (WIDE == 4)
        store4(a, i, make_float4(from[0], from[1], from[2], from[3]));
    else
        store(a, i, from[0]);
}

/* Division of indices: 32 bits where they suffice, which is a quarter of the instructions. */
static __device__ __forceinline__ int64_t quotient(int64_t i, int64_t by)
{
    return ((uint64_t)i | (uint64_t)by) >> 32 ? i / by : (int64_t)((uint32_t)i / (uint32_t)by);
}

enum { THREADS = 256 };

/* Blocks for `items`, one per thread. A full grid has 2^31 threads: kernels without a loop take
 * fewer items, the others stride over what is left. */
static inline unsigned blocks_for(int64_t items)
{
    int64_t blocks = (items + THREADS - 1) / THREADS, most = (INT64_C(1) << 31) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

static __device__ __forceinline__ int64_t thread_index(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ int64_t thread_count(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* The sum over the threads of a block (a multiple of 32, at most 1024) by a fixed tree; thread 0
 * has it. */
static __device__ __forceinline__ double block_sum(double mine)
{
    __shared__ double warp_sum[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, step);
    __syncthreads(); /* a second call may find the first one's sums still read */
    if (lane == 0)
        warp_sum[warp] = mine;
    __syncthreads();
    if (warp > 0)
        return 0;
    mine = lane < warps ? warp_sum[lane] : 0;
    for (int step = 16; step > 0; step /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, step);
    return mine;
}

#endif
