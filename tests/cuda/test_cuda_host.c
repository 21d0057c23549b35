/* test_cuda_host.c - the host side of the CUDA backend over a GPU made of malloc (stub.h).
 * SPDX-License-Identifier: MIT
 *
 * Runs everywhere. Kernels are the CPU's reference here, so what is proven is what stands around
 * them: operands of products, workspaces, transfers, programs, captures, error paths. The kernels
 * themselves: test_cuda_engine.c, on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "cuda/compare.h"
#include "cuda/cuda.h"
#include "cuda/kernels.h"
#include "cuda/machine.h"
#include "data/draws_check.h"
#include "engine/engine_internal.h"
#include "models/models.h"
#include "support/fail.h"

static device *open_first(void)
{
    return open_with((device_options){.algorithms = "first"});
}

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_host");
    return 0;
}

/* ---- whole steps ----------------------------------------------------------------------------- */

static void step_run(prepared *p)
{
    if (engine_forward(p->e, &p->step) != BERLU_OK || engine_backward(p->e) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

static void every_case_passes(device_options options, const bounds *within)
{
    device *d = open_with(options);
    for (int i = 0; i < graph_case_count; i++) {
        const graph_case *c = &graph_cases[i];
        prepared got = case_prepare_on(c, cuda_backend(), d, 1), want = case_prepare(c, cpu_f64_backend(), 1);
        step_run(&want);
        for (int run = 0; run < 3; run++) { /* launched, captured, replayed */
            step_run(&got);
            arrays_compare(c->name, ARRAY_GRADIENT, &got, &want, within->own, within->share);
        }
        for (int run = 0; run < 2; run++)
            assert_int_equal(engine_update(got.e), BERLU_OK);
        case_free(&got);
        case_free(&want);
    }
    cuda_backend()->close(d);
    nothing_is_left();
}

static void every_case_equals_the_reference_when_launched_captured_and_replayed(void **state)
{
    (void)state;
    every_case_passes((device_options){0}, &within_f32);
}

static void every_case_equals_the_reference_where_the_library_takes_no_bias(void **state)
{
    (void)state;
    stub.no_bias_epilogue = 1;
    every_case_passes((device_options){0}, &within_f32);
}

static void every_case_equals_the_reference_where_the_library_offers_nothing(void **state)
{
    (void)state;
    stub.no_products = 1;
    every_case_passes((device_options){0}, &within_f32);
    assert_int_equal(stub.products, 0);
}

/* Dtypes of every operand as on a GPU; the arithmetic between them is the reference's. */
static void every_case_in_bf16_equals_the_reference(void **state)
{
    (void)state;
    every_case_passes((device_options){.precision = "bf16"}, &within_bf16);
    every_case_passes((device_options){.precision = "bf16", .residual = "f32"}, &within_bf16);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void a_program_is_launched_once_then_captured_then_replayed(void **state)
{
    (void)state;
    prepared p = case_prepare(&graph_cases[0], cuda_backend(), 1);
    step_run(&p);
    int launches = stub.launches;
    assert_true(launches > 0);
    assert_int_equal(stub.captures, 0);
    step_run(&p);
    assert_int_equal(stub.launches, 2 * launches); /* the same launches, into a graph */
    assert_int_equal(stub.captures, 2);            /* forward and backward */
    assert_int_equal(stub.graph_launches, 2);
    for (int i = 0; i < 3; i++)
        step_run(&p);
    assert_int_equal(stub.launches, 2 * launches);
    assert_int_equal(stub.captures, 2);
    assert_int_equal(stub.graph_launches, 8);
    case_free(&p);
    nothing_is_left();
}

static void a_profile_times_every_call_and_captures_nothing(void **state)
{
    (void)state;
    graph_case c = graph_cases[0];
    c.options.profile = 1;
    prepared p = case_prepare(&c, cuda_backend(), 1);
    text out = {0};
    for (int i = 0; i < 3; i++)
        step_run(&p);
    assert_int_equal(stub.captures, 0);
    assert_int_equal(engine_profile_text(p.e, &(engine_profile){0}, &out), BERLU_OK);
    assert_non_null(strstr(out.data, "linear")); /* products alone take time on this machine */
    text_free(&out);
    case_free(&p);
}

static void a_kernel_that_cannot_be_launched_ends_the_run_with_its_name(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) { /* while it is launched, while it is captured */
        prepared p = case_prepare(&graph_cases[0], cuda_backend(), 1);
        for (int i = 0; i < run; i++)
            assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
        stub.launch_fails = 1;
        assert_int_equal(engine_forward(p.e, &p.step), BERLU_ERR_DEVICE);
        assert_non_null(strstr(berlu_last_error(), "unfold: CUDA: "));
        stub.launch_fails = 0;
        step_run(&p); /* and the next run is whole again */
        case_free(&p);
    }
    nothing_is_left();
}

/* ---- products of mixed dtypes ---------------------------------------------------------------- */

enum { ROWS = 5, OUTPUTS = 3, INPUTS = 4 };

static op_operand operand_make(device *d, tensor_dtype dtype, int64_t rows, int64_t channels, int seed)
{
    static const tensor_info info = {.rank = 2};
    float values[64];
    uint16_t halves[64];
    for (int i = 0; i < rows * channels; i++) {
        values[i] = (float)((i * 7 + seed * 5) % 16 - 8) / 4; /* exact in bf16, and so are all sums below */
        halves[i] = bf16_from_f32(values[i]);
    }
    op_operand o = {.rows = rows, .channels = channels, .dtype = dtype, .info = &info};
    assert_int_equal(cuda_backend()->alloc(d, &o.data, MEMORY_DEVICE, 64 * sizeof(float), "a test"), BERLU_OK);
    cuda_backend()->upload(d, o.data, dtype == DTYPE_BF16 ? (void *)halves : (void *)values,
                           (size_t)(rows * channels) * (dtype == DTYPE_BF16 ? 2 : 4));
    return o;
}

static double value_of(const op_operand *o, int64_t i)
{
    if (o->dtype == DTYPE_F32)
        return ((float *)o->data)[i];
    return bf16_to_f32(((uint16_t *)o->data)[i]);
}

static void call_run(device *d, op_call *c)
{
    program *p = NULL;
    c->device = d;
    c->batch = 1;
    size_t bytes = cuda_linear_workspace(c);
    assert_int_equal(cuda_backend()->alloc(d, &c->workspace, MEMORY_DEVICE, bytes + 256, "a workspace"), BERLU_OK);
    memset((char *)c->workspace + bytes, 0x77, 256);
    assert_int_equal(cuda_backend()->prepare(d, &p, c, 1, &(program_options){0}), BERLU_OK);
    assert_int_equal(cuda_backend()->run(p), BERLU_OK);
    for (size_t i = 0; i < 256; i++) /* what was asked for is enough */
        assert_int_equal(((unsigned char *)c->workspace)[bytes + i], 0x77);
    cuda_backend()->program_free(p);
    cuda_backend()->release(d, MEMORY_DEVICE, c->workspace);
    for (int i = 0; i < NODE_INPUTS; i++)
        cuda_backend()->release(d, MEMORY_DEVICE, c->in[i].data);
}

static tensor_dtype dtype_at(int bits, int i)
{
    return bits >> i & 1 ? DTYPE_BF16 : DTYPE_F32;
}

static void a_layer_takes_any_mixture_of_dtypes(void **state)
{
    (void)state;
    device *d = open_first();
    for (int bits = 0; bits < 32; bits++) {
        op_call c = {.op = OP_LINEAR};
        c.in[0] = operand_make(d, dtype_at(bits, 0), ROWS, INPUTS, 1);
        c.in[1] = operand_make(d, dtype_at(bits, 1), OUTPUTS, INPUTS, 2);
        c.in[2] = operand_make(d, dtype_at(bits, 2), 1, OUTPUTS, 3);
        c.in[3] = operand_make(d, dtype_at(bits, 3), ROWS, OUTPUTS, 4);
        c.out[0] = operand_make(d, dtype_at(bits, 4), ROWS, OUTPUTS, 0);
        double want[ROWS * OUTPUTS];
        for (int i = 0; i < ROWS * OUTPUTS; i++) {
            want[i] = value_of(&c.in[2], i % OUTPUTS) + value_of(&c.in[3], i);
            for (int k = 0; k < INPUTS; k++)
                want[i] += value_of(&c.in[0], i / OUTPUTS * INPUTS + k) * value_of(&c.in[1], i % OUTPUTS * INPUTS + k);
        }
        call_run(d, &c);
        for (int i = 0; i < ROWS * OUTPUTS; i++)
            assert_true(fabs(value_of(&c.out[0], i) - want[i]) <= (c.out[0].dtype == DTYPE_BF16 ? 0x1p-4 : 0));
        cuda_backend()->release(d, MEMORY_DEVICE, c.out[0].data);
    }
    cuda_backend()->close(d);
    nothing_is_left();
}

static void gradients_of_a_layer_take_any_mixture_of_dtypes(void **state)
{
    (void)state;
    device *d = open_first();
    for (int bits = 0; bits < 4; bits++) {
        op_call c = {.op = OP_LINEAR_DW};
        c.in[0] = operand_make(d, dtype_at(bits, 0), ROWS, OUTPUTS, 1);
        c.in[1] = operand_make(d, dtype_at(bits, 1), ROWS, INPUTS, 2);
        c.out[0] = operand_make(d, DTYPE_F32, OUTPUTS, INPUTS, 0);
        c.out[1] = operand_make(d, DTYPE_F32, 1, OUTPUTS, 0);
        double want[OUTPUTS * INPUTS] = {0}, bias[OUTPUTS] = {0};
        for (int r = 0; r < ROWS; r++)
            for (int n = 0; n < OUTPUTS; n++) {
                bias[n] += value_of(&c.in[0], r * OUTPUTS + n);
                for (int k = 0; k < INPUTS; k++)
                    want[n * INPUTS + k] += value_of(&c.in[0], r * OUTPUTS + n) * value_of(&c.in[1], r * INPUTS + k);
            }
        call_run(d, &c);
        for (int i = 0; i < OUTPUTS * INPUTS; i++)
            assert_true(value_of(&c.out[0], i) == want[i]);
        for (int i = 0; i < OUTPUTS; i++)
            assert_true(value_of(&c.out[1], i) == bias[i]);
        cuda_backend()->release(d, MEMORY_DEVICE, c.out[0].data);
        cuda_backend()->release(d, MEMORY_DEVICE, c.out[1].data);
    }
    cuda_backend()->close(d);
    nothing_is_left();
}

/* ---- opening --------------------------------------------------------------------------------- */

static void open_fails(device_options o, berlu_status status, const char *words)
{
    device *d = NULL;
    assert_int_equal(cuda_backend()->open(&d, cuda_backend(), &o), status);
    assert_null(d);
    if (!strstr(berlu_last_error(), words))
        fail_msg("'%s' was expected in: %s", words, berlu_last_error());
    nothing_is_left();
    stub_reset();
}

static void a_device_that_cannot_be_opened_says_why(void **state)
{
    (void)state;
    stub.gpus = 0;
    open_fails((device_options){0}, BERLU_ERR_DEVICE, "no GPU");
    stub.old_driver = 1;
    open_fails((device_options){0}, BERLU_ERR_DEVICE, "driver is too old");
    stub.no_library = 1;
    open_fails((device_options){0}, BERLU_ERR_DEVICE, "cuBLASLt is missing");
    stub.no_code = 1;
    open_fails((device_options){0}, BERLU_ERR_DEVICE, "compute capability 9.0); configure with");
    stub.major = 7, stub.minor = 5;
    open_fails((device_options){0}, BERLU_ERR_DEVICE, "compute capability 7.5; 8.0 is the least");
    open_fails((device_options){.index = 3}, BERLU_ERR_ARG, "no GPU 3");
    open_fails((device_options){.precision = "fp8"}, BERLU_ERR_ARG, "precision 'fp8'");
    open_fails((device_options){.residual = "f16"}, BERLU_ERR_ARG, "residual 'f16'");
    stub.memory = 1 << 20;
    open_fails((device_options){0}, BERLU_ERR_MEMORY, "");
}

static void dtypes_follow_precision_and_residual(void **state)
{
    (void)state;
    tensor_dtype t[ROLE_COUNT];
    device *d = open_with((device_options){.precision = "bf16", .algorithms = "first"});
    cuda_backend()->dtypes(d, t);
    assert_true(t[ROLE_BRANCH] == DTYPE_BF16 && t[ROLE_RESIDUAL] == DTYPE_BF16 && t[ROLE_WEIGHT] == DTYPE_F32);
    assert_true(t[ROLE_GRADIENT] == DTYPE_F32 && t[ROLE_STATISTIC] == DTYPE_F32 && t[ROLE_LOSS] == DTYPE_F32);
    cuda_backend()->close(d);
    d = open_with((device_options){.precision = "bf16", .residual = "f32", .algorithms = "first"});
    cuda_backend()->dtypes(d, t);
    assert_true(t[ROLE_BRANCH] == DTYPE_BF16 && t[ROLE_RESIDUAL] == DTYPE_F32);
    cuda_backend()->close(d);
    d = open_with((device_options){.precision = "tf32", .algorithms = "first"});
    cuda_backend()->dtypes(d, t);
    for (int i = 0; i < ROLE_COUNT; i++)
        assert_int_equal(t[i], DTYPE_F32);
    cuda_backend()->close(d);
}

/* ---- memory and transfers -------------------------------------------------------------------- */

static void too_little_memory_names_what_is_needed_and_what_is_free(void **state)
{
    (void)state;
    device *d = open_first();
    stub.memory = 3 << 20;
    void *memory = NULL;
    assert_int_equal(cuda_backend()->alloc(d, &memory, MEMORY_DEVICE, (size_t)10 << 20, "the arena"), BERLU_ERR_MEMORY);
    assert_null(memory);
    assert_string_equal(berlu_last_error(),
                        "the arena: 10.0 MiB of GPU memory are needed, 3.0 MiB are free; use a smaller batch");
    assert_int_equal(cuda_backend()->free_bytes(d), 3 << 20);
    cuda_backend()->close(d);
}

/* Before anything is allocated: how much, how much is free, and what would fit. */
static void a_batch_that_does_not_fit_names_the_largest_that_does(void **state)
{
    (void)state;
    device *d = open_first();
    model *m = NULL;
    engine *e = NULL;
    int largest = 0;
    engine_options o = {.backend = cuda_backend(), .device = d, .mode = ENGINE_TRAIN, .loss = LOSS_CROSS_ENTROPY};
    assert_int_equal(model_create(&m, "vit_micro", NULL), BERLU_OK);
    o.batch = 4096;
    size_t pieces = ENGINE_ALLOCATIONS * GPU_MEMORY_PIECE; /* what allocations may take beyond the plan */
    stub.memory = ((size_t)160 << 20) + pieces;            /* 64 of it for the second stream's products */
    int before = stub.allocations;
    assert_int_equal(engine_create(&e, m->graph, &o), BERLU_ERR_MEMORY);
    assert_int_equal(stub.allocations, before);
    const char *tail = strstr(berlu_last_error(), "the largest batch that fits is ");
    assert_non_null(tail);
    assert_non_null(strstr(berlu_last_error(), "0.20 GiB are free"));
    assert_int_equal(sscanf(tail, "the largest batch that fits is %d", &largest), 1);
    assert_true(largest > 0 && largest < 4096);
    engine_memory use;
    for (int more = 0; more < 2; more++) {
        o.batch = largest + more;
        assert_int_equal(engine_plan_memory(&use, m->graph, &o), BERLU_OK);
        assert_int_equal(use.total - use.library + pieces > stub.memory, more);
        assert_int_equal(engine_create(&e, m->graph, &o), more ? BERLU_ERR_MEMORY : BERLU_OK);
        engine_free(more ? NULL : e);
    }
    stub.memory = 1 << 16;
    assert_int_equal(engine_create(&e, m->graph, &o), BERLU_ERR_MEMORY);
    assert_non_null(strstr(berlu_last_error(), "not even one image fits"));
    model_free(m);
    cuda_backend()->close(d);
    nothing_is_left();
}

/* Of a tanh of 0.999 bf16 holds 1, and its slope would be 0. */
static void slopes_from_outputs_that_need_f32_are_refused_in_bf16(void **state)
{
    (void)state;
    static const char *const acts[] = {"tanh", "sigmoid", "hard_sigmoid", "relu"};
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
            device *d = open_with((device_options){.precision = bf16 ? "bf16" : "tf32", .algorithms = "first"});
            model *m = NULL;
            engine *e = NULL;
            const model_options with = {.acts = &acts[i], .act_count = 1};
            const engine_options o = {.backend = cuda_backend(),
                                      .device = d,
                                      .mode = ENGINE_TRAIN,
                                      .batch = 4,
                                      .loss = LOSS_CROSS_ENTROPY,
                                      .keep = KEEP_OUTPUT};
            int refused = bf16 && i < 3;
            assert_int_equal(model_create(&m, "vit_micro", &with), BERLU_OK);
            assert_int_equal(engine_create(&e, m->graph, &o), refused ? BERLU_ERR_ARG : BERLU_OK);
            if (refused && !(strstr(berlu_last_error(), acts[i]) && strstr(berlu_last_error(), "bf16")))
                fail_msg("%s: %s", acts[i], berlu_last_error());
            engine_free(refused ? NULL : e);
            model_free(m);
            cuda_backend()->close(d);
        }
    nothing_is_left();
}

/* An update of a run, whole or from micro-batches. */
static void update_once(engine *e, uint32_t number, uint32_t micro_batches)
{
    engine_step step = {.step = number, .count = number + 1, .micro_batches = micro_batches};
    if (micro_batches == 1) {
        assert_int_equal(engine_step_run(e, &step), BERLU_OK);
        return;
    }
    for (; step.micro_batch < micro_batches; step.micro_batch++) {
        assert_int_equal(engine_forward(e, &step), BERLU_OK);
        assert_int_equal(engine_backward(e), BERLU_OK);
    }
    assert_int_equal(engine_update(e), BERLU_OK);
}

/* After a run's first steps too: what the second stream takes when a step is prepared is part of
 * the plan, and what the choice of algorithms before them prepared is given back. */
static void the_plan_names_the_memory_that_steps_take(void **state)
{
    (void)state;
    for (int stream = -1; stream <= 1; stream++)
        for (int micro_batches = 1; micro_batches <= (stream ? 1 : 2); micro_batches++) {
            device *d = open_with((device_options){
                .algorithms = "first", .precision = "bf16", .residual = "f32", .second_stream = stream});
            model *m = NULL;
            engine *e = NULL;
            engine_options o = {.backend = cuda_backend(), .device = d, .mode = ENGINE_TRAIN};
            o.loss = LOSS_CROSS_ENTROPY, o.batch = 4, o.accumulate = micro_batches;
            assert_int_equal(model_create(&m, "convnext_micro", NULL), BERLU_OK);
            size_t before = stub.taken;
            assert_int_equal(engine_create(&e, m->graph, &o), BERLU_OK);
            assert_int_equal(engine_warm_up(e), BERLU_OK);
            for (uint32_t i = 0; i < 2; i++)
                update_once(e, i, (uint32_t)micro_batches);
            engine_memory use = engine_memory_use(e), again;
            uint64_t second = stream >= 0 ? use.library : 0; /* a second workspace of the library, more than the rest */
            double taken = (double)(stub.taken - before - second);
            double planned = (double)(use.total - use.library - second);
            if (!(fabs(taken - planned) <= 0.005 * planned))
                fail_msg("second stream %d, %d micro-batches: %.0f bytes are planned, %.0f were taken", stream,
                         micro_batches, planned, taken);
            assert_int_equal(engine_plan_memory(&again, m->graph, &o), BERLU_OK);
            assert_int_equal(again.total, use.total);
            engine_free(e);
            model_free(m);
            cuda_backend()->close(d);
            assert_int_equal(stub.taken, 0);
        }
}

static void transfers_of_every_size_arrive_whole(void **state)
{
    (void)state;
    const size_t sizes[] = {
        0, 1, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 1, STAGING_BYTES, STAGING_BYTES + 1, 9 * STAGING_BYTES + 77};
    device *d = open_first();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char *from = malloc(sizes[i] + 1), *back = malloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            from[k] = (unsigned char)(k * 2654435761u >> 24);
        void *memory = NULL;
        assert_int_equal(cuda_backend()->alloc(d, &memory, MEMORY_DEVICE, 2 * sizes[i] + 1, "a test"), BERLU_OK);
        char *to = memory;
        assert_int_equal(cuda_backend()->upload(d, to, from, sizes[i]), BERLU_OK);
        assert_int_equal(cuda_backend()->copy(d, to + sizes[i], to, sizes[i]), BERLU_OK);
        assert_int_equal(cuda_backend()->download(d, back, to + sizes[i], sizes[i]), BERLU_OK);
        assert_memory_equal(from, back, sizes[i]);
        cuda_backend()->release(d, MEMORY_DEVICE, to);
        free(from);
        free(back);
    }
    cuda_backend()->close(d);
    nothing_is_left();
}

