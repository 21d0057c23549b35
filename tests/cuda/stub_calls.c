/* stub_calls.c - what linear.c, act.c and rows.c of src/cuda call beside the ops, on the GPU made
 * of malloc. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <berlu/act_cuda.h>

#include "act/act_internal.h"
#include "act/cuda/fused_call.h"
#include "cuda/stub_internal.h"

int cuda_kernels_usable(void)
{
    return !stub.no_code;
}

typedef struct convert_work {
    void *to;
    const void *from;
    int to_bf16, from_bf16;
    int64_t count;
} convert_work;

static void convert_run(const void *data)
{
    const convert_work *w = data;
    for (int64_t i = 0; i < w->count; i++)
        element_set(w->to, w->to_bf16, i, element(w->from, w->from_bf16, i));
}

void cuda_convert(const op_call *c, void *to, tensor_dtype to_dtype, const void *from, tensor_dtype from_dtype,
                  int64_t count)
{
    convert_work w = {to, from, to_dtype == DTYPE_BF16, from_dtype == DTYPE_BF16, count};
    if (stub_launch_ok())
        stub_enqueue(cuda_device_of(c)->stream, convert_run, &w, sizeof w);
    cuda_launched(c);
}

static int is_bf16(const op_operand *o)
{
    return o->dtype == DTYPE_BF16;
}

static void plain_run(const void *data)
{
    const plain_product *p = data;
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t j = 0; j < p->columns; j++) {
            int64_t at = r * p->columns + j;
            double sum = p->bias.data ? element(p->bias.data, is_bf16(&p->bias), j) : 0;
            sum += p->residual.data ? element(p->residual.data, is_bf16(&p->residual), at) : 0;
            for (int64_t i = 0; i < p->depth; i++)
                sum += (double)element(p->a.data, is_bf16(&p->a), r * p->a_row + i * p->a_depth) *
                       element(p->b.data, is_bf16(&p->b), j * p->b_row + i * p->b_depth);
            element_set(p->y.data, is_bf16(&p->y), at, sum);
        }
}

void cuda_product_plain(const op_call *c, const plain_product *p)
{
    if (stub_launch_ok())
        stub_enqueue(cuda_device_of(c)->stream, plain_run, p, sizeof *p);
    cuda_launched(c);
}

typedef struct finish_work {
    op_operand y, bias, residual;
    int64_t rows, columns;
} finish_work;

static void finish_run(const void *data)
{
    const finish_work *w = data;
    for (int64_t i = 0; i < w->rows * w->columns; i++) {
        double y = element(w->y.data, is_bf16(&w->y), i);
        y += w->bias.data ? element(w->bias.data, is_bf16(&w->bias), i % w->columns) : 0;
        y += w->residual.data ? element(w->residual.data, is_bf16(&w->residual), i) : 0;
        element_set(w->y.data, is_bf16(&w->y), i, y);
    }
}

void cuda_rows_finish(const op_call *c, const op_operand *y, const op_operand *bias, const op_operand *residual,
                      int64_t rows, int64_t columns)
{
    finish_work w = {.y = *y, .rows = rows, .columns = columns};
    if (bias)
        w.bias = *bias;
    if (residual)
        w.residual = *residual;
    if (stub_launch_ok())
        stub_enqueue(cuda_device_of(c)->stream, finish_run, &w, sizeof w);
    cuda_launched(c);
}

typedef struct columns_work {
    column_sums s;
    op_operand a;
    float *workspace;
} columns_work;

/* Writes the whole workspace, so that an overlap with an operand shows. */
static void columns_run(const void *data)
{
    const columns_work *w = data;
    for (int64_t j = 0; j < w->s.columns; j++) {
        double sum = 0;
        for (int64_t r = 0; r < w->s.rows; r++)
            sum += element(w->a.data, is_bf16(&w->a), w->s.first + r * w->s.stride + j);
        w->workspace[j] = (float)sum;
        w->s.to[j] = (float)sum;
    }
}

size_t cuda_columns_workspace(int64_t rows, int64_t columns)
{
    (void)rows;
    return (size_t)columns * sizeof(float);
}

void cuda_columns(const op_call *c, const column_sums *s, void *workspace)
{
    assert_true(!s->b && !s->inner); /* linear.c asks for plain sums */
    if (stub_launch_ok())
        stub_enqueue(cuda_device_of(c)->stream, columns_run, &(columns_work){*s, *s->a, workspace},
                     sizeof(columns_work));
    cuda_launched(c);
}

typedef struct ends_work {
    cuda_end ends[ENDS_MOST];
    int count;
} ends_work;

