/* test_eval.c - arrays of doubles are the reference, point by point.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <berlu/berlu.h>

enum { MOST = 5000 }; /* some blocks and a tail */
static double x[MOST], y[MOST], want[MOST];

static void fill(void)
{
    for (size_t i = 0; i < MOST; i++)
        x[i] = ((double)i - MOST / 2) * 0.003;
}

static double pick(const berlu_act_point *at, berlu_act_op op, int param)
{
    const double by_op[] = {[BERLU_ACT_FORWARD] = at->value,
                            [BERLU_ACT_SLOPE] = at->slope,
                            [BERLU_ACT_SECOND] = at->second,
                            [BERLU_ACT_PARAM_SLOPE] = at->param[param]};
    return by_op[op];
}

static void every_op_equals_the_point_at_every_length_and_thread_count(void **state)
{
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_SLOPE, BERLU_ACT_SECOND, BERLU_ACT_PARAM_SLOPE};
    static const size_t lengths[] = {0, 1, 1023, 1024, 1025, MOST};
    (void)state;
    berlu_act *act;
    fill();
    assert_int_equal(berlu_act_make(&act, "berlu:eps=0.5,scale=2,center=1"), BERLU_OK);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int threads = 0; threads < 4; threads++) {
                memset(y, 0x5a, sizeof y);
                memset(want, 0x5a, sizeof want);
                for (size_t i = 0; i < lengths[l]; i++) {
                    berlu_act_point at = berlu_act_at(act, x[i], NULL);
                    want[i] = pick(&at, ops[o], 1);
                }
                assert_int_equal(berlu_act_eval_f64(act, ops[o], 1, y, x, lengths[l], threads), BERLU_OK);
                assert_memory_equal(y, want, sizeof y); /* whole buffers: nothing past the end was written */
            }
    berlu_act_free(act);
}

static void the_output_may_be_the_input(void **state)
{
    (void)state;
    berlu_act *act;
    fill();
    assert_int_equal(berlu_act_make(&act, "gelu"), BERLU_OK);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_FORWARD, 0, want, x, MOST, 2), BERLU_OK);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_FORWARD, 0, x, x, MOST, 2), BERLU_OK);
    assert_memory_equal(x, want, sizeof want);
    berlu_act_free(act);
}

static void bad_calls_are_refused_before_anything_is_written(void **state)
{
    (void)state;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "gelu"), BERLU_OK);
    memset(y, 0x5a, sizeof y);
    memcpy(want, y, sizeof y);
    assert_int_equal(berlu_act_eval_f64(NULL, BERLU_ACT_FORWARD, 0, y, x, 4, 0), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_FORWARD, 0, NULL, x, 4, 0), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_FORWARD, 0, y, NULL, 4, 0), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_BACKWARD, 0, y, x, 4, 0), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_eval_f64(act, (berlu_act_op)77, 0, y, x, 4, 0), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_PARAM_SLOPE, 0, y, x, 4, 0), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "gelu has no parameter number 0");
    assert_memory_equal(y, want, sizeof y);
    assert_int_equal(berlu_act_eval_f64(act, BERLU_ACT_FORWARD, 0, NULL, NULL, 0, 0), BERLU_OK);
    berlu_act_free(act);
}

/* f(k x) / k with k as it was written, not as kernels have it. */
static void a_scale_is_used_in_double(void **state)
{
    (void)state;
    berlu_act *plain, *scaled;
    assert_int_equal(berlu_act_make(&plain, "silu"), BERLU_OK);
    assert_int_equal(berlu_act_make(&scaled, "silu:scale=0.1"), BERLU_OK);
    for (double at = -3; at <= 3; at += 0.25) {
        berlu_act_point a = berlu_act_at(plain, 0.1 * at, NULL), b = berlu_act_at(scaled, at, NULL);
        assert_true(b.value == a.value / 0.1 && b.slope == a.slope && b.second == a.second * 0.1);
    }
    assert_string_equal(berlu_act_spec(scaled), "silu:scale=0.1");
    berlu_act_free(plain);
    berlu_act_free(scaled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_equals_the_point_at_every_length_and_thread_count),
        cmocka_unit_test(the_output_may_be_the_input),
        cmocka_unit_test(bad_calls_are_refused_before_anything_is_written),
        cmocka_unit_test(a_scale_is_used_in_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
