/* test_special.c - NaN, infinities, zeros and kinks, exactly as the header guarantees.
 * SPDX-License-Identifier: MIT
 *
 * A table of cases, each run on every instruction set of this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <berlu/berlu.h>

#include "act/inputs.h"

typedef struct row {
    const char *spec;
    float x, value, slope;
} row;

#define SELU_LOW (-1.7580993408473766f)

/* Limits at infinity, signs of zero, and the side that holds a kink. */
static const row rows[] = {
    {"identity", -INFINITY, -INFINITY, 1},
    {"identity", -0.0f, -0.0f, 1},
    {"relu", INFINITY, INFINITY, 1},
    {"relu", -INFINITY, 0, 0},
    {"relu", -0.0f, -0.0f, 0},
    {"relu", 0, 0, 0},
    {"relu", -1, 0, 0},
    {"leaky_relu", -0.0f, -0.0f, 0.01f},
    {"leaky_relu:alpha=-1", 0, -0.0f, -1},
    {"leaky_relu:alpha=-1", -0.0f, 0, -1},
    {"leaky_relu", -INFINITY, -INFINITY, 0.01f},
    {"leaky_relu:alpha=0", -INFINITY, NAN, 0},
    {"prelu", 0, 0, 0.25f},
    {"prelu:alpha=0", -INFINITY, NAN, 0},
    {"relu6", 0, 0, 0},
    {"relu6", 6, 6, 0},
    {"relu6", INFINITY, 6, 0},
    {"relu6", -0.0f, -0.0f, 0},
    {"relu6", 5.9999995f, 5.9999995f, 1},
    {"hard_tanh", -1, -1, 0},
    {"hard_tanh", 1, 1, 0},
    {"hard_tanh", -INFINITY, -1, 0},
    {"hard_tanh", -0.0f, -0.0f, 1},
    {"hard_sigmoid", -3, 0, 0},
    {"hard_sigmoid", 3, 1, 0},
    {"hard_sigmoid", 0, 0.5f, 1.0f / 6},
    {"hard_sigmoid", -INFINITY, 0, 0},
    {"hard_sigmoid", INFINITY, 1, 0},
    {"hard_swish", -3, -0.0f, 0},
    {"hard_swish", 3, 3, 1},
    {"hard_swish", INFINITY, INFINITY, 1},
    {"hard_swish", -INFINITY, -0.0f, 0},
    {"hard_swish", -0.0f, -0.0f, 0.5f},
    {"relu2", INFINITY, INFINITY, INFINITY},
    {"relu2", -INFINITY, 0, 0},
    {"relu2", -0.0f, 0, -0.0f},
    {"relu2", 3, 9, 6},
    {"sigmoid", INFINITY, 1, 0},
    {"sigmoid", -INFINITY, 0, 0},
    {"sigmoid", -0.0f, 0.5f, 0.25f},
    {"tanh", INFINITY, 1, 0},
    {"tanh", -INFINITY, -1, 0},
    {"tanh", -0.0f, -0.0f, 1},
    {"tanh", -0x1p-149f, -0x1p-149f, 1},
    {"softplus", INFINITY, INFINITY, 1},
    {"softplus", -INFINITY, 0, 0},
    {"quick_gelu", INFINITY, INFINITY, 1},
    {"quick_gelu", -INFINITY, -0.0f, -0.0f},
    {"quick_gelu", -0.0f, -0.0f, 0.5f},
    {"elu", 0, 0, 1},
    {"elu", -0.0f, -0.0f, 1},
    {"elu:alpha=2", 0, 0, 2},
    {"elu", -INFINITY, -1, 0},
    {"elu", INFINITY, INFINITY, 1},
    {"elu:alpha=1000", -INFINITY, -1000, 0},
    {"elu:alpha=1e20", -1000, -1e20f, 0},
    {"elu:alpha=3e38", -INFINITY, -3e38f, 0},
    {"celu", -0.0f, -0.0f, 1},
    {"celu:alpha=2", -INFINITY, -2, 0},
    {"celu", INFINITY, INFINITY, 1},
    {"celu:alpha=-1e-6", -INFINITY, -INFINITY, INFINITY},
    {"celu:alpha=-0x1p-100", -1, -INFINITY, INFINITY},
    {"celu:alpha=-0x1p-100", -0x1p-93f, -0x1.95e54cp+84f, INFINITY}, /* e^128 */
    {"selu", -0.0f, -0.0f, 1.7580993408473766f},
    {"selu", -INFINITY, SELU_LOW, 0},
    {"selu", INFINITY, INFINITY, 1.0507009873554805f},
    {"gelu", INFINITY, INFINITY, 1},
    {"gelu", -INFINITY, -0.0f, -0.0f},
    {"gelu", -0.0f, -0.0f, 0.5f},
    {"gelu_tanh", INFINITY, INFINITY, 1},
    {"gelu_tanh", -INFINITY, -0.0f, -0.0f},
    {"gelu_tanh", FLT_MAX, FLT_MAX, 1},
    {"gelu_tanh", -0.0f, -0.0f, 0.5f},
    {"silu", INFINITY, INFINITY, 1},
    {"silu", -INFINITY, -0.0f, -0.0f},
    {"silu", -0.0f, -0.0f, 0.5f},
    {"mish", INFINITY, INFINITY, 1},
    {"mish", -INFINITY, -0.0f, -0.0f},
    {"mish", -0.0f, -0.0f, 0.6f},
    {"smelu", -INFINITY, 0, 0},
    {"smelu", -1, 0, 0},
    {"smelu", 1, 1, 1},
    {"smelu", 0, 0.25f, 0.5f},
    {"smelu", -0.0f, 0.25f, 0.5f},
    {"smelu", -2, 0, 0},
    {"berlu", INFINITY, INFINITY, 1},
    {"berlu", -INFINITY, -INFINITY, 0.01f},
    {"berlu:alpha=0", -INFINITY, NAN, 0},
    {"berlu:alpha=0", -1, 0, 0},
    {"berlu:alpha=0.5,eps=1", 0, 0.125f, 0.75f},
    {"berlu:alpha=0.5,eps=1", -0.0f, 0.125f, 0.75f},
    {"berlu:alpha=0.5,eps=1", 1, 1, 1},
    {"berlu:alpha=0.5,eps=1", -1, -0.5f, 0.5f},
    {"berlu:alpha=1,eps=1", -0.0f, -0.0f, 1},
    {"berlu:alpha=1,eps=1", 0, 0, 1},
    {"berlu:alpha=-1,eps=1", 0, 0.5f, 0},
    {"berlu:alpha=0.5,eps=1,degree=4", 0, 0.09375f, 0.75f},
    {"berlu:alpha=0.5,eps=1,degree=6", 0, 0.078125f, 0.75f},
    {"berlu:alpha=3e38,eps=1e18,degree=4", 2e18f, 2e18f, 1},
    {"berlu:alpha=-3e38,eps=1e18,degree=16", INFINITY, INFINITY, 1},
};

