/* test_cuda_weights.cu - weights computed from weights, and their gradients, against doubles. SPDX-License-Identifier: MIT
 *
 * Rows that no vector divides, shorter and longer than a block takes at once, with and without a bias; windows that are wider
 * and narrower than their tile, with and without padding and strides. Each case runs twice
 * with equal bytes, and nothing is written outside the outputs. Bounds: 1e-5 of the tensor's largest value for arithmetic in
 * f32, and half a unit of a bf16 output.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernels run on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda \
 *       tests/cuda/test_cuda_weights.cu src/cuda/weights.cu src/cuda/columns.cu -o test_cuda_weights */
#include "kernel_check.cuh"

static void forward_case(const std::string &name, int64_t outputs, int64_t inputs, bool bias, tensor_dtype type)
{
    test_tensor w(outputs, inputs, DTYPE_F32), gamma(1, outputs, DTYPE_F32), b(1, outputs, DTYPE_F32);
    test_tensor to(outputs, inputs, type), to_bias(1, outputs, type);
    w.fill(0, 0.2), gamma.fill(0, 0.5), b.fill(0, 1);
    std::vector<double> want(to.size()), want_bias(to_bias.size());
    for (size_t i = 0; i < want.size(); i++)
        want[i] = w.value[i] * gamma.value[i / inputs];
    for (size_t i = 0; i < want_bias.size(); i++)
        want_bias[i] = b.value[i] * gamma.value[i];
    call_runner c(OP_SCALE_WEIGHT);
    c.in(0, &w), c.in(1, &gamma), c.in(2, bias ? &b : NULL);
    c.out(0, &to), c.out(1, bias ? &to_bias : NULL);
    c.run(name, cuda_scale_weight, NULL, NULL);
    compare(name, to.raw(name), want, type, NULL);
    if (bias)
        compare(name + " bias", to_bias.raw(name), want_bias, type, NULL);
}

static void gradient_case(const std::string &name, int64_t outputs, int64_t inputs, bool bias)
{
    test_tensor d(outputs, inputs, DTYPE_F32), w(outputs, inputs, DTYPE_F32), gamma(1, outputs, DTYPE_F32);
    test_tensor dbias(1, outputs, DTYPE_F32), b(1, outputs, DTYPE_F32);
    test_tensor dw(outputs, inputs, DTYPE_F32), dgamma(1, outputs, DTYPE_F32), db(1, outputs, DTYPE_F32);
    d.fill(0.1, 1), w.fill(0.05, 0.2), gamma.fill(0, 0.5), dbias.fill(0, 3), b.fill(0, 1);
    std::vector<double> want(dw.size()), want_gamma(outputs), want_bias(outputs);
    for (size_t i = 0; i < want.size(); i++) {
        want[i] = d.value[i] * gamma.value[i / inputs];
        want_gamma[i / inputs] += d.value[i] * w.value[i];
    }
    for (int64_t o = 0; o < outputs; o++) {
        want_gamma[o] += bias ? dbias.value[o] * b.value[o] : 0;
        want_bias[o] = gamma.value[o] * dbias.value[o];
    }
    call_runner c(OP_SCALE_WEIGHT_GRAD);
    c.in(0, &d), c.in(1, &w), c.in(2, &gamma), c.in(3, bias ? &dbias : NULL), c.in(4, bias ? &b : NULL);
    c.out(0, &dw), c.out(1, &dgamma), c.out(2, bias ? &db : NULL);
    c.run(name, cuda_scale_weight_grad, NULL, NULL);
    compare(name, dw.raw(name), want, DTYPE_F32, NULL);
    compare(name + " gamma", dgamma.raw(name), want_gamma, DTYPE_F32, NULL);
    if (bias)
        compare(name + " bias", db.raw(name), want_bias, DTYPE_F32, NULL);
}

struct tile_shape {
    int outputs, channels, kernel, stride, padding, tile;
    int side() const
    {
        return (tile + 2 * padding - kernel) / stride + 1;
    }
};

struct weight_tensor : test_tensor {
    weight_tensor(int outputs, int channels, int side, tensor_dtype type)
        : test_tensor(outputs * channels * side, side, type)
    {
        info.rank = 4;
        info.size[0] = outputs, info.size[1] = channels, info.size[2] = info.size[3] = side;
    }
};

/* Calls f(element of W, element of W') for every pair that is the same number. */
template <typename F> static void spread_each(const tile_shape &t, const F &f)
{
    for (int place = 0; place < t.side() * t.side(); place++)
        for (int i = 0; i < t.outputs * t.channels * t.kernel * t.kernel; i++) {
            int x = place % t.side() * t.stride - t.padding + i % t.kernel;
            int y = place / t.side() * t.stride - t.padding + i / t.kernel % t.kernel;
            int row = place * t.outputs * t.channels + i / (t.kernel * t.kernel);
            if (x >= 0 && x < t.tile && y >= 0 && y < t.tile)
                f(i, (row * t.tile + y) * t.tile + x);
        }
}

