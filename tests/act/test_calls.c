/* test_calls.c - what makes the C interface easy: no forgotten channels, no workspace for a
 * forward, conversions, threads. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <berlu/berlu.h>

#include "base/half.h"
#include "support/fail.h"

enum { ROWS = 67, CHANNELS = 19, COUNT_ALL = ROWS * CHANNELS };
static float x[COUNT_ALL], y[COUNT_ALL], want[COUNT_ALL], alpha[CHANNELS];

static void fill(void)
{
    for (int i = 0; i < COUNT_ALL; i++)
        x[i] = (float)(i % 41 - 20) / 7;
    for (int c = 0; c < CHANNELS; c++)
        alpha[c] = (float)(c - 5) / 10;
    memset(y, 0x5a, sizeof y);
    memset(want, 0x5a, sizeof want);
}

static void forgotten_channels_are_an_error(void **state)
{
    (void)state;
    berlu_act *act;
    fill();
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    berlu_act_call call = {.rows = 8, .x = x, .y = y};
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "berlu: channels is 0 for 8 rows; set it, to 1 where there are none");
    assert_memory_equal(y, want, sizeof want);
    call.rows = 0;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_OK);
    call.channels = 8;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_OK);
    berlu_act_free(act);
}

/* Value, slope and dx with one alpha per channel: the same bits with a workspace, without, and
 * channel by channel. */
static void no_gradient_needs_no_workspace(void **state)
{
    (void)state;
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_SLOPE, BERLU_ACT_BACKWARD};
    char space[65536];
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:eps=0.5"), BERLU_OK);
    for (size_t inner = 1; inner <= ROWS; inner += ROWS - 1)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            fill();
            berlu_act_call call = {.rows = ROWS / inner, .channels = CHANNELS, .inner = inner, .x = x};
            call.param[0] = (berlu_act_param_arg){.value = alpha, .stride = 1};
            call.dy = ops[o] == BERLU_ACT_BACKWARD ? x : NULL;
            call.y = ops[o] == BERLU_ACT_BACKWARD ? NULL : want;
            call.dx = ops[o] == BERLU_ACT_BACKWARD ? want : NULL;
            call.workspace = space, call.workspace_bytes = sizeof space;
            assert_true(berlu_act_workspace(act, ops[o], &call) <= sizeof space);
            assert_int_equal(berlu_act_run(act, ops[o], &call, NULL), BERLU_OK);
            call.workspace = NULL, call.workspace_bytes = 0;
            *(ops[o] == BERLU_ACT_BACKWARD ? &call.dx : &call.y) = y;
            fail_after(FAIL_ALLOC, 1);
            assert_int_equal(berlu_act_run(act, ops[o], &call, NULL), BERLU_ERR_MEMORY);
            assert_true(fail_hit());
            assert_int_equal(berlu_act_run(act, ops[o], &call, NULL), BERLU_OK);
            assert_memory_equal(y, want, sizeof want);
        }
    berlu_act_free(act);
}

static void gradients_still_ask_for_one(void **state)
{
    (void)state;
    float grad[CHANNELS];
    berlu_act *act;
    fill();
    assert_int_equal(berlu_act_make(&act, "prelu"), BERLU_OK);
    berlu_act_call call = {.rows = ROWS, .channels = CHANNELS, .x = x, .dy = x, .dx = y};
    call.param[0] = (berlu_act_param_arg){.value = alpha, .stride = 1, .grad = grad};
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    assert_memory_equal(y, want, sizeof want);
    berlu_act_free(act);
}

static void conversions_are_those_of_the_kernels(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float b = berlu_from_bf16((uint16_t)bits), f = berlu_from_f16((uint16_t)bits), one;
        assert_true(isnan(b) ? isnan(berlu_from_bf16(berlu_to_bf16(b))) : berlu_to_bf16(b) == bits);
        assert_true(isnan(f) ? isnan(berlu_from_f16(berlu_to_f16(f))) : berlu_to_f16(f) == bits);
        uint16_t half = (uint16_t)bits, back;
        assert_int_equal(berlu_convert(BERLU_F32, &one, BERLU_F16, &half, 1), BERLU_OK);
        assert_true(isnan(f) ? isnan(one) : one == f);
        assert_int_equal(berlu_convert(BERLU_F16, &back, BERLU_F16, &half, 1), BERLU_OK);
        assert_int_equal(back, half);
    }
    /* halfway between two neighbours: to the even one; above the largest: infinity */
    assert_int_equal(berlu_to_bf16(1.00390625f), 0x3f80);
    assert_int_equal(berlu_to_bf16(1.01171875f), 0x3f82);
    assert_int_equal(berlu_to_f16(65520), 0x7c00);
    assert_int_equal(berlu_to_f16(65519.99f), 0x7bff);
    assert_int_equal(berlu_convert(BERLU_F32, y, (berlu_dtype)9, x, 1), BERLU_ERR_ARG);
    assert_int_equal(berlu_convert(BERLU_F32, NULL, BERLU_F16, x, 1), BERLU_ERR_ARG);
    assert_int_equal(berlu_convert(BERLU_F32, NULL, BERLU_F16, NULL, 0), BERLU_OK);
}

static void simple_calls_take_threads_and_instruction_sets(void **state)
{
    (void)state;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.25,eps=0.5"), BERLU_OK);
    for (berlu_isa isa = BERLU_ISA_BEST; isa <= BERLU_ISA_NEON; isa++) {
        berlu_exec exec = {isa, 1};
        fill();
        if (!berlu_act_can_run(act, isa)) {
            assert_int_equal(berlu_act_forward_exec(act, BERLU_F32, y, x, COUNT_ALL, &exec), BERLU_ERR_UNSUPPORTED);
            continue;
        }
        assert_int_equal(berlu_act_forward_exec(act, BERLU_F32, y, x, COUNT_ALL, &exec), BERLU_OK);
        assert_int_equal(berlu_act_forward(act, BERLU_F32, want, x, COUNT_ALL), BERLU_OK);
        assert_memory_equal(y, want, sizeof want);
        float out[COUNT_ALL];
        memcpy(out, y, sizeof out);
        assert_int_equal(berlu_act_backward_exec(act, BERLU_F32, y, x, x, COUNT_ALL, &exec), BERLU_OK);
        assert_int_equal(berlu_act_backward(act, BERLU_F32, want, x, x, COUNT_ALL), BERLU_OK);
        assert_memory_equal(y, want, sizeof want);
        assert_int_equal(berlu_act_backward_from_output_exec(act, BERLU_F32, y, x, out, COUNT_ALL, &exec), BERLU_OK);
        assert_int_equal(berlu_act_backward_from_output(act, BERLU_F32, want, x, out, COUNT_ALL), BERLU_OK);
        assert_memory_equal(y, want, sizeof want);
        assert_int_equal(berlu_act_second_exec(act, BERLU_F32, y, x, COUNT_ALL, &exec), BERLU_OK);
        assert_int_equal(berlu_act_second(act, BERLU_F32, want, x, COUNT_ALL), BERLU_OK);
        assert_memory_equal(y, want, sizeof want);
    }
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten_channels_are_an_error),
        cmocka_unit_test(no_gradient_needs_no_workspace),
        cmocka_unit_test(gradients_still_ask_for_one),
        cmocka_unit_test(conversions_are_those_of_the_kernels),
        cmocka_unit_test(simple_calls_take_threads_and_instruction_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
