/* cuda_kernels.cu - times of the norm, attention and depthwise kernels at the shapes of our models.
 * SPDX-License-Identifier: MIT
 *
 * A kernel runs 50 times in one captured graph; the figure is the median of 15 replays, divided by
 * 50. Beside it stand the bytes that the operands have, what that makes per second, and the share
 * of the floor: the time that those bytes take at 4.0 TB/s. "apart" takes other buffers each time,
 * so that nothing is found in L2; "same" takes the same ones, as a kernel finds its inputs when the
 * one before it has just written them. A depthwise convolution is bound by its multiply-adds: its
 * share of the floor also counts 49 of them per element at 29.6e12 a second.
 *
 * By hand:
 *   nvcc -O3 -std=c++20 -gencode=arch=compute_90a,code=sm_90a --fmad=false -DKERNELS_ALONE -Isrc \
 *       -Iinclude bench/cuda_kernels.cu -o cuda_kernels \
 *       src/cuda/{norm,attention,attention_wide,depthwise,columns}.cu
 *   ./cuda_kernels [norm|grad|attention|tokens|wide|depthwise] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "cuda/norm_ahead.cuh"

#ifdef KERNELS_ALONE
extern "C" void cuda_launched(const op_call *c)
{
    if (cudaGetLastError() != cudaSuccess)
        cuda_device_of(c)->failed = BERLU_ERR_DEVICE;
}
extern "C" void cuda_end_add(const op_call *c, const cuda_end *end)
{
    if (end->to && end->columns)
        cuda_ends_launch(cuda_device_of(c), end, 1);
}
#endif

enum { REPEATS = 50, REPLAYS = 15, SETS = 5 };

static void must(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(e));
    exit(1);
}

/* Values in -1 .. 1 that differ from element to element, and between arrays. */
static __global__ void fill(void *data, int bf16, size_t count, uint32_t array_number)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        uint32_t z = ((uint32_t)i + array_number * 40503u) * 2654435761u;
        z = (z ^ z >> 15) * 2246822519u;
        store(array{data, bf16}, (int64_t)i, (float)(z >> 8) * (1.0f / 8388608.0f) - 1.0f);
    }
}

/* ---- one call with its buffers --------------------------------------------------------------- */

struct bench_call {
    op_call call = {};
    op_attr attr = {};
    tensor_info info[NODE_INPUTS + NODE_OUTPUTS] = {};
    std::vector<void *> memory;
    size_t bytes = 0;
    double macs = 0; /* where arithmetic may be the limit */

    op_operand operand(int slot, int64_t rows, int64_t channels, tensor_dtype dtype, int64_t tokens)
    {
        size_t count = (size_t)(rows * channels), size = count * (dtype == DTYPE_BF16 ? 2 : 4);
        op_operand o = {};
        must(cudaMalloc(&o.data, size));
        memory.push_back(o.data);
        fill<<<1024, 256>>>(o.data, dtype == DTYPE_BF16, count, (uint32_t)slot);
        info[slot].rank = 2;
        info[slot].size[0] = tokens;
        info[slot].size[1] = channels;
        o.rows = rows, o.channels = channels, o.dtype = dtype, o.info = &info[slot];
        bytes += size;
        return o;
    }
    void in(int i, int64_t rows, int64_t channels, tensor_dtype dtype, int64_t tokens)
    {
        call.in[i] = operand(i, rows, channels, dtype, tokens);
    }
    void out(int i, int64_t rows, int64_t channels, tensor_dtype dtype)
    {
        call.out[i] = operand(NODE_INPUTS + i, rows, channels, dtype, 1);
    }
    void workspace(size_t size)
    {
        if (size) {
            must(cudaMalloc(&call.workspace, size));
            memory.push_back(call.workspace);
        }
    }
    ~bench_call()
    {
        for (void *p : memory)
            cudaFree(p);
    }
};

/* ---- timing ---------------------------------------------------------------------------------- */

