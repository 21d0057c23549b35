/* test_curves.c - Hermite smoothing of pieces that are not lines. SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exact.h"
#include <berlu/smooth.h>

static int after(void **state)
{
    (void)state;
    q_reset();
    return 0;
}

static berlu_smooth *named(const char *name, const double *parameter, double eps, int degree)
{
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_named(&f, name, parameter, eps, degree), BERLU_OK);
    return f;
}

/* The curves of hard_swish times 6 are whole, so the control values below are rational and contact
 * is exact. */
static void hard_swish_has_exactly_m_derivatives_at_its_joins(void **state)
{
    (void)state;
    for (int m = 1; m <= 2; m++)
        for (int kink = 0; kink < 2; kink++) {
            qpoly zero = qpoly_number(q_int(0)), line = qpoly_linear(q_int(0), q_int(1));
            qpoly parabola = {2, {q_int(0), q_frac(1, 2), q_frac(1, 6)}};
            qpoly left = kink ? parabola : zero, right = kink ? line : parabola;
            q x0 = q_int(kink ? 3 : -3), e = q_frac(1, 2), A = q_sub(x0, e), B = q_add(x0, e);
            qpoly d = left, r = right;
            q L[3], R[3], b[6];
            for (int i = 0; i < 3; i++, d = qpoly_derivative(d), r = qpoly_derivative(r)) {
                L[i] = qpoly_value(d, A); /* the width is 1 */
                R[i] = qpoly_value(r, B);
            }
            int n = 2 * m + 1;
            b[0] = L[0];
            b[1] = q_add(L[0], q_div(L[1], q_int(n)));
            b[n - 1] = q_sub(R[0], q_div(R[1], q_int(n)));
            b[n] = R[0];
            if (m == 2) {
                b[2] = q_add(q_add(L[0], q_mul(q_frac(2, 5), L[1])), q_div(L[2], q_int(20)));
                b[3] = q_add(q_sub(R[0], q_mul(q_frac(2, 5), R[1])), q_div(R[2], q_int(20)));
            }
            berlu_smooth *f = named("hard_swish", NULL, 0.5, 2 * m);
            berlu_transition t;
            assert_int_equal(berlu_smooth_transition(f, (size_t)kink, &t), BERLU_OK);
            assert_int_equal(t.degree, n);
            for (int i = 0; i <= n; i++)
                assert_true(fabs(t.control[i] - q_near(b[i])) <= 8 * 0x1p-53 * 3);
            qpoly p = qpoly_bernstein(b, n);
            d = left, r = right;
            for (int order = 0; order <= m + 1; order++) {
                assert_int_equal(q_equal(qpoly_value(p, q_int(0)), qpoly_value(d, A)), order <= m);
                assert_int_equal(q_equal(qpoly_value(p, q_int(1)), qpoly_value(r, B)), order <= m);
                p = qpoly_derivative(p), d = qpoly_derivative(d), r = qpoly_derivative(r);
            }
            assert_int_equal(berlu_smooth_contact_order(f), m);
            berlu_smooth_free(f);
        }
}

static void elu_joins_agree_in_value_slope_and_for_the_quintic_curvature(void **state)
{
    (void)state;
    const double alphas[] = {0.25, 1, 2, -0.5, 0};
    for (size_t i = 0; i < 5; i++)
        for (int degree = 2; degree <= 5; degree++) {
            double a = alphas[i], e = 0.5;
            berlu_smooth *f = named("elu", &a, e, degree);
            assert_true(fabs(berlu_smooth_value(f, -e) - a * expm1(-e)) <= 4 * 0x1p-53);
            assert_true(fabs(berlu_smooth_slope(f, -e) - a * exp(-e)) <= 64 * 0x1p-53);
            assert_true(berlu_smooth_value(f, e) == e);
            assert_true(fabs(berlu_smooth_slope(f, e) - 1) <= 64 * 0x1p-53);
            if (degree >= 4) {
                assert_true(fabs(berlu_smooth_curvature(f, -e) - a * exp(-e)) <= 1024 * 0x1p-53);
                assert_true(fabs(berlu_smooth_curvature(f, e)) <= 1024 * 0x1p-53);
            }
            berlu_smooth_free(f);
        }
}

