/* test_cuda_rows.c - which fused layers run as one kernel, and what it is given.
 * SPDX-License-Identifier: MIT
 *
 * Over the stub, whose rows.cu only keeps its job. The kernels themselves: test_cuda_kernels.cu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/machine.h"

enum { ROWS = 256 * 65, WIDTH = 768 };

/* A call whose operands are never dereferenced, the stub's kernel does nothing; but the end of its
 * column sums is real. */
typedef struct layer {
    op_call call;
    op_attr attr;
    tensor_info info;
    berlu_act *act;
    device *d;
    float column_sums[WIDTH];
} layer;

static op_operand operand(layer *l, uintptr_t at, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    return (op_operand){.data = (void *)at, .rows = rows, .channels = channels, .dtype = dtype, .info = &l->info};
}

static void layer_open(layer *l, op_id op, const char *act)
{
    *l = (layer){.call = {.op = op}};
    device_options o = {.precision = "bf16", .algorithms = "first"};
    if (berlu_act_make(&l->act, act) != BERLU_OK || cuda_backend()->open(&l->d, cuda_backend(), &o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    l->attr.act = l->act;
    l->call.attr = &l->attr;
    l->call.device = l->d;
    op_call *c = &l->call;
    c->in[0] = operand(l, 0x1000, ROWS, ROWS_DEPTH, DTYPE_BF16);
    if (op == OP_LINEAR_ACT) {
        c->in[1] = operand(l, 0x2000, WIDTH, ROWS_DEPTH, DTYPE_BF16);
        c->in[2] = operand(l, 0x3000, 1, WIDTH, DTYPE_BF16);
        c->out[0] = operand(l, 0x4000, ROWS, WIDTH, DTYPE_BF16);
        c->out[1] = operand(l, 0x5000, ROWS, WIDTH, DTYPE_BF16);
        return;
    }
    c->in[1] = operand(l, 0x2000, ROWS_DEPTH, WIDTH, DTYPE_BF16);
    c->in[2] = operand(l, 0x3000, ROWS, WIDTH, DTYPE_BF16);
    c->out[0] = operand(l, 0x4000, ROWS, WIDTH, DTYPE_BF16);
    c->out[1] = operand(l, 0x5000, ROWS, WIDTH, DTYPE_BF16);
    c->out[4] = operand(l, (uintptr_t)l->column_sums, 1, WIDTH, DTYPE_F32);
}

static void layer_close(layer *l)
{
    cuda_backend()->close(l->d);
    berlu_act_free(l->act);
    assert_int_equal(stub.allocations, 0);
}

static void learn_alpha(layer *l)
{
    l->attr.act_params = 1;
    l->attr.act_param[0] = 0;
    l->call.in[l->call.op == OP_LINEAR_ACT ? 3 : 4] = operand(l, 0x7000, 1, 1, DTYPE_F32);
    if (l->call.op == OP_LINEAR_DX_ACT)
        l->call.out[2] = operand(l, 0x8000, 1, 1, DTYPE_F32);
}

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_rows");
    stub.processors = ROWS_PROCESSORS;
    return 0;
}

static size_t planned(const layer *l) /* as the planner asks: without pointers */
{
    op_call bare = l->call;
    for (int i = 0; i < NODE_INPUTS; i++)
        bare.in[i].data = NULL;
    for (int i = 0; i < NODE_OUTPUTS; i++)
        bare.out[i].data = NULL;
    return cuda_backend()->ops[bare.op].workspace(&bare);
}

static void fc1_and_fc2_of_vit_tiny_run_as_one_kernel(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, OP_LINEAR_ACT, "gelu");
    assert_true(cuda_rows_takes(&l.call));
    cuda_backend()->ops[OP_LINEAR_ACT].run(&l.call);
    assert_int_equal(stub.rows, 1);
    assert_int_equal(stub.products, 0);
    assert_ptr_equal(stub.rows_job.a, l.call.in[0].data);
    assert_ptr_equal(stub.rows_job.w, l.call.in[1].data);
    assert_ptr_equal(stub.rows_job.bias, l.call.in[2].data);
    assert_ptr_equal(stub.rows_job.u, l.call.out[1].data);
    assert_ptr_equal(stub.rows_job.act.y, l.call.out[0].data);
    assert_null(stub.rows_job.act.dx);
    l.call.out[1] = l.call.in[2] = (op_operand){0}; /* inference without a bias: y alone */
    cuda_backend()->ops[OP_LINEAR_ACT].run(&l.call);
    assert_null(stub.rows_job.u);
    assert_null(stub.rows_job.bias);
    layer_close(&l);

    layer_open(&l, OP_LINEAR_DX_ACT, "gelu");
    char *workspace = calloc(1, planned(&l));
    l.call.workspace = workspace;
    cuda_backend()->ops[OP_LINEAR_DX_ACT].run(&l.call);
    assert_int_equal(stub.rows, 3);
    assert_ptr_equal(stub.rows_job.act.x, l.call.in[2].data);
    assert_ptr_equal(stub.rows_job.act.dx, l.call.out[0].data);
    assert_ptr_equal(stub.rows_job.act.y, l.call.out[1].data);
    assert_int_equal(stub.ends, 1);
    assert_int_equal(stub.joined_layers, 0);
    free(workspace);
    layer_close(&l);
}

