/* test_guarantees.c - the properties that smoothing keeps, and the size of its change.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
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

static exact kink_draw(draws *d, int degree)
{
    exact f = {.count = 1, .degree = degree, .at_x = draw_frac(d, -3, 3), .at_y = draw_frac(d, -3, 3)};
    f.x[0] = draw_frac(d, -2, 2);
    f.left[0] = f.right[0] = q_frac(draw_int(d, 1, 64), draw_int(d, 1, 64));
    f.slope[0] = draw_frac(d, -2, 2);
    f.slope[1] = q_add(f.slope[0], q_frac(draw_int(d, 0, 1) ? 1 : -1, draw_int(d, 1, 9)));
    return f;
}

/* Functions of the library with whole numbers, so that sums and differences below are exact. */
static berlu_smooth *whole_draw(draws *d, int degree, double *slopes, size_t *count)
{
    double kinks[6], eps = 1;
    *count = (size_t)draw_int(d, 1, 6);
    for (size_t i = 0; i < *count; i++)
        kinks[i] = (i ? kinks[i - 1] : -8) + (double)draw_int(d, 2, 4); /* 2: the transitions touch */
    for (size_t i = 0; i <= *count; i++)
        slopes[i] = (double)draw_int(d, -5, 5);
    berlu_smooth_spec spec = {*count, kinks, slopes, 0, 1, &eps, 1, NULL, degree, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
    return f;
}

static void lipschitz_constant_is_the_largest_slope_and_is_attained(void **state)
{
    (void)state;
    draws d = {21};
    for (int i = 0; i < 300; i++) {
        double slopes[7], most = 0, seen = 0;
        size_t count;
        berlu_smooth *f = whole_draw(&d, (int)draw_int(&d, 2, 16), slopes, &count);
        for (size_t k = 0; k <= count; k++)
            most = fmax(most, fabs(slopes[k]));
        assert_true(berlu_smooth_lipschitz(f) == most);
        for (double x = -12; x <= 24; x += 0.25) /* joins are whole numbers, hence in the grid */
            seen = fmax(seen, fabs(berlu_smooth_slope(f, x)));
        assert_true(seen == most);
        berlu_smooth_free(f);
    }
}

static void slope_of_a_transition_stays_between_its_neighbours_and_is_monotone(void **state)
{
    (void)state;
    draws d = {22};
    for (int degree = 2; degree <= 16; degree++) {
        exact f = kink_draw(&d, degree);
        int sign = q_compare(f.slope[1], f.slope[0]);
        qpoly bend = qpoly_derivative(qpoly_derivative(exact_transition(&f, 0)));
        for (int i = 1; i < 40; i++)
            assert_int_equal(q_sign(qpoly_value(bend, q_frac(i, 40))), sign); /* strictly: no turning back */
    }
}

/* Total variation of the slope: it runs monotonely from slope to slope, so the sum of the steps
 * over any grid that holds the joins is the sum of the jumps. In double the steps are exact to
 * rounding. */
static void variation_of_the_slope_is_that_of_the_kinked_function(void **state)
{
    (void)state;
    draws d = {23};
    for (int i = 0; i < 100; i++) {
        double slopes[7], jumps = 0, variation = 0, last;
        size_t count;
        berlu_smooth *f = whole_draw(&d, (int)draw_int(&d, 2, 16), slopes, &count);
        for (size_t k = 0; k < count; k++)
            jumps += fabs(slopes[k + 1] - slopes[k]);
        last = berlu_smooth_slope(f, -12);
        for (double x = -12; x <= 24; x += 1.0 / 32) {
            double slope = berlu_smooth_slope(f, x);
            variation += fabs(slope - last);
            last = slope;
        }
        assert_true(fabs(variation - jumps) <= 36 * 32 * 0x1p-53 * 64 * 5);
        berlu_smooth_free(f);
    }
}

/* Variation diminishing: a line crosses the smoothed function at most as often as the kinked
 * one. */
static int crossings(const berlu_smooth *f, double (*value)(const berlu_smooth *, double), double a, double b)
{
    int count = 0, last = 0;
    for (double x = -12; x <= 24; x += 1.0 / 64) {
        double rest = value(f, x) - (a + b * x);
        int sign = rest > 1e-9 ? 1 : rest < -1e-9 ? -1 : 0; /* touching is not crossing */
        count += sign * last < 0;
        last = sign ? sign : last;
    }
    return count;
}

static void no_line_is_crossed_more_often_than_by_the_kinked_function(void **state)
{
    (void)state;
    draws d = {24};
    for (int i = 0; i < 60; i++) {
        double slopes[7];
        size_t count;
        berlu_smooth *f = whole_draw(&d, (int)draw_int(&d, 2, 16), slopes, &count);
        double a = draw_real(&d, -10, 10), b = draw_real(&d, -4, 4);
        assert_true(crossings(f, berlu_smooth_value, a, b) <= crossings(f, berlu_smooth_kinked, a, b));
        berlu_smooth_free(f);
    }
}

/* |J| e C(2m,m) / 2^(2m+1), at the kink and nowhere else; on the side that the sign of the jump
 * determines. */
static void error_is_one_sided_and_largest_at_the_kink(void **state)
{
    (void)state;
    draws d = {25};
    for (int degree = 2; degree <= 16; degree++) {
        exact f = kink_draw(&d, degree);
        int m = degree / 2;
        q jump = q_sub(f.slope[1], f.slope[0]);
        q bound = q_mul(q_mul(q_abs(jump), f.left[0]), q_mul(q_choose(2 * m, m), q_pow(q_int(2), -(2 * m + 1))));
        for (int i = -20; i <= 20; i++) {
            q x = q_add(f.x[0], q_mul(f.left[0], q_frac(i, 20)));
            q rest = q_sub(exact_value(&f, x, 0), exact_kinked(&f, x));
            if (abs(i) < 20)
                assert_int_equal(q_sign(rest), q_sign(jump));
            assert_int_equal(q_compare(q_abs(rest), bound), i == 0 ? 0 : -1);
        }
    }
}

static void largest_gap_of_the_library_is_attained_at_the_kink(void **state)
{
    (void)state;
    draws d = {26};
    for (int degree = 2; degree <= 16; degree++)
        for (int form = 0; form < 3; form++) { /* centred, off centre, collinear ends */
            double kinks[] = {1}, slopes[] = {draw_real(&d, -1, 1), draw_real(&d, -1, 1)};
            double left[] = {1}, right[] = {form == 0 ? 1 : form == 1 ? draw_real(&d, 0.2, 5) : 1.2};
            int n = form == 2 ? (degree > 7 ? 3 : degree | 1) : degree;
            berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, left, 1, right, n, (berlu_smooth_form)(form == 2)};
            berlu_smooth *f;
            assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
            double gap = berlu_smooth_max_gap(f), jump = slopes[1] - slopes[0];
            assert_true(fabs(gap - fabs(berlu_smooth_value(f, 1) - berlu_smooth_kinked(f, 1))) <= 0x1p-51);
            for (int i = 0; i <= 200; i++) {
                double x = 1 - left[0] + (left[0] + right[0]) * i / 200;
                double rest = berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x);
                assert_true(fabs(rest) <= gap + 0x1p-51);
                assert_true(rest * jump >= -0x1p-51);
            }
            berlu_smooth_free(f);
        }
}

