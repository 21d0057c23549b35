/* test_cuda_planes.cu - parameters per channel of NCHW arrays against the library on the CPU. SPDX-License-Identifier: MIT
 *
 * BerLU with a slope, a width, or both per channel: planes shorter than a warp, longer than a run, and of one element more; every
 * op, every dtype, forward and back from the output. Values and dx have the bits of berlu_act_run() with `inner`; partial
 * sums, joined in double, are within the bound of their additions of the sum in double. Nothing is written outside.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernel runs on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DACT_FORMULA='"act/formulas/berlu.h"' -Isrc -Iinclude -Itests/cuda \
 *       tests/cuda/test_cuda_planes.cu -Lbuild -lberlu -o test_cuda_planes */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda/prim.cuh" /* the emulation */

#include "act/cuda/kernels.h"
#include "act/cuda/storage.cuh"
#include ACT_FORMULA

#include "act/formulas/full.h"

#ifdef CUDA_EMULATED
#include "base/half.c" /* the scalar words convert by it; libberlu does not show it */
#endif

namespace kernel
{

#include "act/cuda/element.cuh"

constexpr int THREADS = 256;

#include "act/cuda/planes.cuh"

} // namespace kernel

#define CHECK(CONDITION)                                                                                               \
    do                                                                                                                 \
        if (!(CONDITION)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #CONDITION, berlu_last_error());                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    while (0)

/* Memory that both sides see, filled with a pattern that nothing computed has. */
static void *memory(size_t bytes)
{
    void *p = nullptr;
#ifdef CUDA_EMULATED
    p = malloc(bytes + 64);
#else
    CHECK(cudaMallocManaged(&p, bytes + 64) == cudaSuccess);
#endif
    CHECK(p);
    return memset(p, 0x5a, bytes + 64);
}

static void forget(void *p)
{
#ifdef CUDA_EMULATED
    free(p);
#else
    cudaFree(p);
#endif
}

static void launch(const cuda_job &job)
{
#ifdef CUDA_EMULATED
    emulate_launch(kernel::plane_grid(&job), kernel::THREADS, 0, [&] { kernel::planes(job); });
#else
    kernel::planes<<<kernel::plane_grid(&job), kernel::THREADS>>>(job);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
#endif
}

struct shape {
    size_t rows, channels, inner;
    size_t count() const
    {
        return rows * channels * inner;
    }
};

struct arrays {
    void *x, *dy, *y, *dx, *want_y, *want_dx;
    float *alpha, *eps;
    size_t bytes;
};

static float noise(uint32_t i)
{
    i = (i ^ 61) ^ i >> 16, i *= 9, i ^= i >> 4, i *= 0x27d4eb2d, i ^= i >> 15;
    return (float)(i & 0xffff) / 16384.0f - 2.0f;
}

static arrays arrays_of(const shape &s, berlu_dtype dtype)
{
    arrays a = {};
    a.bytes = s.count() * berlu_dtype_size(dtype);
    for (void **p : {&a.x, &a.dy, &a.y, &a.dx, &a.want_y, &a.want_dx})
        *p = memory(a.bytes);
    for (float **p : {&a.alpha, &a.eps})
        *p = (float *)memory(s.channels * sizeof(float));
    std::vector<float> x(s.count()), dy(s.count());
    for (size_t i = 0; i < s.count(); i++)
        x[i] = noise((uint32_t)i), dy[i] = noise((uint32_t)i + 77777);
    CHECK(berlu_convert(dtype, a.x, BERLU_F32, x.data(), s.count()) == BERLU_OK);
    CHECK(berlu_convert(dtype, a.dy, BERLU_F32, dy.data(), s.count()) == BERLU_OK);
    for (size_t c = 0; c < s.channels; c++) {
        a.alpha[c] = 0.05f + 0.9f * (float)c / (float)s.channels;
        a.eps[c] = 0.1f + (float)(c % 5);
    }
    return a;
}

static void arrays_free(const arrays &a)
{
    for (void *p : {a.x, a.dy, a.y, a.dx, a.want_y, a.want_dx, (void *)a.alpha, (void *)a.eps})
        forget(p);
}

/* The sums in double of dy times the parameter's slope, and of their sizes, per channel. */
static void exact_sums(const berlu_act *act, const berlu_act_call &call, const shape &s, int p,
                       std::vector<double> &sum, std::vector<double> &size)
{
    std::vector<unsigned char> space(1 << 20);
    std::vector<float> slopes(s.count()), x(s.count()), dy(s.count());
    berlu_act_call ask = call;
    ask.dtype = BERLU_F32, ask.x = x.data(), ask.y = slopes.data(), ask.param_index = p, ask.dy = nullptr;
    ask.dx = nullptr, ask.workspace = space.data(), ask.workspace_bytes = space.size();
    for (int q = 0; q < BERLU_ACT_PARAMS; q++)
        ask.param[q].grad = nullptr;
    CHECK(berlu_convert(BERLU_F32, x.data(), call.dtype, call.x, s.count()) == BERLU_OK);
    CHECK(berlu_convert(BERLU_F32, dy.data(), call.dtype, call.dy, s.count()) == BERLU_OK);
    CHECK(berlu_act_run(act, BERLU_ACT_PARAM_SLOPE, &ask, nullptr) == BERLU_OK);
    sum.assign(s.channels, 0), size.assign(s.channels, 0);
    for (size_t i = 0; i < s.count(); i++) {
        double term = (double)dy[i] * slopes[i];
        sum[i / s.inner % s.channels] += term, size[i / s.inner % s.channels] += fabs(term);
    }
}

static cuda_job job_of(const berlu_act_call &call, berlu_act_op op, const shape &s)
{
    bool back = op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    cuda_job job = {};
    job.op = op, job.dtype = call.dtype, job.plain = 1, job.scale = 1, job.param_index = call.param_index;
    job.rows = s.rows, job.channels = s.channels, job.inner = s.inner, job.count = s.count(), job.degree = 2;
    job.x = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? nullptr : call.x;
    job.y_in = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? call.y : nullptr;
    job.y = back ? nullptr : call.y, job.dy = call.dy, job.dx = call.dx;
    const float own[] = {0.25f, 0.5f};
    for (int p = 0; p < kernel::PARAMS; p++) {
        job.param[p] = call.param[p].value, job.per_channel[p] = call.param[p].stride != 0;
        job.own[p] = own[p];
    }
    return job;
}

/* Runs a backward on both sides. Which parameters have a value per channel is in the call. */
static void check_backward(const berlu_act *act, berlu_act_op op, berlu_act_call call, const arrays &a, const shape &s)
{
    std::vector<unsigned char> space(1 << 22);
    std::vector<float> grads(2 * s.channels);
    cuda_job job = job_of(call, op, s);
    const size_t runs = cuda_runs(&job);
    float *channel[2];
    double *layer[2];
    for (int p = 0; p < 2; p++) {
        channel[p] = (float *)memory(s.rows * runs * s.channels * sizeof(float));
        layer[p] = (double *)memory(kernel::plane_items(&job) * sizeof(double));
        job.channel_sum[p] = call.param[p].stride ? channel[p] : nullptr;
        job.layer_sum[p] = call.param[p].value && !call.param[p].stride ? layer[p] : nullptr;
        call.param[p].grad = call.param[p].value ? grads.data() + p * s.channels : nullptr;
    }
    launch(job);
    call.dx = a.want_dx, call.workspace = space.data(), call.workspace_bytes = space.size();
    CHECK(berlu_act_run(act, op, &call, nullptr) == BERLU_OK);
    CHECK(memcmp(a.dx, a.want_dx, a.bytes + 64) == 0);
    call.x = a.x;
    for (int p = 0; p < 2 && op == BERLU_ACT_BACKWARD; p++) {
        std::vector<double> want, size;
        if (!call.param[p].value)
            continue;
        exact_sums(act, call, s, p, want, size);
        double all = 0, all_size = 0, got_all = 0, unit = ldexp(CUDA_RUN / 32 + 8, -24);
        for (size_t i = 0; job.layer_sum[p] && i < kernel::plane_items(&job); i++)
            got_all += layer[p][i];
        for (size_t c = 0; c < s.channels; c++) {
            double got = 0;
            for (size_t b = 0; b < s.rows * runs; b++)
                got += channel[p][b * s.channels + c];
            CHECK(!job.channel_sum[p] || fabs(got - want[c]) <= unit * size[c]);
            all += want[c], all_size += size[c];
        }
        CHECK(!job.layer_sum[p] || fabs(got_all - all) <= unit * all_size);
    }
    for (int p = 0; p < 2; p++)
        forget(channel[p]), forget(layer[p]);
}

static void check_maps(const berlu_act *act, berlu_act_call call, const arrays &a, const shape &s)
{
    std::vector<unsigned char> space(1 << 22);
    for (berlu_act_op op : {BERLU_ACT_SLOPE, BERLU_ACT_SECOND, BERLU_ACT_PARAM_SLOPE, BERLU_ACT_FORWARD}) {
        call.param_index = op == BERLU_ACT_PARAM_SLOPE, call.y = a.y, call.dy = nullptr, call.dx = nullptr;
        launch(job_of(call, op, s));
        call.y = a.want_y, call.workspace = space.data(), call.workspace_bytes = space.size();
        CHECK(berlu_act_run(act, op, &call, nullptr) == BERLU_OK);
        CHECK(memcmp(a.y, a.want_y, a.bytes + 64) == 0);
    }
}

static void check(const berlu_act *act, const shape &s, berlu_dtype dtype, int alpha, int eps)
{
    arrays a = arrays_of(s, dtype);
    berlu_act_call call = {};
    call.dtype = dtype, call.rows = s.rows, call.channels = s.channels, call.inner = s.inner, call.x = a.x;
    if (alpha)
        call.param[0].value = a.alpha, call.param[0].stride = alpha == 2;
    if (eps)
        call.param[1].value = a.eps, call.param[1].stride = eps == 2;
    check_maps(act, call, a, s); /* leaves the values in y */
    call.dy = a.dy, call.dx = a.dx;
    check_backward(act, BERLU_ACT_BACKWARD, call, a, s);
    call.y = a.y;
    check_backward(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, call, a, s);
    arrays_free(a);
}

int main()
{
#ifndef CUDA_EMULATED
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        fprintf(stderr, "no GPU: skipped\n");
        return 77;
    }
#endif
    berlu_act *act;
    CHECK(berlu_act_make(&act, "berlu:alpha=0.25,eps=0.5") == BERLU_OK);
    const shape shapes[] = {{3, 5, 2}, {2, 3, 49}, {1, 7, 33}, {2, 2, CUDA_RUN + 1}, {1, 300, 4}};
    for (const shape &s : shapes)
        for (berlu_dtype dtype : {BERLU_F32, BERLU_BF16, BERLU_F16}) {
            check(act, s, dtype, 2, 0);
            check(act, s, dtype, 2, 1);
            check(act, s, dtype, 1, 2);
            check(act, s, dtype, 2, 2);
        }
    berlu_act_free(act);
    return 0;
}
