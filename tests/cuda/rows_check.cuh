/* rows_check.cuh - products with an activation as their epilogue (cuda/rows.cu) against doubles.
 * SPDX-License-Identifier: MIT
 *
 * u is a product of numbers that bf16 holds, rounded once. y is compared with the activation of the
 * u that was written, du with product times slope: one rounding each, and GELU's estimate (2^-13;
 * where its slope passes through zero an eighth of that of the product). Sums over rows are in f32:
 * 1e-5 of the sum of what is added. Included by test_cuda_kernels.cu. */
#ifndef ROWS_CHECK_CUH
#define ROWS_CHECK_CUH

#include "cuda/rows.h"
#include "kernel_check.cuh"

extern "C" const rows_kernels cuda_rows_berlu, cuda_rows_gelu, cuda_rows_prelu;

static bool rows_there() /* compute capability 9.0 */
{
#ifdef CUDA_EMULATED
    return true;
#else
    cudaDeviceProp gpu;
    return cudaGetDeviceProperties(&gpu, 0) == cudaSuccess && gpu.major == 9 && gpu.minor == 0;
#endif
}

/* An activation in double. alpha and eps of BerLU; PReLU is it with an eps of nearly 0, GELU has 0. */
struct rows_act {
    const char *name;
    const rows_kernels *kernels;
    double alpha, eps, estimate; /* relative error of its elements */
};

struct rows_point {
    double value, slope, by[2];
};

static rows_point rows_point_of(const rows_act &f, double x)
{
    if (f.eps == 0) { /* GELU */
        double half = 0.5 * erfc(-x * sqrt(0.5));
        return {x * half, half + x * exp(-0.5 * x * x) / sqrt(2 * M_PI), {}};
    }
    double d = fmax(0, f.eps - fabs(x)), left = x < 0, bump = d * d / (4 * f.eps), jump = 1 - f.alpha;
    return {(left ? f.alpha * x : x) + jump * bump,
            left ? f.alpha + jump * d / (2 * f.eps) : 1 - jump * d / (2 * f.eps),
            {fmin(x, 0) - bump, d > 0 ? jump * (f.eps * f.eps - x * x) / (4 * f.eps * f.eps) : 0}};
}

/* out[r, j] = sum over i of a[r, i] w(i, j) + bias[j] */
static std::vector<double> rows_multiply(const test_tensor &a, const test_tensor &w, bool by_depth, const double *bias)
{
    int64_t depth = a.channels, columns = by_depth ? w.channels : w.rows;
    std::vector<double> out((size_t)(a.rows * columns));
    for (int64_t r = 0; r < a.rows; r++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = bias ? bias[j] : 0;
            for (int64_t i = 0; i < depth; i++)
                sum += a.value[r * depth + i] * w.value[by_depth ? i * columns + j : j * depth + i];
            out[r * columns + j] = sum;
        }
    return out;
}

static rows_job rows_job_of(const rows_act &f, int64_t rows, int64_t channels)
{
    rows_job job = {};
    job.act.rows = rows;
    job.act.channels = channels;
    job.act.scale = 1;
    job.act.degree = 2;
    job.act.own[0] = (float)f.alpha;
    job.act.own[1] = (float)f.eps;
    return job;
}

/* Twice, with equal bytes in every tensor that is named. */
static void rows_launch(const std::string &name, const rows_act &f, const rows_job &job,
                        const std::vector<test_tensor *> &outputs)
{
    runs_compared runs;
    for (int turn = 0; turn < 2; turn++) {
        if ((job.act.dx ? f.kernels->backward : f.kernels->forward)(&job, NULL) != BERLU_OK)
            fail(name + ": not launched");
        runs.add(name, outputs);
    }
}

/* y, from the u that was written: its rounding is no error of the activation. */
static void rows_values_compare(const std::string &name, const rows_act &f, const test_tensor &u, const test_tensor &y)
{
    std::vector<char> raw = u.raw(name);
    std::vector<double> want(y.size()), slack(y.size());
    for (size_t i = 0; i < y.size(); i++) {
        want[i] = rows_point_of(f, got_value(raw, DTYPE_BF16, i)).value;
        slack[i] = f.estimate * fabs(want[i]);
    }
    compare(name + " y", y.raw(name), want, DTYPE_BF16, slack.data());
}