static int same(float a, float b) /* -0 is not 0; a NaN is a NaN */
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Derivatives that are not simple numbers have a bound of their own; here a few units decide. */
static int near(float a, float b)
{
    return same(a, b) || fabsf(a - b) <= 3e-7f * fabsf(b);
}

static void run(const berlu_act *act, berlu_act_op op, berlu_isa isa, float *y, const float *x, size_t n)
{
    berlu_act_call call = {.rows = n, .channels = 1, .x = x, .y = y};
    assert_int_equal(berlu_act_run(act, op, &call, &(berlu_exec){isa, 1}), BERLU_OK);
}

static void special_inputs_give_the_promised_values_and_slopes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, rows[i].spec), BERLU_OK);
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
            float y, slope;
            if (!berlu_act_can_run(act, (berlu_isa)isa))
                continue;
            run(act, BERLU_ACT_FORWARD, (berlu_isa)isa, &y, &rows[i].x, 1);
            run(act, BERLU_ACT_SLOPE, (berlu_isa)isa, &slope, &rows[i].x, 1);
            if (!same(y, rows[i].value) || !near(slope, rows[i].slope))
                fail_msg("%s on %s: f(%g) = %.9g, slope %.9g; want %.9g and %.9g", rows[i].spec,
                         berlu_isa_name((berlu_isa)isa), (double)rows[i].x, (double)y, (double)slope,
                         (double)rows[i].value, (double)rows[i].slope);
        }
        berlu_act_free(act);
    }
}

