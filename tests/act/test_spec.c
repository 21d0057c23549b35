/* test_spec.c - texts that make activations, their properties, and calls that are refused.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <berlu/berlu.h>

#include "act/inputs.h"
#include "support/fail.h"

static void every_canonical_text_makes_the_same_activation_again(void **state)
{
    (void)state;
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act, *again;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        assert_int_equal(berlu_act_make(&again, berlu_act_spec(act)), BERLU_OK);
        assert_string_equal(berlu_act_spec(act), berlu_act_spec(again));
        for (double x = -4; x <= 4; x += 0.37)
            assert_true(berlu_act_at(act, x, NULL).value == berlu_act_at(again, x, NULL).value);
        berlu_act_free(act);
        berlu_act_free(again);
    }
}

static void bad_texts_are_refused_with_a_sentence_that_names_the_fault(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *says;
    } rows[] = {
        {"", "unknown"},
        {"geluu", "did you mean 'gelu'"},
        {"zebra", "unknown"},
        {"berlu:", "key=value"},
        {"berlu:alpha", "key=value"},
        {"berlu:alfa=1", "did you mean 'alpha'"},
        {"berlu:alpha=x", "alpha=x"},
        {"berlu:alpha=nan", "alpha=nan"},
        {"berlu:alpha=1e39", "alpha=1e39"},
        {"berlu:alpha=1,alpha=2", "twice"},
        {"berlu:eps=0", "eps=0"},
        {"berlu:eps=-1", "eps=-1"},
        {"berlu:eps=inf", "eps=inf"},
        {"berlu:eps=0x1p-61", "range"},
        {"berlu:eps=0x1p61", "range"},
        {"berlu:alpha=-1e21,eps=1e-18", "alpha=-1e+21 and eps=1e-18"},
        {"berlu:eps=0x1p-60,alpha=1e24,degree=4", "range of f32"},
        {"berlu:degree=1", "degree=1"},
        {"berlu:degree=17", "degree=17"},
        {"berlu:degree=2.5", "degree=2.5"},
        {"berlu:learn=beta", "beta"},
        {"gelu:learn=alpha", "alpha"},
        {"gelu:alpha=1", "alpha"},
        {"gelu:degree=2", "degree"},
        {"gelu:scale=0", "scale=0"},
        {"gelu:scale=1e-50", "scale"},
        {"gelu:center=2", "center=2"},
        {"celu:alpha=0", "at least 7.88861e-31"},
        {"celu:alpha=-1e-40", "too near zero"},
        {"celu:alpha=1e31", "outside its range"},
        {"smelu:beta=0", "beta"},
        {"smooth(kinks=1,0; slopes=0,1,0)", ""},
        {"averyveryverylongnamethatnobodywouldgivetoanactivationfunctionintheworld", "unknown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        berlu_act *act = (berlu_act *)&act;
        if (berlu_act_make(&act, rows[i].spec) != BERLU_ERR_ARG || act)
            fail_msg("'%s' was not refused", rows[i].spec);
        if (!strstr(berlu_last_error(), rows[i].says))
            fail_msg("'%s': '%s' does not say '%s'", rows[i].spec, berlu_last_error(), rows[i].says);
    }
    assert_int_equal(berlu_act_make(NULL, "relu"), BERLU_ERR_ARG);
    berlu_act *act = (berlu_act *)&act;
    assert_int_equal(berlu_act_make(&act, NULL), BERLU_ERR_ARG);
    assert_null(act);
}

static void defaults_ranges_and_learning_are_reported(void **state)
{
    (void)state;
    berlu_act *act;
    berlu_act_param_info info;
    assert_int_equal(berlu_act_make(&act, "berlu:degree=5,learn=alpha+eps,eps=0.5"), BERLU_OK);
    assert_string_equal(berlu_act_name(act), "berlu");
    assert_string_equal(berlu_act_spec(act), "berlu:alpha=0.01,eps=0.5,degree=4,learn=alpha+eps");
    assert_int_equal(berlu_act_param_count(act), 2);
    assert_int_equal(berlu_act_setting_count(act), 1);
    assert_int_equal(berlu_act_param(act, 1, &info), BERLU_OK);
    assert_string_equal(info.name, "eps");
    assert_true(info.value == 0.5 && info.initial == 0.01 && info.low == 0x1p-60 && info.learned && info.learnable);
    assert_int_equal(berlu_act_param(act, 2, &info), BERLU_OK);
    assert_true(strcmp(info.name, "degree") == 0 && info.value == 4 && info.setting && !info.learnable);
    assert_int_equal(berlu_act_param(act, 3, &info), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_param_find(act, "eps"), 1);
    assert_int_equal(berlu_act_param_find(act, "beta"), -1);
    assert_false(berlu_act_has_from_output(act)); /* degree 4 */
    assert_true(berlu_act_lipschitz(act) == 1);
    berlu_act_free(act);
    assert_int_equal(berlu_act_make(&act, "prelu:alpha=-3"), BERLU_OK);
    assert_true(berlu_act_lipschitz(act) == 3 && !berlu_act_has_from_output(act));
    assert_int_equal(berlu_act_param(act, 0, &info), BERLU_OK);
    assert_true(info.learned);
    berlu_act_free(act);
    float y = -1, dx = 1;
    assert_int_equal(berlu_act_make(&act, "prelu:alpha=1e-50"), BERLU_OK); /* 0 in f32 */
    assert_false(berlu_act_has_from_output(act));
    assert_int_equal(berlu_act_backward_from_output(act, BERLU_F32, &dx, &dx, &y, 1), BERLU_ERR_UNSUPPORTED);
    berlu_act_free(act);
}

