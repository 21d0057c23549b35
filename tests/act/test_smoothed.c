/* test_smoothed.c - smoothed functions as activations: against the reference, on every instruction
 * set. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include <berlu/act.h>

#define U 0x1p-24

static const char *const specs[] = {
    "smooth(kinks=0; slopes=0.01,1; eps=0.01)",
    "smooth(kinks=0; slopes=-1,1; eps=2; degree=8)",
    "smooth(kinks=0,6; slopes=0,1,0; eps=1; degree=4)",
    "smooth(kinks=-3,3; slopes=0,0.16666666666666666,0; eps=0.5; degree=6; at=0=0.5)",
    "smooth(kinks=-0.5,0.5; slopes=1,0,1; eps=0.5; degree=3)",
    "smooth(kinks=-7,-5,-3,-1,1,3,5,7; slopes=1,-1,2,-2,0.5,0,3,-0.25,0; eps=1,0.5,1,0.25,1,0.5,1,1; degree=16)",
    "smooth(kinks=1000,1001.5; slopes=0.5,0,2; eps=0.25; degree=10; at=1000=-3)",
    "smooth(kinks=0; slopes=0.00100001,0.001; eps=1)", /* a jump of a hundred units of the slopes' rounding */
    "smooth(slopes=2; at=1=3)",
};

static uint32_t draw_state = 1;
static uint32_t draw(void)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return draw_state >> 8;
}

/* Around the kinks, at the joins, everywhere, and specials. */
enum { COUNT_X = 4099 };
static void fill(float *x, const berlu_smooth *f)
{
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e-45f, FLT_MIN};
    size_t kinks = berlu_smooth_kink_count(f);
    for (size_t i = 0; i < COUNT_X; i++) {
        berlu_transition t = {.from = -1, .to = 1};
        if (kinks)
            berlu_smooth_transition(f, draw() % kinks, &t);
        double share = (draw() % 4096) / 2048.0 - 0.5;
        x[i] = (float)(t.from + (t.to - t.from) * share);
        if (i % 7 == 0)
            x[i] = (float)(i % 2 ? t.from : t.to);
        if (i % 11 == 0)
            x[i] = (float)(draw() % 100000) / 100.0f - 500.0f;
        if (i % 97 == 0)
            x[i] = special[i / 97 % COUNT(special)];
    }
}

typedef struct pair {
    berlu_act *act;
    berlu_smooth *f;
} pair;

static pair pair_make(const char *spec)
{
    pair p;
    if (berlu_act_make(&p.act, spec) != BERLU_OK || berlu_smooth_parse(&p.f, spec) != BERLU_OK)
        fail_msg("%s: %s", spec, berlu_last_error());
    return p;
}

static void pair_free(pair p)
{
    berlu_act_free(p.act);
    berlu_smooth_free(p.f);
}

static const berlu_transition *nearest(const berlu_smooth *f, double x, berlu_transition *out)
{
    *out = (berlu_transition){.eps_left = 1, .x = 0};
    double best = INFINITY;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        berlu_smooth_transition(f, i, &t);
        double distance = fmax(fmax(t.from - x, x - t.to), 0);
        if (distance < best) {
            best = distance;
            *out = t;
        }
    }
    return out;
}

