/* linear_norm_check.cuh - a layer, residual and norm in one kernel (cuda/linear_norm.cu) against
 * doubles. SPDX-License-Identifier: MIT
 *
 * x is a product of numbers that bf16 holds, and two more of them, rounded once. Statistics and y
 * are compared with those of the x that was written: its rounding is no error of the norm, which is
 * f32 arithmetic and, in y, one rounding. Included by test_cuda_kernels.cu. */
#ifndef LINEAR_NORM_CHECK_CUH
#define LINEAR_NORM_CHECK_CUH

#include "cuda/linear_norm.h"
#include "rows_check.cuh"

struct linear_norm_case {
    int64_t rows;
    tensor_dtype dtype; /* of the stream */
    int blocks;
    bool bias, kept, in_place;
};

/* Twice from the same residual, with equal bytes. */
static void linear_norm_launch(const std::string &name, const linear_norm_job &job, test_tensor &residual,
                               const std::vector<test_tensor *> &outputs)
{
    runs_compared runs;
    for (int turn = 0; turn < 2; turn++) {
        residual.put();
        cuda_linear_norm_rows(&job, NULL);
        runs.add(name, outputs);
    }
}

/* Statistics and y of the x that was written. */
static void linear_norm_compare(const std::string &name, const test_tensor &x, const test_tensor &weight,
                                const test_tensor &shift, const test_tensor &y, const test_tensor *stat, double eps)
{
    std::vector<char> raw = x.raw(name);
    std::vector<double> want(y.size()), statistics(2 * (size_t)x.rows);
    int64_t n = x.channels;
    for (int64_t r = 0; r < x.rows; r++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++)
            mean += got_value(raw, x.dtype, r * n + i) / n;
        for (int64_t i = 0; i < n; i++)
            square += pow(got_value(raw, x.dtype, r * n + i) - mean, 2) / n;
        statistics[2 * r] = mean;
        statistics[2 * r + 1] = 1 / sqrt(square + eps);
        for (int64_t i = 0; i < n; i++)
            want[r * n + i] =
                (got_value(raw, x.dtype, r * n + i) - mean) * statistics[2 * r + 1] * weight.value[i] + shift.value[i];
    }
    compare(name + " y", y.raw(name), want, DTYPE_BF16, NULL);
    if (stat)
        compare(name + " statistics", stat->raw(name), statistics, DTYPE_F32, NULL);
}

static void linear_norm_run(const linear_norm_case &c)
{
    const int64_t width = LINEAR_NORM_WIDTH;
    std::string name = "linear, residual and norm, " + std::to_string(c.rows) + " rows, " + std::to_string(c.blocks) +
                       " blocks, " + (c.dtype == DTYPE_BF16 ? "bf16" : "f32");
    test_tensor a(c.rows, width, DTYPE_BF16), w(width, width, DTYPE_BF16), bias(1, width, DTYPE_BF16);
    test_tensor residual(c.rows, width, c.dtype), x(c.rows, width, c.dtype), y(c.rows, width, DTYPE_BF16);
    test_tensor weight(1, width, DTYPE_F32), shift(1, width, DTYPE_F32), stat(c.rows, 2, DTYPE_F32);
    a.fill(0, 1);
    w.fill(0, 0.09);
    bias.fill(0.2, 0.3);
    residual.fill(1, 2);
    weight.fill(1, 0.3);
    shift.fill(0, 0.5);
    test_tensor *to = c.in_place ? &residual : &x;
    linear_norm_job job = {};
    job.a = a.data(), job.w = w.data(), job.bias = c.bias ? bias.data() : NULL, job.residual = residual.data();
    job.weight = weight.data(), job.shift = shift.data();
    job.x = to->data(), job.y = y.data(), job.statistics = c.kept ? stat.data() : NULL;
    job.rows = (int)c.rows, job.f32 = c.dtype == DTYPE_F32, job.blocks = c.blocks, job.eps = 1e-6f;
    std::vector<double> want = rows_multiply(a, w, false, c.bias ? bias.value.data() : NULL);
    for (size_t i = 0; i < want.size(); i++)
        want[i] += residual.value[i];
    std::vector<test_tensor *> outputs = {to, &y};
    if (c.kept)
        outputs.push_back(&stat);
    linear_norm_launch(name, job, residual, outputs);
    compare(name + " x", to->raw(name), want, c.dtype, NULL);
    linear_norm_compare(name, *to, weight, shift, y, c.kept ? &stat : NULL, 1e-6);
}

static void linear_norm_all()
{
    for (tensor_dtype dtype : {DTYPE_BF16, DTYPE_F32}) {
        linear_norm_run({1, dtype, 132, true, true, false});
        linear_norm_run({63, dtype, 132, false, false, true});
        linear_norm_run({3 * ROWS_TILE + 9, dtype, 132, true, true, true}); /* a tile a block */
        linear_norm_run({7 * ROWS_TILE + 17, dtype, 1, true, true, true});  /* four, the last in part */
        linear_norm_run({5 * ROWS_TILE, dtype, 2, true, false, false});
        if (!large_shapes())
            continue;
        linear_norm_run({16640, dtype, 132, true, true, true});
        linear_norm_run({8500, dtype, 20, true, true, true});
    }
}

#endif
