/* kernel_check.cuh - buffers with red zones, operands from doubles, and comparisons with bounds.
 * SPDX-License-Identifier: MIT
 *
 * A tensor is kept twice: as doubles, rounded to what its dtype can hold, and in device memory with
 * 256 bytes of a known pattern before and behind it. Outputs start as NaN, so an element that
 * nobody writes fails. With CUDA_EMULATED device memory is the host's, and kernels run there
 * (emulate.cuh). */
#ifndef KERNEL_CHECK_CUH
#define KERNEL_CHECK_CUH

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

#include "cuda/prim.cuh"

#ifdef KERNELS_ALONE
/* What device.c and ends.c have otherwise, so that nvcc builds this test from the kernels' files
 * and its own. */
extern "C" void cuda_launched(const op_call *c)
{
#ifndef CUDA_EMULATED
    if (cudaGetLastError() != cudaSuccess)
        cuda_device_of(c)->failed = BERLU_ERR_DEVICE;
#endif
    (void)c;
}
extern "C" berlu_status gpu_launch_status(void)
{
#ifndef CUDA_EMULATED
    return cudaGetLastError() == cudaSuccess ? BERLU_OK : BERLU_ERR_DEVICE;
#else
    return BERLU_OK;
#endif
}
/* As late as in a program: a call that overwrites its own partial sums shows. */
extern "C" void cuda_end_add(const op_call *c, const cuda_end *end)
{
    cuda_ends *ends = &cuda_device_of(c)->ends;
    if (end->to && end->columns)
        ends->list[ends->count++] = *end;
}
static void ends_launch(cuda_device *d)
{
    if (d->ends.count)
        cuda_ends_launch(d, d->ends.list, d->ends.count);
    d->ends.count = 0;
}
#else
static void ends_launch(cuda_device *)
{
}
#endif

enum { ZONE = 256, ZONE_BYTE = 0xa5 };

static int faults;

static void fail(const std::string &what)
{
    if (faults++ < 40)
        printf("WRONG %s\n", what.c_str());
}

/* Whether shapes of real networks are compared, too: not in emulation, nor under a checker that makes
 * a kernel a thousand times slower (BERLU_TEST_SMALL=1; tools/sanitize_cuda.sh). */
static bool large_shapes()
{
#ifdef CUDA_EMULATED
    return false;
#else
    return !getenv("BERLU_TEST_SMALL");
#endif
}

/* ---- device memory --------------------------------------------------------------------------- */

#ifdef CUDA_EMULATED
static bool device_there()
{
    return true;
}
static void *device_alloc(size_t bytes)
{
    return aligned_alloc(256, (bytes + 255) / 256 * 256);
}
static void device_free(void *p)
{
    free(p);
}
static void device_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#else
static void cuda_must(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    printf("CUDA: %s\n", cudaGetErrorString(e));
    exit(1);
}
static bool device_there()
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}
static void *device_alloc(size_t bytes)
{
    void *p = NULL;
    cuda_must(cudaMalloc(&p, bytes));
    return p;
}
static void device_free(void *p)
{
    cuda_must(cudaFree(p));
}
static void device_copy(void *to, const void *from, size_t bytes)
{
    cuda_must(cudaDeviceSynchronize());
    cuda_must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}
#endif

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t random_state = 1;

static double random_normal() /* the sum of four uniform draws, with variance 1 */
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        random_state = random_state * 1664525u + 1013904223u;
        sum += (random_state >> 8) / 16777216.0 - 0.5;
    }
    return sum * sqrt(3.0);
}