/* The bounds that smoothed.h states. */
static void kernels_agree_with_the_reference(void **state)
{
    (void)state;
    static float x[COUNT_X], y[COUNT_X], dy[COUNT_X], dx[COUNT_X], d2[COUNT_X];
    for (size_t i = 0; i < COUNT(specs); i++) {
        pair p = pair_make(specs[i]);
        double steepest = berlu_act_lipschitz(p.act);
        assert_true(isinf(berlu_act_ulp(p.act)) && isinf(berlu_act_slope_ulp(p.act))); /* none in ULP */
        fill(x, p.f);
        for (size_t k = 0; k < COUNT_X; k++)
            dy[k] = 1;
        assert_int_equal(berlu_act_forward(p.act, BERLU_F32, y, x, COUNT_X), BERLU_OK);
        assert_int_equal(berlu_act_backward(p.act, BERLU_F32, dx, dy, x, COUNT_X), BERLU_OK);
        assert_int_equal(berlu_act_second(p.act, BERLU_F32, d2, x, COUNT_X), BERLU_OK);
        for (size_t k = 0; k < COUNT_X; k++) {
            berlu_transition t;
            berlu_act_point want = berlu_act_at(p.act, (double)x[k], NULL);
            nearest(p.f, (double)x[k], &t);
            double c = fabs((double)x[k] - t.x), jump = fabs(t.right - t.left), eps = t.eps_left;
            if (isnan(x[k])) {
                assert_true(isnan(y[k]) && isnan(dx[k]) && isnan(d2[k]));
                continue;
            }
            if (isinf(want.value) || fabs(want.value) > FLT_MAX) {
                assert_true((double)y[k] == copysign(INFINITY, want.value));
            } else {
                double bound = isinf(c) ? 0 : 4 * U * (fabs(t.y) + steepest * c) + U * (12 * jump + steepest) * eps;
                assert_true(fabs((double)y[k] - want.value) <= bound + 0x1p-149);
            }
            double shift = isinf(c) ? 0 : 4 * jump / (2 * eps) * U * c; /* K_m < 4 */
            assert_true(fabs((double)dx[k] - want.slope) <=
                        12 * U * steepest + (c <= eps * 1.001 ? shift : 0) + 0x1p-149);
            /* the second derivative of degree 2 jumps there */
            int at_join = fabs(c - eps) <= 4 * U * (fabs(t.x) + eps);
            double bend = 8 / (2 * eps), relative = 64 * U * (1 + (c <= eps ? c / eps : 0));
            assert_true(at_join || fabs((double)d2[k] - want.second) <=
                                       bend * (relative * jump + 2 * U * steepest) + 0x1p-149); /* J has two slopes */
        }
        pair_free(p);
    }
}

static void every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    static float x[COUNT_X], dy[COUNT_X], want[COUNT_X], got[COUNT_X];
    static const berlu_act_op ops[] = {BERLU_ACT_FORWARD, BERLU_ACT_BACKWARD, BERLU_ACT_SLOPE, BERLU_ACT_SECOND};
    for (size_t i = 0; i < COUNT(specs); i++) {
        pair p = pair_make(specs[i]);
        fill(x, p.f);
        for (size_t k = 0; k < COUNT_X; k++)
            dy[k] = (float)(draw() % 64) - 32;
        for (size_t o = 0; o < COUNT(ops); o++)
            for (int isa = BERLU_ISA_SCALAR; isa <= BERLU_ISA_NEON; isa++) {
                float *out = isa == BERLU_ISA_SCALAR ? want : got;
                berlu_act_call call = {.rows = 1, .channels = COUNT_X, .x = x, .dy = dy};
                call.y = ops[o] == BERLU_ACT_BACKWARD ? NULL : out;
                call.dx = ops[o] == BERLU_ACT_BACKWARD ? out : NULL;
                berlu_exec exec = {.isa = (berlu_isa)isa, .threads = 1};
                berlu_status status = berlu_act_run(p.act, ops[o], &call, &exec);
                if (status == BERLU_ERR_UNSUPPORTED && isa != BERLU_ISA_SCALAR)
                    continue; /* not on this machine */
                assert_int_equal(status, BERLU_OK);
                for (size_t k = 0; k < COUNT_X; k++)
                    assert_true(memcmp(&out[k], &want[k], 4) == 0 || (isnan(out[k]) && isnan(want[k])));
            }
        pair_free(p);
    }
}

/* BerLU is the smoothed leaky relu; both kernels are within their bounds of the same function. */
static void a_smoothed_leaky_relu_is_berlu(void **state)
{
    (void)state;
    for (int degree = 2; degree <= 16; degree += 2) {
        char one[96], two[64];
        berlu_act *a, *b;
        snprintf(one, sizeof one, "smooth(kinks=0; slopes=0.25,1; eps=0.5; degree=%d)", degree);
        snprintf(two, sizeof two, "berlu:alpha=0.25,eps=0.5,degree=%d", degree);
        assert_int_equal(berlu_act_make(&a, one), BERLU_OK);
        assert_int_equal(berlu_act_make(&b, two), BERLU_OK);
        for (float x = -1; x <= 1; x += 1.0f / 512) {
            float ya, yb;
            berlu_act_forward(a, BERLU_F32, &ya, &x, 1);
            berlu_act_forward(b, BERLU_F32, &yb, &x, 1);
            assert_true(fabsf(ya - yb) <= (float)(24 * U) * 0.5f);
            assert_true(fabs(berlu_act_at(a, (double)x, NULL).value - berlu_act_at(b, (double)x, NULL).value) <=
                        0x1p-50);
        }
        berlu_act_free(a);
        berlu_act_free(b);
    }
}

