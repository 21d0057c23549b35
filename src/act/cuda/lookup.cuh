/* act/cuda/lookup.cuh - derivatives in f16 through a table in shared memory.
 * SPDX-License-Identifier: MIT
 *
 * Where the formula is long and an estimate too often undecided (quick.cuh: QUICK_LOOKUP) each
 * block tabulates the derivative in f32 for the inputs with a magnitude from 2^-9 to 16, both signs
 * next to each other: the key of an input is its bits rotated left by one. Other inputs are
 * computed. The table costs a few microseconds, so there is one block per multiprocessor, which
 * first prefetches the beginning of its input into L2.
 *
 * Part of kernel.cu, inside its namespace. */
#ifdef QUICK_LOOKUP
constexpr int LOOKUP_THREADS = 1024, LOOKUP_DEPTH = 2, LOOKUP_AHEAD = 8;
constexpr uint32_t LOOKUP_LOW = 2 * (6 << 10), LOOKUP_SPAN = 2 * (19 << 10) - LOOKUP_LOW;

__device__ __forceinline__ float lookup_input(uint32_t key)
{
    uint16_t bits = (uint16_t)(key >> 1 | (key & 1) << 15);
    return load_one(&bits, BERLU_F16, 0);
}

__device__ __forceinline__ uint4 find_slopes(uint4 x, uint4 gradient, const float *table, const consts &k)
{
    float dy[8];
    unpack<BERLU_F16>(gradient, dy);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint32_t bits = half_of(x, j), key = (bits << 1 & 0xfffe) | bits >> 15, at = key - LOOKUP_LOW;
        dy[j] = v_mul(dy[j], at < LOOKUP_SPAN ? table[at] : exact_slope(lookup_input(key), k.f));
    }
    return pack<BERLU_F16>(dy);
}

/* One prefetch per line of 128 bytes. */
__device__ __forceinline__ void fetch_ahead(const void *p, size_t at, size_t stride, size_t count)
{
    if (threadIdx.x % 8)
        return;
#pragma unroll 1
    for (int i = 0; i < LOOKUP_AHEAD; i++, at += stride)
        if (at < count)
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const uint16_t *)p + at));
}

__global__ void __launch_bounds__(LOOKUP_THREADS, 1) lookup(const __grid_constant__ cuda_job job)
{
    constexpr int WIDTH = 8;
    extern __shared__ float table[];
    size_t stride = (size_t)gridDim.x * LOOKUP_THREADS * WIDTH, full = job.count / WIDTH * WIDTH;
    size_t at = ((size_t)blockIdx.x * LOOKUP_THREADS + threadIdx.x) * WIDTH;
    fetch_ahead(job.x, at, stride, job.count);
    fetch_ahead(job.dy, at, stride, job.count);
    const consts k = consts_at<0>(job, 0);
    for (uint32_t e = threadIdx.x; e < LOOKUP_SPAN; e += LOOKUP_THREADS)
        table[e] = act_slope(lookup_input(LOOKUP_LOW + e), &k.f);
    __syncthreads();
    for (; at < full; at += LOOKUP_DEPTH * stride) {
        uint4 x[LOOKUP_DEPTH] = {}, g[LOOKUP_DEPTH] = {};
#pragma unroll
        for (int d = 0; d < LOOKUP_DEPTH; d++)
            if (at + d * stride < full) {
                x[d] = load_vector<BERLU_F16>(job.x, at + d * stride);
                g[d] = load_vector<BERLU_F16>(job.dy, at + d * stride);
            }
#pragma unroll
        for (int d = 0; d < LOOKUP_DEPTH; d++)
            if (at + d * stride < full)
                store_vector<BERLU_F16>(job.dx, at + d * stride, find_slopes(x[d], g[d], table, k));
    }
    size_t rest = full + threadIdx.x; /* fewer than eight */
    if (blockIdx.x == 0 && rest < job.count)
        store_one(job.dx, BERLU_F16, rest,
                  v_mul(load_one(job.dy, BERLU_F16, rest), act_slope(load_one(job.x, BERLU_F16, rest), &k.f)));
}

/* False, with nothing launched, for other work, below the size from which the table pays, and on a
 * device with too little shared memory for it. */
bool looks_up(const cuda_job *job, cudaStream_t stream, cudaError_t *error)
{
    if (job->op != BERLU_ACT_BACKWARD || job->dtype != BERLU_F16 || job->count < 1 << 20)
        return false;
    const int bytes = (int)(LOOKUP_SPAN * sizeof(float));
    int device = 0, processors = 0, available = 0;
    *error = cudaGetDevice(&device);
    if (*error == cudaSuccess)
        *error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (*error == cudaSuccess)
        *error = cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (*error == cudaSuccess && available < bytes)
        return false;
    if (*error == cudaSuccess)
        *error = cudaFuncSetAttribute(lookup, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (*error == cudaSuccess) {
        lookup<<<(unsigned)processors, LOOKUP_THREADS, bytes, stream>>>(*job);
        *error = cudaGetLastError();
    }
    return true;
}
#endif
