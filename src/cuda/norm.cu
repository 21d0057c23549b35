/* norm.cu - layer norm and its gradient on CUDA. SPDX-License-Identifier: MIT
 *
 * norm       y from x, weight, bias; statistics are computed and kept, or taken where they are
 * given (y is recomputed). norm_grad  dx (+ residual), and the gradients of weight and bias as sums
 * over all rows; where requested, the column sums of dx too, which are the bias gradient of the
 * layer that wrote x, and y recomputed, for the weights of the layer behind.
 *
 * The widths of our models (24 to 768) have kernels that read and write memory once, norm_fast() in
 * cuda/norm_rows.cuh and norm_grad_ahead() in cuda/norm_ahead.cuh; every other width, and every
 * other mix of dtypes, takes the kernels for any width in cuda/norm_rows.cuh. A row is read
 * before it is written, by the warp that writes it, so outputs may overwrite inputs of their own
 * dtype. */
#include "cuda/norm_ahead.cuh"

/* Calls f.run<WIDTH>() where `width` is fast; false where it is not. */
template <typename F> static bool width_pick(int width, const F &f)
{
    switch (width) {
    case 24:
        f.template run<24>();
        return true;
    case 48:
        f.template run<48>();
        return true;
    case 96:
        f.template run<96>();
        return true;
    case 192:
        f.template run<192>();
        return true;
    case 384:
        f.template run<384>();
        return true;
    case 768:
        f.template run<768>();
        return true;
    }
    return false;
}

/* ---- forward --------------------------------------------------------------------------------- */

template <typename TX, typename TY> struct norm_launch {
    const norm_args &a;
    cudaStream_t stream;
    template <int WIDTH> void run() const
    {
        constexpr int L = WIDTH / NORM_CHANNELS, ROWS = NORM_WARPS * 32 / L;
        kernel_launch(stream, norm_fast<TX, TY, L>, (a.rows + ROWS - 1) / ROWS, NORM_WARPS * 32, 0, a);
    }
};

static bool norm_launch_fast(const norm_args &a, cudaStream_t stream)
{
    if (!array_aligned(a.x) || !array_aligned(a.y) || !array_aligned(a.w) || !array_aligned(a.b) || a.w.bf16 ||
        a.b.bf16)
        return false;
    if (a.x.bf16 && a.y.bf16)
        return width_pick(a.width, norm_launch<__nv_bfloat16, __nv_bfloat16>{a, stream});
    if (a.x.bf16)
        return width_pick(a.width, norm_launch<__nv_bfloat16, float>{a, stream});
    if (a.y.bf16)
        return width_pick(a.width, norm_launch<float, __nv_bfloat16>{a, stream});
    return width_pick(a.width, norm_launch<float, float>{a, stream});
}

extern "C" void cuda_norm(const op_call *c)
{
    norm_args a = {};
    a.x = array_of(&c->in[0]), a.w = array_of(&c->in[1]), a.b = array_of(&c->in[2]), a.y = array_of(&c->out[0]);
    a.given = (const float2 *)c->in[3].data, a.kept = (float2 *)c->out[1].data;
    a.rows = c->in[0].rows, a.width = (int)c->in[0].channels, a.eps = c->attr->eps;
    assert(!a.given || c->in[3].dtype == DTYPE_F32);
    assert(!a.kept || c->out[1].dtype == DTYPE_F32);
    cudaStream_t stream = cuda_device_of(c)->stream;
    if (a.rows > 0 && !norm_launch_fast(a, stream))
        kernel_launch(stream, norm_any, (a.rows + NORM_WARPS - 1) / NORM_WARPS, NORM_WARPS * 32, 0, a);
    cuda_launched(c);
}

/* ---- gradient -------------------------------------------------------------------------------- */

/* Rows of partial sums, at most: the fast kernels take at least NORM_WARPS rows to a block. */
static int64_t partial_rows(int64_t rows)
{
    int64_t blocks = (rows + NORM_WARPS - 1) / NORM_WARPS;
    return blocks < NORM_BLOCKS ? blocks : (int64_t)NORM_BLOCKS;
}

template <typename TX, typename TD> struct norm_grad_launch {
    norm_grad_args &a;
    cudaStream_t stream;
    template <int WIDTH> void run() const /* sets the number of blocks, which is that of the partial sums */
    {
        norm_ahead_launch<TX, TD, WIDTH, typename norm_fill_best<TX, TD, WIDTH>::type>(a, NORM_BLOCKS, stream);
    }
};

static bool norm_grad_launch_fast(norm_grad_args &a, cudaStream_t stream)
{
    bool one_stream = a.dx.bf16 == a.x.bf16 && (!a.residual.data || a.residual.bf16 == a.x.bf16);
    if (!one_stream || a.w.bf16 || !array_aligned(a.dy) || !array_aligned(a.x) || !array_aligned(a.w) ||
        !array_aligned(a.residual) || !array_aligned(a.dx))
        return false;
    if (a.y.data && (a.y.bf16 != a.dy.bf16 || a.b.bf16 || !array_aligned(a.y) || !array_aligned(a.b)))
        return false;
    if (a.copy.data && (a.x.bf16 || !a.copy.bf16 || !array_aligned(a.copy)))
        return false;
    if (a.x.bf16 && a.dy.bf16)
        return width_pick(a.width, norm_grad_launch<__nv_bfloat16, __nv_bfloat16>{a, stream});
    if (a.x.bf16)
        return width_pick(a.width, norm_grad_launch<__nv_bfloat16, float>{a, stream});
    if (a.dy.bf16)
        return width_pick(a.width, norm_grad_launch<float, __nv_bfloat16>{a, stream});
    return width_pick(a.width, norm_grad_launch<float, float>{a, stream});
}

/* Sums over dy first: dx may overwrite it. */
static void norm_grad_launch_any(norm_grad_args &a, cudaStream_t stream)
{
    a.blocks = (int)partial_rows(a.rows);
    int columns = (a.width + 31) / 32;
    kernel_launch(stream, norm_grad_sums_any, (int64_t)columns * a.blocks, NORM_PARTS * 32, 0, a, columns);
    kernel_launch(stream, norm_grad_any, (a.rows + NORM_WARPS - 1) / NORM_WARPS, NORM_WARPS * 32, 0, a);
    if (a.parts == 3)
        kernel_launch(stream, norm_grad_dx_sums_any, (int64_t)columns * a.blocks, NORM_PARTS * 32, 0, a, columns);
}

extern "C" size_t cuda_norm_grad_workspace(const op_call *c)
{
    return (size_t)(partial_rows(c->in[0].rows) * norm_grad_parts(c) * c->in[0].channels) * sizeof(float);
}

extern "C" void cuda_norm_grad(const op_call *c)
{
    norm_grad_args a = norm_grad_args_of(c);
    cudaStream_t stream = cuda_device_of(c)->stream;
    if (a.rows > 0 && !norm_grad_launch_fast(a, stream))
        norm_grad_launch_any(a, stream);
    cuda_launched(c);
    norm_grad_end(a, c);
}
