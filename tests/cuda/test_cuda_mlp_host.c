/* test_cuda_mlp_host.c - which MLPs run as one kernel, and what it is given.
 * SPDX-License-Identifier: MIT
 *
 * Over the stub, whose mlp.cu only keeps its job. The kernel itself: test_cuda_mlp.cu; which nodes
 * become an mlp: test_cuda_graphs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/machine.h"

enum { ROWS = 256 * 65, HIDDEN = 768, WIDTH = MLP_WIDTH };

/* A call whose operands are never dereferenced. */
typedef struct layer {
    op_call call;
    op_attr attr;
    tensor_info info;
    berlu_act *act;
    device *d;
} layer;

static op_operand operand(layer *l, uintptr_t at, int64_t rows, int64_t channels, tensor_dtype dtype)
{
    return (op_operand){.data = (void *)at, .rows = rows, .channels = channels, .dtype = dtype, .info = &l->info};
}

static void layer_open(layer *l, const char *act, int64_t rows, int64_t hidden, tensor_dtype stream)
{
    *l = (layer){.call = {.op = OP_MLP}, .attr = {.eps = 1e-6f}};
    device_options o = {.precision = "bf16", .algorithms = "first"};
    if (berlu_act_make(&l->act, act) != BERLU_OK || cuda_backend()->open(&l->d, cuda_backend(), &o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    op_call *c = &l->call;
    l->attr.act = l->act;
    c->attr = &l->attr;
    c->device = l->d;
    c->in[0] = operand(l, 0x1000, rows, WIDTH, DTYPE_BF16);
    c->in[1] = operand(l, 0x2000, hidden, WIDTH, DTYPE_BF16);
    c->in[2] = operand(l, 0x3000, WIDTH, hidden, DTYPE_BF16);
    c->in[3] = operand(l, 0x4000, rows, WIDTH, stream);
    c->in[4] = operand(l, 0x5000, 1, hidden, DTYPE_BF16);
    c->in[5] = operand(l, 0x6000, 1, WIDTH, DTYPE_BF16);
    c->in[6] = operand(l, 0x7000, 1, WIDTH, DTYPE_F32);
    c->in[7] = operand(l, 0x8000, 1, WIDTH, DTYPE_F32);
    c->out[0] = operand(l, 0x4000, rows, WIDTH, stream);
    c->out[1] = operand(l, 0x9000, rows, WIDTH, DTYPE_BF16);
    c->out[2] = operand(l, 0xa000, rows, 2, DTYPE_F32);
}

static void layer_close(layer *l)
{
    cuda_backend()->close(l->d);
    berlu_act_free(l->act);
    assert_int_equal(stub.allocations, 0);
}

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_mlp_host");
    return 0;
}

static void the_kernel_is_given_every_operand(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        layer l;
        layer_open(&l, "berlu", ROWS, HIDDEN, wide ? DTYPE_F32 : DTYPE_BF16);
        op_call *c = &l.call;
        l.attr.act_params = 1;
        l.attr.act_param[0] = 0;
        c->in[8] = operand(&l, 0xb000, 1, 1, DTYPE_F32);
        assert_true(cuda_backend()->ops[OP_MLP].takes(c));
        cuda_backend()->ops[OP_MLP].run(c);
        const mlp_job *job = &stub.mlp_job;
        assert_true(stub.mlps == 1 + 2 * wide && stub.products == 0 && stub.rows == 0);
        assert_true(job->a == c->in[0].data && job->w1 == c->in[1].data && job->w2 == c->in[2].data);
        assert_true(job->residual == c->in[3].data && job->bias1 == c->in[4].data && job->bias2 == c->in[5].data);
        assert_true(job->weight == c->in[6].data && job->shift == c->in[7].data);
        assert_true(job->x == c->out[0].data && job->y == c->out[1].data && job->statistics == c->out[2].data);
        assert_true(job->rows == ROWS && job->hidden == HIDDEN && job->f32 == wide && job->eps == 1e-6f);
        assert_int_equal(job->blocks, stub.processors);
        assert_true((const void *)job->act.param[0] == c->in[8].data && !job->act.param[1]);
        c->in[4] = c->in[5] = c->in[6] = c->in[7] = (op_operand){0}; /* without biases and norm */
        for (int i = 1; i < NODE_OUTPUTS; i++)
            c->out[i] = (op_operand){0};
        assert_true(cuda_mlp_takes(c));
        cuda_backend()->ops[OP_MLP].run(c);
        assert_true(stub.mlps == 2 + 2 * wide && !job->bias1 && !job->bias2 && !job->y && !job->statistics);
        assert_true(job->x == c->out[0].data);
        layer_close(&l);
    }
}