static void results_come_back_in_order_and_without_waiting(void **state)
{
    (void)state;
    device *d = open_first();
    step_result *r, got;
    void *memory = NULL;
    int there = 1;
    assert_int_equal(cuda_backend()->alloc(d, &memory, MEMORY_DEVICE, sizeof *r, "a result"), BERLU_OK);
    r = memory;
    assert_int_equal(cuda_backend()->result_pop(d, &got, &there, 1), BERLU_OK);
    assert_int_equal(there, 0); /* nothing was pushed: waiting would never end */
    stub.events_late = 1;
    for (int round = 0, pushed = 0, popped = 0; round < 3; round++) {
        for (int i = 0; i < 700; i++, pushed++) {
            r->grad_norm = pushed;
            assert_int_equal(cuda_backend()->result_push(d, r), BERLU_OK);
        }
        assert_int_equal(cuda_backend()->result_pop(d, &got, &there, 0), BERLU_OK);
        assert_int_equal(there, 0); /* it has not arrived */
        for (int i = 0; i < 700; i++, popped++) {
            assert_int_equal(cuda_backend()->result_pop(d, &got, &there, 1), BERLU_OK);
            assert_true(there && got.grad_norm == popped);
        }
    }
    for (int i = 0; i < RESULT_SLOTS; i++)
        assert_int_equal(cuda_backend()->result_push(d, r), BERLU_OK);
    assert_int_equal(cuda_backend()->result_push(d, r), BERLU_ERR_ARG); /* none is overwritten */
    cuda_backend()->release(d, MEMORY_DEVICE, r);
    cuda_backend()->close(d);
}

