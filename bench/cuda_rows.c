/* cuda_rows.c - a linear layer and its activation as one kernel, beside a product and a pass.
 * SPDX-License-Identifier: MIT
 *
 * The engine's own ops at the shape of ViT-Tiny's MLP: fc1 with its activation, and dX of fc2 with
 * the slope (cuda_replay.h has how a call is timed). Two launches are what the backend does on a
 * GPU it has no such kernel for (rows.c), so that is what the device is made to be.
 *
 *     bench_cuda_rows [ROWS [ACT...]]
 *
 * By default 66560 rows (batch 1024) and gelu berlu relu silu prelu. */
#include "cuda_replay.h"

#include <string.h>

#include "cuda/rows.h"

enum { SETS = 3, WIDTH = 768 };

/* ---- operands -------------------------------------------------------------------------------- */

static op_operand operand(const uint16_t *numbers, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    static const tensor_info there = {.rank = 2};
    op_operand o = {.rows = rows, .channels = channels, .dtype = dtype, .info = &there};
    size_t bytes = (size_t)(rows * channels) * (dtype == DTYPE_BF16 ? 2 : 4);
    must(gpu_alloc(&o.data, bytes));
    if (dtype == DTYPE_BF16)
        must(gpu_copy(o.data, numbers, bytes, GPU_UPLOAD, NULL));
    else
        must(gpu_zero(o.data, bytes, NULL));
    return o;
}

typedef struct layer {
    op_call forward, backward;
    op_attr attr;
    void *workspace;
} layer;

static void layer_make(layer *l, device *d, const uint16_t *numbers, int64_t rows)
{
    *l = (layer){0};
    op_call *f = &l->forward, *b = &l->backward;
    *f = (op_call){.op = OP_LINEAR_ACT, .attr = &l->attr, .device = d};
    *b = (op_call){.op = OP_LINEAR_DX_ACT, .attr = &l->attr, .device = d};
    f->in[0] = b->in[0] = operand(numbers, rows, ROWS_DEPTH, DTYPE_BF16);
    f->in[1] = operand(numbers, WIDTH, ROWS_DEPTH, DTYPE_BF16);
    b->in[1] = operand(numbers, ROWS_DEPTH, WIDTH, DTYPE_BF16);
    f->in[2] = operand(numbers, 1, WIDTH, DTYPE_BF16);
    f->out[0] = b->out[1] = operand(numbers, rows, WIDTH, DTYPE_BF16);
    f->out[1] = b->out[0] = operand(numbers, rows, WIDTH, DTYPE_BF16);
    b->in[2] = operand(numbers, rows, WIDTH, DTYPE_BF16);
    b->in[4] = operand(numbers, 1, 1, DTYPE_F32); /* alpha and its gradient */
    b->out[2] = operand(numbers, 1, 1, DTYPE_F32);
    b->out[4] = operand(numbers, 1, WIDTH, DTYPE_F32);
    float alpha = 0.25f;
    must(gpu_copy(b->in[4].data, &alpha, sizeof alpha, GPU_UPLOAD, NULL));
    must(gpu_alloc(&l->workspace, (size_t)64 << 20));
    f->workspace = b->workspace = l->workspace;
    must(gpu_stream_wait(NULL));
}

static void layer_free(layer *l)
{
    op_call *f = &l->forward, *b = &l->backward;
    void *const all[] = {f->in[0].data, f->in[1].data, b->in[1].data,  f->in[2].data,  f->out[0].data, f->out[1].data,
                         b->in[2].data, b->in[4].data, b->out[2].data, b->out[4].data, l->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gpu_free(all[i]);
}

/* ---- what is timed --------------------------------------------------------------------------- */

typedef enum variant { U_AND_Y, Y_ALONE, DU, DU_AND_Y, DU_AND_ALPHA, VARIANTS } variant;

static const char *const variant_name[VARIANTS] = {"u and y", "y alone", "du, db", "and y", "and dalpha"};

static void variant_run(layer *l, const berlu_act *act, variant v)
{
    op_call c = v <= Y_ALONE ? l->forward : l->backward;
    op_attr attr = {.act = act, .act_params = v == DU_AND_ALPHA};
    c.attr = &attr;
    if (v == Y_ALONE || v == DU)
        c.out[1] = (op_operand){0};
    if (v != DU_AND_ALPHA)
        c.in[4] = c.out[2] = (op_operand){0};
    cuda_backend()->ops[c.op].run(&c);
}

typedef struct timed {
    layer *layers;
    const berlu_act *act;
    variant v;
} timed;

static void timed_run(const void *context, int i)
{
    const timed *t = context;
    variant_run(&t->layers[i % SETS], t->act, t->v);
}

static void act_measure(cuda_device *d, layer *l, const char *name)
{
    berlu_act *act;
    int minor = d->gpu.minor;
    must(berlu_act_make(&act, name));
    printf("%-12s", name);
    for (variant v = 0; v < VARIANTS; v++) {
        if (v == DU_AND_ALPHA && strncmp(name, "berlu", 5) && strncmp(name, "prelu", 5))
            continue;
        const timed t = {l, act, v};
        d->gpu.minor = -1; /* no GPU that rows.c knows */
        double two = replay_microseconds(d, timed_run, &t);
        d->gpu.minor = minor;
        printf("  %7.1f %7.1f", two, replay_microseconds(d, timed_run, &t));
        fflush(stdout);
    }
    printf("\n");
    berlu_act_free(act);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"gelu", "berlu", "relu", "silu", "prelu"};
    int64_t rows = argc > 1 ? atoll(argv[1]) : 66560;
    device *d;
    device_options o = {.precision = "bf16"};
    layer l[SETS];
    if (rows < 1 || rows > 1 << 24) {
        fprintf(stderr, "usage: bench_cuda_rows [ROWS [ACT...]]\n");
        return 2;
    }
    must(cuda_backend()->open(&d, cuda_backend(), &o));
    uint16_t *numbers = numbers_make((rows > WIDTH ? rows : WIDTH) * WIDTH);
    if (!numbers)
        return 1;
    for (int i = 0; i < SETS; i++)
        layer_make(&l[i], d, numbers, rows);
    printf("%lld rows, 192 inputs, %d columns; two launches, one kernel, in us\n%-12s", (long long)rows, WIDTH, "");
    for (variant v = 0; v < VARIANTS; v++)
        printf("  %15s", variant_name[v]);
    printf("\n");
    if (argc > 2)
        for (int i = 2; i < argc; i++)
            act_measure(cuda_device_at(d), l, argv[i]);
    else
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
            act_measure(cuda_device_at(d), l, usual[i]);
    for (int i = 0; i < SETS; i++)
        layer_free(&l[i]);
    free(numbers);
    cuda_backend()->close(d);
    return 0;
}