/* f(0) = (1 - alpha) eps / 4; rounded to f32 the parameters would give 0.0675000025704503. */
static void in_double_parameters_are_what_was_written(void **state)
{
    (void)state;
    berlu_act *act;
    berlu_act_param_info info;
    assert_int_equal(berlu_act_make(&act, "berlu:alpha=0.1,eps=0.3"), BERLU_OK);
    assert_int_equal(berlu_act_param(act, 1, &info), BERLU_OK);
    assert_true(info.value == 0.3);
    assert_true(fabs(berlu_act_at(act, 0, NULL).value - 0.0675) <= 0x1p-56);
    assert_true(berlu_act_at(act, -2, NULL).value == -2 * 0.1);
    berlu_act_free(act);
    assert_int_equal(berlu_act_make(&act, "smooth(kinks=0; slopes=0.1,1; eps=0.3)"), BERLU_OK);
    assert_true(fabs(berlu_act_at(act, 0, NULL).value - 0.0675) <= 0x1p-56);
    assert_non_null(strstr(berlu_act_spec(act), "eps=0.3;"));
    berlu_act_free(act);
    assert_int_equal(berlu_act_make(&act, "prelu"), BERLU_OK);
    assert_true(berlu_act_at(act, -1, NULL).value == -0.25);
    berlu_act_free(act);
}

static void null_answers_are_harmless(void **state)
{
    (void)state;
    berlu_act_free(NULL);
    assert_true(isnan(berlu_act_at(NULL, 1, NULL).value) && isnan(berlu_act_lipschitz(NULL)));
    assert_int_equal(berlu_act_param_count(NULL), 0);
    assert_string_equal(berlu_act_name(NULL), "");
    assert_false(berlu_act_has_from_output(NULL));
    assert_null(berlu_dtype_name((berlu_dtype)7));
    assert_int_equal(berlu_dtype_size((berlu_dtype)7), 0);
    assert_null(berlu_isa_name((berlu_isa)9));
    assert_int_equal(berlu_act_forward(NULL, BERLU_F32, NULL, NULL, 0), BERLU_ERR_ARG);
}

