/* test_inverse.c - the inverse, by round trips. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exact.h"
#include <berlu/smooth.h>

/* y -> x -> y. One rounding of x moves y by |slope x| 2^-53; evaluation and the last Newton step
 * add a few units of the terms of the value. */
static void check_round_trip(const berlu_smooth *f, double y, double size)
{
    double x;
    assert_int_equal(berlu_smooth_inverse(f, y, &x), BERLU_OK);
    double slack = 64 * 0x1p-53 * (fabs(y) + size + berlu_smooth_lipschitz(f) * fabs(x));
    assert_true(fabs(berlu_smooth_value(f, x) - y) <= slack);
}

static void values_of_rising_functions_come_back(void **state)
{
    (void)state;
    draws d = {41};
    for (int degree = 2; degree <= 16; degree++)
        for (int i = 0; i < 20; i++) {
            double kinks[] = {-2, 0, 3}, slopes[4], eps[] = {draw_real(&d, 0.01, 1)};
            double right[] = {draw_real(&d, 0.01, 1)};
            for (int k = 0; k < 4; k++)
                slopes[k] = exp(draw_real(&d, -4, 2)) * (i % 2 ? -1 : 1); /* falling ones too */
            berlu_smooth_spec spec = {
                3, kinks, slopes, 0, 0, eps, 1, i % 3 == 0 ? right : NULL, degree, BERLU_SMOOTH_BERNSTEIN};
            berlu_smooth *f;
            assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
            assert_int_equal(berlu_smooth_monotone(f), i % 2 ? -1 : 1);
            for (int k = 0; k < 40; k++)
                check_round_trip(f, berlu_smooth_value(f, draw_real(&d, -4, 5)), 40);
            berlu_smooth_free(f);
        }
}

/* Degree 2 has a closed form; Newton on the same parabola, entered as degree 3, must agree. */
static void berlu_of_degree_two_is_inverted_in_closed_form(void **state)
{
    (void)state;
    draws d = {42};
    for (int i = 0; i < 300; i++) {
        double alpha = exp(draw_real(&d, -7, 2)), e = exp(draw_real(&d, -5, 2)), x;
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_named(&f, "leaky_relu", &alpha, e, 2), BERLU_OK);
        double want = draw_real(&d, -e, e), y = berlu_smooth_value(f, want);
        assert_int_equal(berlu_smooth_inverse(f, y, &x), BERLU_OK);
        /* y is off by a few units of e (1 + alpha); divided by the slope that bounds the error of
         * x */
        double slack = 16 * 0x1p-53 * e * (1 + alpha) / berlu_smooth_slope(f, want);
        assert_true(fabs(x - want) <= slack);
        berlu_smooth_free(f);
    }
}

static void alpha_one_is_regular(void **state)
{
    (void)state;
    double alpha = 1, x;
    for (int degree = 2; degree <= 16; degree += 2) {
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_named(&f, "leaky_relu", &alpha, 0.5, degree), BERLU_OK);
        for (double y = -1; y <= 1; y += 0.0625) {
            assert_int_equal(berlu_smooth_inverse(f, y, &x), BERLU_OK);
            assert_true(fabs(x - y) <= 4 * 0x1p-53);
        }
        berlu_smooth_free(f);
    }
}

static void elu_is_inverted_down_to_its_asymptote(void **state)
{
    (void)state;
    for (int degree = 2; degree <= 5; degree++) {
        berlu_smooth *f;
        double x;
        assert_int_equal(berlu_smooth_named(&f, "elu", NULL, 0.25, degree), BERLU_OK);
        assert_int_equal(berlu_smooth_monotone(f), 1);
        for (double y = -0.999; y < 3; y += 0.01)
            check_round_trip(f, y, 1);
        assert_int_equal(berlu_smooth_inverse(f, -1, &x), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "never takes the value -1"));
        assert_int_equal(berlu_smooth_inverse(f, -7, &x), BERLU_ERR_ARG);
        berlu_smooth_free(f);
    }
}

/* A slope of 0 at one point only (touching transitions) is still strictly monotone. */
static void a_level_point_does_not_stop_the_inverse(void **state)
{
    (void)state;
    double kinks[] = {-1, 1}, slopes[] = {1, 0, 1}, eps[] = {1};
    for (int degree = 2; degree <= 16; degree++) {
        berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, eps, 1, NULL, degree, BERLU_SMOOTH_BERNSTEIN};
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
        assert_int_equal(berlu_smooth_monotone(f), 1);
        for (double y = -3; y <= 3; y += 0.03125)
            check_round_trip(f, y, 4);
        berlu_smooth_free(f);
    }
}

/* Products of two such slopes overflow, or vanish. */
static void steep_and_flat_functions_have_an_inverse_too(void **state)
{
    (void)state;
    const double steep[][2] = {{1e200, 2e200}, {1e308, 1.5e308}, {1e-200, 2e-200}, {1e-300, 1e300}, {-1e-200, -3}};
    for (int degree = 2; degree <= 4; degree += 2)
        for (size_t i = 0; i < sizeof steep / sizeof *steep; i++) {
            double kinks[] = {0}, eps[] = {0.5}, x;
            berlu_smooth_spec spec = {1, kinks, steep[i], 0, 0, eps, 1, NULL, degree, BERLU_SMOOTH_BERNSTEIN};
            berlu_smooth *f;
            assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
            for (double want = -0.4375; want < 0.5; want += 0.0625) {
                assert_int_equal(berlu_smooth_inverse(f, berlu_smooth_value(f, want), &x), BERLU_OK);
                assert_true(fabs(x - want) <= 0x1p-46); /* slopes inside are above 1/256 of the larger one */
            }
            berlu_smooth_free(f);
        }
}