static void level_ends_are_exact_and_infinities_give_limits(void **state)
{
    (void)state;
    berlu_act *act;
    float x[] = {INFINITY, -INFINITY, 7, 1e30f, -1, -1e30f}, y[6];
    assert_int_equal(berlu_act_make(&act, "smooth(kinks=0,6; slopes=0,1,0; eps=0.5; degree=4)"), BERLU_OK);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, y, x, 6), BERLU_OK);
    assert_true(y[0] == 6 && y[1] == 0 && y[2] == 6 && y[3] == 6 && y[4] == 0 && y[5] == 0);
    assert_false(signbit(y[1]) || signbit(y[4]));
    berlu_act_free(act);
    assert_int_equal(berlu_act_make(&act, "smooth(kinks=-3,3; slopes=0,0.16666666666666666,0; at=0=0.5)"), BERLU_OK);
    assert_int_equal(berlu_act_forward(act, BERLU_F32, y, x, 2), BERLU_OK);
    assert_true(y[0] == 1 && y[1] == 0);
    berlu_act_free(act);
}

static void a_registered_name_is_used_like_a_built_in_one(void **state)
{
    (void)state;
    berlu_registry *names;
    berlu_smooth *f;
    berlu_act *act, *again, *scaled;
    assert_int_equal(berlu_registry_make(&names), BERLU_OK);
    assert_int_equal(berlu_smooth_named(&f, "hard_tanh", NULL, 0.25, 4), BERLU_OK);
    assert_int_equal(berlu_registry_add(names, "soft_clip", f), BERLU_OK);
    berlu_smooth_free(f);
    assert_int_equal(berlu_act_make_in(&act, "soft_clip", names), BERLU_OK);
    assert_int_equal(berlu_act_make_in(&scaled, "soft_clip:scale=2", names), BERLU_OK);
    assert_int_equal(berlu_act_make_in(&again, "soft_clop", names), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "did you mean 'soft_clip'?"));
    assert_int_equal(berlu_act_make_in(&again, "geluu", names), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "did you mean 'gelu'?"));
    berlu_registry_free(names); /* nothing of it is kept */
    assert_string_equal(berlu_act_name(act), "soft_clip");
    assert_true(berlu_act_at(act, 3, NULL).value == 1 && berlu_act_lipschitz(act) == 1);
    assert_true(berlu_act_at(scaled, 3, NULL).value == 0.5);
    assert_int_equal(berlu_act_make(&again, berlu_act_spec(act)), BERLU_OK); /* the canonical text needs no registry */
    for (double x = -2; x <= 2; x += 0.01)
        assert_true(berlu_act_at(act, x, NULL).value == berlu_act_at(again, x, NULL).value);
    berlu_act_free(again);
    assert_int_equal(berlu_act_make(&again, berlu_act_spec(scaled)), BERLU_OK);
    assert_string_equal(berlu_act_spec(again), berlu_act_spec(scaled));
    berlu_act_free(again);
    berlu_act_free(scaled);
    berlu_act_free(act);
    assert_int_equal(berlu_act_make(&act, "soft_clip"), BERLU_ERR_ARG);
}