static void rows_forward_case(const rows_act &f, int64_t rows, int64_t channels, bool keep, bool with_bias)
{
    std::string name = std::string(f.name) + " rows forward " + std::to_string(rows) + " x " + std::to_string(channels);
    test_tensor a(rows, ROWS_DEPTH, DTYPE_BF16), w(channels, ROWS_DEPTH, DTYPE_BF16), bias(1, channels, DTYPE_BF16);
    test_tensor u(rows, channels, DTYPE_BF16), y(rows, channels, DTYPE_BF16), alone(rows, channels, DTYPE_BF16);
    a.fill(0, 1);
    w.fill(0, 0.09);
    bias.fill(0, 0.3);
    rows_job job = rows_job_of(f, rows, channels);
    job.a = a.data();
    job.w = w.data();
    job.bias = with_bias ? bias.data() : NULL;
    job.u = u.data();
    job.act.y = y.data();
    rows_launch(name, f, job, {&u, &y});
    compare(name + " u", u.raw(name), rows_multiply(a, w, false, with_bias ? bias.value.data() : NULL), DTYPE_BF16,
            NULL);
    rows_values_compare(name, f, u, y);
    if (keep)
        return;
    job.u = NULL;
    job.act.y = alone.data();
    rows_launch(name + " alone", f, job, {&alone});
    if (alone.raw(name) != y.raw(name))
        fail(name + ": another y where u is not wanted");
}

/* The x of a value of BerLU with 0 < alpha: inside, y is a square of its slope. */
static double rows_inverse(const rows_act &f, double y)
{
    if (y >= f.eps || y <= -f.alpha * f.eps)
        return y < 0 ? y / f.alpha : y;
    double slope = sqrt(f.alpha + (1 - f.alpha) * y / f.eps);
    return 2 * f.eps * (slope - f.alpha) / (1 - f.alpha) - f.eps;
}

/* learn: how many parameters have gradients. from_output: u holds outputs, and all is that of the x
 * they belong to. */
static void rows_backward_case(const rows_act &f, int64_t rows, int64_t channels, int learn, bool again,
                               bool from_output = false)
{
    std::string name = std::string(f.name) + " rows backward " + (from_output ? "from y " : "") + std::to_string(rows) +
                       " x " + std::to_string(channels);
    test_tensor a(rows, ROWS_DEPTH, DTYPE_BF16), w(ROWS_DEPTH, channels, DTYPE_BF16), u(rows, channels, DTYPE_BF16);
    test_tensor du(rows, channels, DTYPE_BF16), y(rows, channels, DTYPE_BF16);
    a.fill(0, 1);
    w.fill(0, 0.09);
    u.fill(0.1, 1);
    rows_job job = rows_job_of(f, rows, channels);
    int64_t groups = (int64_t)rows_groups(&job.act), blocks = (int64_t)rows_blocks(&job.act);
    test_tensor sums(groups, channels, DTYPE_F32), by0(blocks, 2, DTYPE_F32), by1(blocks, 2, DTYPE_F32);
    job.a = a.data();
    job.w = w.data();
    job.act.x = u.data();
    job.act.from_output = from_output;
    job.act.dx = du.data();
    job.act.y = again ? y.data() : NULL;
    job.act.bias_sum = (float *)sums.data();
    std::vector<test_tensor *> outputs = {&du, &sums};
    if (again)
        outputs.push_back(&y);
    for (int p = 0; p < learn; p++) {
        job.act.layer_sum[p] = (double *)(p ? by1 : by0).data(); /* two floats are as long as a double */
        outputs.push_back(p ? &by1 : &by0);
    }
    rows_launch(name, f, job, outputs);

    std::vector<double> want = rows_multiply(a, w, true, NULL), slack(want.size()), column(channels), off(channels);
    double by[2] = {}, far[2] = {};
    for (size_t i = 0; i < want.size(); i++) {
        rows_point point = rows_point_of(f, from_output ? rows_inverse(f, u.value[i]) : u.value[i]);
        for (int p = 0; p < 2; p++)
            by[p] += want[i] * point.by[p], far[p] += fabs(want[i] * point.by[p]) + 1e-5;
        slack[i] = f.estimate * (fabs(want[i] * point.slope) + fabs(want[i]) / 8);
        want[i] *= point.slope;
        column[i % channels] += want[i];
        off[i % channels] += slack[i] + 1e-5 * fabs(want[i]);
    }
    compare(name + " du", du.raw(name), want, DTYPE_BF16, slack.data());
    if (again)
        rows_values_compare(name, f, u, y);
    std::vector<char> raw = sums.raw(name);
    for (int64_t i = 0; i < groups * channels; i++)
        column[i % channels] -= got_value(raw, DTYPE_F32, i);
    for (int64_t j = 0; j < channels; j++)
        if (!(fabs(column[j]) <= off[j] + 1e-5))
            fail(name + ": the sum of column " + std::to_string(j) + " is off by " + std::to_string(column[j]));
    for (int p = 0; p < learn; p++) {
        raw = (p ? by1 : by0).raw(name);
        for (int64_t i = 0; i < blocks; i++)
            by[p] -= ((const double *)raw.data())[i];
        if (!(fabs(by[p]) <= 1e-5 * far[p]))
            fail(name + ": the sum of parameter " + std::to_string(p) + " is off by " + std::to_string(by[p]));
    }
}