/* ---- every allocation can fail --------------------------------------------------------------- */

static void no_allocation_that_fails_loses_anything(void **state)
{
    (void)state;
    berlu_status status;
    device *d = NULL;
    for (int n = 1;
         fail_after(FAIL_ALLOC, n), status = cuda_backend()->open(&d, cuda_backend(), &(device_options){0}), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(d);
        nothing_is_left();
    }
    assert_int_equal(status, BERLU_OK);
    param_span spans[2] = {{.count = PIECE + 1, .shadow = -1}, {.offset = 8192, .count = 3, .gradient = -1}};
    param_table table = {.spans = spans, .count = 2};
    op_call call = {.op = OP_EMA, .params = &table, .device = d};
    program *p = NULL;
    int alive = stub.allocations;
    for (int n = 1; fail_after(FAIL_ALLOC, n),
             status = cuda_backend()->prepare(d, &p, &call, 1, &(program_options){.profile = 1}), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(p);
        assert_int_equal(stub.allocations, alive);
    }
    assert_int_equal(status, BERLU_OK);
    cuda_backend()->program_free(p);
    cuda_backend()->close(d);
    nothing_is_left();
}

/* ---- the second stream ----------------------------------------------------------------------- */

/* Weight gradients run as late as events allow (stub.h), so a call that overwrites what they read
 * would show. */