/* Extreme slopes of the transitions as known to five digits, and by brute force to ten. */
static void extreme_slopes(const berlu_smooth *f, double from, double to, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (int i = 0; i <= 200000; i++) {
        double slope = berlu_smooth_slope(f, from + (to - from) * i / 200000);
        *low = fmin(*low, slope);
        *high = fmax(*high, slope);
    }
}

static void extreme_slopes_are_the_known_ones_and_the_lipschitz_constant_is_exact(void **state)
{
    (void)state;
    static const double elu_high[] = {1.38763, 1.45557}, swish_high[] = {1.33333, 1.35612};
    double two = 2, low, high;
    for (int m = 1; m <= 2; m++) {
        berlu_smooth *f = named("elu", &two, 0.5, 2 * m);
        extreme_slopes(f, -0.5, 0.5, &low, &high);
        assert_true(fabs(high - elu_high[m - 1]) <= 0.5e-5);
        assert_true(fabs(berlu_smooth_lipschitz(f) - high) <= 1e-9 && berlu_smooth_lipschitz(f) >= high - 0x1p-50);
        berlu_smooth_free(f);
        f = named("hard_swish", NULL, 0.5, 2 * m);
        double unused;
        extreme_slopes(f, 2.5, 3.5, &unused, &high);
        extreme_slopes(f, -3.5, -2.5, &low, &unused);
        assert_true(fabs(high - swish_high[m - 1]) <= 0.5e-5);
        assert_true(fabs(low - (1 - swish_high[m - 1])) <= 0.5e-5);
        assert_true(fabs(berlu_smooth_lipschitz(f) - high) <= 1e-9);
        berlu_smooth_free(f);
    }
}

/* If t = (d0 - d1) / (d0 - 2 d1 + d2) is inside, the cubic's extreme slope is d0 - (d0 - d1)^2 /
 * (d0 - 2 d1 + d2). */
static void cubic_has_the_closed_form_of_its_extreme_slope(void **state)
{
    (void)state;
    draws d = {31};
    for (int i = 0; i < 200; i++) {
        double alpha = draw_real(&d, 1.2, 3), eps = draw_real(&d, 0.1, 1);
        berlu_smooth *f = named("elu", &alpha, eps, 3);
        berlu_transition t;
        assert_int_equal(berlu_smooth_transition(f, 0, &t), BERLU_OK);
        double w = 2 * eps, d0 = 3 * (t.control[1] - t.control[0]) / w, d1 = 3 * (t.control[2] - t.control[1]) / w,
               d2 = 3 * (t.control[3] - t.control[2]) / w, turn = (d0 - d1) / (d0 - 2 * d1 + d2);
        double most = fmax(d0, d2);
        if (turn > 0 && turn < 1)
            most = fmax(most, d0 - (d0 - d1) * (d0 - d1) / (d0 - 2 * d1 + d2));
        assert_true(fabs(berlu_smooth_lipschitz(f) - fmax(most, 1)) <= 1e-13);
        berlu_smooth_free(f);
    }
}

static void gap_bounds_every_point(void **state)
{
    (void)state;
    for (int degree = 2; degree <= 5; degree++) {
        berlu_smooth *f = named("hard_swish", NULL, 0.75, degree);
        double gap = berlu_smooth_max_gap(f), most = 0;
        for (int i = 0; i <= 8000; i++) {
            double x = -4 + i / 1000.0;
            most = fmax(most, fabs(berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x)));
        }
        assert_true(gap >= most - 0x1p-50 && gap - most <= 1e-6);
        berlu_smooth_free(f);
    }
}

static void outside_the_transitions_curves_are_unchanged(void **state)
{
    (void)state;
    draws d = {32};
    double alpha = 1.5;
    berlu_smooth *f = named("elu", &alpha, 0.25, 4), *g = named("hard_swish", NULL, 0.25, 4);
    for (int i = 0; i < 500; i++) {
        double x = draw_real(&d, -2.7, -0.25);
        assert_true(berlu_smooth_value(f, x) == alpha * expm1(x) && berlu_smooth_value(f, -x) == -x);
        assert_true(fabs(berlu_smooth_value(g, x) - x * (x + 3) / 6) <= 4 * 0x1p-53);
        assert_true(berlu_smooth_value(g, x - 4) == 0 && berlu_smooth_value(g, 4 - x) == 4 - x);
        assert_true(berlu_smooth_kinked(f, x) == berlu_smooth_value(f, x));
    }
    berlu_smooth_free(f);
    berlu_smooth_free(g);
}

