/* act.c - activation sites: one call of the activation library over the whole tensor.
 * SPDX-License-Identifier: MIT
 *
 * The library's kernels are captured like ours and read learned parameters from device memory. x,
 * y, dy and dx of a call share a dtype; where roles mix (a bf16 gradient beside an f32 stream) the
 * call runs in f32 over copies in the workspace, and its result is rounded once. Elements are those
 * of the CPU bit for bit; gradients of learned parameters are sums in an order of their own. Behind
 * or before a product (linear_act.c) estimates suffice, because the product's own rounding moves
 * more elements by one bf16 than they do.
 *
 * A gradient may give two results more in the same pass: output 3, the activation's own output
 * recomputed from x, and output 4, the column sums of dx, which are the bias gradient of the layer
 * before. linear_act.c and passes/fuse.c request them. */
#include <berlu/act_cuda.h>

#include "act/cuda/fused_call.h"
#include "cuda/kernels.h"

/* The tensors of a site: inputs, then dx or y, and the recomputed output. */
typedef struct site {
    const op_operand *in[2], *out, *recomputed;
    int inputs;
    berlu_act_op op;
    int mixed; /* dtypes differ: everything passes through f32 */
} site;

static site site_of(const op_call *c)
{
    site s = {.in = {&c->in[0], &c->in[1]}, .out = &c->out[0], .inputs = c->op == OP_ACT ? 1 : 2};
    s.recomputed = c->op == OP_ACT_GRAD && c->out[3].info ? &c->out[3] : NULL;
    s.op = c->op == OP_ACT        ? BERLU_ACT_FORWARD
           : c->op == OP_ACT_GRAD ? BERLU_ACT_BACKWARD
                                  : BERLU_ACT_BACKWARD_FROM_OUTPUT;
    for (int i = 0; i < s.inputs; i++)
        s.mixed |= s.in[i]->dtype != s.out->dtype;
    s.mixed |= s.recomputed && s.recomputed->dtype != s.out->dtype;
    return s;
}

static size_t copy_bytes(const op_call *c)
{
    return ((size_t)operand_count(&c->out[0]) * sizeof(float) + 255) / 256 * 256;
}

/* The call with pointers to the given tensors; gradients of bias and learned parameters go where
 * the node says. */
static berlu_act_call call_make(const op_call *c, const site *s, const void *const in[2], void *out, void *recomputed)
{
    int forward = c->op == OP_ACT, first = forward ? 1 : 2;
    berlu_act_call call = {.dtype = !s->mixed && s->out->dtype == DTYPE_BF16 ? BERLU_BF16 : BERLU_F32,
                           .rows = (size_t)c->in[0].rows,
                           .channels = (size_t)c->in[0].channels};
    for (int i = 0; i < c->attr->act_params; i++) {
        berlu_act_param_arg *arg = &call.param[c->attr->act_param[i]];
        arg->value = c->in[first + i].data;
        arg->stride = c->in[first + i].channels > 1;
        arg->grad = forward ? NULL : c->out[1 + i].data;
    }
    if (forward) {
        call.x = in[0];
        call.y = out;
        return call;
    }
    call.dy = in[0];
    call.dx = out;
    call.dbias = c->out[4].data;
    if (s->op == BERLU_ACT_BACKWARD) {
        call.x = in[1];
        call.y = recomputed;
    } else
        call.y = (void *)in[1];
    return call;
}

/* Called before tensors have addresses: an aligned dummy stands for each. */
static size_t library_bytes(const op_call *c, const site *s, int fused)
{
    void *dummy = (void *)256;
    berlu_act_call call = call_make(c, s, (const void *const[2]){dummy, dummy}, dummy, s->recomputed ? dummy : NULL);
    if (c->op != OP_ACT)
        call.dbias = c->out[4].info ? dummy : NULL;
    for (int i = 0; i < c->attr->act_params; i++) {
        call.param[c->attr->act_param[i]].value = dummy;
        call.param[c->attr->act_param[i]].grad = c->op == OP_ACT ? NULL : dummy;
    }
    size_t bytes = fused && act_cuda_fused_takes(c->attr->act, s->op, &call)
                       ? act_cuda_fused_workspace(c->attr->act, s->op, &call)
                       : berlu_act_cuda_workspace(c->attr->act, s->op, &call);
    return (bytes + 255) / 256 * 256;
}

size_t cuda_act_site_workspace(const op_call *c, int fused)
{
    site s = site_of(c);
    return library_bytes(c, &s, fused) +
           (s.mixed ? (size_t)(s.inputs + 1 + (s.recomputed != NULL)) * copy_bytes(c) : 0);
}

void cuda_act_site(const op_call *c, int fused)
{
    site s = site_of(c);
    size_t own = library_bytes(c, &s, fused);
    char *at = (char *)c->workspace + own;
    const void *in[2] = {s.in[0]->data, s.inputs > 1 ? s.in[1]->data : NULL};
    void *out = s.out->data, *recomputed = s.recomputed ? s.recomputed->data : NULL;
    for (int i = 0; i < s.inputs && s.mixed; i++, at += copy_bytes(c)) {
        cuda_convert(c, at, DTYPE_F32, in[i], s.in[i]->dtype, operand_count(s.in[i]));
        in[i] = at;
    }
    if (s.mixed) {
        out = at;
        recomputed = s.recomputed ? at + copy_bytes(c) : NULL;
    }
    berlu_act_call call = call_make(c, &s, in, out, recomputed);
    call.workspace = c->workspace;
    call.workspace_bytes = own;
    cuda_stream stream = cuda_device_of(c)->stream;
    berlu_status status = fused && act_cuda_fused_takes(c->attr->act, s.op, &call)
                              ? act_cuda_fused(c->attr->act, s.op, &call, stream)
                              : berlu_act_cuda_run(c->attr->act, s.op, &call, stream);
    if (status != BERLU_OK)
        cuda_device_fail(cuda_device_of(c), status, "%s: %s", op_rules[c->op].name, berlu_last_error());
    if (s.mixed)
        cuda_convert(c, s.out->data, s.out->dtype, out, DTYPE_F32, operand_count(s.out));
    if (s.mixed && s.recomputed)
        cuda_convert(c, s.recomputed->data, s.recomputed->dtype, recomputed, DTYPE_F32, operand_count(s.recomputed));
}

size_t cuda_act_workspace(const op_call *c)
{
    return cuda_act_site_workspace(c, 0);
}

void cuda_act(const op_call *c)
{
    cuda_act_site(c, 0);
}

void cuda_act_grad(const op_call *c)
{
    cuda_act(c);
}

void cuda_act_grad_out(const op_call *c)
{
    cuda_act(c);
}