static void a_slope_from_the_output_runs_as_one_kernel(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, OP_LINEAR_DX_ACT, "relu");
    l.attr.from_output = 1;
    l.call.out[1] = (op_operand){0}; /* y is kept, so nothing is recomputed */
    char *workspace = calloc(1, planned(&l));
    l.call.workspace = workspace;
    cuda_backend()->ops[OP_LINEAR_DX_ACT].run(&l.call);
    assert_int_equal(stub.rows, 1);
    assert_int_equal(stub.products, 0);
    assert_true(stub.rows_job.act.from_output);
    assert_ptr_equal(stub.rows_job.act.x, l.call.in[2].data);
    assert_ptr_equal(stub.rows_job.act.dx, l.call.out[0].data);
    assert_null(stub.rows_job.act.y);
    free(workspace);
    layer_close(&l);
}

static void partial_sums_lie_in_the_planned_workspace(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, OP_LINEAR_DX_ACT, "berlu");
    learn_alpha(&l);
    size_t bytes = planned(&l), groups = ROWS_PROCESSORS / (WIDTH / ROWS_SLICE), blocks = groups * (WIDTH / ROWS_SLICE);
    assert_true(bytes >= groups * WIDTH * sizeof(float) + blocks * sizeof(double));
    char *workspace = calloc(1, bytes);
    l.call.workspace = workspace;
    cuda_backend()->ops[OP_LINEAR_DX_ACT].run(&l.call);
    const fused_job *job = &stub.rows_job.act;
    uintptr_t first = (uintptr_t)workspace, behind = first + bytes;
    uintptr_t sums = (uintptr_t)job->bias_sum, alpha = (uintptr_t)job->layer_sum[0];
    assert_true(sums >= first && sums + groups * WIDTH * sizeof(float) <= behind);
    assert_true(alpha >= first && alpha + blocks * sizeof(double) <= behind);
    assert_true(sums >= alpha + blocks * sizeof(double) || alpha >= sums + groups * WIDTH * sizeof(float));
    assert_int_equal(stub.joined_layers, blocks);
    free(workspace);
    layer_close(&l);
}

/* Every way in which a call differs from those that were measured. */
static void anything_else_takes_two_launches(void **state)
{
    (void)state;
    for (int back = 0; back < 2; back++)
        for (int what = 0; what < 12; what++) {
            layer l;
            static const char *const acts[] = {
                [7] = "gelu:scale=2", [8] = "gelu:center=1", [9] = "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1)"};
            stub.minor = what == 0;
            stub.processors = what == 1 ? 114 : ROWS_PROCESSORS;
            layer_open(&l, back ? OP_LINEAR_DX_ACT : OP_LINEAR_ACT, what >= 7 && what <= 9 ? acts[what] : "berlu");
            op_call *c = &l.call;
            switch (what) {
            case 2:
                c->in[0].dtype = DTYPE_F32;
                break;
            case 3:
                c->out[0].dtype = DTYPE_F32;
                break;
            case 4:
                c->in[0].channels = 384;
                break;
            case 5:
                c->out[0].channels = 640;
                break;
            case 6:
                c->out[0].rows = 4160;
                break;
            case 10:
                learn_alpha(&l);
                c->in[back ? 4 : 3].channels = WIDTH; /* per channel */
                break;
            case 11:
                c->in[1].data = (void *)0x2002;
                break;
            default:
                break;
            }
            if (cuda_rows_takes(c))
                fail_msg("difference %d, %s: taken", what, back ? "backward" : "forward");
            layer_close(&l);
        }
}

static void a_launch_that_fails_is_kept_by_the_device(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, OP_LINEAR_ACT, "relu");
    stub.launch_fails = 1;
    cuda_backend()->ops[OP_LINEAR_ACT].run(&l.call);
    assert_int_equal(cuda_device_at(l.d)->failed, BERLU_ERR_DEVICE);
    assert_non_null(strstr(cuda_device_at(l.d)->failure, "linear_act"));
    layer_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fc1_and_fc2_of_vit_tiny_run_as_one_kernel, machine_new),
        cmocka_unit_test_setup(a_slope_from_the_output_runs_as_one_kernel, machine_new),
        cmocka_unit_test_setup(partial_sums_lie_in_the_planned_workspace, machine_new),
        cmocka_unit_test_setup(anything_else_takes_two_launches, machine_new),
        cmocka_unit_test_setup(a_launch_that_fails_is_kept_by_the_device, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