static void spread_case(const tile_shape &t, bool bias, tensor_dtype type)
{
    char name[120];
    snprintf(name, sizeof name, "%d x %d windows of %d, stride %d, padding %d, in %d%s%s", t.outputs, t.channels,
             t.kernel, t.stride, t.padding, t.tile, bias ? ", bias" : "", type == DTYPE_BF16 ? ", bf16" : "");
    int places = t.side() * t.side();
    weight_tensor w(t.outputs, t.channels, t.kernel, DTYPE_F32), to(places * t.outputs, t.channels, t.tile, type);
    weight_tensor d(places * t.outputs, t.channels, t.tile, DTYPE_F32), dw(t.outputs, t.channels, t.kernel, DTYPE_F32);
    test_tensor b(1, t.outputs, DTYPE_F32), to_bias(1, places * t.outputs, type);
    test_tensor dbias(1, places * t.outputs, DTYPE_F32), db(1, t.outputs, DTYPE_F32);
    w.fill(0, 0.2), b.fill(0, 1), d.fill(0.1, 1), dbias.fill(0.1, 1);
    std::vector<double> want(to.size()), want_bias(to_bias.size()), want_d(dw.size()), want_db(db.size());
    spread_each(t, [&](int small, int large) {
        want[large] = w.value[small];
        want_d[small] += d.value[large];
    });
    for (size_t i = 0; i < want_bias.size(); i++) {
        want_bias[i] = b.value[i % t.outputs];
        want_db[i % t.outputs] += dbias.value[i];
    }
    call_runner c(OP_SPREAD_WEIGHT), g(OP_SPREAD_WEIGHT_GRAD);
    c.attr.unfold = g.attr.unfold = unfold_spec{t.kernel, t.stride, t.padding, t.tile, 0};
    c.in(0, &w), c.in(1, bias ? &b : NULL), c.out(0, &to), c.out(1, bias ? &to_bias : NULL);
    g.in(0, &d), g.in(1, bias ? &dbias : NULL), g.out(0, &dw), g.out(1, bias ? &db : NULL);
    c.run(name, cuda_spread_weight, NULL, NULL);
    g.run(name, cuda_spread_weight_grad, NULL, NULL);
    compare(name, to.raw(name), want, type, NULL);
    compare(std::string(name) + " gradient", dw.raw(name), want_d, DTYPE_F32, NULL);
    if (bias) {
        compare(std::string(name) + " bias", to_bias.raw(name), want_bias, type, NULL);
        compare(std::string(name) + " bias gradient", db.raw(name), want_db, DTYPE_F32, NULL);
    }
}

static void join_case(int64_t first, int64_t second, int64_t inputs, tensor_dtype type)
{
    std::string name = "join of " + std::to_string(first) + " and " + std::to_string(second) + " rows";
    test_tensor a(first, inputs, DTYPE_F32), b(second, inputs, DTYPE_F32), to(first + second, inputs, type);
    test_tensor d(first + second, inputs, DTYPE_F32), da(first, inputs, DTYPE_F32), db(second, inputs, DTYPE_F32);
    a.fill(0, 1), b.fill(0, 1), d.fill(0, 1);
    std::vector<double> want = a.value;
    want.insert(want.end(), b.value.begin(), b.value.end());
    call_runner c(OP_JOIN_WEIGHT), g(OP_JOIN_WEIGHT_GRAD);
    c.in(0, &a), c.in(1, &b), c.out(0, &to);
    g.in(0, &d), g.out(0, &da), g.out(1, &db);
    c.run(name, cuda_join_weight, NULL, NULL);
    g.run(name, cuda_join_weight_grad, NULL, NULL);
    compare(name, to.raw(name), want, type, NULL);
    compare(name + ", first gradient", da.raw(name), {d.value.begin(), d.value.begin() + a.size()}, DTYPE_F32, NULL);
    compare(name + ", second gradient", db.raw(name), {d.value.begin() + a.size(), d.value.end()}, DTYPE_F32, NULL);
}

int main(void)
{
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    const int64_t shapes[][2] = {{1, 1}, {5, 7}, {7, 12}, {96, 384}, {3, 1030}, {4, 1028}, {2, 3072}};
    for (const int64_t *s : shapes)
        for (int bias = 0; bias < 2; bias++) {
            char text[80];
            snprintf(text, sizeof text, "%lld x %lld%s", (long long)s[0], (long long)s[1], bias ? ", bias" : "");
            forward_case(std::string("weights, f32, ") + text, s[0], s[1], bias, DTYPE_F32);
            forward_case(std::string("weights, bf16, ") + text, s[0], s[1], bias, DTYPE_BF16);
            gradient_case(std::string("gradients, ") + text, s[0], s[1], bias);
        }
    const tile_shape tiles[] = {
        {24, 3, 7, 1, 3, 4}, {3, 3, 7, 2, 3, 4}, {5, 2, 3, 1, 1, 3}, {4, 1, 3, 2, 0, 7}, {1, 1, 1, 1, 0, 1}};
    for (const tile_shape &t : tiles)
        for (int bias = 0; bias < 2; bias++) {
            spread_case(t, bias, DTYPE_F32);
            spread_case(t, bias, DTYPE_BF16);
        }
    join_case(48, 24, 24, DTYPE_BF16);
    join_case(3, 5, 7, DTYPE_F32);
    printf("weights: %d wrong\n", faults);
    return faults ? 1 : 0;
}
