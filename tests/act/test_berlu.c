/* test_berlu.c - guarantees of BerLU beside its bounds: exact lines, exact ends, any alpha and eps.
 * SPDX-License-Identifier: MIT
 *
 * Properties that might depend on the instruction set run on all of this machine. Bounds of value
 * and derivative are in test_accuracy.c, single inputs in test_special.c. */
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
#include "base/status.h"

static void berlu_is_the_line_outside_and_smelu_is_berlu_without_slope(void **state)
{
    (void)state;
    static float x[4096], y[4096], z[4096];
    berlu_act *leaky, *knee, *flat, *smelu, *one;
    assert_int_equal(berlu_act_make(&leaky, "leaky_relu:alpha=0.3"), BERLU_OK);
    assert_int_equal(berlu_act_make(&knee, "berlu:alpha=0.3,eps=0.5,degree=6"), BERLU_OK);
    assert_int_equal(berlu_act_make(&flat, "berlu:alpha=0,eps=0.7"), BERLU_OK);
    assert_int_equal(berlu_act_make(&smelu, "smelu:beta=0.7"), BERLU_OK);
    assert_int_equal(berlu_act_make(&one, "berlu:alpha=1,eps=0.7,degree=4"), BERLU_OK);
    inputs_finite(x, 4096, knee, 9);
    assert_int_equal(berlu_act_forward(leaky, BERLU_F32, y, x, 4096), BERLU_OK);
    assert_int_equal(berlu_act_forward(knee, BERLU_F32, z, x, 4096), BERLU_OK);
    for (size_t i = 0; i < 4096; i++)
        assert_true(fabsf(x[i]) <= 0.5f || memcmp(&y[i], &z[i], sizeof *y) == 0);
    assert_int_equal(berlu_act_forward(flat, BERLU_F32, y, x, 4096), BERLU_OK);
    assert_int_equal(berlu_act_forward(smelu, BERLU_F32, z, x, 4096), BERLU_OK);
    assert_memory_equal(y, z, sizeof y);
    assert_int_equal(berlu_act_forward(one, BERLU_F32, z, x, 4096), BERLU_OK);
    assert_memory_equal(x, z, sizeof x);
    berlu_act_free(leaky);
    berlu_act_free(knee);
    berlu_act_free(flat);
    berlu_act_free(smelu);
    berlu_act_free(one);
}

/* The derivative is built from alpha up and d/dalpha from x down, so hitting 1 and 0 exactly is a
 * matter of rounding (berlu_fit_slope, berlu_fit_alpha). Random numbers over all sizes, one pair
 * for each channel. */
enum { PAIRS = 512, RIGHT = 4 * PAIRS };

static uint32_t next_draw(uint32_t *seed)
{
    return *seed = *seed * 1664525u + 1013904223u;
}

static void draw_pairs(float alpha[PAIRS], float eps[PAIRS], uint32_t *seed)
{
    for (size_t i = 0; i < PAIRS; i++) {
        uint32_t a = next_draw(seed), e = next_draw(seed);
        alpha[i] = ldexpf((float)((a >> 8) + 1) * 0x1p-24f, -(int)(a % 7) * 3);
        eps[i] = ldexpf(1 + (float)(e >> 9) * 0x1p-23f, (int)(e % 21) - 14);
    }
}

/* A call with x in rows of one element for each pair */
static berlu_act_call pairs_call(const float alpha[PAIRS], const float eps[PAIRS], const float *x, float *y,
                                 size_t count)
{
    static unsigned char space[1 << 20];
    berlu_act_call call = {.rows = count, .channels = PAIRS, .x = x, .y = y};
    call.param[0] = (berlu_act_param_arg){.value = alpha, .stride = 1};
    call.param[1] = (berlu_act_param_arg){.value = eps, .stride = 1};
    call.workspace = space;
    call.workspace_bytes = sizeof space;
    return call;
}

static void fill_right(float x[RIGHT], const float eps[PAIRS])
{
    for (size_t i = 0; i < PAIRS; i++) {
        x[i] = eps[i];
        x[PAIRS + i] = nextafterf(eps[i], INFINITY);
        x[2 * PAIRS + i] = 2 * eps[i];
        x[3 * PAIRS + i] = FLT_MAX;
    }
}

