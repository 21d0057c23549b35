/* test_cuda_linear_norm.c - when a layer, its residual and the norm behind it run as one kernel,
 * and what it is given. SPDX-License-Identifier: MIT
 *
 * Over the stub, whose linear_norm.cu only keeps its job. The kernel itself:
 * test_cuda_kernels.cu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "cuda/cuda.h"
#include "cuda/machine.h"

enum { ROWS = 256 * 65, WIDTH = LINEAR_NORM_WIDTH };

/* A call; operands that no test dereferences lie at made-up addresses. */
typedef struct layer {
    op_call call;
    op_attr attr;
    tensor_info info;
    device *d;
} layer;

static op_operand operand(layer *l, void *data, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    return (op_operand){.data = data, .rows = rows, .channels = channels, .dtype = dtype, .info = &l->info};
}

static void layer_open(layer *l, int64_t rows, tensor_dtype stream)
{
    *l = (layer){.call = {.op = OP_LINEAR_NORM}, .attr = {.eps = 1e-6f}};
    device_options o = {.precision = "bf16", .algorithms = "first"};
    if (cuda_backend()->open(&l->d, cuda_backend(), &o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    op_call *c = &l->call;
    c->attr = &l->attr;
    c->device = l->d;
    c->threads = 1;
    c->in[0] = operand(l, (void *)0x1000, rows, WIDTH, DTYPE_BF16);
    c->in[1] = operand(l, (void *)0x2000, WIDTH, WIDTH, DTYPE_BF16);
    c->in[2] = operand(l, (void *)0x3000, 1, WIDTH, DTYPE_BF16);
    c->in[3] = operand(l, (void *)0x4000, rows, WIDTH, stream);
    c->in[4] = operand(l, (void *)0x5000, 1, WIDTH, DTYPE_F32);
    c->in[5] = operand(l, (void *)0x6000, 1, WIDTH, DTYPE_F32);
    c->out[0] = operand(l, (void *)0x4000, rows, WIDTH, stream);
    c->out[1] = operand(l, (void *)0x7000, rows, WIDTH, DTYPE_BF16);
    c->out[2] = operand(l, (void *)0x8000, rows, 2, DTYPE_F32);
}

static void layer_close(layer *l)
{
    cuda_backend()->close(l->d);
    assert_int_equal(stub.allocations, 0);
}

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_linear_norm");
    return 0;
}

static void the_projection_of_vit_tiny_runs_as_one_kernel(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        layer l;
        layer_open(&l, ROWS, wide ? DTYPE_F32 : DTYPE_BF16);
        assert_true(cuda_linear_norm_takes(&l.call));
        cuda_backend()->ops[OP_LINEAR_NORM].run(&l.call);
        const linear_norm_job *job = &stub.linear_norm_job;
        assert_true(stub.linear_norms == 1 + 2 * wide && stub.products == 0);
        assert_true(job->a == l.call.in[0].data && job->w == l.call.in[1].data && job->bias == l.call.in[2].data);
        assert_true(job->residual == l.call.in[3].data && job->x == l.call.out[0].data);
        assert_true(job->weight == l.call.in[4].data && job->shift == l.call.in[5].data);
        assert_true(job->y == l.call.out[1].data && job->statistics == l.call.out[2].data);
        assert_true(job->rows == ROWS && job->f32 == wide && job->blocks == stub.processors && job->eps == 1e-6f);
        l.call.in[2] = l.call.out[2] = (op_operand){0};
        cuda_backend()->ops[OP_LINEAR_NORM].run(&l.call);
        assert_true(stub.linear_norms == 2 + 2 * wide && !job->bias && !job->statistics);
        layer_close(&l);
    }
}

