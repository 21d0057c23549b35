/* attention_sums.cuh - column sums of dq, dk and dv: the bias gradient of the layer that made q, k,
 * v. SPDX-License-Identifier: MIT
 *
 * Two stages, no atomics. First rows of partial sums, 3 dim columns each: attention_chip.cuh,
 * attention_head_grad.cuh and attention_wide_grad.cuh add their accumulators, a row for every
 * group; behind the other kernels attention_sums_any() reads the gradients again, a row for every
 * chunk of their rows. Then these rows are added in a fixed order, with other sums (ends.c). */
#ifndef CUDA_ATTENTION_SUMS_CUH
#define CUDA_ATTENTION_SUMS_CUH

#include "cuda/attention_args.cuh"

enum { SUMS_CHUNKS = 512, SUMS_DEEP = 16 }; /* chunks at most; threads that share a column */

/* COUNT values of each lane, summed over the eight lanes that agree in lane % 4: the lane keeps
 * values first .. first + COUNT / 8 - 1, in v[0] and on, and first is returned. Each step sends one
 * half and keeps the other. */
template <int COUNT, int MASK = 16> DEVICE int lanes_share(float *v)
{
    constexpr int HALF = COUNT / 2;
    bool upper = threadIdx.x & MASK;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        float sent = upper ? v[i] : v[i + HALF], kept = upper ? v[i + HALF] : v[i];
        v[i] = kept + __shfl_xor_sync(0xffffffffu, sent, MASK);
    }
    int first = upper ? HALF : 0;
    if constexpr (MASK > 4)
        first += lanes_share<HALF, MASK / 2>(v);
    return first;
}

/* Column sums of a warp's strips over the rows that exist, to `to`, W floats of shared memory. */
template <int W, int F> DEVICE void strips_sum(float *to, const float (*acc)[W / 8][4], int row0, int tokens)
{
    int lane = threadIdx.x % 32;
    float v[W / 4];
#pragma unroll
    for (int e = 0; e < W / 4; e++) {
        v[e] = 0;
#pragma unroll
        for (int f = 0; f < F; f++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                v[e] += row0 + f * 16 + lane / 4 + 8 * h < tokens ? acc[f][e / 2][2 * h + e % 2] : 0.0f;
    }
    int first = lanes_share<W / 4>(v);
#pragma unroll
    for (int i = 0; i < W / 32; i++)
        to[(first + i) / 2 * 8 + 2 * (lane % 4) + (first + i) % 2] = v[i];
}

/* A block owns 32 columns and every chunks-th row; 16 rows of it at a time. */
static __global__ void __launch_bounds__(SUMS_DEEP * 32) attention_sums_any(attention_args a, int chunks, int columns)
{
    __shared__ float shared[SUMS_DEEP][32];
    int lane = threadIdx.x % 32, deep = threadIdx.x / 32, column = (int)(blockIdx.x % columns) * 32 + lane;
    int64_t chunk = blockIdx.x / columns, rows = a.groups * a.tokens;
    int part = column / (int)a.dim, at = column % (int)a.dim;
    array from = part == 0 ? a.dq : part == 1 ? a.dk : a.dv;
    int64_t stride = part < 2 ? a.stride_k : a.stride_v;
    float sum = 0;
    if (column < 3 * a.dim)
        for (int64_t row = chunk * SUMS_DEEP + deep; row < rows; row += (int64_t)chunks * SUMS_DEEP)
            sum += load(from, row * stride + at);
    shared[deep][lane] = sum;
    __syncthreads();
    if (deep || column >= 3 * a.dim)
        return;
    for (int i = 1; i < SUMS_DEEP; i++)
        sum += shared[i][lane];
    a.partial[chunk * 3 * a.dim + column] = sum;
}

#endif
