/* rows.cu - a product with one activation as its epilogue. SPDX-License-Identifier: MIT
 *
 * Compiled once per activation for sm_90a (CMakeLists.txt), with the formula's header as
 * ACT_FORMULA; the product is rows_kernel.cuh's, the elements are those of act/cuda/fused.cuh, so a
 * fused layer has the same bits here and in two launches wherever the product has.
 *
 *     value_finish   u = product + bias, rounded; y from the rounded u
 *     slope_finish   du = product x slope of u (or of y, where that was kept); column sums of du;
 *                    sums of learned parameters; y recomputed from u
 *
 * The product that meets the slope is not rounded. Read on: rows.c for when this is used. */
#include "cuda/rows_kernel.cuh"

#include "act/cuda/fused.cuh"

#if FUSED_APART
extern "C" const rows_kernels ROWS_TABLE = {};
#else

namespace
{

struct value_finish {
    static constexpr bool BY_DEPTH = false, FETCHES = false;
    const rows_job &job;
    const consts k;
    int channel;
    float bias[ROWS_HALF / 4] = {};

    __device__ __forceinline__ value_finish(const rows_job &job_, int channel_)
        : job(job_), k(consts_at(job_.act)), channel(channel_)
    {
#pragma unroll
        for (int i = 0; i < ROWS_HALF / 32; i++)
            if (job.bias)
                unpack<BERLU_BF16>(load_vector<BERLU_BF16>(job.bias, channel + i * 32), bias + i * WIDTH);
    }
    __device__ __forceinline__ void fetch(uint4 *, int, int)
    {
    }
    __device__ __forceinline__ void finish(const float (*acc)[4], const uint4 *, int row, int part) const
    {
#pragma unroll
        for (int below = 0; below < 2; below++, row += 8) {
            float v[WIDTH];
            vector_of(v, acc, below);
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                v[j] += bias[part * WIDTH + j];
            uint4 u = pack<BERLU_BF16>(v), y = values_beside(u, k);
            uint32_t at = vector_index(job, row, channel, part);
            if (row < (int)job.act.rows && job.u)
                ((uint4 *)job.u)[at] = u;
            if (row < (int)job.act.rows)
                ((uint4 *)job.act.y)[at] = y;
        }
    }
    __device__ __forceinline__ void end(float *, const rows_place &) const
    {
    }
};

template <int SUMS, slope_of FROM> struct slope_finish {
    static constexpr bool BY_DEPTH = true, FETCHES = true;
    const rows_job &job;
    const consts k;
    int channel;
    float column[ROWS_HALF / 4] = {}, sum[SUMS ? SUMS : 1] = {};

    __device__ __forceinline__ slope_finish(const rows_job &job_, int channel_)
        : job(job_), k(consts_at(job_.act)), channel(channel_)
    {
    }
    /* Missing rows are zero, and so is their product: they add nothing to the sums. */
    __device__ __forceinline__ void fetch(uint4 *slot, int row, int part)
    {
#pragma unroll
        for (int below = 0; below < 2; below++, row += 8) {
            bool there = row_exists(job, row);
            copy_async<16>(slot + below * ROWS_THREADS,
                           (const uint4 *)job.act.x + (there ? vector_index(job, row, channel, part) : 0), there);
        }
    }
    __device__ __forceinline__ void finish(const float (*acc)[4], const uint4 *slot, int row, int part)
    {
#pragma unroll
        for (int below = 0; below < 2; below++, row += 8) {
            float dy[WIDTH];
            vector_of(dy, acc, below);
            uint32_t at = vector_index(job, row, channel, part);
            uint4 du, y;
            elements(du, y, slot[below * ROWS_THREADS], dy, column + part * WIDTH);
            if (row < (int)job.act.rows)
                ((uint4 *)job.act.dx)[at] = du;
            if (FROM == FROM_X && row < (int)job.act.rows && job.act.y)
                ((uint4 *)job.act.y)[at] = y;
        }
    }
    /* Short and long forms as in values_beside(); there is no long one from the output. */
    __device__ __forceinline__ void elements(uint4 &du, uint4 &y, uint4 x, const float *dy, float *column)
    {
        if (SHORT_FORM(FROM, k)) {
            __builtin_assume(SHORT_FORM(FROM, k));
            du = slopes_estimate<SUMS, FROM>(x, dy, k, column, sum);
            y = FROM == FROM_X && job.act.y ? values_estimate<false>(x, k) : x;
            return;
        }
        float v[WIDTH], d[WIDTH];
        unpack<BERLU_BF16>(x, v);
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            d[j] = dy[j];
#pragma unroll 1
        for (int j = 0; j < WIDTH; j++) {
            d[j] = slope_estimate<SUMS, FROM>(v[j], d[j], k, sum);
            v[j] = value_estimate<false>(v[j], k);
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            column[j] += d[j];
        du = pack<BERLU_BF16>(d);
        y = pack<BERLU_BF16>(v);
    }
    __device__ __forceinline__ void end(float *shared, const rows_place &at)
    {
        int slices = (int)(job.act.channels / ROWS_SLICE), group = blockIdx.x / slices, n0 = channel - at.column;
        if (job.act.bias_sum)
            columns_end(job.act.bias_sum + group * job.act.channels + n0, shared, column, at);
#pragma unroll
        for (int p = 0; p < SUMS; p++) {
            double total = block_sum((double)sum[p]);
            if (threadIdx.x == 0 && job.act.layer_sum[p])
                job.act.layer_sum[p][blockIdx.x] = total;
        }
    }
};

template <typename FINISH> void launch_one(const rows_job *job, cudaStream_t stream)
{
    kernel_launch(stream, rows_product<FINISH>, (int64_t)rows_blocks(&job->act), ROWS_THREADS, rows_shared<FINISH>,
                  *job);
}

berlu_status forward(const rows_job *job, cuda_stream stream)
{
    launch_one<value_finish>(job, stream);
    return gpu_launch_status();
}

template <slope_of FROM> void backward_launch(const rows_job *job, cudaStream_t stream)
{
    int sums = 0;
    for (int p = 0; p < PARAMS; p++)
        sums = job->act.layer_sum[p] ? p + 1 : sums;
    if (sums == 0)
        launch_one<slope_finish<0, FROM>>(job, stream);
    else if (sums == 1)
        launch_one<slope_finish<PARAMS ? 1 : 0, FROM>>(job, stream);
    else
        launch_one<slope_finish<PARAMS, FROM>>(job, stream);
}

berlu_status backward(const rows_job *job, cuda_stream stream)
{
    if (job->act.from_output)
        backward_launch<ACT_FROM_OUTPUT ? FROM_OUTPUT : FROM_X>(job, stream);
    else
        backward_launch<FROM_X>(job, stream);
    return gpu_launch_status();
}

} // namespace

extern "C" const rows_kernels ROWS_TABLE = {forward, backward};

#endif
