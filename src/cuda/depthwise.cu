/* depthwise.cu - depthwise convolution on [H, W, C] and its gradients. SPDX-License-Identifier: MIT
 *
 * Windows of 3, 5 and 7 take the kernels of depthwise_tile.cuh, other sizes a plain loop. Forward
 * and dx are one kernel: dx reads the window mirrored. The weights' gradient, and the bias' with
 * it, comes in partial sums of chunks, which columns.cu adds; how maps are cut into chunks depends
 * on the shape alone, so the bits do too. */
#include "cuda/depthwise_tile.cuh"

namespace
{

constexpr int64_t DW_BLOCKS = 264; /* two on each of an H200's 132 multiprocessors */

maps maps_of(const op_call *c, const tensor_info *map, const tensor_info *weight)
{
    return maps{(int)map->size[0], (int)map->size[1], (int)map->size[2], (int)weight->size[2], (int64_t)c->batch};
}

bool vectors_fit(const array &x, const maps &m)
{
    return array_aligned(x) && m.channels % (x.bf16 ? 8 : 4) == 0;
}

/* Runs f.run<T, K, TX>() for a dtype, a window and a width of map; false where no kernel is
 * compiled for the window. */
template <typename T, int K, typename F> bool tile_pick(const maps &m, const F &f)
{
    m.width <= 4 ? f.template run<T, K, 4>() : f.template run<T, K, 8>();
    return true;
}

template <typename T, typename F> bool window_pick(const maps &m, const F &f)
{
    return m.kernel == 7   ? tile_pick<T, 7>(m, f)
           : m.kernel == 5 ? tile_pick<T, 5>(m, f)
           : m.kernel == 3 ? tile_pick<T, 3>(m, f)
                           : false;
}

template <typename F> bool kernel_pick(const array &x, const maps &m, const F &f)
{
    return x.bf16 ? window_pick<__nv_bfloat16>(m, f) : window_pick<float>(m, f);
}

/* ---- forward and dx -------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) convolve_any(maps m, operands o, int64_t count)
{
    int k = m.kernel, half = k / 2;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t pixel = quotient(i, m.channels), row = quotient(pixel, m.width), number = quotient(row, m.height);
        int channel = (int)(i - pixel * m.channels), x = (int)(pixel - row * m.width),
            y = (int)(row - number * m.height);
        float sum = 0;
        for (int t = 0; t < k * k; t++) {
            int sy = y + t / k - half, sx = x + t % k - half;
            if (sy >= 0 && sy < m.height && sx >= 0 && sx < m.width)
                sum = fmaf(load(o.x, ((number * m.height + sy) * m.width + sx) * m.channels + channel),
                           load(o.weight, (int64_t)channel * k * k + (o.mirror ? k * k - 1 - t : t)), sum);
        }
        sum += o.bias.data ? load(o.bias, channel) : 0.0f;
        store(o.y, i, sum + (o.residual.data ? load(o.residual, i) : 0.0f));
    }
}

struct convolve_launch {
    const maps &m;
    const operands &o;
    cudaStream_t stream;

    template <typename T, int K, int TX> void run() const
    {
        size_t weights = LANES * K * K * sizeof(float);
        regions r = regions_make(m, TX, sizeof(T), weights);
        size_t shared = weights + staged_bytes(r.across, r.down, r.together, K, sizeof(T));
        kernel_launch(stream, convolve<T, K, TX>, r.steps * r.groups, BLOCK, shared, m, r, o);
    }
};

void convolve_run(const op_call *c, const op_operand *bias, const op_operand *residual, int mirror)
{
    maps m = maps_of(c, c->in[0].info, c->in[1].info);
    array x = array_of(&c->in[0]);
    operands o = {x,
                  array_of(&c->in[1]),
                  bias ? array_of(bias) : array{},
                  residual ? array_of(residual) : array{},
                  array_of(&c->out[0]),
                  mirror,
                  vectors_fit(x, m)};
    int64_t count = operand_count(&c->out[0]);
    cudaStream_t stream = (cudaStream_t)cuda_device_of(c)->stream;
    if (count > 0 && !kernel_pick(x, m, convolve_launch{m, o, stream}))
        kernel_launch(stream, convolve_any, blocks_for(count), THREADS, 0, m, o, count);
    cuda_launched(c);
}

/* ---- the weights' gradient ------------------------------------------------------------------- */

struct chunks {
    int64_t steps, count; /* of a chunk; how many */
};

/* Channels and chunks together make about DW_BLOCKS blocks. */
chunks chunks_make(int64_t steps, int64_t columns)
{
    int64_t wanted = DW_BLOCKS / columns > 0 ? DW_BLOCKS / columns : 1, each = (steps + wanted - 1) / wanted;
    each = each > 0 ? each : 1;
    return chunks{each, (steps + each - 1) / each};
}

/* One thread per element of the window and one for the bias; a step is a row of a map. */
__global__ void __launch_bounds__(THREADS) weight_gradient_any(maps m, gradient_args a, int64_t columns)
{
    int64_t blocks = (columns + THREADS - 1) / THREADS, chunk = blockIdx.x / blocks;
    int64_t column = blockIdx.x % blocks * THREADS + threadIdx.x;
    int64_t all = m.images * m.height, end = (chunk + 1) * a.chunk < all ? (chunk + 1) * a.chunk : all;
    if (column >= columns)
        return;
    int k = m.kernel, window = k * k, half = k / 2, channel = (int)(column / (window + 1)),
        element = (int)(column % (window + 1));
    int down = element < window ? element / k - half : 0, right = element < window ? element % k - half : 0;
    float sum = 0;
    for (int64_t row = chunk * a.chunk; row < end; row++) {
        int from = (int)(row % m.height) + down;
        for (int at = 0; at < m.width && from >= 0 && from < m.height; at++) {
            float d = load(a.dy, (row * m.width + at) * m.channels + channel);
            if (element == window)
                sum += d;
            else if (at + right >= 0 && at + right < m.width)
                sum = fmaf(d, load(a.x, ((row + down) * m.width + at + right) * m.channels + channel), sum);
        }
    }
    if (element < window)
        a.weight_part[(chunk * m.channels + channel) * window + element] = sum;
    else
        a.bias_part[chunk * m.channels + channel] = sum;
}

/* run() finds the chunks; with a stream it also launches. */
struct gradient_launch {
    const maps &m;
    gradient_args *a;
    const cudaStream_t *stream;