/* The double version has them: 0, infinities, alpha for a line. */
static void all_results_reach_their_limits_at_infinity(void **state)
{
    (void)state;
    static const float x[] = {-INFINITY, INFINITY};
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_SLOPE, BERLU_ACT_SECOND};
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++)
            for (size_t i = 0; i < 6 && berlu_act_can_run(act, (berlu_isa)isa); i++) {
                berlu_act_point at = inputs_at(act, (double)x[i % 2]);
                float want = (float)(i < 2 ? at.value : i < 4 ? at.slope : at.second), y;
                run(act, ops[i / 2], (berlu_isa)isa, &y, &x[i % 2], 1);
                if (!near(y, want) && y != want) /* -0 may be 0 */
                    fail_msg("%s on %s: op %d of %g is %.9g instead of %.9g", inputs_spec(s),
                             berlu_isa_name((berlu_isa)isa), (int)ops[i / 2], (double)x[i % 2], (double)y,
                             (double)want);
            }
        berlu_act_free(act);
    }
}

static void nan_reaches_value_slope_second_derivative_and_parameter_slopes(void **state)
{
    (void)state;
    static const float nans[] = {NAN, -NAN};
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        for (int op = 0; op < 6; op++) {
            float y[2] = {0, 0};
            if (op == BERLU_ACT_BACKWARD || op == BERLU_ACT_BACKWARD_FROM_OUTPUT ||
                (op == BERLU_ACT_PARAM_SLOPE && berlu_act_param_count(act) == 0))
                continue;
            run(act, (berlu_act_op)op, BERLU_ISA_BEST, y, nans, 2);
            if (!isnan(y[0]) || !isnan(y[1]))
                fail_msg("%s: op %d of NaN is %g, %g", inputs_spec(s), op, (double)y[0], (double)y[1]);
        }
        berlu_act_free(act);
    }
}

/* Kernels choose a path by the largest of some vectors: a NaN must not hide a number that shares
 * its lane with it. */
static void beside_a_nan(const berlu_act *act, const char *spec, berlu_act_op op, float far, uint32_t nan)
{
    enum { N = 64, LANES = 16 };
    float x[N], y[N], want[N], one[N];
    for (int i = 0; i < N; i++)
        one[i] = 1;
    for (int number = 0; number < N; number += LANES)
        for (int hole = 0; hole < N; hole += LANES) {
            if (number == hole)
                continue;
            for (int i = 0; i < N; i++)
                x[i] = 0.1f;
            x[number + 5] = far;
            memcpy(&x[hole + 5], &nan, sizeof nan);
            berlu_act_call call = {.rows = N, .channels = 1, .x = x, .dy = one};
            *(op == BERLU_ACT_BACKWARD ? &call.dx : &call.y) = want;
            assert_int_equal(berlu_act_run(act, op, &call, &(berlu_exec){BERLU_ISA_SCALAR, 1}), BERLU_OK);
            *(op == BERLU_ACT_BACKWARD ? &call.dx : &call.y) = y;
            assert_int_equal(berlu_act_run(act, op, &call, NULL), BERLU_OK);
            for (int i = 0; i < N; i++)
                if (!same(y[i], want[i]))
                    fail_msg("%s, op %d: with %g at %d and a NaN (%x) at %d element %d is %g instead of %g", spec,
                             (int)op, (double)far, number + 5, nan, hole + 5, i, (double)y[i], (double)want[i]);
        }
}

static void a_nan_changes_nothing_beside_it(void **state)
{
    (void)state;
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffbfffff};
    static const float fars[] = {-14, 4.2f, -3.2f, -1e9f, 90};
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        for (size_t i = 0; i < sizeof fars / sizeof *fars * 4; i++) {
            beside_a_nan(act, inputs_spec(s), BERLU_ACT_FORWARD, fars[i / 4], nans[i % 4]);
            beside_a_nan(act, inputs_spec(s), BERLU_ACT_BACKWARD, fars[i / 4], nans[i % 4]);
        }
        berlu_act_free(act);
    }
}

