/* act/cuda/planes.cuh - parameters per channel where the channel is not innermost (NCHW).
 * SPDX-License-Identifier: MIT
 *
 * An array is rows x channels planes of `inner` neighbouring elements, and a plane has one value of
 * each parameter (planes.c is the same on the CPU). A warp takes a run of CUDA_RUN elements of one
 * plane: its constants are computed once, its accesses are contiguous. Sums: a lane adds every 32nd
 * element of the run in f32 in order, lanes are joined by a fixed tree in double; the sum of a run
 * is one partial sum of its channel (call.c joins them as it joins blocks of rows) or, for a
 * parameter of the layer, of all. Which block computes a run changes nothing. */
constexpr size_t PLANE_WARPS = THREADS / 32;

inline size_t plane_items(const cuda_job *job)
{
    return job->rows * job->channels * cuda_runs(job);
}

/* Blocks for all runs, as long as a grid holds them; each takes several beyond that. */
inline unsigned plane_grid(const cuda_job *job)
{
    size_t blocks = (plane_items(job) + PLANE_WARPS - 1) / PLANE_WARPS, most = 1 << 30;
    return (unsigned)(blocks < most ? blocks : most);
}

__device__ __forceinline__ double warp_sum(float mine)
{
    double sum = (double)mine;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

__global__ void __launch_bounds__(THREADS) planes(const __grid_constant__ cuda_job job)
{
    const size_t runs = cuda_runs(&job), items = job.rows * job.channels * runs;
    const unsigned lane = threadIdx.x % 32;
    for (size_t item = blockIdx.x * PLANE_WARPS + threadIdx.x / 32; item < items; item += gridDim.x * PLANE_WARPS) {
        size_t plane = item / runs, channel = plane % job.channels, at = item % runs * CUDA_RUN;
        size_t end = at + CUDA_RUN < job.inner ? at + CUDA_RUN : job.inner;
        const consts k = consts_at<0>(job, channel);
        float terms[PARAMS ? PARAMS : 1] = {};
#pragma unroll 4
        for (at += lane; at < end; at += 32)
            element(job, k, plane * job.inner + at, channel, terms);
        for (int p = 0; p < PARAMS; p++) {
            if (!job.channel_sum[p] && !job.layer_sum[p])
                continue;
            double sum = warp_sum(terms[p]);
            if (lane == 0 && job.channel_sum[p])
                job.channel_sum[p][(plane / job.channels * runs + item % runs) * job.channels + channel] = (float)sum;
            else if (lane == 0)
                job.layer_sum[p][item] = sum;
        }
    }
}