static void rows_all()
{
    const rows_act berlu = {"berlu", &cuda_rows_berlu, 0.25, 0.5, 0},
                   negative = {"negative berlu", &cuda_rows_berlu, -0.25, 0.5, 0},
                   long_form = {"long berlu", &cuda_rows_berlu, 80, 0.5, 0},
                   tiny = {"tiny berlu", &cuda_rows_berlu, 0x1p-52, 0.5, 0},
                   prelu = {"prelu", &cuda_rows_prelu, 0.25, 1e-300, 0},
                   flat = {"flat prelu", &cuda_rows_prelu, 0.001, 1e-300, 0};
    rows_forward_case(berlu, 130, 384, false, true);
    rows_forward_case(negative, 63, 192, true, false);
    rows_backward_case(negative, 67, 192, 2, true);
    rows_forward_case(long_form, 63, 192, true, false);
    rows_backward_case(berlu, 1, 192, 1, true);
    rows_backward_case(berlu, 130, 384, 2, false);
    rows_backward_case(long_form, 67, 192, 2, true);
    for (int learn = 0; learn <= 2; learn++)
        rows_backward_case(berlu, 67, 192, learn, false, true);
    rows_backward_case(long_form, 130, 384, 1, false, true);
    rows_backward_case(tiny, 67, 192, 2, false, true);
    rows_backward_case(prelu, 130, 384, 1, false, true);
    rows_backward_case(flat, 67, 192, 1, false, true);
    /* several tiles a pair: as many slices as there are processors, one block each */
    rows_backward_case(berlu, 5 * ROWS_TILE + 3, ROWS_PROCESSORS * ROWS_SLICE, 0, true);
#ifndef CUDA_EMULATED /* which compiles these kernels for berlu and prelu alone */
    const rows_act gelu = {"gelu", &cuda_rows_gelu, 0, 0, 0x1p-13};
    for (int64_t rows : {1, 200, 4225})
        for (int64_t channels : {192, 768}) {
            if (rows > 200 && !large_shapes())
                return;
            rows_forward_case(gelu, rows, channels, rows == 1, true);
            rows_backward_case(gelu, rows, channels, 0, rows != 1);
        }
    rows_forward_case(berlu, 8500, 768, false, true);
    rows_backward_case(berlu, 8500, 768, 1, true);
    rows_backward_case(berlu, 8500, 768, 1, false, true);
#endif
}

#endif