static void right_of_eps_the_slope_is_exactly_one_and_that_by_alpha_zero(void **state)
{
    (void)state;
    static float alpha[PAIRS], eps[PAIRS], x[RIGHT], slope[RIGHT];
    uint32_t seed = 1;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    for (int round = 0; round < 200; round++) {
        draw_pairs(alpha, eps, &seed);
        fill_right(x, eps);
        for (int asked = 0; asked < 2 * (BERLU_ISA_NEON + 1); asked++) {
            berlu_exec exec = {(berlu_isa)(asked / 2), 1};
            berlu_act_op op = asked % 2 ? BERLU_ACT_PARAM_SLOPE : BERLU_ACT_SLOPE;
            if (!berlu_act_can_run(act, exec.isa))
                continue;
            berlu_act_call call = pairs_call(alpha, eps, x, slope, 4);
            assert_int_equal(berlu_act_run(act, op, &call, &exec), BERLU_OK);
            for (size_t i = 0; i < RIGHT; i++)
                if (slope[i] != (op == BERLU_ACT_SLOPE ? 1 : 0))
                    fail_msg("alpha %a, eps %a, x %a: slope%s %a", (double)alpha[i % PAIRS], (double)eps[i % PAIRS],
                             (double)x[i], op == BERLU_ACT_SLOPE ? "" : " by alpha", (double)slope[i]);
        }
    }
    berlu_act_free(act);
}

/* The same where a layer has one alpha, in the loops: elements right of every eps have no effect on
 * alpha. */
static void what_lies_right_of_eps_leaves_alpha_alone(void **state)
{
    (void)state;
    static float alpha[PAIRS], eps[PAIRS], x[RIGHT], dx[RIGHT], dy[RIGHT];
    static unsigned char space[1 << 16];
    uint32_t seed = 2;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    float most = 0;
    draw_pairs(alpha, eps, &seed);
    fill_right(x, eps);
    for (size_t i = 0; i < PAIRS; i++)
        most = fmaxf(most, eps[i]);
    for (size_t i = 0; i < RIGHT; i++) {
        x[i] = fmaxf(x[i], most);
        dy[i] = (float)(i % 13) - 6.5f;
    }
    for (size_t i = 0; i < PAIRS; i++)
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
            float grad = 1;
            berlu_act_call call = {.rows = RIGHT, .channels = 1, .x = x, .dy = dy, .dx = dx};
            if (!berlu_act_can_run(act, (berlu_isa)isa))
                continue;
            call.param[0] = (berlu_act_param_arg){.value = &alpha[i], .grad = &grad};
            call.param[1].value = &eps[i];
            call.workspace = space;
            call.workspace_bytes = sizeof space;
            assert_int_equal(berlu_act_run(act, BERLU_ACT_BACKWARD, &call, &(berlu_exec){(berlu_isa)isa, 1}), BERLU_OK);
            assert_memory_equal(dx, dy, sizeof dx);
            if (grad != 0)
                fail_msg("alpha %a, eps %a: the gradient of alpha is %a", (double)alpha[i], (double)eps[i],
                         (double)grad);
        }
    berlu_act_free(act);
}

/* Inside it cancels near eps, so that it is compared in units of eps. Where the significand of eps
 * is at most 3/2 both are met, and the short formula has half the error of the longer one
 * (berlu.h). */
static void inside_the_slope_by_alpha_is_within_its_units_of_eps(void **state)
{
    (void)state;
    static float alpha[PAIRS], eps[PAIRS], x[128 * PAIRS], y[128 * PAIRS];
    uint32_t seed = 3;
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    draw_pairs(alpha, eps, &seed);
    for (size_t i = 0; i < 128 * (size_t)PAIRS; i++)
        x[i] = eps[i % PAIRS] * ((float)(next_draw(&seed) >> 8) * 0x1p-23f - 1);
    berlu_act_call call = pairs_call(alpha, eps, x, y, 128);
    assert_int_equal(berlu_act_run(act, BERLU_ACT_PARAM_SLOPE, &call, NULL), BERLU_OK);
    for (size_t i = 0; i < 128 * (size_t)PAIRS; i++) {
        double pair[] = {(double)alpha[i % PAIRS], (double)eps[i % PAIRS]};
        double want = berlu_act_at(act, (double)x[i], pair).param[0], unit = ldexp(1, ilogb(pair[1]) - 23);
        double units = pair[1] <= ldexp(1.5, ilogb(pair[1])) ? 2.5 : 5;
        if (!(fabs((double)y[i] - want) <= units * unit))
            fail_msg("alpha %a, eps %a: df/dalpha(%a) = %a instead of %a", pair[0], pair[1], (double)x[i], (double)y[i],
                     want);
    }
    berlu_act_free(act);
}

/* The bump of a high degree is small near the joins: no factor of it may fall below 2^-126 before
 * the product does. */