static void gradients_beside_the_backward_equal_the_reference(void **state)
{
    (void)state;
    every_case_passes((device_options){.algorithms = "first", .second_stream = 1}, &within_f32);
    assert_true(stub.side_work > 0);
    stub_reset();
    every_case_passes((device_options){.algorithms = "first", .second_stream = 1, .precision = "bf16"}, &within_bf16);
    assert_true(stub.side_work > 0);
    stub_reset();
    every_case_passes((device_options){.algorithms = "first", .second_stream = -1}, &within_f32);
    assert_int_equal(stub.side_work, 0);
}

/* The bits of a training do not depend on it. */
static void whole_steps_are_the_same_on_two_streams(void **state)
{
    (void)state;
    prepared p[2];
    device *d[2];
    for (int k = 0; k < 2; k++) {
        graph_case c = graph_cases[0];
        c.options.ema = 1;
        d[k] = open_with((device_options){.algorithms = "first", .precision = "bf16", .second_stream = k ? 1 : -1});
        p[k] = case_prepare_on(&c, cuda_backend(), d[k], 1);
        for (uint32_t i = 0; i < 4; i++) {
            p[k].step.count = i + 1;
            p[k].step.lr = 0.01;
            assert_int_equal(engine_step_run(p[k].e, &p[k].step), BERLU_OK);
        }
    }
    arrays_compare("two streams", ARRAY_WEIGHT, &p[1], &p[0], 0, 0);
    arrays_compare("two streams", ARRAY_EMA, &p[1], &p[0], 0, 0);
    for (int k = 0; k < 2; k++) {
        case_free(&p[k]);
        cuda_backend()->close(d[k]);
    }
    nothing_is_left();
}