static void a_nan_parameter_gives_nan_for_every_x(void **state)
{
    (void)state;
    static const float x[] = {-INFINITY, -100, -1, -0.001f, -0.0f, 0, 0.001f, 1, 100, INFINITY};
    enum { N = sizeof x / sizeof *x };
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_BACKWARD, BERLU_ACT_SLOPE, BERLU_ACT_SECOND,
                                       BERLU_ACT_PARAM_SLOPE};
    static const float nan = NAN;
    float y[N], one[N];
    for (size_t i = 0; i < N; i++)
        one[i] = 1;
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        int params = (int)berlu_act_param_count(act);
        for (int p = 0; p < params; p++)
            for (int asked = 0; asked < 5 * params; asked++) { /* every op; param_index matters to the last */
                berlu_act_op op = ops[asked % 5];
                berlu_act_call call = {.rows = N, .channels = 1, .x = x, .dy = one, .param_index = asked / 5};
                *(op == BERLU_ACT_BACKWARD ? &call.dx : &call.y) = y;
                call.param[p].value = &nan;
                memset(y, 0, sizeof y);
                assert_int_equal(berlu_act_run(act, op, &call, NULL), BERLU_OK);
                for (size_t i = 0; i < N; i++)
                    if (!isnan(y[i]))
                        fail_msg("%s: op %d (parameter %d) at %g is %g with parameter %d NaN", inputs_spec(s), (int)op,
                                 call.param_index, (double)x[i], (double)y[i], p);
            }
        berlu_act_free(act);
    }
}

/* e^z / alpha is a normal number where e^z alone, z = x / alpha, is infinite, subnormal or 0. */
static void the_second_derivative_of_celu_keeps_its_range(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        float x;
    } cases[] = {{"celu:alpha=-26", -2350},
                 {"celu:alpha=-0x1p100", -0x1p107f},
                 {"celu:alpha=0x1p-30", -0x1.8p-24f},
                 {"celu:alpha=0x1p-100", -0x1.1p-93f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, cases[i].spec), BERLU_OK);
        float want = (float)inputs_at(act, (double)cases[i].x).second, y;
        assert_true(isnormal(want));
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
            if (!berlu_act_can_run(act, (berlu_isa)isa))
                continue;
            run(act, BERLU_ACT_SECOND, (berlu_isa)isa, &y, &cases[i].x, 1);
            if (!near(y, want))
                fail_msg("%s on %s: f''(%g) is %.9g instead of %.9g", cases[i].spec, berlu_isa_name((berlu_isa)isa),
                         (double)cases[i].x, (double)y, (double)want);
        }
        berlu_act_free(act);
    }
}

static void steep_kinks_have_no_curvature_at_their_joins(void **state)
{
    (void)state;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "smooth(kinks=0;slopes=0,1e24;eps=1e-15;degree=4)"), BERLU_OK);
    const float x[] = {-1e-15f, 1e-15f, 2e-15f};
    for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
        float y[3] = {1, 1, 1};
        if (!berlu_act_can_run(act, (berlu_isa)isa))
            continue;
        run(act, BERLU_ACT_SECOND, (berlu_isa)isa, y, x, 3);
        assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
    }
    berlu_act_free(act);
}

/* y from f, then the derivative from y alone: as good as the derivative from x, up to the rounding
 * of y (docs/math.md). */