/* Transitions that touch leave no level piece, but the one in the middle is level itself. */
static void a_level_transition_has_no_inverse(void **state)
{
    (void)state;
    const double kinks[] = {0, 1, 2}, slopes[] = {1, 0, 0, 1}, eps[] = {0.5};
    const berlu_curve curves[] = {{.linear = 1}, {.linear = 0}, {.linear = 0}, {.linear = 1, .constant = -2}};
    berlu_smooth_spec lines = {3, kinks, slopes, 0, 0, eps, 1, NULL, 4, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth_curves curved = {3, kinks, curves, eps, 1, 4};
    berlu_smooth *f[2];
    assert_int_equal(berlu_smooth_make(&f[0], &lines), BERLU_OK);
    assert_int_equal(berlu_smooth_make_curves(&f[1], &curved), BERLU_OK);
    for (int i = 0; i < 2; i++) {
        double x;
        assert_true(berlu_smooth_value(f[i], 0.75) == 0 && berlu_smooth_value(f[i], 1.25) == 0);
        assert_int_equal(berlu_smooth_monotone(f[i]), 0);
        assert_int_equal(berlu_smooth_inverse(f[i], 0, &x), BERLU_ERR_ARG);
        berlu_smooth_free(f[i]);
    }
}

static void functions_without_inverse_are_refused(void **state)
{
    (void)state;
    const char *names[] = {"relu", "relu6", "hard_tanh", "abs", "soft_shrink", "hard_swish"};
    for (size_t i = 0; i < 6; i++) {
        berlu_smooth *f;
        double x = 7;
        assert_int_equal(berlu_smooth_named(&f, names[i], NULL, 0.25, 4), BERLU_OK);
        assert_int_equal(berlu_smooth_inverse(f, 0.5, &x), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "not strictly monotone"));
        assert_true(x == 7);
        berlu_smooth_free(f);
    }
    berlu_smooth *f;
    double x, alpha = -0.5;
    assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, 0.25, 4), BERLU_OK);
    assert_int_equal(berlu_smooth_inverse(f, 0.5, &x), BERLU_ERR_ARG);
    berlu_smooth_free(f);
    alpha = 0.5;
    assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, 0.25, 4), BERLU_OK);
    assert_int_equal(berlu_smooth_inverse(f, NAN, &x), BERLU_ERR_ARG);
    assert_int_equal(berlu_smooth_inverse(f, INFINITY, &x), BERLU_ERR_ARG);
    berlu_smooth_free(f);
}

static void values_that_no_finite_double_gives_are_refused(void **state)
{
    (void)state;
    const double tenth[] = {0.1}, ten[] = {10}, kink[] = {0}, eps[] = {1};
    const berlu_curve slow[] = {{.linear = 0.1}, {.linear = 0.1}};
    berlu_smooth_spec line = {0, NULL, tenth, 0, 0, NULL, 0, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth_curves curves = {1, kink, slow, eps, 1, 3};
    berlu_smooth *f[2], *steep;
    assert_int_equal(berlu_smooth_make(&f[0], &line), BERLU_OK);
    assert_int_equal(berlu_smooth_make_curves(&f[1], &curves), BERLU_OK);
    for (int i = 0; i < 2; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            double x = 7;
            assert_int_equal(berlu_smooth_inverse(f[i], sign * 1.7e308, &x), BERLU_ERR_ARG);
            assert_non_null(strstr(berlu_last_error(), "never takes the value"));
            assert_true(x == 7);
            assert_int_equal(berlu_smooth_inverse(f[i], sign * 1.7e307, &x), BERLU_OK); /* near the end of double */
            assert_true(fabs(x - sign * 1.7e308) <= 1e294);
        }
        berlu_smooth_free(f[i]);
    }
    line.slopes = ten, line.at_y = -1.7e308; /* the rise exceeds double, the result does not */
    double x;
    assert_int_equal(berlu_smooth_make(&steep, &line), BERLU_OK);
    assert_int_equal(berlu_smooth_inverse(steep, 1.7e308, &x), BERLU_OK);
    assert_true(fabs(x - 3.4e307) <= 1e293);
    berlu_smooth_free(steep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_rising_functions_come_back),
        cmocka_unit_test(berlu_of_degree_two_is_inverted_in_closed_form),
        cmocka_unit_test(alpha_one_is_regular),
        cmocka_unit_test(elu_is_inverted_down_to_its_asymptote),
        cmocka_unit_test(a_level_point_does_not_stop_the_inverse),
        cmocka_unit_test(steep_and_flat_functions_have_an_inverse_too),
        cmocka_unit_test(a_level_transition_has_no_inverse),
        cmocka_unit_test(functions_without_inverse_are_refused),
        cmocka_unit_test(values_that_no_finite_double_gives_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
