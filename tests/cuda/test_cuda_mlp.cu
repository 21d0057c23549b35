/* test_cuda_mlp.cu - an MLP, residual and norm in one kernel (cuda/mlp.cu) against doubles.
 * SPDX-License-Identifier: MIT
 *
 * Inputs are numbers that their dtype holds. u and h, which never leave the kernel, are those of
 * rows.cu: its u is compared with a product, its h with the activation of that u, and a W2 that
 * picks channels shows that the kernel has the same h, every element of it. x is compared with a
 * product of this h, statistics and y with those of the x that was written: a rounding on the way
 * is no error of what follows it. Bounds are those of rows_check.cuh and linear_norm_check.cuh.
 * What does not depend on what else is asked for, on the tile a row lies in or on the number of
 * blocks is compared to the bit.
 *
 * Exit 77 without a GPU of compute capability 9.0. The same file with CUDA_EMULATED runs the
 * kernels on the host (emulate.cuh), with fewer rows. */
#include "cuda/mlp.h"
#include "kernel_check.cuh"
#include "linear_norm_check.cuh"
#include "rows_check.cuh"

extern "C" const mlp_kernels cuda_mlp_berlu, cuda_mlp_gelu, cuda_mlp_relu, cuda_mlp_softplus;
extern "C" const rows_kernels cuda_rows_relu;

struct mlp_act {
    rows_act act; /* relu: berlu of alpha 0 with a knee too narrow for bf16 to meet */
    const mlp_kernels *kernels;
};

struct mlp_case {
    int64_t rows, hidden;
    tensor_dtype dtype; /* of the stream */
    int blocks;
    bool biases, norm, in_place, learned; /* learned: parameters lie in device memory */
};

/* Hidden channels as rows.cu takes them; the kernel reads the first c.hidden alone. */
static int64_t rows_channels(const mlp_case &c)
{
    return (c.hidden + ROWS_SLICE - 1) / ROWS_SLICE * ROWS_SLICE;
}

/* All operands of a case, and what the kernel left. */
struct mlp_buffers {
    test_tensor a, w1, bias1, w2, bias2, residual, weight, shift, x, y, stat, params;
    mlp_buffers(const mlp_case &c)
        : a(c.rows, MLP_WIDTH, DTYPE_BF16), w1(rows_channels(c), MLP_WIDTH, DTYPE_BF16),
          bias1(1, rows_channels(c), DTYPE_BF16), w2(MLP_WIDTH, c.hidden, DTYPE_BF16), bias2(1, MLP_WIDTH, DTYPE_BF16),
          residual(c.rows, MLP_WIDTH, c.dtype), weight(1, MLP_WIDTH, DTYPE_F32), shift(1, MLP_WIDTH, DTYPE_F32),
          x(c.rows, MLP_WIDTH, c.dtype), y(c.rows, MLP_WIDTH, DTYPE_BF16), stat(c.rows, 2, DTYPE_F32),
          params(1, 4, DTYPE_F32)
    {
        a.fill(0, 1);
        w1.fill(0, 0.09);
        bias1.fill(0, 0.3);
        w2.fill(0, 0.05);
        bias2.fill(0.2, 0.3);
        residual.fill(1, 2);
        weight.fill(1, 0.3);
        shift.fill(0, 0.5);
    }
};

static mlp_job mlp_job_of(const mlp_act &f, const mlp_case &c, mlp_buffers &b)
{
    mlp_job job = {};
    job.act = rows_job_of(f.act, c.rows, c.hidden).act;
    if (c.learned) {
        b.params.value = {f.act.alpha, f.act.eps, 0, 0};
        b.params.put();
        job.act.param[0] = (const float *)b.params.data();
        job.act.param[1] = job.act.param[0] + 1;
        job.act.own[0] = job.act.own[1] = 0.125f; /* not to be used */
    }
    job.a = b.a.data(), job.w1 = b.w1.data(), job.w2 = b.w2.data(), job.residual = b.residual.data();
    job.bias1 = c.biases ? b.bias1.data() : NULL, job.bias2 = c.biases ? b.bias2.data() : NULL;
    job.weight = c.norm ? b.weight.data() : NULL, job.shift = c.norm ? b.shift.data() : NULL;
    job.x = c.in_place ? b.residual.data() : b.x.data();
    job.y = c.norm ? b.y.data() : NULL, job.statistics = c.norm ? b.stat.data() : NULL;
    job.rows = (int)c.rows, job.hidden = (int)c.hidden, job.f32 = c.dtype == DTYPE_F32;
    job.blocks = c.blocks, job.eps = 1e-6f;
    return job;
}

