/* cuda_linear_norm.c - a layer of 192 channels, its residual and the norm after it as one kernel,
 * beside a product and a norm. SPDX-License-Identifier: MIT
 *
 * The engine's own op at the shape of ViT-Tiny's projection, with a bf16 and an f32 residual
 * stream, both ways by turns (cuda_replay.h). Two launches are what the
 * backend does on a GPU it has no such kernel for (linear_norm.c), so that is what the device is
 * made to be.
 *
 *     bench_cuda_linear_norm [ROWS...]
 *
 * By default 66560, 50432 and 16640 rows. */
#include "cuda_replay.h"

#include "cuda/linear_norm.h"

enum { MOST_SETS = 8, ROUNDS = 2, OPERANDS = 9, NUMBERS = 4 << 20 };

typedef struct layer {
    op_call call;
    const uint16_t *numbers;
    void *memory[OPERANDS], *workspace;
} layer;

static op_operand operand(layer *l, int which, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    static const tensor_info there = {.rank = 2};
    op_operand o = {.rows = rows, .channels = channels, .dtype = dtype, .info = &there};
    size_t bytes = (size_t)(rows * channels) * (dtype == DTYPE_BF16 ? 2 : 4), most = NUMBERS * sizeof *l->numbers;
    must(gpu_alloc(&o.data, bytes));
    for (size_t at = 0; at < bytes; at += most)
        must(gpu_copy((char *)o.data + at, l->numbers, bytes - at < most ? bytes - at : most, GPU_UPLOAD, NULL));
    l->memory[which] = o.data;
    return o;
}

static void layer_make(layer *l, device *d, const uint16_t *numbers, int64_t rows, tensor_dtype stream)
{
    static const op_attr attr = {.eps = 1e-6f};
    const int64_t width = LINEAR_NORM_WIDTH;
    *l = (layer){.call = {.op = OP_LINEAR_NORM, .attr = &attr, .device = d}, .numbers = numbers};
    op_call *c = &l->call;
    c->in[0] = operand(l, 0, rows, width, DTYPE_BF16);
    c->in[1] = operand(l, 1, width, width, DTYPE_BF16);
    c->in[2] = operand(l, 2, 1, width, DTYPE_BF16);
    c->in[3] = operand(l, 3, rows, width, stream);
    c->in[4] = operand(l, 4, 1, width, DTYPE_F32);
    c->in[5] = operand(l, 5, 1, width, DTYPE_F32);
    c->out[0] = operand(l, 6, rows, width, stream);
    c->out[1] = operand(l, 7, rows, width, DTYPE_BF16);
    c->out[2] = operand(l, 8, rows, 2, DTYPE_F32);
    must(gpu_alloc(&l->workspace, cuda_backend()->ops[c->op].workspace(c) + 256));
    c->workspace = l->workspace;
    must(gpu_stream_wait(NULL));
}

static void layer_free(layer *l)
{
    for (int i = 0; i < OPERANDS; i++)
        gpu_free(l->memory[i]);
    gpu_free(l->workspace);
}

typedef struct sets {
    const layer *layers;
    int count;
} sets;

static void set_run(const void *context, int i)
{
    const sets *s = context;
    cuda_backend()->ops[OP_LINEAR_NORM].run(&s->layers[i % s->count].call);
}

static void shape_measure(cuda_device *d, const uint16_t *numbers, int64_t rows, tensor_dtype stream)
{
    layer l[MOST_SETS];
    const sets s = {l, rows > 40000 ? 3 : MOST_SETS};
    int minor = d->gpu.minor, width = stream == DTYPE_F32 ? 4 : 2;
    for (int i = 0; i < s.count; i++)
        layer_make(&l[i], (device *)d, numbers, rows, stream);
    double bytes = (double)rows * ((2 * width + 4) * LINEAR_NORM_WIDTH + 8);
    printf("%6lld rows, %s stream, floor %.1f:", (long long)rows, stream == DTYPE_F32 ? "f32" : "bf16", bytes / 4e6);
    for (int i = 0; i < ROUNDS; i++) {
        d->gpu.minor = -1; /* no GPU that linear_norm.c knows */
        double two = replay_microseconds(d, set_run, &s);
        d->gpu.minor = minor;
        printf("  %6.1f %6.1f", two, replay_microseconds(d, set_run, &s));
        fflush(stdout);
    }
    printf("\n");
    for (int i = 0; i < s.count; i++)
        layer_free(&l[i]);
}

int main(int argc, char **argv)
{
    static const int64_t usual[] = {66560, 50432, 16640};
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    device *d;
    uint16_t *numbers = numbers_make(NUMBERS);
    if (!numbers)
        return 1;
    must(cuda_backend()->open(&d, cuda_backend(), &(device_options){.precision = "bf16"}));
    printf("two launches, one kernel (from %d rows on), in us, %d rounds\n", LINEAR_NORM_FEWEST, ROUNDS);
    for (int i = 0; i < count; i++) {
        int64_t rows = argc > 1 ? atoll(argv[i + 1]) : usual[i];
        if (rows < 1 || rows > 1 << 24) {
            fprintf(stderr, "usage: bench_cuda_linear_norm [ROWS...]\n");
            return 2;
        }
        shape_measure(cuda_device_at(d), numbers, rows, DTYPE_BF16);
        shape_measure(cuda_device_at(d), numbers, rows, DTYPE_F32);
    }
    free(numbers);
    cuda_backend()->close(d);
    return 0;
}
