/* stub.c - see stub.h. SPDX-License-Identifier: MIT */
#include "cuda/stub.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <berlu/act_cuda.h>

#include "act/act_internal.h"
#include "act/cuda/fused_call.h"
#include "base/half.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "cuda/kernels.h"

stub_machine stub;

void stub_reset(void)
{
    int alive = stub.allocations;
    stub = (stub_machine){.gpus = 1, .memory = (size_t)1 << 32, .version = "13.1.0", .offers = 3, .processors = 7};
    stub.cost[0] = 3e-6, stub.cost[1] = 1e-6, stub.cost[2] = 2e-6;
    stub.allocations = alive;
}

/* ---- work: done at once, or kept while a stream is captured ---- */

/* Work of a captured stream. Without `run` it is the record of `event`, or with `waits` the wait for it. */
typedef struct work {
    void (*run)(const void *data);
    void *data;
    cuda_stream stream;
    cuda_event event;
    int waits;
    struct work *next;
} work;
struct CUgraphExec_st {
    work *first;
    cuda_stream main; /* the stream whose capture it was */
};
struct CUevent_st {
    double time;
    int used, recorded, waited;
};
static struct CUevent_st events[1 << 14]; /* a device has a thousand: no malloc each, tests make every one fail */
enum { POISONED = 1 << 16, FLUSH = 128 << 20 };
static work *captured, **captured_end;
static int capturing, launch_error;
static cuda_stream capturing_stream;
static double now;

static work *captured_add(cuda_stream s)
{
    work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->stream = s;
    *captured_end = w;
    captured_end = &w->next;
    return w;
}

static void enqueue(cuda_stream s, void (*run)(const void *), const void *data, size_t bytes)
{
    if (!capturing) {
        run(data);
        return;
    }
    work *w = captured_add(s);
    w->run = run;
    w->data = malloc(bytes);
    memcpy(w->data, data, bytes);
}

static void order_add(cuda_stream s, cuda_event e, int waits)
{
    work *w = captured_add(s);
    w->event = e;
    w->waits = waits;
}

static void work_free(work *w)
{
    for (work *next; w; w = next) {
        next = w->next;
        free(w->data);
        free(w);
    }
}

static int launch_ok(void)
{
    stub.launches++;
    if (stub.launch_fails && --stub.launch_fails == 0) {
        launch_error = 1;
        return 0;
    }
    return 1;
}

/* ---- cuda_api.h: devices, memory, events ---- */

berlu_status gpu_count(int *out)
{
    *out = stub.gpus;
    if (stub.old_driver)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: the NVIDIA driver is too old");
    return stub.gpus ? BERLU_OK : berlu_fail(BERLU_ERR_DEVICE, "CUDA: this machine has no GPU that can be used");
}

berlu_status gpu_describe(gpu_properties *out, int index)
{
    assert_true(index >= 0 && index < stub.gpus);
    *out = (gpu_properties){
        .name = "Stub|GPU", .major = 9, .minor = stub.minor, .processors = stub.processors, .memory = stub.memory};
    return BERLU_OK;
}

berlu_status gpu_use(int index)
{
    assert_true(index >= 0 && index < stub.gpus);
    return BERLU_OK;
}

berlu_status gpu_memory(size_t *free_bytes)
{
    *free_bytes = stub.memory;
    return BERLU_OK;
}

berlu_status gpu_alloc(void **out, size_t bytes)
{
    assert_false(capturing);
    if (bytes > stub.memory)
        return berlu_fail(BERLU_ERR_MEMORY, "CUDA: allocating memory");
    *out = aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (!*out)
        return berlu_fail(BERLU_ERR_MEMORY, "CUDA: allocating memory");
    memset(*out, 0xa5, bytes < POISONED ? bytes : POISONED); /* fresh memory is not zero */
    stub.allocations++;
    return BERLU_OK;
}

void gpu_free(void *memory)
{
    stub.allocations -= memory != NULL;
    free(memory);
}

berlu_status gpu_host_alloc(void **out, size_t bytes)
{
    return gpu_alloc(out, bytes);
}

void gpu_host_free(void *memory)
{
    gpu_free(memory);
}

berlu_status gpu_stream_create(cuda_stream *out)
{
    *out = malloc(1);
    stub.allocations += *out != NULL;
    return *out ? BERLU_OK : berlu_fail_memory(1, "a stream");
}

void gpu_stream_destroy(cuda_stream s)
{
    gpu_free(s);
}

berlu_status gpu_stream_wait(cuda_stream s)
{
    (void)s;
    assert_false(capturing);
    return BERLU_OK;
}

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
} copy_work;

static void copy_run(const void *data)
{
    const copy_work *w = data;
    if (w->from)
        memmove(w->to, w->from, w->bytes);
    else if (w->bytes < FLUSH)
        memset(w->to, 0, w->bytes); /* a larger block only empties a cache that is not here */
}

berlu_status gpu_copy(void *to, const void *from, size_t bytes, gpu_direction direction, cuda_stream s)
{
    (void)direction;
    stub.copies++;
    enqueue(s, copy_run, &(copy_work){to, from, bytes}, sizeof(copy_work));
    return BERLU_OK;
}