static void a_jump_is_refused(void **state)
{
    (void)state;
    double kinks[] = {1}, eps[] = {0.1};
    berlu_curve curves[] = {{.linear = 1}, {.constant = 0.5, .linear = 1}};
    berlu_smooth_curves spec = {1, kinks, curves, eps, 1, 3};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_ERR_ARG);
    assert_null(f);
    assert_non_null(strstr(berlu_last_error(), "jumps from 1 to 1.5 at the kink 1"));
}

/* CELU and SELU are curves too; celu(1) is elu(1). */
static void other_exponential_units_are_curves_as_well(void **state)
{
    (void)state;
    double kinks[] = {0}, eps[] = {0.2}, one = 1;
    berlu_curve celu[] = {{.scale = 0.5, .rate = 2}, {.linear = 1}};
    berlu_smooth_curves spec = {1, kinks, celu, eps, 1, 5};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_OK);
    assert_true(berlu_smooth_value(f, -1) == 0.5 * expm1(-2) && berlu_smooth_lipschitz(f) >= 1);
    assert_int_equal(berlu_smooth_monotone(f), 1);
    berlu_smooth_free(f);
    celu[0] = (berlu_curve){.scale = 1, .rate = 1};
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_OK);
    berlu_smooth *g = named("elu", &one, 0.2, 5);
    for (double x = -2; x < 2; x += 0.01)
        assert_true(berlu_smooth_value(f, x) == berlu_smooth_value(g, x));
    berlu_smooth_free(f);
    berlu_smooth_free(g);
}

/* One curve and no kink: an inflection inside, and no Lipschitz constant where the slope grows
 * without bound. */
static void slope_range_of_a_lone_curve_is_exact(void **state)
{
    (void)state;
    berlu_curve curve = {.square = -2, .scale = 1, .rate = 1}; /* slope e^x - 4x, least 4 - 4 log 4 < 0 */
    berlu_smooth_curves spec = {0, NULL, &curve, NULL, 0, 3};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_OK);
    assert_true(isinf(berlu_smooth_lipschitz(f)) && berlu_smooth_monotone(f) == 0);
    assert_int_equal(berlu_smooth_contact_order(f), BERLU_SMOOTH_ANALYTIC);
    assert_true(berlu_smooth_max_gap(f) == 0);
    berlu_smooth_free(f);
    curve.square = -1; /* e^x - 2x, least 2 - 2 log 2 > 0 */
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_OK);
    assert_int_equal(berlu_smooth_monotone(f), 1);
    berlu_smooth_free(f);
    curve = (berlu_curve){.linear = 2, .scale = 1, .rate = 1};
    assert_int_equal(berlu_smooth_make_curves(&f, &spec), BERLU_OK);
    assert_int_equal(berlu_smooth_monotone(f), 1);
    double x;
    assert_int_equal(berlu_smooth_inverse(f, 2 * 1.5 + expm1(1.5), &x), BERLU_OK);
    assert_true(fabs(x - 1.5) <= 4 * 0x1p-52);
    berlu_smooth_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(hard_swish_has_exactly_m_derivatives_at_its_joins, after),
        cmocka_unit_test_teardown(elu_joins_agree_in_value_slope_and_for_the_quintic_curvature, after),
        cmocka_unit_test_teardown(extreme_slopes_are_the_known_ones_and_the_lipschitz_constant_is_exact, after),
        cmocka_unit_test_teardown(cubic_has_the_closed_form_of_its_extreme_slope, after),
        cmocka_unit_test_teardown(gap_bounds_every_point, after),
        cmocka_unit_test_teardown(outside_the_transitions_curves_are_unchanged, after),
        cmocka_unit_test_teardown(a_jump_is_refused, after),
        cmocka_unit_test_teardown(other_exponential_units_are_curves_as_well, after),
        cmocka_unit_test_teardown(slope_range_of_a_lone_curve_is_exact, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
