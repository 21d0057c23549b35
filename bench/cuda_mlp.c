/* cuda_mlp.c - ViT-Tiny's MLP, its residual and the norm after it as one kernel, beside three
 * launches. SPDX-License-Identifier: MIT
 *
 * The engine's own ops, both ways by turns (cuda_replay.h): mlp, and the linear_act, linear and
 * norm that an inference graph has where no kernel takes it (mlp.c), which write and read the
 * hidden activations.
 *
 *     bench_cuda_mlp [ROWS [ACT...]]
 *
 * By default 66560, 50432 and 16640 rows, gelu and berlu. */
#include "cuda_replay.h"

#include "cuda/mlp.h"

enum { MOST_SETS = 6, ROUNDS = 2, HIDDEN = 768, NUMBERS = 4 << 20, OPERANDS = 12 };

/* ---- operands -------------------------------------------------------------------------------- */

typedef struct layer {
    op_call mlp, first, second, norm;
    void *memory[OPERANDS], *workspace;
    int count;
} layer;

static op_operand operand(layer *l, const uint16_t *numbers, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    static const tensor_info there = {.rank = 2};
    op_operand o = {.rows = rows, .channels = channels, .dtype = dtype, .info = &there};
    size_t bytes = (size_t)(rows * channels) * (dtype == DTYPE_BF16 ? 2 : 4), most = NUMBERS * sizeof *numbers;
    must(gpu_alloc(&o.data, bytes));
    for (size_t at = 0; at < bytes; at += most)
        must(gpu_copy((char *)o.data + at, numbers, bytes - at < most ? bytes - at : most, GPU_UPLOAD, NULL));
    l->memory[l->count++] = o.data;
    return o;
}

/* `small` has the weights: sums over hundreds of channels stay near 1. */
static void layer_make(layer *l, device *d, const uint16_t *numbers, const uint16_t *small, int64_t rows,
                       tensor_dtype stream)
{
    const int64_t width = MLP_WIDTH;
    *l = (layer){.mlp = {.op = OP_MLP, .device = d},
                 .first = {.op = OP_LINEAR_ACT, .device = d},
                 .second = {.op = OP_LINEAR, .device = d},
                 .norm = {.op = OP_NORM, .device = d}};
    op_call *c = &l->mlp;
    c->in[0] = operand(l, numbers, rows, width, DTYPE_BF16);
    c->in[1] = operand(l, small, HIDDEN, width, DTYPE_BF16);
    c->in[2] = operand(l, small, width, HIDDEN, DTYPE_BF16);
    c->in[3] = operand(l, numbers, rows, width, stream);
    c->in[4] = operand(l, small, 1, HIDDEN, DTYPE_BF16);
    c->in[5] = operand(l, small, 1, width, DTYPE_BF16);
    c->in[6] = operand(l, numbers, 1, width, DTYPE_F32);
    c->in[7] = operand(l, numbers, 1, width, DTYPE_F32);
    c->out[0] = operand(l, numbers, rows, width, stream);
    c->out[1] = operand(l, numbers, rows, width, DTYPE_BF16);
    c->out[2] = operand(l, numbers, rows, 2, DTYPE_F32);
    op_operand h = operand(l, numbers, rows, HIDDEN, DTYPE_BF16);
    l->first.in[0] = c->in[0], l->first.in[1] = c->in[1], l->first.in[2] = c->in[4];
    l->first.out[0] = h;
    l->second.in[0] = h, l->second.in[1] = c->in[2], l->second.in[2] = c->in[5], l->second.in[3] = c->in[3];
    l->second.out[0] = c->out[0];
    l->norm.in[0] = c->out[0], l->norm.in[1] = c->in[6], l->norm.in[2] = c->in[7];
    l->norm.out[0] = c->out[1], l->norm.out[1] = c->out[2];
    must(gpu_alloc(&l->workspace, (size_t)64 << 20));
    l->first.workspace = l->second.workspace = l->workspace;
    must(gpu_stream_wait(NULL));
}

