/* mlp.c - which MLPs run as one kernel, and its job. SPDX-License-Identifier: MIT
 *
 * Two layers with an activation between them, the residual and the norm after them are one launch
 * (mlp.cu) for 192 channels in bf16 with many rows on compute capability 9.0, ViT-Tiny's MLP in
 * inference: passes/fuse.c offers only MLPs whose hidden activations nothing else reads. Shapes,
 * dtypes, the activation and the GPU decide, so the engine asks before it makes the node
 * (op_entry.takes), and where the answer is no the graph keeps a linear_act, a linear and a norm. A
 * node that was made is always taken: tensors of the engine are aligned. */
#include "cuda/mlp.h"

#include <assert.h>

#include "act/cuda/fused_call.h"

#define ACT(name) extern const mlp_kernels cuda_mlp_##name;
#include "act/list.h"
#undef ACT

#define ACT(name) &cuda_mlp_##name,
static const mlp_kernels *const mlp_list[] = {
#include "act/list.h"
};
#undef ACT

enum { LIST_COUNT = sizeof mlp_list / sizeof *mlp_list };

/* The operands of the op (graph/op_linear.c). */
enum { IN_X, IN_W1, IN_W2, IN_RESIDUAL, IN_B1, IN_B2, IN_WEIGHT, IN_SHIFT, IN_PARAM };
enum { OUT_X, OUT_Y, OUT_STATISTICS };

/* Vectors of 16 bytes of that dtype, or missing. */
static int vectors(const op_operand *o, tensor_dtype dtype)
{
    return !o->info || (o->dtype == dtype && (uintptr_t)o->data % 16 == 0);
}

static int operands_fit(const op_call *c)
{
    static const int bf16[] = {IN_X, IN_W1, IN_W2, IN_B1, IN_B2};
    tensor_dtype stream = c->out[OUT_X].dtype;
    int64_t rows = c->out[OUT_X].rows, hidden = c->in[IN_W2].channels;
    int fit = (stream == DTYPE_BF16 || stream == DTYPE_F32) && vectors(&c->in[IN_RESIDUAL], stream) &&
              vectors(&c->out[OUT_X], stream) && vectors(&c->in[IN_WEIGHT], DTYPE_F32) &&
              vectors(&c->in[IN_SHIFT], DTYPE_F32) && vectors(&c->out[OUT_Y], DTYPE_BF16) &&
              vectors(&c->out[OUT_STATISTICS], DTYPE_F32);
    for (size_t i = 0; i < sizeof bf16 / sizeof *bf16; i++)
        fit = fit && vectors(&c->in[bf16[i]], DTYPE_BF16);
    return fit && c->in[IN_X].channels == MLP_WIDTH && c->out[OUT_X].channels == MLP_WIDTH &&
           hidden % MLP_SLICES == 0 && hidden >= MLP_HIDDEN_LEAST && hidden <= MLP_HIDDEN_MOST && rows >= MLP_FEWEST &&
           rows <= INT32_MAX / 2;
}

/* The activation's share of the call. */
static berlu_act_call call_of(const op_call *c)
{
    berlu_act_call call = {
        .dtype = BERLU_BF16, .rows = (size_t)c->out[OUT_X].rows, .channels = (size_t)c->in[IN_W2].channels};
    for (int i = 0; i < c->attr->act_params; i++) {
        berlu_act_param_arg *arg = &call.param[c->attr->act_param[i]];
        arg->value = c->in[IN_PARAM + i].data;
        arg->stride = c->in[IN_PARAM + i].channels > 1;
    }
    return call;
}

int cuda_mlp_takes(const op_call *c)
{
    const gpu_properties *gpu = &cuda_device_of(c)->gpu;
    const op_attr *attr = c->attr;
    if (gpu->major != 9 || gpu->minor != 0 || !operands_fit(c))
        return 0;
    berlu_act_call call = call_of(c);
    size_t row = act_cuda_fused_row(attr->act);
    if (row >= LIST_COUNT || !mlp_list[row]->forward || !act_cuda_fused_takes(attr->act, BERLU_ACT_FORWARD, &call))
        return 0;
    fused_job job = act_cuda_fused_job(attr->act, BERLU_ACT_FORWARD, &call);
    return job.scale == 1.0f && !job.center && !job.shape_count;
}

void cuda_mlp(const op_call *c)
{
    cuda_device *d = cuda_device_of(c);
    assert(cuda_mlp_takes(c));
    berlu_act_call call = call_of(c);
    mlp_job job = {.act = act_cuda_fused_job(c->attr->act, BERLU_ACT_FORWARD, &call),
                   .a = c->in[IN_X].data,
                   .w1 = c->in[IN_W1].data,
                   .bias1 = c->in[IN_B1].data,
                   .w2 = c->in[IN_W2].data,
                   .bias2 = c->in[IN_B2].data,
                   .residual = c->in[IN_RESIDUAL].data,
                   .weight = c->in[IN_WEIGHT].data,
                   .shift = c->in[IN_SHIFT].data,
                   .x = c->out[OUT_X].data,
                   .y = c->out[OUT_Y].data,
                   .statistics = c->out[OUT_STATISTICS].data,
                   .rows = (int)c->out[OUT_X].rows,
                   .hidden = (int)c->in[IN_W2].channels,
                   .f32 = c->out[OUT_X].dtype == DTYPE_F32,
                   .blocks = d->gpu.processors,
                   .eps = c->attr->eps};
    berlu_status status = mlp_list[act_cuda_fused_row(c->attr->act)]->forward(&job, d->stream);
    if (status != BERLU_OK)
        cuda_device_fail(d, status, "%s: %s", op_rules[c->op].name, berlu_last_error());
}