/* Beyond its range the collinear form crosses the kinked function; the gap is then found by
 * search. */
static void gap_of_a_collinear_form_beyond_its_range_bounds_every_point(void **state)
{
    (void)state;
    double kinks[] = {0}, slopes[] = {0, 1}, left[] = {1}, right[] = {9};
    for (int n = 3; n <= 15; n += 2) {
        berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, left, 1, right, n, BERLU_SMOOTH_COLLINEAR};
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
        double gap = berlu_smooth_max_gap(f), most = 0;
        for (int i = 0; i <= 5000; i++) {
            double x = -1 + i / 500.0;
            most = fmax(most, fabs(berlu_smooth_value(f, x) - berlu_smooth_kinked(f, x)));
        }
        assert_true(gap >= most && gap - most <= 1e-5);
        assert_true(berlu_smooth_lipschitz(f) > 1);
        berlu_smooth_free(f);
    }
}

static void integral_of_the_error_is_as_documented(void **state)
{
    (void)state;
    draws d = {27};
    for (int degree = 2; degree <= 16; degree++) {
        exact f = kink_draw(&d, degree);
        q e = f.left[0], jump = q_sub(f.slope[1], f.slope[0]), width = q_mul(q_int(2), e);
        q from = exact_kinked(&f, q_sub(f.x[0], e)), middle = exact_kinked(&f, f.x[0]);
        q to = exact_kinked(&f, q_add(f.x[0], e));
        q smooth = q_mul(width, qpoly_value(qpoly_integral(exact_transition(&f, 0)), q_int(1)));
        q kinked = q_div(q_mul(e, q_add(q_add(from, to), q_mul(q_int(2), middle))), q_int(2));
        q want = q_div(q_mul(jump, q_mul(e, e)), q_int(2 * (2 * (degree / 2) + 1)));
        assert_true(q_equal(q_sub(smooth, kinked), want));
    }
}