static void mlp_launch(const std::string &name, const mlp_act &f, const mlp_job &job, mlp_buffers &b)
{
    b.residual.put();
    if (f.kernels->forward(&job, NULL) != BERLU_OK)
        fail(name + ": not launched");
}

/* h of rows.cu, whose u and h are compared with doubles. */
static void mlp_hidden(const std::string &name, const mlp_act &f, const mlp_case &c, mlp_buffers &b, test_tensor &h)
{
    int64_t channels = rows_channels(c);
    test_tensor u(c.rows, channels, DTYPE_BF16), y(c.rows, channels, DTYPE_BF16);
    rows_job job = rows_job_of(f.act, c.rows, channels);
    job.a = b.a.data(), job.w = b.w1.data(), job.bias = c.biases ? b.bias1.data() : NULL;
    job.u = u.data(), job.act.y = y.data();
    if (f.act.kernels->forward(&job, NULL) != BERLU_OK)
        fail(name + ": rows.cu was not launched");
    compare(name + " u", u.raw(name), rows_multiply(b.a, b.w1, false, c.biases ? b.bias1.value.data() : NULL),
            DTYPE_BF16, NULL);
    rows_values_compare(name + " h", f.act, u, y);
    std::vector<char> raw = y.raw(name);
    for (size_t i = 0; i < h.size(); i++)
        h.value[i] = got_value(raw, DTYPE_BF16, i / c.hidden * channels + i % c.hidden);
}

/* The kernel's own h, MLP_WIDTH channels at a time: a row of W2 is one at its channel and zero
 * elsewhere, so the stream is h without a rounding. */
static void mlp_hidden_compare(const std::string &name, const mlp_act &f, const mlp_case &c, mlp_buffers &b,
                               const test_tensor &h)
{
    test_tensor picks(MLP_WIDTH, c.hidden, DTYPE_BF16), zero(c.rows, MLP_WIDTH, c.dtype);
    mlp_job job = mlp_job_of(f, c, b);
    zero.put();
    job.w2 = picks.data(), job.bias2 = NULL, job.residual = zero.data(), job.x = b.x.data();
    job.y = job.statistics = NULL;
    for (int64_t from = 0; from < c.hidden; from += MLP_WIDTH) {
        int64_t first = from + MLP_WIDTH <= c.hidden ? from : c.hidden - MLP_WIDTH, others = 0;
        for (size_t i = 0; i < picks.size(); i++)
            picks.value[i] = (int64_t)i % c.hidden == first + (int64_t)i / c.hidden;
        picks.put();
        mlp_launch(name, f, job, b);
        std::vector<char> raw = b.x.raw(name);
        for (size_t i = 0; i < b.x.size(); i++)
            others += got_value(raw, c.dtype, i) != h.value[i / MLP_WIDTH * c.hidden + first + i % MLP_WIDTH];
        if (others)
            fail(name + ": rows.cu has another h, elements: " + std::to_string(others));
    }
}

/* x and y with less asked for: no statistics, then no norm. */
static void mlp_less(const std::string &name, const mlp_act &f, const mlp_case &c, mlp_buffers &b)
{
    const test_tensor &x = c.in_place ? b.residual : b.x;
    std::vector<char> want = x.raw(name);
    test_tensor y(c.rows, MLP_WIDTH, DTYPE_BF16);
    mlp_job job = mlp_job_of(f, c, b);
    job.y = y.data(), job.statistics = NULL;
    mlp_launch(name, f, job, b);
    if (x.raw(name) != want || y.raw(name) != b.y.raw(name))
        fail(name + ": other bits without statistics");
    job.y = NULL;
    mlp_launch(name, f, job, b);
    if (x.raw(name) != want)
        fail(name + ": other bits without a norm");
}

/* The rows from `skip` on alone, so that each lies elsewhere in its tile. */
static void mlp_shifted(const std::string &name, const mlp_act &f, const mlp_case &c, mlp_buffers &b, int64_t skip)
{
    mlp_case less = c;
    less.rows -= skip;
    less.blocks = 1;
    less.in_place = false;
    mlp_buffers part(less);
    mlp_job job = mlp_job_of(f, less, part), all = mlp_job_of(f, c, b);
    size_t element = c.dtype == DTYPE_F32 ? 4 : 2;
    job.a = (const uint16_t *)all.a + skip * MLP_WIDTH;
    job.residual = (const char *)all.residual + skip * MLP_WIDTH * element;
    job.w1 = all.w1, job.bias1 = all.bias1, job.w2 = all.w2, job.bias2 = all.bias2;
    job.weight = all.weight, job.shift = all.shift;
    mlp_launch(name, f, job, b);
    std::vector<char> x = part.x.raw(name), y = part.y.raw(name);
    mlp_job whole = all;
    whole.x = b.x.data();
    mlp_launch(name, f, whole, b);
    std::vector<char> want_x = b.x.raw(name), want_y = b.y.raw(name);
    if (memcmp(x.data(), want_x.data() + skip * MLP_WIDTH * element, x.size()) != 0 ||
        (c.norm && memcmp(y.data(), want_y.data() + skip * MLP_WIDTH * 2, y.size()) != 0))
        fail(name + ": other bits elsewhere in a tile");
}

