/* test_cuda_calls.c - checks of the CUDA library that need no GPU. SPDX-License-Identifier: MIT
 *
 * The workspace of a call, and the refusal of a call for which no grid is large enough, are known
 * without a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <berlu/act_cuda.h>

#include "act/cuda/kernels.h"

static berlu_act *act;
static float there[1]; /* a pointer that is not NULL; nothing reads it */

static size_t workspace(size_t rows, size_t channels, int bias, int grad)
{
    berlu_act_call call = {
        .dtype = BERLU_F32, .rows = rows, .channels = channels, .x = there, .dy = there, .dx = there};
    call.bias = bias ? there : NULL;
    call.dbias = bias ? there : NULL;
    call.param[0].grad = grad ? there : NULL;
    return berlu_act_cuda_workspace(act, BERLU_ACT_BACKWARD, &call);
}

static int run(size_t rows, size_t channels, int bias)
{
    berlu_act_call call = {.dtype = BERLU_F32, .rows = rows, .channels = channels, .x = there, .y = there};
    call.bias = bias ? there : NULL;
    return berlu_act_cuda_run(act, BERLU_ACT_FORWARD, &call, NULL);
}

static void channels_have_a_limit_only_where_they_matter(void **state)
{
    (void)state;
    assert_true(workspace(2, 3000000, 0, 1) > 0); /* flat: rows times channels elements */
    assert_int_equal(workspace(1, 3000000, 1, 1), 0);
    assert_non_null(strstr(berlu_last_error(), "2,097,120"));
    assert_int_equal(run(1, 3000000, 1), BERLU_ERR_UNSUPPORTED);
    assert_int_equal(run((size_t)1 << 36, 1, 1), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "2^35"));
    assert_int_equal(run((size_t)1 << 41, 1, 0), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "2^40"));
    assert_int_equal(run(SIZE_MAX / 8, 64, 0), BERLU_ERR_ARG);
}

static void a_call_without_sums_needs_no_workspace(void **state)
{
    (void)state;
    assert_int_equal(workspace(64, 32, 0, 0), 0);
    assert_true(workspace(64, 32, 0, 1) >= sizeof(double));
    assert_true(workspace(64, 32, 1, 0) >= 32 * sizeof(float));
}

static void ordinary_memory_or_no_device_is_reported_and_nothing_runs(void **state)
{
    (void)state;
    int status = run(2, 32, 0);
    assert_true(status == BERLU_ERR_ARG || status == BERLU_ERR_DEVICE);
    assert_true(*berlu_last_error());
}

/* A grid of no blocks would be refused, and without a GPU any launch is. */
static void sums_of_no_channels_launch_nothing(void **state)
{
    (void)state;
    berlu_act_call call = {.dbias = there};
    assert_int_equal(berlu_act_cuda_workspace(act, BERLU_ACT_BACKWARD, &call), 0);
    assert_int_equal(berlu_act_cuda_run_here(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_OK);
    call = (berlu_act_call){.param[0] = {.value = there, .grad = there, .stride = 1}};
    assert_int_equal(berlu_act_cuda_run_here(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_OK);
}

static int act_make(void **state)
{
    (void)state;
    return berlu_act_make(&act, "berlu");
}

static int act_free(void **state)
{
    (void)state;
    berlu_act_free(act);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_have_a_limit_only_where_they_matter),
        cmocka_unit_test(a_call_without_sums_needs_no_workspace),
        cmocka_unit_test(ordinary_memory_or_no_device_is_reported_and_nothing_runs),
        cmocka_unit_test(sums_of_no_channels_launch_nothing),
    };
    return cmocka_run_group_tests(tests, act_make, act_free);
}