/* f_smooth(x) = E f(x + e U), density (K/2) (1 - U^2)^(m-1): for the kink of |x|, in exact
 * integrals over U. */
static void smoothing_is_averaging_with_a_beta_density(void **state)
{
    (void)state;
    for (int m = 1; m <= 8; m++) {
        qpoly weight = qpoly_power((qpoly){2, {q_int(1), q_int(0), q_int(-1)}}, m - 1);
        qpoly mass = qpoly_integral(weight);
        q total = q_mul(q_int(2), qpoly_value(mass, q_int(1)));
        weight = qpoly_scale(weight, q_div(q_int(1), total));
        mass = qpoly_integral(weight);
        qpoly first = qpoly_integral(qpoly_mul(weight, qpoly_linear(q_int(0), q_int(1))));
        qpoly second = qpoly_integral(qpoly_mul(weight, (qpoly){2, {q_int(0), q_int(0), q_int(1)}}));
        assert_true(q_equal(q_mul(q_int(2), qpoly_value(second, q_int(1))), q_frac(1, 2 * m + 1))); /* Var U */
        exact f = {1, {q_int(0)}, {q_int(-1), q_int(1)}, {q_int(1)}, {q_int(1)}, q_int(0), q_int(0), 2 * m};
        for (int i = -10; i <= 10; i++) {
            /* E |x + U| = integral over U > -x of (x + U), minus the same over U < -x */
            q x = q_frac(i, 10), cut = q_frac(-i, 10), one = q_int(1), low = q_int(-1);
            q above = q_add(q_mul(x, q_sub(qpoly_value(mass, one), qpoly_value(mass, cut))),
                            q_sub(qpoly_value(first, one), qpoly_value(first, cut)));
            q below = q_add(q_mul(x, q_sub(qpoly_value(mass, cut), qpoly_value(mass, low))),
                            q_sub(qpoly_value(first, cut), qpoly_value(first, low)));
            assert_true(q_equal(q_sub(above, below), exact_value(&f, x, 0)));
        }
    }
}

/* Degree 2 is the least curved: integral of f''^2 is J^2/(4e) times 2, 2.4, 20/7, ... rising. */
static void higher_degree_is_smoother_at_the_joins_and_more_curved_inside(void **state)
{
    (void)state;
    q last = q_int(0), known[] = {q_int(2), q_frac(12, 5), q_frac(20, 7)};
    for (int m = 1; m <= 8; m++) {
        exact f = {1, {q_int(0)}, {q_int(0), q_int(1)}, {q_int(1)}, {q_int(1)}, q_int(0), q_int(0), 2 * m};
        qpoly bend = qpoly_scale(qpoly_derivative(qpoly_derivative(exact_transition(&f, 0))), q_frac(1, 4));
        q integral =
            q_mul(q_int(8), qpoly_value(qpoly_integral(qpoly_mul(bend, bend)), q_int(1))); /* 4 times, dx = 2 dt */
        if (m <= 3)
            assert_true(q_equal(integral, known[m - 1]));
        assert_true(q_compare(integral, last) > 0);
        last = integral;
    }
}

/* Slopes 0, 1, 0, kinks 0 and 0.5, eps 1 and 0.1: the sum form would have the slope S(0.8) - 1 =
 * -0.2 at 0.6. */
static void unequal_overlap_breaks_the_slope_bound_and_is_refused(void **state)
{
    (void)state;
    qpoly s = qpoly_smoothstep(1);
    q slope = q_sub(qpoly_value(s, q_frac(8, 10)), q_int(1));
    assert_true(q_equal(slope, q_frac(-2, 10)));
    double kinks[] = {0, 0.5}, slopes[] = {0, 1, 0}, eps[] = {1, 0.1};
    berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, eps, 2, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_ERR_ARG);
    assert_null(f);
    assert_non_null(strstr(berlu_last_error(), "eps = 0.25 would fit"));
}