static void calls_that_cannot_be_right_touch_nothing(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9}, grad = 9;
    berlu_act *act, *gelu;
    unsigned char space[4096];
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    assert_int_equal(berlu_act_make(&gelu, "gelu"), BERLU_OK);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, NULL, NULL, 0), BERLU_OK);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, y, NULL, 4), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, NULL, x, 4), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_forward(act, (berlu_dtype)3, y, x, 4), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, y, x, SIZE_MAX / 2), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_backward(act, BERLU_F32, y, NULL, x, 4), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_backward_from_output(gelu, BERLU_F32, y, x, x, 4), BERLU_ERR_UNSUPPORTED);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, NULL, NULL), BERLU_ERR_ARG);

    berlu_act_call call = {.rows = SIZE_MAX / 2, .channels = 3, .x = x, .y = y};
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_workspace(act, BERLU_ACT_FORWARD, &call), 0);
    call = (berlu_act_call){.rows = 2, .channels = 2, .x = x, .y = y};
    assert_int_equal(berlu_act_run(act, (berlu_act_op)6, &call, NULL), BERLU_ERR_ARG);
    call.hint = (berlu_hint)5;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_ERR_ARG);
    call.hint = BERLU_HINT_AUTO;
    call.param_index = 2;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_PARAM_SLOPE, &call, NULL), BERLU_ERR_ARG);
    call.param[0].stride = 2;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_ERR_ARG);
    call.param[0].stride = 1;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, NULL), BERLU_ERR_ARG);
    call.param[0] = (berlu_act_param_arg){.grad = &grad};
    call.dy = x;
    call.dx = y;
    call.y = NULL;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG); /* no workspace */
    call.workspace = space;
    call.workspace_bytes = berlu_act_workspace(act, BERLU_ACT_BACKWARD, &call) - 1;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    call.param[3].grad = &grad;
    call.workspace_bytes = sizeof space;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &(berlu_act_call){.rows = 4, .channels = 1, .x = x, .y = y},
                                   &(berlu_exec){(berlu_isa)77, 1}),
                     BERLU_ERR_UNSUPPORTED);
    float zero = 0;
    call = (berlu_act_call){.rows = 4, .channels = 1, .y = x, .dy = x, .dx = y};
    call.param[0].value = &zero;
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, &call, NULL), BERLU_ERR_UNSUPPORTED);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == 9);
    assert_true(grad == 9);
    berlu_act_free(act);
    berlu_act_free(gelu);
}

static void a_slope_that_the_output_does_not_hold_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *says;
    } rows[] = {{"berlu:degree=4", "with degree = 4 "},
                {"berlu:alpha=0", "with alpha = 0 "},
                {"berlu:alpha=-1,degree=6", "with degree = 6 "},
                {"elu:alpha=-2", "with alpha = -2 "},
                {"gelu", "its slope cannot"}};
    float y = 1, dx = 9;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, rows[i].spec), BERLU_OK);
        assert_int_equal(berlu_act_backward_from_output(act, BERLU_F32, &dx, &y, &y, 1), BERLU_ERR_UNSUPPORTED);
        if (!strstr(berlu_last_error(), rows[i].says))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), rows[i].says);
        berlu_act_free(act);
    }
    assert_true(dx == 9);
}

static void making_an_activation_survives_any_failing_allocation(void **state)
{
    (void)state;
    berlu_act *act = NULL;
    berlu_status status = BERLU_OK;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = berlu_act_make(&act, "berlu:alpha=0.5"), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(act);
    }
    assert_int_equal(status, BERLU_OK);
    berlu_act_free(act);
}

static void an_empty_batch_has_zero_gradients_without_a_workspace(void **state)
{
    (void)state;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    float grad[2] = {42, 42}, dbias[3] = {42, 42, 42};
    berlu_act_call call = {.rows = 0, .channels = 3, .dbias = dbias};
    call.param[0].grad = &grad[0];
    call.param[1].grad = &grad[1];
    assert_int_equal(berlu_act_workspace(act, BERLU_ACT_BACKWARD, &call), 0);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_OK);
    for (int i = 0; i < 3; i++)
        assert_true(dbias[i] == 0 && grad[i % 2] == 0);
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_batch_has_zero_gradients_without_a_workspace),
        cmocka_unit_test(every_canonical_text_makes_the_same_activation_again),
        cmocka_unit_test(bad_texts_are_refused_with_a_sentence_that_names_the_fault),
        cmocka_unit_test(defaults_ranges_and_learning_are_reported),
        cmocka_unit_test(in_double_parameters_are_what_was_written),
        cmocka_unit_test(null_answers_are_harmless),
        cmocka_unit_test(calls_that_cannot_be_right_touch_nothing),
        cmocka_unit_test(a_slope_that_the_output_does_not_hold_is_refused_with_the_reason),
        cmocka_unit_test(making_an_activation_survives_any_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
