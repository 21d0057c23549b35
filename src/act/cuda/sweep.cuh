/* act/cuda/sweep.cuh - the backward of an activation after a bias, in one pass.
 * SPDX-License-Identifier: MIT
 *
 * dx, the column sums of dx (the bias gradient), sums of a layer's parameters, and y recomputed if
 * the call wants it. A block has CUDA_ROWS rows; its threads lie `across` vectors of 16 bytes by
 * `deep` rows, so a thread always has the same channels and keeps their sums in registers. The
 * `deep` sums of a channel are added in order at the end. How threads lie depends on the number of
 * channels alone, so the bits do too.
 *
 * Part of kernel.cu, inside its namespace. */
constexpr int SWEEP_THREADS = 256, SWEEP_ACROSS = 128; /* at most; so a thread has at most half of a block's rows */

struct sweep_shape {
    dim3 grid; /* blocks of rows, blocks of channels */
    unsigned across, deep, threads;
};

/* Narrow rows stand below each other until the block is full; wide ones are cut into equal
 * parts. */
sweep_shape sweep_shape_of(const cuda_job *job)
{
    size_t vectors = job->channels / (job->dtype == BERLU_F32 ? 4 : 8);
    size_t parts = (vectors + SWEEP_ACROSS - 1) / SWEEP_ACROSS;
    sweep_shape s = {};
    s.grid = dim3((unsigned)((job->rows + CUDA_ROWS - 1) / CUDA_ROWS), (unsigned)parts);
    s.across = (unsigned)((vectors + parts - 1) / parts);
    for (s.deep = 1; 2 * s.deep * s.across <= SWEEP_THREADS && 2 * s.deep <= CUDA_ROWS;)
        s.deep *= 2;
    s.threads = (s.across * s.deep + 31) / 32 * 32;
    return s;
}

/* dx of one vector, stored; y too where it is wanted. `column` and `sum` grow. */
template <int DTYPE, int SUMS, int OUTPUT>
__device__ __forceinline__ void sweep_vector(const cuda_job &job, const consts &k, size_t at, uint4 x, uint4 g,
                                             float *column, float *sum)
{
    constexpr int WIDTH = storage<DTYPE>::WIDTH;
    constexpr bool HALF = DTYPE != BERLU_F32;
    if constexpr (QUICK_SLOPE && HALF && !SUMS && !OUTPUT) {
        store_vector<DTYPE>(job.dx, at, quick_eight<DTYPE, SLOPE, ADD_EACH>(x, g, k, column));
    } else {
        float v[WIDTH], dy[WIDTH];
        unpack<DTYPE>(x, v);
        unpack<DTYPE>(g, dy);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            v[j] = slope_one<SUMS, OUTPUT>(v[j], dy[j], k, sum);
            column[j] = v_add(column[j], v[j]);
        }
        store_vector<DTYPE>(job.dx, at, pack<DTYPE>(v));
    }
    if (OUTPUT || !job.y)
        return;
    if constexpr (QUICK_VALUE && HALF) {
        store_vector<DTYPE>(job.y, at, quick_eight<DTYPE, VALUE>(x, x, k));
    } else {
        float v[WIDTH];
        unpack<DTYPE>(x, v);
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            v[j] = act_value(v[j], &k.f);
        store_vector<DTYPE>(job.y, at, pack<DTYPE>(v));
    }
}

template <int DTYPE, int DEGREE, int SUMS, int OUTPUT>
__global__ void __launch_bounds__(SWEEP_THREADS)
    sweep(const __grid_constant__ cuda_job job, unsigned across, unsigned deep)
{
    constexpr int WIDTH = storage<DTYPE>::WIDTH, DEPTH = 2;
    __shared__ float below[SWEEP_THREADS * WIDTH];
    const void *from = OUTPUT ? job.y_in : job.x;
    unsigned lane = threadIdx.x % across, down = threadIdx.x / across;
    size_t first = (size_t)blockIdx.y * across * WIDTH, channel = first + lane * WIDTH;
    size_t row = (size_t)blockIdx.x * CUDA_ROWS, end = row + CUDA_ROWS < job.rows ? row + CUDA_ROWS : job.rows;
    float column[WIDTH] = {}, sum[SUMS ? SUMS : 1] = {};
    if (down < deep && channel < job.channels) {
        const consts k = consts_at<DEGREE>(job, 0);
#pragma unroll 1
        for (row += down; row < end; row += DEPTH * deep) {
            uint4 x[DEPTH] = {}, g[DEPTH] = {};
#pragma unroll
            for (int d = 0; d < DEPTH; d++)
                if (row + d * deep < end) {
                    x[d] = load_vector<DTYPE>(from, (row + d * deep) * job.channels + channel);
                    g[d] = load_vector<DTYPE>(job.dy, (row + d * deep) * job.channels + channel);
                }
            if (impossible<DEPTH>(job, x, g))
                return;
#pragma unroll
            for (int d = 0; d < DEPTH; d++)
                if (row + d * deep < end)
                    sweep_vector<DTYPE, SUMS, OUTPUT>(job, k, (row + d * deep) * job.channels + channel, x[d], g[d],
                                                      column, sum);
        }
    }
    if (job.bias_sum) {
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            below[threadIdx.x * WIDTH + j] = column[j];
        __syncthreads();
        for (unsigned c = threadIdx.x; c < across * WIDTH && first + c < job.channels; c += blockDim.x) {
            float total = below[c];
            for (unsigned d = 1; d < deep; d++)
                total = v_add(total, below[d * across * WIDTH + c]);
            job.bias_sum[blockIdx.x * job.channels + first + c] = total;
        }
    }
#pragma unroll
    for (int p = 0; p < SUMS; p++) {
        double total = block_sum(sum[p]);
        if (threadIdx.x == 0 && job.layer_sum[p])
            job.layer_sum[p][(size_t)blockIdx.x * gridDim.y + blockIdx.y] = total;
    }
}
