/* stream_norm.cuh - what follows a product whose result is added to the residual stream: the sum
 * and its norm, from accumulators. SPDX-License-Identifier: MIT
 *
 *     x = product + bias + residual, rounded;  y = norm of the rounded x, and its statistics
 *
 * A warpgroup has 64 rows with all their 192 columns in registers, so that sums over a row need two
 * shuffles. Rows of the product's second operand are permuted as they are copied (place_of_column),
 * such that a thread has vectors of 16 bytes of the stream. The variance is taken about the mean,
 * in registers, as norm_rows.cuh does. A row's bits depend on that row alone.
 *
 *     stream_finish(sum, acc, residual, bias, job, row)   x into the accumulators and to memory
 *     norm_finish(sum, acc, vectors, job, row)            then y and the statistics
 *
 * Both for rows `row` and row + 8 of a thread; T is the stream's element. JOB has x, y, statistics,
 * rows and eps. `residual` gives vectors of the residual: get(part, below) returns one, done(part)
 * says that both of a part were used. Included by linear_norm.cu and mlp.cu. */
#ifndef CUDA_STREAM_NORM_CUH
#define CUDA_STREAM_NORM_CUH

#include "cuda/prim.cuh"

constexpr int STREAM_WIDTH = 192;

/* For a stream of T. Four threads have a part of a row. */
template <typename T> struct stream_shape {
    static constexpr int VEC = 16 / (int)sizeof(T), PART = 4 * VEC, PARTS = STREAM_WIDTH / PART;
};

/* The row of the operand in which column n lies: in a part, column VEC t + 2 j + e is at
 * 8 j + 2 t + e, and there thread t of four has it as number e of block j. */
template <int VEC> DEVICE int place_of_column(int n)
{
    int t = n / VEC % 4, j = n % VEC / 2;
    return n / (4 * VEC) * (4 * VEC) + 8 * j + 2 * t + n % 2;
}

/* Bias, and weight and shift of the norm, as floats; missing ones are zero. */
DEVICE void stream_vectors(float *to, const void *bias, const void *weight, const void *shift)
{
    for (int i = threadIdx.x; i < STREAM_WIDTH; i += blockDim.x) {
        to[i] = bias ? __uint_as_float((uint32_t)((const uint16_t *)bias)[i] << 16) : 0;
        to[STREAM_WIDTH + i] = weight ? ((const float *)weight)[i] : 0;
        to[2 * STREAM_WIDTH + i] = shift ? ((const float *)shift)[i] : 0;
    }
}

/* The place in the stream of a thread's vector of a part. */
template <typename T> DEVICE int64_t stream_index(int row, int part)
{
    return (int64_t)row * STREAM_WIDTH + part * stream_shape<T>::PART + threadIdx.x % 4 * stream_shape<T>::VEC;
}

/* v as memory will have it. */
template <typename T, int COUNT> DEVICE packed<T, COUNT> packed_of(const float *v)
{
    packed<T, COUNT> p;
#pragma unroll
    for (int i = 0; i < COUNT * (int)sizeof(T) / 4; i++) {
        if constexpr (sizeof(T) == 4)
            p.word[i] = __float_as_uint(v[i]);
        else
            p.word[i] = bf16_pair(v[2 * i], v[2 * i + 1]);
    }
    return p;
}

template <typename T, typename RESIDUAL, typename JOB>
DEVICE void stream_finish(float *sum, float (*acc)[4], RESIDUAL &residual, const float *vectors, const JOB &job,
                          int row)
{
    constexpr int VEC = stream_shape<T>::VEC;
#pragma unroll
    for (int part = 0; part < stream_shape<T>::PARTS; part++) {
        float bias[VEC];
        elements_load<float, VEC>(bias, vectors + part * stream_shape<T>::PART + threadIdx.x % 4 * VEC);
#pragma unroll
        for (int below = 0; below < 2; below++) {
            float v[VEC];
            packed_floats(v, residual.get(part, below));
#pragma unroll
            for (int i = 0; i < VEC; i++)
                v[i] += acc[part * VEC / 2 + i / 2][below * 2 + i % 2] + bias[i];
            packed<T, VEC> x = packed_of<T, VEC>(v);
            int at = row + below * 8;
            if (at < job.rows)
                *(uint4 *)((T *)job.x + stream_index<T>(at, part)) =
                    make_uint4(x.word[0], x.word[1], x.word[2], x.word[3]);
            packed_floats(v, x);
#pragma unroll
            for (int i = 0; i < VEC; i++) {
                acc[part * VEC / 2 + i / 2][below * 2 + i % 2] = v[i];
                sum[below] += v[i];
            }
        }
        residual.done(part);
    }
}

template <typename T, typename JOB>
DEVICE void norm_finish(float *sum, float (*acc)[4], const float *vectors, const JOB &job, int row)
{
    constexpr int VEC = stream_shape<T>::VEC;
    float square[2] = {};
#pragma unroll
    for (int below = 0; below < 2; below++) {
        sum[below] = lane_sum<4>(sum[below]) * (1.0f / STREAM_WIDTH);
#pragma unroll
        for (int i = 0; i < STREAM_WIDTH / 4; i++) {
            float d = acc[i / 2][below * 2 + i % 2] - sum[below];
            acc[i / 2][below * 2 + i % 2] = d;
            square[below] = fmaf(d, d, square[below]);
        }
        square[below] = 1.0f / sqrtf(fmaf(lane_sum<4>(square[below]), 1.0f / STREAM_WIDTH, job.eps));
        if (row + below * 8 < job.rows && threadIdx.x % 4 == 0 && job.statistics)
            ((float2 *)job.statistics)[row + below * 8] = make_float2(sum[below], square[below]);
    }
#pragma unroll
    for (int part = 0; part < stream_shape<T>::PARTS; part++) {
        int column = part * stream_shape<T>::PART + threadIdx.x % 4 * VEC;
        float weight[VEC], shift[VEC], v[VEC];
        elements_load<float, VEC>(weight, vectors + STREAM_WIDTH + column);
        elements_load<float, VEC>(shift, vectors + 2 * STREAM_WIDTH + column);
#pragma unroll
        for (int below = 0; below < 2; below++) {
#pragma unroll
            for (int i = 0; i < VEC; i++)
                v[i] = fmaf(acc[part * VEC / 2 + i / 2][below * 2 + i % 2] * square[below], weight[i], shift[i]);
            if (row + below * 8 < job.rows)
                elements_store<__nv_bfloat16, VEC>((__nv_bfloat16 *)job.y + stream_index<T>(row + below * 8, part), v);
        }
    }
}

#endif