    template <typename T, int K, int TX> void run() const
    {
        regions r = regions_make(m, TX, sizeof(T), 0);
        chunks k = chunks_make(r.steps, r.groups);
        size_t staged = staged_bytes(r.across, r.down, r.together, K, sizeof(T));
        size_t sums = (size_t)BLOCK * (K * K + 1) * sizeof(float);
        a->chunk = k.steps, a->chunks = k.count;
        if (!stream)
            return;
        a->bias_part = a->weight_part + k.count * m.channels * K * K;
        kernel_launch(*stream, weight_gradient<T, K, TX>, k.count * r.groups, BLOCK, staged > sums ? staged : sums, m,
                      r, *a);
    }

    void run_any() const
    {
        int64_t window = m.kernel * m.kernel, columns = (int64_t)m.channels * (window + 1);
        int64_t blocks = (columns + THREADS - 1) / THREADS;
        chunks k = chunks_make(m.images * m.height, blocks);
        a->chunk = k.steps, a->chunks = k.count;
        if (!stream)
            return;
        a->bias_part = a->weight_part + k.count * m.channels * window;
        kernel_launch(*stream, weight_gradient_any, k.count * blocks, THREADS, 0, m, *a, columns);
    }
};

/* The chunks of a call, and their launch where there is a stream. */
gradient_args gradient_run(const op_call *c, const maps &m, const cudaStream_t *stream)
{
    array x = array_of(&c->in[1]);
    gradient_args a = {array_of(&c->in[0]), x, (float *)c->workspace, nullptr, 0, 0, vectors_fit(x, m)};
    gradient_launch launch = {m, &a, stream};
    if (!kernel_pick(x, m, launch))
        launch.run_any();
    return a;
}

} // namespace

extern "C" {

void cuda_depthwise(const op_call *c)
{
    convolve_run(c, &c->in[2], nullptr, 0);
}

void cuda_depthwise_dx(const op_call *c)
{
    convolve_run(c, nullptr, &c->in[2], 1);
}

void cuda_depthwise_dw(const op_call *c)
{
    maps m = maps_of(c, c->in[0].info, c->out[0].info);
    cudaStream_t stream = (cudaStream_t)cuda_device_of(c)->stream;
    gradient_args a = gradient_run(c, m, &stream);
    cuda_launched(c);
    cuda_columns_join(c, (float *)c->out[0].data, a.weight_part, a.chunks, (int64_t)m.channels * m.kernel * m.kernel,
                      0);
    if (c->out[1].data)
        cuda_columns_join(c, (float *)c->out[1].data, a.bias_part, a.chunks, m.channels, 0);
}

size_t cuda_depthwise_dw_workspace(const op_call *c)
{
    maps m = maps_of(c, c->in[0].info, c->out[0].info);
    int64_t chunks = gradient_run(c, m, nullptr).chunks;
    return (size_t)chunks * (size_t)m.channels * (size_t)(m.kernel * m.kernel + 1) * sizeof(float);
}
}
