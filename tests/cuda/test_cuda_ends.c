/* test_cuda_ends.c - ends of sums: collected within a program, and launched before anybody could
 * notice. SPDX-License-Identifier: MIT
 *
 * Over the stub, whose launch really adds. That whole programs are right is test_cuda_host.c's,
 * where norm gradients end so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/kernels.h"
#include "cuda/stub.h"

enum { PARTS = 3, COLUMNS = 4 };

typedef struct machine {
    device *base;
    cuda_device *d;
    op_attr attr;
    tensor_info info;
    float part[ENDS_MOST + 1][PARTS * COLUMNS], to[ENDS_MOST + 1][COLUMNS];
} machine;

static int machine_open(void **state)
{
    machine *m = calloc(1, sizeof *m);
    device_options o = {.precision = "bf16", .algorithms = "first"};
    stub_reset();
    assert_non_null(m);
    assert_int_equal(cuda_backend()->open(&m->base, cuda_backend(), &o), BERLU_OK);
    m->d = cuda_device_at(m->base);
    for (int i = 0; i <= ENDS_MOST; i++)
        for (int j = 0; j < PARTS * COLUMNS; j++)
            m->part[i][j] = (float)(i + j);
    *state = m;
    return 0;
}

static int machine_close(void **state)
{
    machine *m = *state;
    cuda_backend()->close(m->base);
    free(m);
    return stub.allocations;
}

static op_call call_of(machine *m, op_id op)
{
    return (op_call){.op = op, .attr = &m->attr, .device = m->base, .batch = 1, .threads = 1};
}

static void add(machine *m, int i)
{
    op_call c = call_of(m, OP_NORM_GRAD);
    cuda_end_add(&c, &(cuda_end){m->part[i], m->to[i], PARTS, COLUMNS, COLUMNS, 0});
}

static void added(const machine *m, int i)
{
    for (int j = 0; j < COLUMNS; j++)
        assert_float_equal(m->to[i][j], (float)(3 * (i + j) + 12), 0);
}

static op_operand operand(machine *m, void *data)
{
    return (op_operand){.data = data, .rows = 1, .channels = COLUMNS, .dtype = DTYPE_F32, .info = &m->info};
}

static void outside_a_program_an_end_is_launched_at_once(void **state)
{
    machine *m = *state;
    add(m, 0);
    assert_int_equal(stub.end_launches, 1);
    added(m, 0);
    op_call c = call_of(m, OP_NORM_GRAD);
    cuda_end_add(&c, &(cuda_end){m->part[0], NULL, PARTS, COLUMNS, COLUMNS, 0}); /* nobody wants it */
    assert_int_equal(stub.ends, 1);
}

static void a_program_launches_its_ends_together(void **state)
{
    machine *m = *state;
    cuda_ends_begin(m->d);
    for (int i = 0; i < 5; i++)
        add(m, i);
    assert_int_equal(stub.end_launches, 0);
    cuda_ends_finish(m->d);
    assert_int_equal(stub.end_launches, 1);
    assert_int_equal(stub.ends, 5);
    for (int i = 0; i < 5; i++)
        added(m, i);
    add(m, 5); /* the program is over */
    assert_int_equal(stub.end_launches, 2);
}

static void a_full_list_is_launched(void **state)
{
    machine *m = *state;
    cuda_ends_begin(m->d);
    for (int i = 0; i <= ENDS_MOST; i++)
        add(m, i);
    assert_int_equal(stub.end_launches, 1);
    cuda_ends_finish(m->d);
    assert_int_equal(stub.end_launches, 2);
    for (int i = 0; i <= ENDS_MOST; i++)
        added(m, i);
}

static void calls_that_touch_nothing_do_not_launch_it(void **state)
{
    machine *m = *state;
    op_call c = call_of(m, OP_NORM_GRAD);
    c.in[0] = operand(m, m->to[1]);
    c.in[1] = operand(m, m->part[0]); /* read by both */
    c.workspace = m->part[1];
    cuda_ends_begin(m->d);
    add(m, 0);
    cuda_ends_before(m->d, &c);
    assert_int_equal(stub.end_launches, 0);
    cuda_ends_finish(m->d);
}

/* The call reads a result, writes one, has its workspace over partial sums, or updates. */
static void calls_that_could_notice_come_after(void **state)
{
    machine *m = *state;
    for (int what = 0; what < 4; what++) {
        op_call c = call_of(m, what == 3 ? OP_GRAD_NORM : OP_NORM_GRAD);
        c.in[0] = operand(m, what == 0 ? (void *)&m->to[0][COLUMNS - 1] : m->to[2]);
        c.out[1] = operand(m, what == 1 ? m->to[0] : m->to[3]);
        c.workspace = what == 2 ? &m->part[0][PARTS * COLUMNS - 1] : m->part[2];
        memset(m->to[0], 0, sizeof m->to[0]);
        stub.end_launches = 0;
        cuda_ends_begin(m->d);
        add(m, 0);
        cuda_ends_before(m->d, &c);
        assert_int_equal(stub.end_launches, 1);
        added(m, 0);
        cuda_ends_finish(m->d);
        assert_int_equal(stub.end_launches, 1);
    }
}

static void the_second_stream_does_not_collect(void **state)
{
    machine *m = *state;
    cuda_stream first = m->d->stream;
    cuda_ends_begin(m->d);
    add(m, 0);
    assert_int_equal(gpu_stream_create(&m->d->stream), BERLU_OK);
    add(m, 1);
    assert_int_equal(stub.ends, 1);
    added(m, 1);
    gpu_stream_destroy(m->d->stream);
    m->d->stream = first;
    cuda_ends_finish(m->d);
    added(m, 0);
}

static void a_launch_that_fails_is_kept_by_the_device(void **state)
{
    machine *m = *state;
    cuda_ends_begin(m->d);
    add(m, 0);
    stub.launch_fails = 1;
    cuda_ends_finish(m->d);
    assert_int_equal(m->d->failed, BERLU_ERR_DEVICE);
    assert_int_equal(m->d->ends.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(outside_a_program_an_end_is_launched_at_once, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(a_program_launches_its_ends_together, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(a_full_list_is_launched, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(calls_that_touch_nothing_do_not_launch_it, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(calls_that_could_notice_come_after, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(the_second_stream_does_not_collect, machine_open, machine_close),
        cmocka_unit_test_setup_teardown(a_launch_that_fails_is_kept_by_the_device, machine_open, machine_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