static uint16_t bf16_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return f != f ? 0x7fff : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static float bf16_value(uint16_t b)
{
    uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* ---- tensors --------------------------------------------------------------------------------- */

struct test_tensor {
    std::vector<double> value; /* what it holds, or for outputs what it should */
    tensor_info info = {};
    int64_t rows = 0, channels = 0;
    tensor_dtype dtype = DTYPE_F32;
    char *memory = NULL;

    size_t size() const
    {
        return value.size();
    }
    size_t bytes() const
    {
        return value.size() * (dtype == DTYPE_BF16 ? 2 : 4);
    }
    void *data() const
    {
        return memory + ZONE;
    }
    test_tensor(int64_t rows_, int64_t channels_, tensor_dtype type) : rows(rows_), channels(channels_), dtype(type)
    {
        value.resize((size_t)(rows * channels));
        memory = (char *)device_alloc(bytes() + 2 * ZONE);
        std::vector<char> all(bytes() + 2 * ZONE, (char)0xff);
        memset(all.data(), ZONE_BYTE, ZONE);
        memset(all.data() + ZONE + bytes(), ZONE_BYTE, ZONE);
        device_copy(memory, all.data(), all.size());
        info.rank = 2;
        info.size[0] = rows;
        info.size[1] = channels;
    }
    test_tensor(const test_tensor &) = delete;
    ~test_tensor()
    {
        device_free(memory);
    }
    void put() /* rounds the values to the dtype, and uploads them */
    {
        std::vector<char> raw(bytes());
        for (size_t i = 0; i < size(); i++) {
            float f = (float)value[i];
            if (dtype == DTYPE_BF16) {
                ((uint16_t *)raw.data())[i] = bf16_of(f);
                f = bf16_value(bf16_of(f));
            } else {
                ((float *)raw.data())[i] = f;
            }
            value[i] = f;
        }
        device_copy(data(), raw.data(), raw.size());
    }
    void fill(double mean, double deviation)
    {
        for (double &v : value)
            v = mean + deviation * random_normal();
        put();
    }
    std::vector<char> raw(const std::string &name) const /* the bytes; red zones are looked at */
    {
        std::vector<char> all(bytes() + 2 * ZONE);
        device_copy(all.data(), memory, all.size());
        for (int i = 0; i < ZONE; i++)
            if ((unsigned char)all[i] != ZONE_BYTE || (unsigned char)all[ZONE + bytes() + i] != ZONE_BYTE) {
                fail(name + ": written outside");
                break;
            }
        return std::vector<char>(all.begin() + ZONE, all.end() - ZONE);
    }
    op_operand operand()
    {
        op_operand o = {};
        o.data = data();
        o.rows = rows;
        o.channels = channels;
        o.dtype = dtype;
        o.info = &info;
        return o;
    }
};

/* Two runs of a kernel give the same bytes, and nothing is written outside its outputs. */
struct runs_compared {
    std::vector<std::vector<char>> first;
    void add(const std::string &name, const std::vector<test_tensor *> &outputs)
    {
        bool again = !first.empty();
        for (size_t i = 0; i < outputs.size(); i++) {
            std::vector<char> raw = outputs[i]->raw(name);
            if (!again)
                first.push_back(raw);
            else if (raw != first[i])
                fail(name + ": other bytes the second time");
        }
    }
};

static double got_value(const std::vector<char> &raw, tensor_dtype dtype, size_t i)
{
    return dtype == DTYPE_BF16 ? bf16_value(((const uint16_t *)raw.data())[i]) : ((const float *)raw.data())[i];
}

/* Every element within slack[i] (absolute; NULL: none), plus half a unit of a bf16 output, plus
 * 1e-5 of the largest value of the tensor: what f32 arithmetic may lose. */
static void compare(const std::string &name, const std::vector<char> &raw, const std::vector<double> &want,
                    tensor_dtype dtype, const double *slack)
{
    double most = 0, worst = 0;
    size_t where = 0;
    for (double w : want)
        most = fmax(most, fabs(w));
    for (size_t i = 0; i < want.size(); i++) {
        double bound = 1e-5 * most + (slack ? slack[i] : 0);
        if (dtype == DTYPE_BF16) /* of the value that is rounded, which lies within the bound so far */
            bound += ldexp(fabs(want[i]) + bound, -8);
        double error = fabs(got_value(raw, dtype, i) - want[i]);
        double ratio = error <= bound ? error / bound : error == error ? fmax(error / bound, 1.0001) : INFINITY;
        if (ratio > worst)
            worst = ratio, where = i;
    }
    if (worst > 1) {
        char text[200];
        snprintf(text, sizeof text, ": element %zu is %.9g, not %.9g: %.3g of the bound", where,
                 got_value(raw, dtype, where), want[where], worst);
        fail(name + text);
    }
}

/* Runs a call twice on the same inputs: both times the same bytes in every output. */
struct call_runner {
    op_call call = {};
    op_attr attr = {};
    cuda_device dev = {};
    std::vector<test_tensor *> outputs;

    call_runner(op_id op)
    {
        call.op = op;
        call.attr = &attr;
        call.device = (device *)&dev;
    }
    void in(int i, test_tensor *t)
    {
        if (t)
            call.in[i] = t->operand();
    }
    void out(int i, test_tensor *t)
    {
        if (!t)
            return;
        call.out[i] = t->operand();
        outputs.push_back(t);
    }
    /* In place: operand `i` of the inputs is overwritten, so it is put back before the second
     * run. */
    void run(const std::string &name, op_kernel kernel, op_workspace workspace, test_tensor *overwritten)
    {
        op_call bare = call; /* as the planner asks: without pointers */
        for (int i = 0; i < NODE_INPUTS; i++)
            bare.in[i].data = NULL;
        for (int i = 0; i < NODE_OUTPUTS; i++)
            bare.out[i].data = NULL;
        size_t bytes = workspace ? workspace(&bare) : 0;
        test_tensor work((int64_t)(bytes + 3) / 4, 1, DTYPE_F32);
        call.workspace = bytes ? work.data() : NULL;
        runs_compared runs;
        for (int turn = 0; turn < 2; turn++) {
            kernel(&call);
            ends_launch(&dev);
            if (dev.failed != BERLU_OK)
                fail(name + ": not launched");
#ifndef CUDA_EMULATED
            cuda_must(cudaDeviceSynchronize());
#endif
            work.raw(name + " workspace");
            runs.add(name, outputs);
            if (turn == 0 && overwritten)
                overwritten->put();
        }
    }
};

#endif
