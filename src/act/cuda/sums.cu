/* act/cuda/sums.cu - the second stage of sums on CUDA. SPDX-License-Identifier: MIT
 *
 * Partial sums are few, so one block per number (a layer) or per 32 channels is enough. Thread t
 * adds partial sums t, t + 1024, ... in double in that order; threads are joined by a fixed tree.
 * The order depends on the count alone. */
#include "act/cuda/kernels.h"

namespace
{

constexpr int THREADS = 1024, COLUMNS = 32, SEGMENTS = THREADS / COLUMNS;

__global__ void __launch_bounds__(THREADS) join_layer(float *out, const double *partial, size_t count)
{
    __shared__ double sums[THREADS];
    double sum = 0;
    for (size_t i = threadIdx.x; i < count; i += THREADS)
        sum += partial[i];
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *out = (float)sums[0];
}

__global__ void __launch_bounds__(THREADS)
    join_columns(float *out, const float *partial, size_t blocks, size_t channels)
{
    __shared__ double sums[SEGMENTS][COLUMNS];
    int column = threadIdx.x % COLUMNS, segment = threadIdx.x / COLUMNS;
    size_t channel = (size_t)blockIdx.x * COLUMNS + column;
    double sum = 0;
    if (channel < channels)
        for (size_t b = segment; b < blocks; b += SEGMENTS)
            sum += (double)partial[b * channels + channel];
    sums[segment][column] = sum;
    for (int half = SEGMENTS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (segment < half)
            sums[segment][column] += sums[segment + half][column];
    }
    if (segment == 0 && channel < channels)
        out[channel] = (float)sums[0][column];
}

} // namespace

cudaError_t cuda_join_layer(float *out, const double *partial, size_t count, cudaStream_t stream)
{
    join_layer<<<1, THREADS, 0, stream>>>(out, partial, count);
    return cudaGetLastError();
}

cudaError_t cuda_join_columns(float *out, const float *partial, size_t blocks, size_t channels, cudaStream_t stream)
{
    if (channels == 0) /* CUDA refuses a grid of no blocks */
        return cudaSuccess;
    join_columns<<<(unsigned)((channels + COLUMNS - 1) / COLUMNS), THREADS, 0, stream>>>(out, partial, blocks,
                                                                                         channels);
    return cudaGetLastError();
}
