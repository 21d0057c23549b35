/* linear_act.c - a product with an activation as its epilogue, block by block.
 * SPDX-License-Identifier: MIT
 *
 * Forward: the product of a block of rows, then bias and activation over the block while it is in
 * L2. Backward: dz W of a block, then in one pass over it the derivative (du = dy f'(u)), the
 * activation's output recomputed (for the next weight gradient), and the gradients of bias and
 * learned parameters. Each block has its own partial sums; tree_sum_columns() adds them. With
 * attr.raw u is saved without its bias: the activation call adds the bias as it reads. */
#include <assert.h>
#include <stdint.h>

#include "cpu/blocks.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/site.h"
#include "cpu/weight.h"
#include "cpu/work.h"

static void act_call(const op_call *c, berlu_act_op op, const berlu_act_call *call)
{
    berlu_status status = berlu_act_run(c->attr->act, op, call, &(berlu_exec){.threads = 1});
    assert(status == BERLU_OK);
    (void)status;
}

/* ---- forward --------------------------------------------------------------------------------- */

static size_t forward_scratch(const op_call *c, int64_t rows)
{
    float dummy = 0; /* any non-NULL address: only that is checked */
    berlu_act_call call = site_call(c, 3, rows, c->out[0].channels);
    call.x = call.y = &dummy;
    for (int i = 0; i < c->attr->act_params; i++)
        call.param[c->attr->act_param[i]].value = &dummy;
    return align_64(berlu_act_workspace(c->attr->act, BERLU_ACT_FORWARD, &call));
}

size_t cpu_linear_act_workspace(const op_call *c)
{
    return weight_bytes(c) + (size_t)c->threads * forward_scratch(c, blocks_of_call(c).size);
}

static void block_forward(const op_call *c, const blocks *b, int64_t i, size_t scratch)
{
    const float *x = c->in[0].data, *bias = c->in[2].data;
    int64_t inputs = c->in[0].channels, outputs = c->out[0].channels, begin = block_begin(b, i),
            rows = block_rows(b, i);
    int whole = c->out[1].data && !c->attr->raw; /* the saved tensor includes the bias */
    float *y = (float *)c->out[0].data + begin * outputs;
    float *u = c->out[1].data ? (float *)c->out[1].data + begin * outputs : y;
    gemm(rows, outputs, inputs, 1, (gemm_matrix){x + begin * inputs, inputs, 0}, weight_matrix(c), 0, u, outputs);
    if (whole && bias)
        simd_of(c)->finish_rows(u, bias, NULL, rows, outputs);
    berlu_act_call call = site_call(c, 3, rows, outputs);
    call.x = u;
    call.y = y;
    call.bias = whole ? NULL : bias;
    call.workspace = (char *)c->workspace + weight_bytes(c) + (size_t)omp_get_thread_num() * scratch;
    call.workspace_bytes = scratch;
    act_call(c, BERLU_ACT_FORWARD, &call);
}

void cpu_linear_act_rows(const op_call *c, int64_t begin, int64_t rows)
{
    blocks b = blocks_of_call(c);
    size_t scratch = forward_scratch(c, b.size);
    for (int64_t i = begin / b.size; i < blocks_end(&b, begin, rows); i++)
        block_forward(c, &b, i, scratch);
}

