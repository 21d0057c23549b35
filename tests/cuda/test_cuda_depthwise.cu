/* test_cuda_depthwise.cu - depthwise convolution and its gradients against doubles. SPDX-License-Identifier: MIT
 *
 * Maps that no tile divides, windows with a kernel of their own and one without, channels that fill no warp or no vector,
 * more images than a block holds, maps of several regions, and every mix of dtypes. Each case runs twice with equal bytes,
 * and nothing is written outside the outputs. Bounds: 1e-5 of the tensor's largest value for arithmetic in f32, and half a
 * unit of a bf16 output.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernels run on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda tests/cuda/test_cuda_depthwise.cu \
 *       src/cuda/depthwise.cu src/cuda/columns.cu -o test_cuda_depthwise */
#include "kernel_check.cuh"

struct shape {
    int64_t images, height, width, channels, window;
};

/* Calls f(index in the output map, index in the input map, element of the window) for every term of
 * every output. */
template <typename F> static void terms_each(const shape &s, const F &f)
{
    int64_t half = s.window / 2;
    for (int64_t i = 0; i < s.images * s.height * s.width * s.channels; i++) {
        int64_t c = i % s.channels, x = i / s.channels % s.width, y = i / s.channels / s.width % s.height;
        for (int64_t k = 0; k < s.window * s.window; k++) {
            int64_t sy = y + k / s.window - half, sx = x + k % s.window - half;
            if (sy >= 0 && sy < s.height && sx >= 0 && sx < s.width)
                f(i, i + ((sy - y) * s.width + sx - x) * s.channels, c * s.window * s.window + k);
        }
    }
}

struct depthwise_tensor : test_tensor {
    depthwise_tensor(const shape &s, tensor_dtype type) : test_tensor(s.images * s.height * s.width, s.channels, type)
    {
        info.rank = 3;
        info.size[0] = s.height, info.size[1] = s.width, info.size[2] = s.channels;
    }
};

struct weight_tensor : test_tensor {
    weight_tensor(const shape &s) : test_tensor(s.channels, s.window * s.window, DTYPE_F32)
    {
        info.rank = 4;
        info.size[0] = s.channels, info.size[1] = 1, info.size[2] = info.size[3] = s.window;
    }
};

static void forward_case(const shape &s, const std::string &name, tensor_dtype tx, tensor_dtype ty)
{
    depthwise_tensor x(s, tx), y(s, ty);
    weight_tensor w(s);
    test_tensor bias(1, s.channels, DTYPE_F32);
    x.fill(0.2, 1), w.fill(0, 0.3), bias.fill(0, 0.5);
    std::vector<double> want(y.size());
    for (size_t i = 0; i < want.size(); i++)
        want[i] = bias.value[i % s.channels];
    terms_each(s, [&](int64_t out, int64_t in, int64_t k) { want[out] += x.value[in] * w.value[k]; });
    call_runner c(OP_DEPTHWISE);
    c.call.batch = (size_t)s.images;
    c.in(0, &x), c.in(1, &w), c.in(2, &bias), c.out(0, &y);
    c.run(name, cuda_depthwise, NULL, NULL);
    compare(name, y.raw(name), want, ty, NULL);
}

static void dx_case(const shape &s, const std::string &name, tensor_dtype td, tensor_dtype tx, bool in_place)
{
    depthwise_tensor dy(s, td), residual(s, tx), dx(s, tx);
    weight_tensor w(s);
    dy.fill(0.1, 1), w.fill(0, 0.3), residual.fill(0, 1);
    std::vector<double> want = residual.value;
    terms_each(s, [&](int64_t out, int64_t in, int64_t k) { want[in] += dy.value[out] * w.value[k]; });
    call_runner c(OP_DEPTHWISE_DX);
    c.call.batch = (size_t)s.images;
    c.in(0, &dy), c.in(1, &w), c.in(2, &residual), c.out(0, in_place ? &residual : &dx);
    c.run(name, cuda_depthwise_dx, NULL, in_place ? &residual : NULL);
    compare(name, (in_place ? residual : dx).raw(name), want, tx, NULL);
}

static void dw_case(const shape &s, const std::string &name, tensor_dtype td, tensor_dtype tx)
{
    depthwise_tensor dy(s, td), x(s, tx);
    weight_tensor dw(s);
    test_tensor dbias(1, s.channels, DTYPE_F32);
    dy.fill(0.1, 1), x.fill(0.2, 1);
    std::vector<double> want(dw.size()), want_bias(dbias.size());
    terms_each(s, [&](int64_t out, int64_t in, int64_t k) { want[k] += dy.value[out] * x.value[in]; });
    for (size_t i = 0; i < dy.size(); i++)
        want_bias[i % s.channels] += dy.value[i];
    call_runner c(OP_DEPTHWISE_DW);
    c.call.batch = (size_t)s.images;
    c.in(0, &dy), c.in(1, &x), c.out(0, &dw), c.out(1, &dbias);
    c.run(name, cuda_depthwise_dw, cuda_depthwise_dw_workspace, NULL);
    compare(name, dw.raw(name), want, DTYPE_F32, NULL);
    compare(name + " bias", dbias.raw(name), want_bias, DTYPE_F32, NULL);
}

static void shape_check(const shape &s)
{
    const tensor_dtype types[] = {DTYPE_F32, DTYPE_BF16};
    for (int mix = 0; mix < 4; mix++) {
        char text[120];
        snprintf(text, sizeof text, "%lld maps of %lld x %lld x %lld, window %lld, %s and %s", (long long)s.images,
                 (long long)s.height, (long long)s.width, (long long)s.channels, (long long)s.window,
                 mix / 2 ? "bf16" : "f32", mix % 2 ? "bf16" : "f32");
        forward_case(s, std::string("forward, ") + text, types[mix / 2], types[mix % 2]);
        dx_case(s, std::string("dx, ") + text, types[mix / 2], types[mix % 2], mix == 3);
        dw_case(s, std::string("dw, ") + text, types[mix / 2], types[mix % 2]);
    }
}

int main(void)
{
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    const shape shapes[] = {{3, 8, 8, 40, 7},  {1, 5, 11, 33, 5}, {2, 4, 4, 64, 7},  {5, 3, 2, 7, 3},
                            {1, 34, 37, 8, 7}, {2, 6, 6, 9, 9},   {33, 2, 2, 32, 7}, {1, 1, 1, 4, 1}};
    for (const shape &s : shapes)
        shape_check(s);
    const shape large[] = {
        {37, 32, 32, 96, 7}, {50, 16, 16, 192, 7}, {41, 8, 8, 384, 7}, {130, 4, 4, 768, 7}, {3, 56, 56, 96, 7}};
    if (large_shapes())
        for (const shape &s : large)
            shape_check(s);
    printf("depthwise: %d wrong\n", faults);
    return faults ? 1 : 0;
}