berlu_status gpu_zero(void *memory, size_t bytes, cuda_stream s)
{
    enqueue(s, copy_run, &(copy_work){memory, NULL, bytes}, sizeof(copy_work));
    return BERLU_OK;
}

berlu_status gpu_event_create(cuda_event *out, int timed)
{
    (void)timed;
    *out = events;
    while ((*out)->used)
        assert_true(++*out < events + COUNT(events));
    **out = (struct CUevent_st){.used = 1};
    stub.allocations++;
    return BERLU_OK;
}

void gpu_event_destroy(cuda_event e)
{
    stub.allocations -= e != NULL;
    if (e)
        e->used = 0;
}

berlu_status gpu_event_record(cuda_event e, cuda_stream s)
{
    *e = (struct CUevent_st){.time = now, .used = 1, .recorded = 1};
    if (capturing)
        order_add(s, e, 0);
    return BERLU_OK;
}

berlu_status gpu_stream_after(cuda_stream s, cuda_event e)
{
    assert_true(capturing && e->recorded); /* outside of captures there is one stream */
    order_add(s, e, 1);
    return BERLU_OK;
}

berlu_status gpu_event_wait(cuda_event e)
{
    e->waited = 1;
    return BERLU_OK;
}

berlu_status gpu_event_done(cuda_event e, int *done)
{
    *done = !stub.events_late || !e->recorded || e->waited;
    return BERLU_OK;
}

berlu_status gpu_event_seconds(double *out, cuda_event from, cuda_event to)
{
    assert_true(from->recorded && to->recorded);
    *out = to->time - from->time;
    return BERLU_OK;
}

/* ---- capture ---- */

berlu_status gpu_capture_begin(cuda_stream s)
{
    assert_false(capturing);
    stub.captures++;
    capturing = 1;
    capturing_stream = s;
    captured = NULL;
    captured_end = &captured;
    return BERLU_OK;
}

berlu_status gpu_capture_end(cuda_stream s, cuda_graph *out)
{
    (void)s;
    assert_true(capturing);
    capturing = 0;
    cuda_graph made = out ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        work_free(captured);
        return out ? berlu_fail_memory(sizeof *made, "a graph") : BERLU_OK;
    }
    stub.allocations++;
    made->first = captured;
    made->main = capturing_stream;
    *out = made;
    return BERLU_OK;
}

/* Work of the second stream from *next on, up to the record of `event`. */
static void side_run(const work **next, cuda_stream main, cuda_event event)
{
    for (int found = 0; !found; *next = (*next)->next) {
        assert_non_null(*next); /* the event is recorded there */
        if ((*next)->stream == main)
            continue;
        if ((*next)->run)
            (*next)->run((*next)->data);
        found = !(*next)->run && !(*next)->waits && (*next)->event == event;
    }
}

/* The second stream does nothing until somebody has to wait for it: whatever lacks a wait shows in the results. */
berlu_status gpu_graph_launch(cuda_graph g, cuda_stream s)
{
    const work *side = g->first;
    assert_ptr_equal(s, g->main);
    stub.graph_launches++;
    for (const work *w = g->first; w; w = w->next) {
        stub.side_work += w->stream != g->main && w->run;
        if (w->stream == g->main && w->run)
            w->run(w->data);
        else if (w->stream == g->main && w->waits)
            side_run(&side, g->main, w->event);
    }
    for (; side; side = side->next)
        assert_true(side->stream == g->main || !side->run); /* a stream that nobody joined */
    return BERLU_OK;
}

void gpu_graph_free(cuda_graph g)
{
    if (g)
        work_free(g->first);
    gpu_free(g);
}

berlu_status gpu_launch_status(void)
{
    int failed = launch_error;
    launch_error = 0;
    return failed ? berlu_fail(BERLU_ERR_DEVICE, "CUDA: starting a kernel: no") : BERLU_OK;
}

/* ---- elements ---- */