/* As a pass asks: sizes and dtypes alone. */
static void a_call_without_addresses_is_answered_the_same(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, "gelu", MLP_FEWEST, HIDDEN, DTYPE_BF16);
    for (int i = 0; i < NODE_INPUTS; i++)
        l.call.in[i].data = NULL;
    for (int i = 0; i < NODE_OUTPUTS; i++)
        l.call.out[i].data = NULL;
    assert_true(cuda_mlp_takes(&l.call));
    layer_close(&l);
}

/* Every way in which a call can differ from those the kernel is for. */
static void anything_else_is_not_taken(void **state)
{
    (void)state;
    enum { ONES = 8, DTYPES = 7, FIELDS = 3, ACTS = 3 };
    static const char *const acts[ACTS] = {"gelu:scale=2", "gelu:center=1",
                                           "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1)"};
    for (int what = 0; what < ONES + DTYPES + FIELDS + ACTS; what++) {
        layer l;
        int act = what - ONES - DTYPES - FIELDS;
        stub.minor = what == 0;
        stub.major = what == 1 ? 10 : 9;
        layer_open(&l, act >= 0 ? acts[act] : "berlu", what == 2 ? MLP_FEWEST - 1 : ROWS,
                   what == 3   ? 192 * 5
                   : what == 4 ? 128
                   : what == 5 ? 2 * MLP_HIDDEN_MOST
                               : HIDDEN,
                   DTYPE_BF16);
        op_call *c = &l.call;
        op_operand *const dtypes[DTYPES] = {&c->in[0], &c->in[1], &c->in[2], &c->in[3],
                                            &c->in[4], &c->in[5], &c->out[1]};
        if (what == 6)
            c->in[0].channels = 384;
        if (what == 7)
            c->out[0].channels = 384;
        if (what >= ONES && what < ONES + DTYPES)
            dtypes[what - ONES]->dtype = DTYPE_F32;
        switch (what - ONES - DTYPES) {
        case 0:
            c->in[6].dtype = DTYPE_BF16;
            break;
        case 1:
            l.attr.act_params = 1;
            c->in[8] = operand(&l, 0xb000, 1, HIDDEN, DTYPE_F32); /* per channel */
            break;
        case 2:
            c->in[2].data = (void *)0x3002;
            break;
        default:
            break;
        }
        if (cuda_mlp_takes(c))
            fail_msg("difference %d: taken", what);
        layer_close(&l);
    }
}

static void a_launch_that_fails_is_kept_by_the_device(void **state)
{
    (void)state;
    layer l;
    layer_open(&l, "relu", ROWS, HIDDEN, DTYPE_BF16);
    stub.launch_fails = 1;
    cuda_backend()->ops[OP_MLP].run(&l.call);
    assert_int_equal(cuda_device_at(l.d)->failed, BERLU_ERR_DEVICE);
    assert_non_null(strstr(cuda_device_at(l.d)->failure, "mlp"));
    layer_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_kernel_is_given_every_operand, machine_new),
        cmocka_unit_test_setup(a_call_without_addresses_is_answered_the_same, machine_new),
        cmocka_unit_test_setup(anything_else_is_not_taken, machine_new),
        cmocka_unit_test_setup(a_launch_that_fails_is_kept_by_the_device, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