/* Decimals that touch on paper: 0.1 + 0.1 is not 0.3 - 0.1 in double. */
static void touching_transitions_are_allowed_and_as_smooth_as_others(void **state)
{
    (void)state;
    double kinks[] = {0.1, 0.3}, slopes[] = {0, 1, 0}, eps[] = {0.1};
    for (int degree = 2; degree <= 16; degree++) {
        berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, eps, 1, NULL, degree, BERLU_SMOOTH_BERNSTEIN};
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
        assert_int_equal(berlu_smooth_piece_count(f), 4);
        assert_int_equal(berlu_smooth_contact_order(f), degree / 2);
        assert_true(berlu_smooth_lipschitz(f) == 1);
        assert_true(fabs(berlu_smooth_slope(f, 0.2) - 1) <= 0x1p-40);
        berlu_smooth_free(f);
    }
    const char *names[] = {"relu6", "hard_tanh", "hard_sigmoid", "soft_shrink"};
    const double most[] = {3, 1, 3, 0.5};
    for (size_t i = 0; i < 4; i++) {
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_named(&f, names[i], NULL, most[i], 4), BERLU_OK);
        berlu_smooth_free(f);
        assert_int_equal(berlu_smooth_named(&f, names[i], NULL, most[i] * 1.001, 4), BERLU_ERR_ARG);
    }
}

/* A slope between touching off-centre transitions that no join attains does not count. */
static void lipschitz_constant_counts_only_slopes_that_are_taken(void **state)
{
    (void)state;
    double kinks[] = {0, 3}, slopes[] = {0, 9, 0}, left[] = {1, 1}, right[] = {2, 1};
    berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, left, 2, right, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
    double seen = 0;
    for (int i = 0; i <= 5000; i++)
        seen = fmax(seen, fabs(berlu_smooth_slope(f, -1 + i / 1000.0)));
    assert_true(fabs(seen - berlu_smooth_lipschitz(f)) <= 0x1p-45);
    berlu_smooth_free(f);
}

/* alpha = 1 is the identity, alpha = -1 is |x| with f(0) = eps/2, alpha > 1 is concave. */
static void edge_slopes_of_berlu_behave(void **state)
{
    (void)state;
    draws d = {28};
    for (int m = 1; m <= 8; m++) {
        berlu_smooth *f;
        double alpha = 1;
        assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, 0.7, 2 * m), BERLU_OK);
        for (int i = 0; i < 100; i++) {
            double x = draw_real(&d, -1, 1);
            assert_true(berlu_smooth_value(f, x) == x && berlu_smooth_slope(f, x) == 1);
        }
        berlu_smooth_free(f);
        alpha = 3;
        assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, 0.5, 2 * m), BERLU_OK);
        assert_true(berlu_smooth_value(f, 0) < 0 && berlu_smooth_lipschitz(f) == 3 && berlu_smooth_monotone(f) == 1);
        berlu_smooth_free(f);
        alpha = -3;
        assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, 0.5, 2 * m), BERLU_OK);
        assert_true(berlu_smooth_value(f, 0) > 0 && berlu_smooth_lipschitz(f) == 3 && berlu_smooth_monotone(f) == 0);
        berlu_smooth_free(f);
    }
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_named(&f, "abs", NULL, 0.5, 2), BERLU_OK);
    assert_true(berlu_smooth_value(f, 0) == 0.25);
    berlu_smooth_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lipschitz_constant_is_the_largest_slope_and_is_attained, after),
        cmocka_unit_test_teardown(slope_of_a_transition_stays_between_its_neighbours_and_is_monotone, after),
        cmocka_unit_test_teardown(variation_of_the_slope_is_that_of_the_kinked_function, after),
        cmocka_unit_test_teardown(no_line_is_crossed_more_often_than_by_the_kinked_function, after),
        cmocka_unit_test_teardown(error_is_one_sided_and_largest_at_the_kink, after),
        cmocka_unit_test_teardown(largest_gap_of_the_library_is_attained_at_the_kink, after),
        cmocka_unit_test_teardown(gap_of_a_collinear_form_beyond_its_range_bounds_every_point, after),
        cmocka_unit_test_teardown(integral_of_the_error_is_as_documented, after),
        cmocka_unit_test_teardown(smoothing_is_averaging_with_a_beta_density, after),
        cmocka_unit_test_teardown(higher_degree_is_smoother_at_the_joins_and_more_curved_inside, after),
        cmocka_unit_test_teardown(unequal_overlap_breaks_the_slope_bound_and_is_refused, after),
        cmocka_unit_test_teardown(touching_transitions_are_allowed_and_as_smooth_as_others, after),
        cmocka_unit_test_teardown(lipschitz_constant_counts_only_slopes_that_are_taken, after),
        cmocka_unit_test_teardown(edge_slopes_of_berlu_behave, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