static float element(const void *data, int bf16, int64_t i)
{
    return bf16 ? bf16_to_f32(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

static void element_set(void *data, int bf16, int64_t i, double x)
{
    if (bf16)
        ((uint16_t *)data)[i] = bf16_from_f32((float)x);
    else
        ((float *)data)[i] = (float)x;
}

/* ---- cuBLASLt ---- */

struct lt_library {
    int dummy;
};
struct lt_plan {
    lt_product product;
};

berlu_status lt_open(lt_library **out)
{
    if (stub.no_library)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: cuBLASLt is missing");
    *out = calloc(1, sizeof **out);
    stub.allocations += *out != NULL;
    return *out ? BERLU_OK : berlu_fail_memory(sizeof **out, "cuBLASLt");
}

void lt_close(lt_library *lt)
{
    gpu_free(lt);
}

void lt_version(const lt_library *lt, char out[32])
{
    (void)lt;
    strcpy(out, stub.version);
}

berlu_status lt_plan_make(lt_plan **out, lt_library *lt, const lt_product *p)
{
    (void)lt;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return berlu_fail_memory(sizeof **out, "a product");
    (*out)->product = *p;
    stub.allocations++;
    return BERLU_OK;
}

void lt_plan_free(lt_plan *plan)
{
    gpu_free(plan);
}

int lt_offers(lt_plan *plan, size_t workspace_bytes, lt_algorithm *out, int most)
{
    (void)workspace_bytes;
    if (stub.no_products || (stub.no_bias_epilogue && plan->product.bias))
        return 0;
    int count = stub.offers < most ? stub.offers : most;
    for (int i = 0; i < count; i++)
        out[i] = (lt_algorithm){.bytes = {(unsigned char)i, 0xbe}};
    return count;
}

int lt_accepts(lt_plan *plan, const lt_algorithm *a, size_t workspace_bytes)
{
    (void)plan, (void)workspace_bytes;
    return a->bytes[1] == 0xbe && a->bytes[0] != stub.refused - 1;
}

typedef struct product_work {
    lt_product p;
    lt_pointers at;
} product_work;

static void product_run(const void *data)
{
    const product_work *w = data;
    const lt_product *p = &w->p;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++) {
            double sum = p->bias ? element(w->at.bias, p->out_bf16, i) : 0;
            sum += p->add ? element(w->at.c, p->out_bf16, j * p->m + i) : 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (double)element(w->at.a, p->in_bf16, p->transpose_a ? i * p->k + k : k * p->m + i) *
                       element(w->at.b, p->in_bf16, p->transpose_b ? k * p->n + j : j * p->k + k);
            element_set(w->at.d, p->out_bf16, j * p->m + i, sum);
        }
}

berlu_status lt_run(lt_plan *plan, const lt_algorithm *a, const lt_pointers *p, cuda_stream s)
{
    assert_int_equal(a->bytes[1], 0xbe);
    assert_true(p->workspace && p->workspace_bytes);
    uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->d | (uintptr_t)p->bias;
    assert_int_equal(all % (uintptr_t)plan->product.align, 0);
    stub.products++;
    now += stub.cost[a->bytes[0]];
    enqueue(s, product_run, &(product_work){plan->product, *p}, sizeof(product_work));
    return BERLU_OK;
}

/* ---- kernels: the CPU's reference; real entry points of src/cuda/.c files come before these weak ones ---- */

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

static void call_run(const void *data)
{
    const op_call *c = *(const op_call *const *)data;
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
    cpu_ref_backend()->ops[c->op].run(&wide);
    sums_write(&wide);
    copy_write(&wide);
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
    if (launch_ok())
        enqueue(cuda_device_of(c)->stream, call_run, &c, sizeof(const op_call *));
    cuda_launched(c);
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
    op_workspace ask = cpu_ref_backend()->ops[c->op].workspace;
    return ask ? ask(c) : 0;
}

size_t cuda_norm_grad_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_attention_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_attention_grad_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_tokens_grad_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_pixel_pos_grad_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_depthwise_dw_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_scale_grad_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_loss_workspace(const op_call *c)
{
    return workspace_of(c);
}
size_t cuda_grad_norm_workspace(const op_call *c)
{
    return workspace_of(c);
}

/* ---- what src/cuda/linear.c and act.c call ---- */

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
    if (launch_ok())
        enqueue(cuda_device_of(c)->stream, convert_run, &w, sizeof w);
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
    if (launch_ok())
        enqueue(cuda_device_of(c)->stream, plain_run, p, sizeof *p);
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
    if (launch_ok())
        enqueue(cuda_device_of(c)->stream, finish_run, &w, sizeof w);
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
    if (launch_ok())
        enqueue(cuda_device_of(c)->stream, columns_run, &(columns_work){*s, *s->a, workspace}, sizeof(columns_work));
    cuda_launched(c);
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
    if (!launch_ok()) {
        launch_error = 0;
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: an activation: no");
    }
    enqueue(stream, act_run, &(act_work){act, op, *call}, sizeof(act_work));
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

/* ---- rows.cu: the jobs alone ---- */

size_t act_cuda_fused_row(const berlu_act *act)
{
    return act->place;
}

fused_job act_cuda_fused_job(const berlu_act *act, berlu_act_op op, const berlu_act_call *call)
{
    return (fused_job){.rows = call->rows,
                       .channels = call->channels,
                       .scale = act->scale,
                       .center = act->center,
                       .shape_count = (int)act->shape.count,
                       .x = call->x,
                       .y = call->y,
                       .dx = op == BERLU_ACT_BACKWARD ? call->dx : NULL};
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
    (void)act, (void)call, (void)stream;
    for (int p = 0; p < BERLU_ACT_PARAMS; p++)
        stub.joined_layers += job->layer_sum[p] ? tiles : 0;
    stub.joined_columns += job->bias_sum ? row_blocks : 0;
    return BERLU_OK;
}

static berlu_status rows_launch(const rows_job *job, cuda_stream stream)
{
    (void)stream;
    stub.rows++;
    stub.rows_job = *job;
    return launch_ok() ? BERLU_OK : gpu_launch_status();
}

#define ACT(name) const rows_kernels cuda_rows_##name = {rows_launch, rows_launch};
#include "act/list.h"
#undef ACT
