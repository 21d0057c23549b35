/* yardstick_cuda.cu - see yardstick_cuda.h. SPDX-License-Identifier: MIT
 *
 * Sixteen bytes per thread, small blocks: the fastest of the measured shapes for so little
 * arithmetic. */
#include "bench/yardstick_cuda.h"

#include "act/cuda/storage.cuh"

namespace
{

constexpr int THREADS = 128, DEPTH = 1;

template <int DTYPE, int ADD>
__global__ void __launch_bounds__(THREADS) yardstick(void *y, const void *x, const void *g, size_t n)
{
    constexpr int WIDTH = storage<DTYPE>::WIDTH, STEP = THREADS * WIDTH, SIZE = STEP * DEPTH;
    size_t tile = (size_t)blockIdx.x * SIZE, at = tile + threadIdx.x * WIDTH;
    if (tile + SIZE > n) {
        for (size_t i = tile + threadIdx.x; i < n; i += THREADS)
            store_one(y, DTYPE, i, load_one(x, DTYPE, i) + (ADD ? load_one(g, DTYPE, i) : 0.0f));
        return;
    }
    uint4 a[DEPTH], b[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        a[d] = load_vector<DTYPE>(x, at + d * STEP);
        if (ADD)
            b[d] = load_vector<DTYPE>(g, at + d * STEP);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        if (ADD) {
            float u[WIDTH], v[WIDTH];
            unpack<DTYPE>(a[d], u);
            unpack<DTYPE>(b[d], v);
            for (int j = 0; j < WIDTH; j++)
                u[j] += v[j];
            a[d] = pack<DTYPE>(u);
        }
        store_vector<DTYPE>(y, at + d * STEP, a[d]);
    }
}

template <int DTYPE> cudaError_t launch(void *y, const void *x, const void *g, size_t n)
{
    size_t tile = (size_t)THREADS * DEPTH * storage<DTYPE>::WIDTH;
    unsigned blocks = (unsigned)((n + tile - 1) / tile);
    if (g)
        yardstick<DTYPE, 1><<<blocks, THREADS>>>(y, x, g, n);
    else
        yardstick<DTYPE, 0><<<blocks, THREADS>>>(y, x, x, n);
    return cudaGetLastError();
}

cudaError_t run(void *y, const void *x, const void *g, berlu_dtype dtype, size_t n)
{
    if (dtype == BERLU_F32)
        return launch<BERLU_F32>(y, x, g, n);
    return dtype == BERLU_BF16 ? launch<BERLU_BF16>(y, x, g, n) : launch<BERLU_F16>(y, x, g, n);
}

} // namespace

cudaError_t yardstick_cuda_copy(void *y, const void *x, berlu_dtype dtype, size_t n)
{
    return run(y, x, nullptr, dtype, n);
}

cudaError_t yardstick_cuda_add(void *y, const void *x, const void *g, berlu_dtype dtype, size_t n)
{
    return run(y, x, g, dtype, n);
}
