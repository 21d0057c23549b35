/* stub_kernels.c - the ops of the GPU made of malloc: the CPU's reference kernels.
 * SPDX-License-Identifier: MIT
 *
 * Entry points are weak: those that C files of src/cuda define, linked beside, are used instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "cuda/stub_internal.h"

/* The reference computes in f32: a bf16 operand passes through a copy. */
static void operand_widen(op_operand *o)
{
    int64_t count = operand_count(o);
    if (!o->data || o->dtype != DTYPE_BF16)
        return;
    float *wide = malloc((size_t)count * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < count; i++)
        wide[i] = bf16_to_f32(((const uint16_t *)o->data)[i]);
    o->data = wide;
}

static void operand_narrow(op_operand *wide, const op_operand *o, int output)
{
    if (wide->data == o->data)
        return;
    for (int64_t i = 0; i < operand_count(o) && output; i++)
        ((uint16_t *)o->data)[i] = bf16_from_f32(((const float *)wide->data)[i]);
    free(wide->data);
}

/* The copies of weights in bf16, which the reference does not know. */
static void shadows_write(const param_table *t)
{
    for (int i = 0; i < t->count; i++)
        for (int64_t k = 0; k < t->spans[i].count && t->spans[i].shadow >= 0; k++)
            ((uint16_t *)t->shadow)[t->spans[i].shadow + k] =
                bf16_from_f32(((float *)t->weight)[t->spans[i].offset + k]);
}

/* The column sums of outputs that the backend's row promises beside them. */
static void sums_write(const op_call *c)
{
    const op_entry *row = &cuda_backend()->ops[c->op];
    int slot = row->sums;
    for (int j = 0; slot && j < slot && slot + j < NODE_OUTPUTS; j++)
        for (int64_t i = 0; i < c->out[slot + j].channels && slot + j != row->again && slot + j != row->copy; i++) {
            double sum = 0;
            for (int64_t r = 0; r < c->out[j].rows; r++)
                sum += (double)((const float *)c->out[j].data)[r * c->out[j].channels + i];
            ((float *)c->out[slot + j].data)[i] = (float)sum;
        }
}

/* Output 0 once more, which is rounded to the copy's dtype as all outputs are. */
static void copy_write(const op_call *c)
{
    int slot = cuda_backend()->ops[c->op].copy;
    if (slot && c->out[slot].data)
        memcpy(c->out[slot].data, c->out[0].data, (size_t)operand_count(&c->out[0]) * sizeof(float));
}

/* The output of the norm that norm_grad recomputes, before dx overwrites an input. */
static void norm_again(const op_call *c)
{
    if (c->op != OP_NORM_GRAD || !c->out[4].data)
        return;
    op_call norm = {.op = OP_NORM, .attr = c->attr, .batch = c->batch, .threads = c->threads, .device = c->device};
    norm.in[0] = c->in[1];
    norm.in[1] = c->in[2];
    norm.in[2] = c->in[5];
    norm.in[3] = c->in[3];
    norm.out[0] = c->out[4];
    cpu_ref_backend()->ops[OP_NORM].run(&norm);
}

/* The sums of norm_grad go to its workspace first, behind what the reference uses, and from there
 * to their place by ends.c. */
enum { NORM_SUMS = 3 };

static size_t reference_bytes(const op_call *c)
{
    op_workspace ask = cpu_ref_backend()->ops[c->op].workspace;
    return ask ? (ask(c) + 63) / 64 * 64 : 0;
}

static float *norm_part(const op_call *c, int i)
{
    return (float *)((char *)c->workspace + reference_bytes(c)) + i * c->in[0].channels;
}

static void norm_ends(const op_call *c)
{
    for (int i = 0; i < NORM_SUMS; i++) {
        int64_t channels = c->in[0].channels;
        cuda_end_add(c, &(cuda_end){norm_part(c, i), c->out[1 + i].data, 1, channels, channels, 0});
    }
}

static void call_run(const void *data)
{
    const op_call *c = data;
    op_call wide = *c;
    param_table table = {0};
    if (op_rules[c->op].flags & RULE_UPDATE) {
        table = *c->params;
        table.shadow = NULL;
        wide.params = &table;
    }
    for (int i = 0; i < NODE_INPUTS; i++)
        operand_widen(&wide.in[i]);
    for (int i = 0; i < NODE_OUTPUTS; i++)
        operand_widen(&wide.out[i]);
    norm_again(&wide);
    for (int i = 0; i < NORM_SUMS && c->op == OP_NORM_GRAD; i++)
        wide.out[1 + i].data = c->out[1 + i].data ? norm_part(c, i) : NULL;
    cpu_ref_backend()->ops[c->op].run(&wide);
    sums_write(&wide);
    copy_write(&wide);
    for (int i = 0; i < NORM_SUMS && c->op == OP_NORM_GRAD; i++)
        wide.out[1 + i].data = c->out[1 + i].data;
    for (int i = 0; i < NODE_INPUTS; i++)
        operand_narrow(&wide.in[i], &c->in[i], 0);
    for (int i = 0; i < NODE_OUTPUTS; i++)
        operand_narrow(&wide.out[i], &c->out[i], 1);
    if (table.count && c->params->shadow && (c->op == OP_ADAMW || c->op == OP_SGD || c->op == OP_SHADOW))
        shadows_write(c->params);
}

/* Update ops find a table that covers every element of every parameter once. */
static void table_check(const op_call *c)
{
    const cuda_params *p = cuda_device_of(c)->params;
    int64_t want = 0, got = 0;
    assert_non_null(p);
    for (int i = 0; i < c->params->count; i++)
        want += c->params->spans[i].count;
    for (int i = 0; i < p->piece_count; i++) {
        const param_piece *piece = &p->pieces[i];
        assert_true(piece->count > 0 && piece->count <= PIECE);
        assert_true(piece->begin + piece->count <= p->spans[piece->span].count);
        assert_true(i == 0 || piece->begin == 0 || piece->begin == piece[-1].begin + piece[-1].count);
        got += piece->count;
    }
    assert_int_equal(got, want);
    assert_memory_equal(p->spans, c->params->spans, (size_t)c->params->count * sizeof *p->spans);
}

static void kernel(const op_call *c)
{
    if (op_rules[c->op].flags & RULE_UPDATE)
        table_check(c);
    if (stub_launch_ok())
        stub_enqueue(cuda_device_of(c)->stream, call_run, c, sizeof *c); /* by value: it may be on the caller's stack */
    cuda_launched(c);
    if (c->op == OP_NORM_GRAD)
        norm_ends(c);
}

#define OP(ID, name, ...)                                                                                              \
    __attribute__((weak)) void cuda_##name(const op_call *c)                                                           \
    {                                                                                                                  \
        kernel(c);                                                                                                     \
    }
#include "graph/ops.inc"
#undef OP

static size_t workspace_of(const op_call *c)
{
    return reference_bytes(c) + (c->op == OP_NORM_GRAD ? NORM_SUMS * sizeof(float) * (size_t)c->in[0].channels : 0);
}

#define WORKSPACE(name)                                                                                                \
    size_t cuda_##name##_workspace(const op_call *c)                                                                   \
    {                                                                                                                  \
        return workspace_of(c);                                                                                        \
    }
WORKSPACE(norm_grad)
WORKSPACE(attention)
WORKSPACE(attention_grad)
WORKSPACE(tokens_grad)
WORKSPACE(pixel_pos_grad)
WORKSPACE(depthwise_dw)
WORKSPACE(scale_grad)
WORKSPACE(loss)
WORKSPACE(grad_norm)