static void high_degrees_hold_their_bound_in_wide_transitions(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        float eps;
    } wide[] = {{"berlu:alpha=0,eps=1000,degree=16", 1000},
                {"berlu:alpha=0,eps=1e6,degree=12", 1e6f},
                {"berlu:alpha=0,eps=1e15,degree=16", 1e15f}};
    for (size_t s = 0; s < sizeof wide / sizeof *wide; s++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, wide[s].spec), BERLU_OK);
        for (float part = 0.5f; part > 1e-7f; part *= 0.93f) {
            float x = -wide[s].eps * (1 - part), y;
            double exact = inputs_at(act, (double)x).value;
            assert_int_equal(berlu_act_forward(act, BERLU_F32, &y, &x, 1), BERLU_OK);
            if (exact >= (double)FLT_MIN && fabs((double)y - exact) > ldexp(20, ilogb(exact) - 23))
                fail_msg("%s: f(%a) = %a, want %a", wide[s].spec, (double)x, (double)y, exact);
        }
        berlu_act_free(act);
    }
}

/* A learned width may fall below its range; it is then held at the end of it, on every instruction
 * set. */
static void a_width_below_its_range_is_held(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *least;
        int param;
    } widths[] = {{"berlu:alpha=0.3,degree=6", "berlu:alpha=0.3,degree=6,eps=0x1p-60", 1},
                  {"berlu:alpha=0.3", "berlu:alpha=0.3,eps=0x1p-60", 1},
                  {"smelu", "smelu:beta=0x1p-60", 0}};
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_SLOPE, BERLU_ACT_SECOND};
    static const float below[] = {-1, 0};
    static float x[4096], y[4096], z[4096];
    for (size_t i = 0; i < COUNT(widths) * COUNT(ops) * COUNT(below); i++) {
        size_t w = i / (COUNT(ops) * COUNT(below));
        berlu_act_op op = ops[i / COUNT(below) % COUNT(ops)];
        berlu_act *act, *least;
        assert_int_equal(berlu_act_make(&act, widths[w].spec), BERLU_OK);
        assert_int_equal(berlu_act_make(&least, widths[w].least), BERLU_OK);
        inputs_finite(x, 4096, act, 5);
        berlu_act_call want = {.rows = 4096, .channels = 1, .x = x, .y = y}, call = want;
        call.y = z;
        call.param[widths[w].param].value = &below[i % COUNT(below)];
        assert_int_equal(berlu_act_run(least, op, &want, NULL), BERLU_OK);
        for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
            if (!berlu_act_can_run(act, (berlu_isa)isa))
                continue;
            assert_int_equal(berlu_act_run(act, op, &call, &(berlu_exec){(berlu_isa)isa, 1}), BERLU_OK);
            assert_memory_equal(y, z, sizeof y);
        }
        berlu_act_free(act);
        berlu_act_free(least);
    }
}

/* The parameters of a call are not checked, as a text is: where (1 - alpha) / eps overflows the
 * transition means nothing, but the lines stay. */
static void parameters_that_overflow_together_leave_the_lines(void **state)
{
    (void)state;
    static const float alpha = 1e24f, eps = 1e-15f, x[] = {-1, 2};
    berlu_act *act;
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
        float y[2], slope[2];
        if (!berlu_act_can_run(act, (berlu_isa)isa))
            continue;
        berlu_act_call call = {.rows = 2, .channels = 1, .x = x, .y = y};
        call.param[0].value = &alpha, call.param[1].value = &eps;
        assert_int_equal(berlu_act_run(act, BERLU_ACT_FORWARD, &call, &(berlu_exec){(berlu_isa)isa, 1}), BERLU_OK);
        call.y = slope;
        assert_int_equal(berlu_act_run(act, BERLU_ACT_SLOPE, &call, &(berlu_exec){(berlu_isa)isa, 1}), BERLU_OK);
        assert_true(y[0] == -1e24f && y[1] == 2 && slope[0] == 1e24f && slope[1] == 1);
    }
    berlu_act_free(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(berlu_is_the_line_outside_and_smelu_is_berlu_without_slope),
        cmocka_unit_test(right_of_eps_the_slope_is_exactly_one_and_that_by_alpha_zero),
        cmocka_unit_test(what_lies_right_of_eps_leaves_alpha_alone),
        cmocka_unit_test(parameters_that_overflow_together_leave_the_lines),
        cmocka_unit_test(inside_the_slope_by_alpha_is_within_its_units_of_eps),
        cmocka_unit_test(high_degrees_hold_their_bound_in_wide_transitions),
        cmocka_unit_test(a_width_below_its_range_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
