/* yardstick_cuda.cu - see yardstick_cuda.h. SPDX-License-Identifier: MIT
 *
 * Sixteen bytes per access, four in flight per thread, one tile per block: the shape that the kernels of src/act have too,
 * so a ratio to these says what the function itself costs. */
#include "bench/yardstick_cuda.h"

#include "act/storage_cuda.cuh"

namespace
{

constexpr int THREADS = 256, DEPTH = 4;

template <int DTYPE, int ADD>
__global__ void __launch_bounds__(THREADS) yardstick(void *y, const void *x, const void *g, size_t n)
{
    constexpr int WIDTH = storage<DTYPE>::WIDTH;
    size_t at = ((size_t)blockIdx.x * DEPTH * THREADS + threadIdx.x) * WIDTH;
    uint4 a[DEPTH] = {}, b[DEPTH] = {};
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        size_t i = at + (size_t)d * THREADS * WIDTH;
        if (i < n)
            a[d] = load_some<DTYPE>(x, i, n);
        if (ADD && i < n)
            b[d] = load_some<DTYPE>(g, i, n);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        size_t i = at + (size_t)d * THREADS * WIDTH;
        float u[WIDTH], v[WIDTH];
        unpack<DTYPE>(a[d], u);
        unpack<DTYPE>(b[d], v);
        for (int j = 0; j < WIDTH; j++)
            u[j] += v[j];
        if (i < n)
            store_some<DTYPE>(y, i, n, ADD ? pack<DTYPE>(u) : a[d]);
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