static void mlp_run(const mlp_act &f, const mlp_case &c)
{
    std::string name = std::string(f.act.name) + " mlp, " + std::to_string(c.rows) + " x " + std::to_string(c.hidden) +
                       ", " + std::to_string(c.blocks) + " blocks, " + (c.dtype == DTYPE_BF16 ? "bf16" : "f32");
    mlp_buffers b(c);
    mlp_job job = mlp_job_of(f, c, b);
    runs_compared runs;
    test_tensor &x = c.in_place ? b.residual : b.x, h(c.rows, c.hidden, DTYPE_BF16);
    mlp_hidden(name, f, c, b, h);
    mlp_hidden_compare(name, f, c, b, h);
    for (int turn = 0; turn < 2; turn++) {
        mlp_launch(name, f, job, b);
        runs.add(name, {&x, &b.y, &b.stat});
    }
    std::vector<double> want = rows_multiply(h, b.w2, false, c.biases ? b.bias2.value.data() : NULL);
    for (size_t i = 0; i < want.size(); i++)
        want[i] += b.residual.value[i];
    compare(name + " x", x.raw(name), want, c.dtype, NULL);
    if (c.norm) {
        linear_norm_compare(name, x, b.weight, b.shift, b.y, &b.stat, 1e-6);
        mlp_less(name, f, c, b);
    }
    if (c.rows > 3)
        mlp_shifted(name, f, c, b, 3);
}

int main(void)
{
    if (!device_there() || !rows_there()) {
        printf("no GPU of compute capability 9.0: skipped\n");
        return 77;
    }
#ifdef CUDA_EMULATED
    emulate_shared_most = 227 * 1024;
#endif
    const mlp_act berlu = {{"berlu", &cuda_rows_berlu, 0.25, 0.5, 0}, &cuda_mlp_berlu};
    const mlp_act negative = {{"negative berlu", &cuda_rows_berlu, -0.25, 0.5, 0}, &cuda_mlp_berlu};
    const mlp_act long_form = {{"long berlu", &cuda_rows_berlu, 80, 0.5, 0}, &cuda_mlp_berlu};
    const mlp_act gelu = {{"gelu", &cuda_rows_gelu, 0, 0, 0x1p-13}, &cuda_mlp_gelu};
    const mlp_act relu = {{"relu", &cuda_rows_relu, 0, 1e-300, 0}, &cuda_mlp_relu};
    if (cuda_mlp_softplus.forward)
        fail("softplus: a formula that is slower in an epilogue has a kernel");
    for (tensor_dtype dtype : {DTYPE_BF16, DTYPE_F32}) {
        mlp_run(gelu, {131, 384, dtype, 132, true, true, true, false});
        mlp_run(relu, {63, 256, dtype, 132, false, true, false, false});
        mlp_run(berlu, {1, 256, dtype, 132, true, false, false, true});
        mlp_run(negative, {300, 256, dtype, 1, true, true, true, true}); /* three tiles, the last in part */
        mlp_run(long_form, {67, 384, dtype, 2, true, true, false, false});
        mlp_run(gelu, {256, 256, dtype, 2, true, false, true, false});
        for (int64_t rows : {128, 129, 4225, 8500})
            for (const mlp_act *f : {&gelu, &relu, &berlu, &negative})
                if (large_shapes())
                    mlp_run(*f,
                            {rows, 768, dtype, rows == 8500 ? 20 : 132, true, rows != 129, rows > 128, f == &negative});
        if (large_shapes()) {
            mlp_run(gelu, {16640, 768, dtype, 132, true, true, true, false});
            mlp_run(gelu, {1000, 1536, dtype, 3, true, true, true, false});
        }
        printf("mlp, %s stream: %d wrong\n", dtype == DTYPE_BF16 ? "bf16" : "f32", faults);
    }
    return faults ? 1 : 0;
}