static void layer_free(layer *l)
{
    for (int i = 0; i < l->count; i++)
        gpu_free(l->memory[i]);
    gpu_free(l->workspace);
}

/* ---- what is timed --------------------------------------------------------------------------- */

typedef struct timed {
    const layer *layers;
    int count;
    const berlu_act *act;
} timed;

static void one_run(const void *context, int i)
{
    const timed *t = context;
    op_call c = t->layers[i % t->count].mlp;
    op_attr attr = {.act = t->act, .eps = 1e-6f};
    c.attr = &attr;
    cuda_backend()->ops[c.op].run(&c);
}

static void three_run(const void *context, int i)
{
    const timed *t = context;
    const layer *l = &t->layers[i % t->count];
    op_call calls[] = {l->first, l->second, l->norm};
    op_attr attr = {.act = t->act, .eps = 1e-6f};
    for (int k = 0; k < 3; k++) {
        calls[k].attr = &attr;
        cuda_backend()->ops[calls[k].op].run(&calls[k]);
    }
}

static void act_measure(cuda_device *d, const layer *l, int sets, const char *name, int64_t rows, tensor_dtype stream)
{
    berlu_act *act;
    int width = stream == DTYPE_F32 ? 4 : 2;
    must(berlu_act_make(&act, name));
    const timed t = {l, sets, act};
    op_attr attr = {.act = act};
    op_call asked = l->mlp;
    asked.attr = &attr;
    double bytes = (double)rows * ((2 * width + 4) * MLP_WIDTH + 8);
    printf("%6lld rows, %s stream, %-12s floor %5.1f:", (long long)rows, width == 4 ? "f32 " : "bf16", name,
           bytes / 4e6);
    for (int i = 0; i < ROUNDS; i++) {
        printf("  %6.1f", replay_microseconds(d, three_run, &t));
        if (cuda_mlp_takes(&asked))
            printf(" %6.1f", replay_microseconds(d, one_run, &t));
        else
            printf("      -");
        fflush(stdout);
    }
    printf("\n");
    berlu_act_free(act);
}

int main(int argc, char **argv)
{
    static const int64_t usual[] = {66560, 50432, 16640};
    static const char *const acts[] = {"gelu", "berlu"};
    int shapes = argc > 1 ? 1 : (int)(sizeof usual / sizeof *usual), act_count = argc > 2 ? argc - 2 : 2;
    device *d;
    uint16_t *numbers = numbers_make(NUMBERS), *small = numbers_make(NUMBERS);
    if (!numbers || !small)
        return 1;
    for (int i = 0; i < NUMBERS; i++)
        small[i] = bf16_from_f32(bf16_to_f32(small[i]) / 16);
    must(cuda_backend()->open(&d, cuda_backend(), &(device_options){.precision = "bf16"}));
    printf("linear_act, linear and norm; one kernel (from %d rows on); in us, %d rounds\n", MLP_FEWEST, ROUNDS);
    for (int i = 0; i < 2 * shapes; i++) {
        int64_t rows = argc > 1 ? atoll(argv[1]) : usual[i / 2];
        tensor_dtype stream = i % 2 ? DTYPE_F32 : DTYPE_BF16;
        if (rows < 1 || rows > 1 << 22) {
            fprintf(stderr, "usage: bench_cuda_mlp [ROWS [ACT...]]\n");
            return 2;
        }
        layer l[MOST_SETS];
        int sets = rows > 40000 ? 3 : MOST_SETS;
        for (int k = 0; k < sets; k++)
            layer_make(&l[k], d, numbers, small, rows, stream);
        for (int k = 0; k < act_count; k++)
            act_measure(cuda_device_at(d), l, sets, argc > 2 ? argv[k + 2] : acts[k], rows, stream);
        for (int k = 0; k < sets; k++)
            layer_free(&l[k]);
    }
    free(numbers);
    free(small);
    cuda_backend()->close(d);
    return 0;
}