static void ends_run(const void *data)
{
    const ends_work *w = data;
    for (const cuda_end *e = w->ends; e < w->ends + w->count; e++)
        for (int64_t j = 0; j < e->columns; j++) {
            double sum = 0;
            for (int64_t p = 0; p < e->parts; p++)
                sum += (double)e->part[p * e->stride + j];
            e->to[e->inner ? j % e->inner * (e->columns / e->inner) + j / e->inner : j] = (float)sum;
        }
}

void cuda_ends_launch(cuda_device *d, const cuda_end *ends, int count)
{
    ends_work w = {.count = count};
    assert_true(count > 0 && count <= ENDS_MOST);
    memcpy(w.ends, ends, (size_t)count * sizeof *ends);
    stub.end_launches++;
    stub.ends += count;
    if (stub_launch_ok())
        stub_enqueue(d->stream, ends_run, &w, sizeof w);
}

typedef struct act_work {
    const berlu_act *act;
    berlu_act_op op;
    berlu_act_call call;
} act_work;

static void act_run(const void *data)
{
    const act_work *w = data;
    assert_int_equal(berlu_act_run(w->act, w->op, &w->call, &(berlu_exec){.threads = 1}), BERLU_OK);
}

size_t berlu_act_cuda_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    return berlu_act_workspace(act, op, call);
}

berlu_status berlu_act_cuda_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream)
{
    if (!stub_launch_ok()) {
        (void)gpu_launch_status(); /* which clears the error */
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: an activation: no");
    }
    stub_enqueue(stream, act_run, &(act_work){act, op, *call}, sizeof(act_work));
    return BERLU_OK;
}

int act_cuda_fused_takes(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    (void)act, (void)op;
    int takes = call->dtype == BERLU_BF16; /* the CPU has no estimates: what follows is the library's own */
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        takes = takes && !call->param[p].stride;
    return takes;
}

size_t act_cuda_fused_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    return berlu_act_cuda_workspace(act, op, call);
}

berlu_status act_cuda_fused(const berlu_act *act, berlu_act_op op, const berlu_act_call *call, void *stream)
{
    return berlu_act_cuda_run(act, op, call, stream);
}

/* ---- rows.cu: the jobs alone ----------------------------------------------------------------- */

size_t act_cuda_fused_row(const berlu_act *act)
{
    return act->place;
}

fused_job act_cuda_fused_job(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    int from_output = op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
    fused_job job = {.rows = call->rows,
                     .channels = call->channels,
                     .scale = act->scale,
                     .center = act->center,
                     .shape_count = (int)act->shape.count,
                     .from_output = from_output,
                     .x = from_output ? call->y : call->x,
                     .y = from_output ? NULL : call->y,
                     .dx = op == BERLU_ACT_FORWARD ? NULL : call->dx};
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        job.param[p] = call->param[p].value;
    return job;
}

size_t act_cuda_fused_place(fused_job *job, const berlu_act *act, const berlu_act_call *call, size_t row_blocks,
                            size_t tiles, uintptr_t base)
{
    (void)act;
    uintptr_t at = base;
    for (int p = 0; p < BERLU_ACT_PARAMS && job->dx; p++)
        if (call->param[p].grad) {
            job->layer_sum[p] = (double *)at;
            at += tiles * sizeof(double);
        }
    if (call->dbias && job->dx) {
        job->bias_sum = (float *)at;
        at += row_blocks * job->channels * sizeof(float);
    }
    return at - base;
}

berlu_status act_cuda_fused_join(const fused_job *job, const berlu_act *act, const berlu_act_call *call,
                                 size_t row_blocks, size_t tiles, void *stream)
{
    (void)act, (void)call, (void)row_blocks, (void)stream;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        stub.joined_layers += job->layer_sum[p] ? tiles : 0;
    assert_null(job->bias_sum); /* an end of rows.c */
    return BERLU_OK;
}

static berlu_status rows_launch(const rows_job *job, cuda_stream stream)
{
    (void)stream;
    stub.rows++;
    stub.rows_job = *job;
    return stub_launch_ok() ? BERLU_OK : gpu_launch_status();
}

/* linear_norm.cu: the job alone too. */
void cuda_linear_norm_rows(const linear_norm_job *job, cuda_stream stream)
{
    (void)stream;
    stub.linear_norms++;
    stub.linear_norm_job = *job;
    (void)stub_launch_ok();
}

/* mlp.cu: likewise. */
static berlu_status mlp_launch(const mlp_job *job, cuda_stream stream)
{
    (void)stream;
    stub.mlps++;
    stub.mlp_job = *job;
    return stub_launch_ok() ? BERLU_OK : gpu_launch_status();
}

#define ACT(name)                                                                                                      \
    const rows_kernels cuda_rows_##name = {rows_launch, rows_launch};                                                  \
    const mlp_kernels cuda_mlp_##name = {mlp_launch};
#include "act/list.h"
#undef ACT