static double median_seconds(cudaGraphExec_t graph, cudaStream_t stream)
{
    cudaEvent_t from, to;
    must(cudaEventCreate(&from));
    must(cudaEventCreate(&to));
    std::vector<float> ms;
    for (int i = 0; i < REPLAYS + 3; i++) { /* the first three warm up */
        float t;
        must(cudaEventRecord(from, stream));
        must(cudaGraphLaunch(graph, stream));
        must(cudaEventRecord(to, stream));
        must(cudaEventSynchronize(to));
        must(cudaEventElapsedTime(&t, from, to));
        if (i >= 3)
            ms.push_back(t);
    }
    must(cudaEventDestroy(from));
    must(cudaEventDestroy(to));
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2] * 1e-3 / (double)REPEATS;
}

static double time_calls(bench_call *const *calls, int sets, op_kernel kernel, cuda_device *dev)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    for (int i = 0; i < sets; i++) /* attributes of kernels are set outside the capture */
        kernel(&calls[i]->call);
    must(cudaStreamBeginCapture(dev->stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < REPEATS; i++)
        kernel(&calls[i % sets]->call);
    must(cudaStreamEndCapture(dev->stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    double seconds = median_seconds(exec, dev->stream);
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
    if (dev->failed != BERLU_OK) {
        fprintf(stderr, "a kernel was not launched\n");
        exit(1);
    }
    return seconds;
}

/* `make` fills a call; `anchor` is the time to beat in microseconds, 0 where there is none. */
template <typename F>
static void bench(const char *name, double anchor, op_kernel kernel, op_workspace workspace, cuda_device *dev, F make)
{
    std::vector<bench_call *> sets;
    for (int i = 0; i < SETS; i++) {
        bench_call *b = new bench_call;
        b->call.attr = &b->attr;
        b->call.device = (device *)dev;
        make(b);
        b->workspace(workspace ? workspace(&b->call) : 0);
        sets.push_back(b);
    }
    must(cudaDeviceSynchronize());
    double same = time_calls(sets.data(), 1, kernel, dev), apart = time_calls(sets.data(), SETS, kernel, dev);
    double bytes = (double)sets[0]->bytes;
    printf("%-44s %8.1f %8.1f us %8.1f MB %6.2f TB/s %5.2f of the floor", name, same * 1e6, apart * 1e6, bytes * 1e-6,
           bytes / apart * 1e-12, std::max(bytes / 4.0e12, sets[0]->macs / 29.6e12) / apart);
    if (anchor > 0)
        printf("   anchor %.1f us", anchor);
    printf("\n");
    fflush(stdout);
    for (bench_call *b : sets)
        delete b;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void bench_norm(cuda_device *dev, const char *name, int64_t rows, int64_t width, tensor_dtype stream,
                       double anchor, double anchor_grad)
{
    char text[80];
    snprintf(text, sizeof text, "norm %s, %lld x %lld", name, (long long)rows, (long long)width);
    bench(text, anchor, cuda_norm, NULL, dev, [&](bench_call *b) {
        b->attr.eps = 1e-6f;
        b->in(0, rows, width, stream, 1), b->in(1, 1, width, DTYPE_F32, 1), b->in(2, 1, width, DTYPE_F32, 1);
        b->out(0, rows, width, DTYPE_BF16), b->out(1, rows, 2, DTYPE_F32);
    });
    snprintf(text, sizeof text, "norm_grad %s, %lld x %lld", name, (long long)rows, (long long)width);
    bench(text, anchor_grad, cuda_norm_grad, cuda_norm_grad_workspace, dev, [&](bench_call *b) {
        b->in(0, rows, width, DTYPE_BF16, 1), b->in(1, rows, width, stream, 1), b->in(2, 1, width, DTYPE_F32, 1);
        b->in(3, rows, 2, DTYPE_F32, 1), b->in(4, rows, width, stream, 1);
        b->out(0, rows, width, stream), b->out(1, 1, width, DTYPE_F32), b->out(2, 1, width, DTYPE_F32);
    });
}

struct heads_shape {
    int64_t groups, tokens, heads, width;
    bool apart;
    bool given = true; /* the gradient is handed y, as a training step does */
};

static void bench_attention(cuda_device *dev, const char *name, const heads_shape &s, double anchor, double anchor_grad)
{
    int64_t rows = s.groups * s.tokens, dim = s.heads * s.width, wide = dim * (s.apart ? 2 : 3);
    char text[80];
    snprintf(text, sizeof text, "attention %s", name);
    bench(text, anchor, cuda_attention, cuda_attention_workspace, dev, [&](bench_call *b) {
        b->attr.heads = (int)s.heads;
        b->in(0, rows, wide, DTYPE_BF16, s.tokens);
        if (s.apart)
            b->in(1, rows, dim, DTYPE_BF16, s.tokens);
        b->out(0, rows, dim, DTYPE_BF16), b->out(1, rows, s.heads, DTYPE_F32);
    });
    snprintf(text, sizeof text, "attention_grad %s", name);
    bench(text, anchor_grad, cuda_attention_grad, cuda_attention_grad_workspace, dev, [&](bench_call *b) {
        b->attr.heads = (int)s.heads;
        b->in(0, rows, dim, DTYPE_BF16, s.tokens), b->in(1, rows, wide, DTYPE_BF16, s.tokens);
        if (s.apart)
            b->in(2, rows, dim, DTYPE_BF16, s.tokens);
        b->in(3, rows, s.heads, DTYPE_F32, s.tokens);
        if (s.given && s.tokens > 72)
            b->in(4, rows, dim, DTYPE_BF16, s.tokens);
        b->out(0, rows, wide, DTYPE_BF16);
        if (s.apart)
            b->out(1, rows, dim, DTYPE_BF16);
        b->out(2, 1, wide, DTYPE_F32); /* the bias gradient of q, k, v */
    });
}

/* side x side maps with 7 x 7 windows. */
static void bench_depthwise(cuda_device *dev, const char *name, int64_t images, int64_t side, int64_t channels)
{
    int64_t rows = images * side * side;
    auto shapes = [&](bench_call *b) {
        b->call.batch = (size_t)images;
        b->macs = (double)rows * (double)channels * 49;
        b->in(0, rows, channels, DTYPE_BF16, 1);
        b->info[0].size[0] = b->info[0].size[1] = side, b->info[0].size[2] = channels;
    };
    auto weight = [&](bench_call *b) {
        b->in(1, channels, 49, DTYPE_F32, 1);
        b->info[1].size[2] = 7;
    };
    char text[80];
    snprintf(text, sizeof text, "depthwise %s", name);
    bench(text, 0, cuda_depthwise, NULL, dev, [&](bench_call *b) {
        shapes(b), weight(b);
        b->in(2, 1, channels, DTYPE_F32, 1), b->out(0, rows, channels, DTYPE_BF16);
    });
    snprintf(text, sizeof text, "depthwise_dx %s", name);
    bench(text, 0, cuda_depthwise_dx, NULL, dev, [&](bench_call *b) {
        shapes(b), weight(b);
        b->in(2, rows, channels, DTYPE_BF16, 1), b->out(0, rows, channels, DTYPE_BF16);
    });
    snprintf(text, sizeof text, "depthwise_dw %s", name);
    bench(text, 0, cuda_depthwise_dw, cuda_depthwise_dw_workspace, dev, [&](bench_call *b) {
        shapes(b);
        b->in(1, rows, channels, DTYPE_BF16, 1);
        b->out(0, channels, 49, DTYPE_F32), b->out(1, 1, channels, DTYPE_F32);
        b->info[NODE_INPUTS].size[2] = 7;
    });
}

static void norm_table(cuda_device *dev)
{
    bench_norm(dev, "ViT-Tiny/4 b1024, bf16", 1024 * 65, 192, DTYPE_BF16, 15.9, 30);
    bench_norm(dev, "ViT-Tiny/4 b1024, f32 stream", 1024 * 65, 192, DTYPE_F32, 0, 0);
    bench_norm(dev, "ViT-Tiny/4 b256, bf16", 256 * 65, 192, DTYPE_BF16, 0, 0);
    bench_norm(dev, "TNT pixels b512", 512 * 64 * 16, 24, DTYPE_BF16, 0, 0);
    bench_norm(dev, "TNT words b512", 512 * 65, 384, DTYPE_BF16, 0, 0);
    bench_norm(dev, "ConvNeXt-T b512", 512 * 1024, 96, DTYPE_BF16, 0, 0);
    bench_norm(dev, "ConvNeXt-T b512", 512 * 16, 768, DTYPE_BF16, 0, 0);
    bench_norm(dev, "no fast width", 1024 * 65, 200, DTYPE_BF16, 0, 0);
}

/* ---- the gradient of norm, alone ------------------------------------------------------------- */

/* Without the sums over blocks, which are a launch of their own. */
template <typename TX, int WIDTH, typename FILL> static void grad_ahead(const op_call *c)
{
    norm_grad_args a = norm_grad_args_of(c);
    norm_ahead_launch<TX, __nv_bfloat16, WIDTH, FILL>(a, NORM_BLOCKS, cuda_device_of(c)->stream);
    cuda_launched(c);
}

/* With everything that a training step may want of it: residual, column sums of dx, y recomputed
 * and, of an f32 stream, dx in bf16. */
template <typename TX, int WIDTH, typename FILL = typename norm_fill_best<TX, __nv_bfloat16, WIDTH>::type>
static void bench_grad(cuda_device *dev, const char *name, int64_t rows)
{
    tensor_dtype stream = sizeof(TX) == 2 ? DTYPE_BF16 : DTYPE_F32;
    char text[80];
    snprintf(text, sizeof text, "%s, %lld x %d", name, (long long)rows, WIDTH);
    bench(text, 0, grad_ahead<TX, WIDTH, FILL>, cuda_norm_grad_workspace, dev, [&](bench_call *b) {
        b->in(0, rows, WIDTH, DTYPE_BF16, 1), b->in(1, rows, WIDTH, stream, 1), b->in(2, 1, WIDTH, DTYPE_F32, 1);
        b->in(3, rows, 2, DTYPE_F32, 1), b->in(4, rows, WIDTH, stream, 1), b->in(5, 1, WIDTH, DTYPE_F32, 1);
        b->out(0, rows, WIDTH, stream), b->out(1, 1, WIDTH, DTYPE_F32), b->out(2, 1, WIDTH, DTYPE_F32);
        b->out(3, 1, WIDTH, DTYPE_F32), b->out(4, rows, WIDTH, DTYPE_BF16);
        if (stream == DTYPE_F32)
            b->out(5, rows, WIDTH, DTYPE_BF16);
    });
}

/* Then other ways to fill a multiprocessor, for whoever measures on another GPU. */
static void grad_table(cuda_device *dev)
{
    typedef __nv_bfloat16 bf16;
    const int64_t tiny = 1024 * 65;
    bench_grad<bf16, 192>(dev, "norm_grad ViT-Tiny/4 b1024", tiny);
    bench_grad<float, 192>(dev, "norm_grad ViT-Tiny/4 b1024, f32", tiny);
    bench_grad<bf16, 192>(dev, "norm_grad ViT-Tiny/4 b256", 256 * 65);
    bench_grad<bf16, 24>(dev, "norm_grad TNT pixels b128", 128 * 64 * 16);
    bench_grad<bf16, 384>(dev, "norm_grad TNT words b512", 512 * 65);
    bench_grad<bf16, 96>(dev, "norm_grad ConvNeXt-T b128", 128 * 1024);
    bench_grad<bf16, 768>(dev, "norm_grad ViT-Base b256", 256 * 65);
    bench_grad<bf16, 192, norm_fill<8, 2, 3, 2>>(dev, "2 x 8 warps, 3 stages of 2", tiny);
    bench_grad<bf16, 192, norm_fill<8, 2, 3, 1>>(dev, "2 x 8 warps, 3 stages of 1", tiny);
    bench_grad<bf16, 192, norm_fill<4, 4, 2, 2>>(dev, "4 x 4 warps, 2 stages of 2", tiny);
    bench_grad<float, 192, norm_fill<8, 2, 3, 1>>(dev, "f32, 2 x 8 warps, 3 stages of 1", tiny);
    bench_grad<float, 192, norm_fill<4, 4, 3, 1>>(dev, "f32, 4 x 4 warps, 3 stages of 1", tiny);
}

static void attention_table(cuda_device *dev)
{
    bench_attention(dev, "ViT-Tiny/4 b1024, 65 x 3 x 64", {1024, 65, 3, 64, false}, 31, 72);
    bench_attention(dev, "ViT-Tiny/4 b256, 65 x 3 x 64", {256, 65, 3, 64, false}, 0, 0);
    bench_attention(dev, "ViT-Tiny/16 b256, 197 x 3 x 64", {256, 197, 3, 64, false}, 0, 0);
    bench_attention(dev, "TNT words b512, 65 x 6 x 64", {512, 65, 6, 64, true}, 0, 0);
    bench_attention(dev, "TNT pixels b512, 16 x 4 x 6", {512 * 64, 16, 4, 6, true}, 0, 0);
}

/* The gradient with y and without it, which is the streaming one, by turns. */
static void tokens_table(cuda_device *dev)
{
    for (int turn = 0; turn < 3; turn++)
        for (bool given : {true, false}) {
            const char *with = given ? "" : ", no y";
            char text[80];
            for (int64_t heads : {3, 6}) {
                snprintf(text, sizeof text, "ViT/16 b%d, 197 x %d x 64%s", 768 / (int)heads, (int)heads, with);
                bench_attention(dev, text, {768 / heads, 197, heads, 64, false, given}, 0, 0);
            }
            for (int64_t tokens : {80, 128, 256}) {
                snprintf(text, sizeof text, "b256, %d x 3 x 64%s", (int)tokens, with);
                bench_attention(dev, text, {256, tokens, 3, 64, false, given}, 0, 0);
            }
        }
}

/* The kernels by warpgroups and those of other GPUs, by turns. */
static void wide_table(cuda_device *dev)
{
    gpu_properties gpu = dev->gpu;
    for (int turn = 0; turn < 3; turn++)
        for (int64_t tokens : {197, 80, 96, 112, 128, 144, 160, 192, 208, 256})
            for (int major : {8, gpu.major}) {
                char text[80];
                dev->gpu.major = major;
                snprintf(text, sizeof text, "b256, %d x 3 x 64, %s", (int)tokens, major < 9 ? "old" : "by warpgroups");
                bench_attention(dev, text, {256, tokens, 3, 64, false}, 0, 0);
            }
    dev->gpu = gpu;
}

static void depthwise_table(cuda_device *dev)
{
    bench_depthwise(dev, "ConvNeXt-T b512, 32 x 32 x 96", 512, 32, 96);
    bench_depthwise(dev, "ConvNeXt-T b512, 16 x 16 x 192", 512, 16, 192);
    bench_depthwise(dev, "ConvNeXt-T b512, 8 x 8 x 384", 512, 8, 384);
    bench_depthwise(dev, "ConvNeXt-T b512, 4 x 4 x 768", 512, 4, 768);
    bench_depthwise(dev, "ConvNeXt-T b64, 56 x 56 x 96", 64, 56, 96);
    bench_depthwise(dev, "ConvNeXt-atto b512, 32 x 32 x 40", 512, 32, 40);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(cuda_device *);
    } tables[] = {{"norm", norm_table},     {"grad", grad_table}, {"attention", attention_table},
                  {"tokens", tokens_table}, {"wide", wide_table}, {"depthwise", depthwise_table}};
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("no GPU: skipped\n");
        return 77;
    }
    cuda_device dev = {};
    cudaDeviceProp gpu;
    must(cudaGetDeviceProperties(&gpu, 0));
    dev.gpu.major = gpu.major, dev.gpu.minor = gpu.minor, dev.gpu.processors = gpu.multiProcessorCount;
    must(cudaStreamCreate(&dev.stream));
    printf("%-44s %8s %8s\n", "", "same", "apart");
    for (const auto &t : tables)
        if (argc < 2 || !strcmp(argv[1], t.name))
            t.run(&dev);
    must(cudaStreamDestroy(dev.stream));
    return 0;
}