/* Every way in which a call differs from those that were measured. */
static void anything_else_takes_two_launches(void **state)
{
    (void)state;
    for (int what = 0; what < 11; what++) {
        layer l;
        stub.minor = what == 0;
        layer_open(&l, what == 1 ? LINEAR_NORM_FEWEST - 1 : ROWS, DTYPE_BF16);
        op_call *c = &l.call;
        op_operand *const other_dtype[] = {&c->in[0], &c->in[1], &c->in[2], &c->in[3], &c->out[1]};
        if (what >= 2 && what < 7)
            other_dtype[what - 2]->dtype = DTYPE_F32;
        else if (what == 7)
            c->in[4].dtype = DTYPE_BF16;
        else if (what == 8)
            c->in[0].channels = 768;
        else if (what == 9)
            c->out[0].channels = 384;
        else if (what == 10)
            c->in[0].data = (void *)0x1002;
        if (cuda_linear_norm_takes(c))
            fail_msg("difference %d: taken", what);
        layer_close(&l);
    }
}

/* Few rows: what the library's product and the norm leave is what they leave when they are called
 * one after the other. */
static void two_launches_give_what_both_ops_give(void **state)
{
    (void)state;
    enum { FEW = 5 };
    static uint16_t a[FEW * WIDTH], w[WIDTH * WIDTH], bias[WIDTH], x[2][FEW * WIDTH], y[2][FEW * WIDTH];
    static float weight[WIDTH], shift[WIDTH], statistics[2][FEW * 2];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w[i] = bf16_from_f32((float)(i * 37 % 101 - 50) / 500);
    for (int i = 0; i < FEW * WIDTH; i++) {
        a[i] = bf16_from_f32((float)(i * 17 % 97 - 48) / 50);
        x[0][i] = x[1][i] = bf16_from_f32((float)(i * 29 % 89 - 40) / 20);
    }
    for (int i = 0; i < WIDTH; i++) {
        bias[i] = bf16_from_f32((float)(i % 7) / 8);
        weight[i] = 1 + (float)(i % 5) / 10;
        shift[i] = (float)(i % 3) / 4;
    }
    layer l;
    layer_open(&l, FEW, DTYPE_BF16);
    op_call *c = &l.call, linear, norm;
    void *const inputs[] = {a, w, bias, x[0], weight, shift}, *const outputs[] = {x[0], y[0], statistics[0]};
    for (int i = 0; i < 6; i++)
        c->in[i].data = inputs[i];
    for (int i = 0; i < 3; i++)
        c->out[i].data = outputs[i];
    linear = norm = *c;
    linear.op = OP_LINEAR;
    linear.in[3].data = linear.out[0].data = x[1];
    linear.in[4] = linear.in[5] = linear.out[1] = linear.out[2] = (op_operand){0};
    norm.op = OP_NORM;
    norm.in[0] = linear.out[0], norm.in[1] = c->in[4], norm.in[2] = c->in[5];
    norm.in[3] = norm.in[4] = norm.in[5] = norm.out[2] = (op_operand){0};
    norm.out[0] = c->out[1], norm.out[1] = c->out[2];
    norm.out[0].data = y[1], norm.out[1].data = statistics[1];
    const op_entry *ops = cuda_backend()->ops;
    size_t bytes = ops[OP_LINEAR_NORM].workspace(c);
    assert_int_equal(bytes, ops[OP_LINEAR].workspace(&linear));
    c->workspace = linear.workspace = malloc(bytes + 1);
    ops[OP_LINEAR_NORM].run(c);
    assert_true(stub.linear_norms == 0 && stub.products == 1);
    ops[OP_LINEAR].run(&linear);
    ops[OP_NORM].run(&norm);
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(statistics[0], statistics[1], sizeof statistics[0]);
    free(c->workspace);
    layer_close(&l);
}

static void a_launch_that_fails_is_kept_by_the_device(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, ROWS, DTYPE_BF16);
    stub.launch_fails = 1;
    cuda_backend()->ops[OP_LINEAR_NORM].run(&l.call);
    assert_int_equal(cuda_device_at(l.d)->failed, BERLU_ERR_DEVICE);
    assert_non_null(strstr(cuda_device_at(l.d)->failure, "linear_norm"));
    layer_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_projection_of_vit_tiny_runs_as_one_kernel, machine_new),
        cmocka_unit_test_setup(anything_else_takes_two_launches, machine_new),
        cmocka_unit_test_setup(two_launches_give_what_both_ops_give, machine_new),
        cmocka_unit_test_setup(a_launch_that_fails_is_kept_by_the_device, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