static void what_has_no_kernel_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *words;
        berlu_status status;
    } cases[] = {
        {"smooth(kinks=0,1,2,3,4,5,6,7,8; slopes=0,1,2,3,4,5,6,7,8,9)", "9 kinks", BERLU_ERR_UNSUPPORTED},
        {"smooth(kinks=0; slopes=0,1; eps=1; eps_right=2; degree=4)", "not at the centre", BERLU_ERR_UNSUPPORTED},
        {"smooth(kinks=0; slopes=0,1e39)", "exceed the range of f32", BERLU_ERR_ARG},
        {"smooth(kinks=0; slopes=0,1e38; eps=1e10)", "exceed the range of f32", BERLU_ERR_ARG},
        {"smooth(kinks=1,1.00000001; slopes=0,1,0; eps=1e-9)", "as f32 numbers", BERLU_ERR_ARG},
        {"smooth(kinks=0; slopes=0,1):colour=1", "unknown key 'colour'", BERLU_ERR_ARG},
        {"smooth(kinks=0; slopes=0,1", "not of the form", BERLU_ERR_ARG},
        {"smooth", "unknown", BERLU_ERR_ARG},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        berlu_act *act;
        assert_int_equal(berlu_act_make(&act, cases[i].spec), cases[i].status);
        assert_null(act);
        if (!strstr(berlu_last_error(), cases[i].words))
            fail_msg("'%s' not in '%s'", cases[i].words, berlu_last_error());
    }
    berlu_smooth *f;
    berlu_act *act;
    assert_int_equal(berlu_smooth_named(&f, "elu", NULL, 0.1, 2), BERLU_OK);
    assert_int_equal(berlu_act_make_smooth(&act, "soft_elu", f), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "made of curves"));
    static const char *const names[] = {"", "a b:c\n", "6a", "_a", "relu", "smooth", NULL};
    for (size_t i = 0; i < COUNT(names); i++) { /* the rule of berlu_registry_add() */
        act = (berlu_act *)&act;
        assert_int_equal(berlu_act_make_smooth(&act, names[i], f), BERLU_ERR_ARG);
        assert_null(act);
    }
    assert_int_equal(berlu_act_make_smooth(NULL, "a", f), BERLU_ERR_ARG);
    assert_int_equal(berlu_act_make_smooth(&act, "a", NULL), BERLU_ERR_ARG);
    berlu_smooth_free(f);
}

/* Decimal kinks at distances of 2 eps: as f32 numbers some of these transitions overlap by a
 * rounding. The kernel's kinks are off by U |x| each, so every rising piece, four at most, is by
 * twice of that; where a kink is moved the slope is by as much times f'', 1.5 / (2 eps) at most. */
static void transitions_that_touch_in_decimals_are_accepted(void **state)
{
    (void)state;
    static const double places[] = {0, 0.3, -0.7, 7.1, 1000.3};
    for (size_t p = 0; p < COUNT(places); p++)
        for (int kinks = 2; kinks <= 8; kinks++) {
            char spec[512];
            int at = snprintf(spec, sizeof spec, "smooth(eps=0.1; degree=4; slopes=0");
            for (int i = 0; i < kinks; i++)
                at += snprintf(spec + at, sizeof spec - (size_t)at, ",%d", i % 2 ? 0 : 1);
            for (int i = 0; i < kinks; i++)
                at +=
                    snprintf(spec + at, sizeof spec - (size_t)at, "%s%.1f", i ? "," : "; kinks=", places[p] + 0.2 * i);
            snprintf(spec + at, sizeof spec - (size_t)at, ")");
            pair f = pair_make(spec);
            double rounding = 8 * U * (fabs(places[p]) + 0.2 * kinks + 0.1);
            for (int i = -100; i <= 200 * kinks; i++) {
                float x = (float)(places[p] + i * 0.001), y, slope, one = 1;
                assert_int_equal(berlu_act_forward(f.act, BERLU_F32, &y, &x, 1), BERLU_OK);
                assert_int_equal(berlu_act_backward(f.act, BERLU_F32, &slope, &one, &x, 1), BERLU_OK);
                assert_true(fabs((double)y - berlu_smooth_value(f.f, (double)x)) <= rounding);
                assert_true(fabs((double)slope - berlu_smooth_slope(f.f, (double)x)) <= rounding * 1.5 / (2 * 0.1));
            }
            pair_free(f);
        }
}

static void it_is_no_built_in_name(void **state)
{
    (void)state;
    for (size_t i = 0; berlu_act_builtin(i); i++)
        assert_string_not_equal(berlu_act_builtin(i), "smooth");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_agree_with_the_reference),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(a_smoothed_leaky_relu_is_berlu),
        cmocka_unit_test(level_ends_are_exact_and_infinities_give_limits),
        cmocka_unit_test(a_registered_name_is_used_like_a_built_in_one),
        cmocka_unit_test(what_has_no_kernel_is_refused),
        cmocka_unit_test(transitions_that_touch_in_decimals_are_accepted),
        cmocka_unit_test(it_is_no_built_in_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