static void slopes_from_the_output_agree_with_slopes_from_the_input(void **state)
{
    (void)state;
    static const char *const specs[] = {"relu",
                                        "relu6",
                                        "hard_tanh",
                                        "hard_sigmoid",
                                        "leaky_relu",
                                        "prelu",
                                        "elu",
                                        "celu",
                                        "selu",
                                        "smelu",
                                        "relu2",
                                        "softplus",
                                        "sigmoid",
                                        "tanh",
                                        "berlu:alpha=0.25,eps=0.1",
                                        "berlu:alpha=2,eps=1",
                                        "berlu:alpha=0.001,eps=3",
                                        "berlu:alpha=100,eps=0.5",
                                        "elu:alpha=1000",
                                        "identity"};
    static float x[4096], y[4096], one[4096], a[4096], b[4096];
    static unsigned char space[1 << 16];
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        berlu_act *act;
        float grads[2][BERLU_ACT_PARAMS] = {{0}};
        assert_int_equal(berlu_act_make(&act, specs[s]), BERLU_OK);
        assert_true(berlu_act_has_from_output(act));
        inputs_finite(x, 4096, act, 11);
        for (size_t i = 0; i < 4096; i++) {
            one[i] = 1;
            x[i] = fabsf(x[i]) < 8 ? x[i] : -2; /* elu saturates: there y does not determine x */
        }
        assert_int_equal(berlu_act_forward(act, BERLU_F32, y, x, 4096), BERLU_OK);
        berlu_act_call call = {.rows = 4096, .channels = 1, .x = x, .dy = one, .dx = a};
        call.workspace = space;
        call.workspace_bytes = sizeof space;
        for (size_t p = 0; p < berlu_act_param_count(act); p++)
            call.param[p].grad = &grads[0][p];
        assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, NULL), BERLU_OK);
        call.y = y;
        call.dx = b;
        for (size_t p = 0; p < berlu_act_param_count(act); p++)
            call.param[p].grad = &grads[1][p];
        assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, &call, NULL), BERLU_OK);
        berlu_act_param_info alpha = {.value = 0};
        if (berlu_act_param_find(act, "alpha") == 0)
            berlu_act_param(act, 0, &alpha);
        for (size_t i = 0; i < 4096; i++) {
            double slope = inputs_at(act, (double)x[i]).slope;
            if (!(fabs((double)b[i] - slope) <= 0x1p-21 * fmax(fmax(1, alpha.value), fabs(slope))))
                fail_msg("%s: slope at %.9g is %.9g, from y = %.9g it is %.9g", specs[s], (double)x[i], slope,
                         (double)y[i], (double)b[i]);
        }
        for (size_t p = 0; p < berlu_act_param_count(act); p++)
            assert_true(fabsf(grads[0][p] - grads[1][p]) <= 1e-5f * 4096);
        berlu_act_free(act);
    }
}

/* For every activation without parameters; on x from -16 to -8 the derivatives of gelu and
 * gelu_tanh pass 2^-126 and end. The loops of wide instruction sets may fuse derivative and
 * product; the bits must be the same. */
static void a_gradient_is_the_rounded_slope_times_dy_down_to_zero(void **state)
{
    (void)state;
    enum { N = 1 << 14 };
    static const float dy[] = {1,      -0.37f,  0.99999994f, 1.75f,    -300,     0,   -0.0f,
                               1e-10f, -1e-30f, 1e-42f,      -3.1e38f, INFINITY, NAN, -1.0000001f};
    static float x[N], g[N], slope[N], dx[N];
    for (size_t s = 0; inputs_spec(s); s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, inputs_spec(s)), BERLU_OK);
        size_t params = berlu_act_param_count(act);
        for (size_t i = 0; i < N; i++) {
            x[i] = i % 16 == 5 ? 0.25f * (float)(i % 64) : -8 - 8.0f / N * (float)i;
            g[i] = dy[(i + i / 64) % (sizeof dy / sizeof *dy)];
        }
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON && params == 0; isa++) {
            berlu_act_call call = {.rows = N, .channels = 1, .x = x, .dy = g, .dx = dx};
            if (!berlu_act_can_run(act, (berlu_isa)isa))
                continue;
            run(act, BERLU_ACT_SLOPE, (berlu_isa)isa, slope, x, N);
            assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, &(berlu_exec){(berlu_isa)isa, 1}), BERLU_OK);
            for (size_t i = 0; i < N; i++)
                if (!same(dx[i], slope[i] * g[i]))
                    fail_msg("%s on %s: slope %a at %a times %a is %a", inputs_spec(s), berlu_isa_name((berlu_isa)isa),
                             (double)slope[i], (double)x[i], (double)g[i], (double)dx[i]);
        }
        berlu_act_free(act);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_inputs_give_the_promised_values_and_slopes),
        cmocka_unit_test(all_results_reach_their_limits_at_infinity),
        cmocka_unit_test(nan_reaches_value_slope_second_derivative_and_parameter_slopes),
        cmocka_unit_test(a_nan_changes_nothing_beside_it),
        cmocka_unit_test(a_nan_parameter_gives_nan_for_every_x),
        cmocka_unit_test(the_second_derivative_of_celu_keeps_its_range),
        cmocka_unit_test(steep_kinks_have_no_curvature_at_their_joins),
        cmocka_unit_test(slopes_from_the_output_agree_with_slopes_from_the_input),
        cmocka_unit_test(a_gradient_is_the_rounded_slope_times_dy_down_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