void cpu_linear_act(const op_call *c)
{
    blocks b = blocks_of_call(c);
    size_t scratch = forward_scratch(c, b.size);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    {
        weight_copy(c);
        for (int64_t i; (i = work_take(&s)) >= 0;)
            block_forward(c, &b, i, scratch);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Layout of a block's partial sums: bias gradient, then one or `channels` elements per learned
 * parameter. */
typedef struct partials {
    int64_t bias, param[ACT_PARAMS], width[ACT_PARAMS]; /* offsets in floats; their number */
    int64_t stride;
    float *data;
} partials;

static partials partials_make(const op_call *c)
{
    partials p = {.stride = c->out[4].info ? c->out[0].channels : 0};
    for (int i = 0; i < c->attr->act_params; i++) {
        p.param[i] = p.stride;
        p.width[i] = c->in[4 + i].channels;
        p.stride += p.width[i];
    }
    return p;
}

static berlu_act_op backward_op(const op_call *c)
{
    return c->attr->from_output ? BERLU_ACT_BACKWARD_FROM_OUTPUT : BERLU_ACT_BACKWARD;
}

static size_t backward_scratch(const op_call *c, int64_t rows)
{
    float dummy = 0;
    berlu_act_call call = site_call(c, 4, rows, c->out[0].channels);
    call.x = call.dy = call.bias = &dummy;
    call.dx = &dummy;
    call.y = c->out[1].info || c->attr->from_output ? &dummy : NULL;
    call.dbias = c->out[4].info ? &dummy : NULL;
    for (int i = 0; i < c->attr->act_params; i++)
        call.param[c->attr->act_param[i]] = (berlu_act_param_arg){&dummy, c->in[4 + i].channels > 1, &dummy};
    return align_64(berlu_act_workspace(c->attr->act, backward_op(c), &call));
}

size_t cpu_linear_dx_act_workspace(const op_call *c)
{
    blocks b = blocks_of_call(c);
    return weight_bytes(c) + (size_t)c->threads * backward_scratch(c, b.size) +
           (size_t)(partials_make(c).stride * b.count) * sizeof(float);
}

static void block_backward(const op_call *c, const partials *p, const blocks *b, int64_t i, size_t bytes)
{
    int64_t begin = block_begin(b, i), rows = block_rows(b, i), channels = c->out[0].channels,
            behind = c->in[0].channels;
    float *du = (float *)c->out[0].data + begin * channels, *part = p->data + i * p->stride;
    gemm(rows, channels, behind, 1, (gemm_matrix){(const float *)c->in[0].data + begin * behind, behind, 0},
         weight_matrix(c), 0, du, channels);
    berlu_act_call call = site_call(c, 4, rows, channels);
    call.dy = call.dx = du;
    float *held = (float *)c->in[2].data + begin * channels;
    if (c->attr->from_output)
        call.y = held;
    else {
        call.x = held;
        call.y = c->out[1].data ? (float *)c->out[1].data + begin * channels : NULL;
        call.bias = c->attr->raw ? c->in[3].data : NULL;
    }
    call.dbias = c->out[4].data ? part + p->bias : NULL;
    for (int k = 0; k < c->attr->act_params; k++)
        call.param[c->attr->act_param[k]].grad = part + p->param[k];
    call.workspace = (char *)c->workspace + weight_bytes(c) + (size_t)omp_get_thread_num() * bytes;
    call.workspace_bytes = bytes;
    act_call(c, backward_op(c), &call);
}

/* The workspace: the weight, the threads' scratch, the partial sums. */
static partials partials_at(const op_call *c, size_t scratch)
{
    partials p = partials_make(c);
    p.data = (float *)(void *)((char *)c->workspace + weight_bytes(c) + (size_t)c->threads * scratch);
    return p;
}

void cpu_linear_dx_act_rows(const op_call *c, int64_t begin, int64_t rows)
{
    blocks b = blocks_of_call(c);
    size_t scratch = backward_scratch(c, b.size);
    partials p = partials_at(c, scratch);
    for (int64_t i = begin / b.size; i < blocks_end(&b, begin, rows); i++)
        block_backward(c, &p, &b, i, scratch);
}

void cpu_linear_dx_act_finish(const op_call *c)
{
    blocks b = blocks_of_call(c);
    partials p = partials_at(c, backward_scratch(c, b.size));
    if (c->out[4].data)
        tree_sum_columns(c->out[4].data, p.data + p.bias, (size_t)b.count, p.stride, c->out[0].channels);
    for (int k = 0; k < c->attr->act_params; k++)
        tree_sum_columns(c->out[2 + k].data, p.data + p.param[k], (size_t)b.count, p.stride, p.width[k]);
}

void cpu_linear_dx_act(const op_call *c)
{
    blocks b = blocks_of_call(c);
    size_t scratch = backward_scratch(c, b.size);
    partials p = partials_at(c, scratch);
    work_queue s;
    work_deal(&s, b.count, c->threads);
#pragma omp parallel num_threads(c->threads)
    {
        weight_copy(c);
        for (int64_t i; (i = work_take(&s)) >= 0;)
            block_backward(c, &p, &b, i, scratch);
    }
    cpu_linear_dx_act_finish(c);
}