/* ---- images on the device -------------------------------------------------------------------- */

static void batches_from_draws_equal_the_loaders(void **state)
{
    (void)state;
    device *d = open_first();
    draws_check(cuda_backend(), d, 0);
    cuda_backend()->close(d);
    nothing_is_left();
}

/* The whole step is one graph, and changes weights as its three parts do. */
static void a_whole_step_is_one_launch_and_the_same_step(void **state)
{
    (void)state;
    device *d = open_first();
    prepared parts = case_prepare_on(&graph_cases[0], cuda_backend(), d, 1);
    prepared whole = case_prepare_on(&graph_cases[0], cuda_backend(), d, 1);
    for (uint32_t i = 0; i < 4; i++) { /* launched, captured, replayed */
        parts.step.count = whole.step.count = i + 1;
        parts.step.lr = whole.step.lr = 0.01 / (1 + i);
        step_run(&parts);
        assert_int_equal(engine_update(parts.e), BERLU_OK);
        int captured = stub.captures, launched = stub.graph_launches, kernels = stub.launches;
        assert_int_equal(engine_step_run(whole.e, &whole.step), BERLU_OK);
        assert_int_equal(stub.captures - captured, i == 1);
        assert_int_equal(stub.graph_launches - launched, i > 0);
        assert_int_equal(stub.launches > kernels, i < 2);
        arrays_compare("a whole step", ARRAY_WEIGHT, &whole, &parts, 0, 0);
    }
    case_free(&parts);
    case_free(&whole);
    cuda_backend()->close(d);
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_case_equals_the_reference_when_launched_captured_and_replayed, machine_new),
        cmocka_unit_test_setup(every_case_equals_the_reference_where_the_library_takes_no_bias, machine_new),
        cmocka_unit_test_setup(every_case_equals_the_reference_where_the_library_offers_nothing, machine_new),
        cmocka_unit_test_setup(every_case_in_bf16_equals_the_reference, machine_new),
        cmocka_unit_test_setup(a_program_is_launched_once_then_captured_then_replayed, machine_new),
        cmocka_unit_test_setup(a_profile_times_every_call_and_captures_nothing, machine_new),
        cmocka_unit_test_setup(a_kernel_that_cannot_be_launched_ends_the_run_with_its_name, machine_new),
        cmocka_unit_test_setup(a_layer_takes_any_mixture_of_dtypes, machine_new),
        cmocka_unit_test_setup(gradients_of_a_layer_take_any_mixture_of_dtypes, machine_new),
        cmocka_unit_test_setup(a_device_that_cannot_be_opened_says_why, machine_new),
        cmocka_unit_test_setup(dtypes_follow_precision_and_residual, machine_new),
        cmocka_unit_test_setup(too_little_memory_names_what_is_needed_and_what_is_free, machine_new),
        cmocka_unit_test_setup(slopes_from_outputs_that_need_f32_are_refused_in_bf16, machine_new),
        cmocka_unit_test_setup(a_batch_that_does_not_fit_names_the_largest_that_does, machine_new),
        cmocka_unit_test_setup(the_plan_names_the_memory_that_steps_take, machine_new),
        cmocka_unit_test_setup(transfers_of_every_size_arrive_whole, machine_new),
        cmocka_unit_test_setup(results_come_back_in_order_and_without_waiting, machine_new),
        cmocka_unit_test_setup(gradients_beside_the_backward_equal_the_reference, machine_new),
        cmocka_unit_test_setup(whole_steps_are_the_same_on_two_streams, machine_new),
        cmocka_unit_test_setup(batches_from_draws_equal_the_loaders, machine_new),
        cmocka_unit_test_setup(a_whole_step_is_one_launch_and_the_same_step, machine_new),
        cmocka_unit_test_setup(no_allocation_that_fails_loses_anything, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
