/* test_contact.c - how smooth the joins are, in exact arithmetic. SPDX-License-Identifier: MIT
 *
 * The theorems are stated about the definition (exact.c) and, in the same loop, the library's
 * result is compared with them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exact.h"
#include <berlu/smooth.h>

static int after(void **state)
{
    (void)state;
    q_reset();
    return 0;
}

/* One kink with random slopes, position and half-widths. */
static exact kink_draw(draws *d, int degree)
{
    exact f = {.count = 1, .degree = degree, .at_x = draw_frac(d, -3, 3), .at_y = draw_frac(d, -3, 3)};
    f.x[0] = draw_frac(d, -2, 2);
    f.left[0] = f.right[0] = q_frac(draw_int(d, 1, 64), draw_int(d, 1, 64));
    f.slope[0] = draw_frac(d, -2, 2);
    f.slope[1] = q_add(f.slope[0], q_frac(draw_int(d, 0, 1) ? 1 : -1, draw_int(d, 1, 9)));
    return f;
}

/* The number of derivatives (by x) of the transition that agree with the line of the given slope at
 * t = 0 or 1; `jump` is the first difference that is not zero. */
static int contact(const exact *f, int right_end, q *jump)
{
    qpoly p = exact_transition(f, 0);
    q width = q_add(f->left[0], f->right[0]), t = q_int(right_end);
    q end = right_end ? q_add(f->x[0], f->right[0]) : q_sub(f->x[0], f->left[0]);
    for (int order = 0; order <= f->degree; order++) {
        q line = order == 0 ? exact_kinked(f, end) : order == 1 ? f->slope[right_end] : q_int(0);
        q difference = q_sub(qpoly_value(p, t), line);
        if (q_sign(difference) != 0) {
            *jump = difference;
            return order - 1;
        }
        p = qpoly_scale(qpoly_derivative(p), q_div(q_int(1), width));
    }
    *jump = q_int(0);
    return BERLU_SMOOTH_ANALYTIC;
}

static void joins_have_exactly_m_derivatives_and_the_next_one_jumps_as_documented(void **state)
{
    (void)state;
    draws d = {1};
    for (int degree = 2; degree <= 16; degree++)
        for (int i = 0; i < 4; i++) {
            exact f = kink_draw(&d, degree);
            int m = degree / 2;
            q found, next = q_sub(f.slope[1], f.slope[0]); /* J (2m-1)!! / (2 e^m) */
            for (int k = 1; k < 2 * m; k += 2)
                next = q_mul(next, q_int(k));
            next = q_div(next, q_mul(q_int(2), q_pow(f.left[0], m)));
            assert_int_equal(contact(&f, 0, &found), m);
            assert_true(q_equal(found, next));
            assert_int_equal(contact(&f, 1, &found), m);
            assert_true(q_equal(q_abs(found), q_abs(next))); /* the mirror image */
        }
}

static void slope_is_the_smoothstep_between_the_two_slopes(void **state)
{
    (void)state;
    draws d = {2};
    for (int degree = 2; degree <= 16; degree++) {
        exact f = kink_draw(&d, degree);
        q width = q_add(f.left[0], f.right[0]), jump = q_sub(f.slope[1], f.slope[0]);
        qpoly slope = qpoly_scale(qpoly_derivative(exact_transition(&f, 0)), q_div(q_int(1), width));
        qpoly want = qpoly_add(qpoly_scale(qpoly_smoothstep(degree / 2), jump), qpoly_number(f.slope[0]));
        assert_true(qpoly_equal(slope, want));
    }
}

static void odd_degree_equals_the_even_one_below(void **state)
{
    (void)state;
    draws d = {3};
    for (int m = 1; m <= 8; m++) {
        exact f = kink_draw(&d, 2 * m), g = f;
        g.degree = 2 * m + 1;
        assert_true(qpoly_equal(exact_transition(&f, 0), exact_transition(&g, 0)));
    }
}

static void degree_two_of_the_leaky_kink_is_berlu(void **state)
{
    (void)state;
    draws d = {4};
    for (int i = 0; i < 50; i++) {
        double kinks[] = {0}, slopes[] = {draw_real(&d, -2, 2), 1}, eps[] = {draw_real(&d, 0.001, 10)};
        berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, eps, 1, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
        berlu_smooth *f;
        berlu_transition t;
        assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
        assert_int_equal(berlu_smooth_transition(f, 0, &t), BERLU_OK);
        assert_true(t.control[0] == -slopes[0] * eps[0] && t.control[1] == 0 && t.control[2] == eps[0]);
        berlu_smooth_free(f);

        /* (1-a)/(4e) x^2 + (1+a)/2 x + (1-a)e/4, with x = e (2t - 1) */
        q a = q_double(slopes[0]), e = q_double(eps[0]), one = q_int(1);
        q control[] = {q_mul(q_sub(q_int(0), a), e), q_int(0), e};
        qpoly paper = {2,
                       {q_div(q_mul(q_sub(one, a), e), q_int(4)), q_div(q_add(one, a), q_int(2)),
                        q_div(q_sub(one, a), q_mul(q_int(4), e))}};
        qpoly x = qpoly_linear(q_sub(q_int(0), e), q_mul(q_int(2), e));
        assert_true(qpoly_equal(qpoly_bernstein(control, 2), qpoly_compose(paper, x)));
    }
}

/* Four conditions (value and slope at both ends) on three control values: b0 and b2 are the ends,
 * and b1 is determined twice. */
static void degree_two_is_solvable_only_with_the_kink_at_the_centre(void **state)
{
    (void)state;
    draws d = {5};
    for (int i = 0; i < 100; i++) {
        exact f = kink_draw(&d, 2);
        if (i % 2)
            f.right[0] = q_frac(draw_int(&d, 1, 64), draw_int(&d, 1, 64));
        q half = q_div(q_add(f.left[0], f.right[0]), q_int(2));
        q from_left = q_add(exact_kinked(&f, q_sub(f.x[0], f.left[0])), q_mul(half, f.slope[0]));
        q from_right = q_sub(exact_kinked(&f, q_add(f.x[0], f.right[0])), q_mul(half, f.slope[1]));
        int centred = q_equal(f.left[0], f.right[0]);
        assert_int_equal(q_equal(from_left, from_right), centred);
        if (centred) /* and then it is the Bernstein polynomial */
            assert_true(q_equal(from_left, exact_kinked(&f, f.x[0])));
    }
}

/* eps = a, eps_right = b whole, so that the library gets theta = a / (a + b) exactly. */
static void off_centre_contact_is_the_floor_of_n_theta_and_the_library_says_so(void **state)
{
    (void)state;
    for (int degree = 2; degree <= 12; degree++)
        for (int a = 1; a <= 24; a++) {
            double kinks[] = {0.5}, slopes[] = {-0.25, 1}, left[] = {a}, right[] = {25 - a};
            berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, left, 1, right, degree, BERLU_SMOOTH_BERNSTEIN};
            exact f = {1,        {q_frac(1, 2)}, {q_frac(-1, 4), q_int(1)}, {q_int(a)}, {q_int(25 - a)}, q_int(0),
                       q_int(0), degree};
            q jump;
            int want_left = (int)q_floor(q_frac((long)degree * a, 25));
            int want_right = (int)q_floor(q_frac((long)degree * (25 - a), 25));
            assert_int_equal(contact(&f, 0, &jump), want_left);
            assert_int_equal(contact(&f, 1, &jump), want_right);
            berlu_smooth *g;
            berlu_transition t;
            assert_int_equal(berlu_smooth_make(&g, &spec), BERLU_OK);
            assert_int_equal(berlu_smooth_transition(g, 0, &t), BERLU_OK);
            assert_int_equal(t.contact_left, want_left);
            assert_int_equal(t.contact_right, want_right);
            assert_int_equal(berlu_smooth_contact_order(g), want_left < want_right ? want_left : want_right);
            berlu_smooth_free(g);
            q_reset();
        }
}

/* Degree 2m+1, m+1 control values on each line, wherever the kink is. */
static void collinear_ends_give_order_m_for_every_theta(void **state)
{
    (void)state;
    for (int m = 1; m <= 7; m++)
        for (int a = 1; a <= 20; a++) {
            int n = 2 * m + 1;
            double kinks[] = {0}, slopes[] = {0, 1}, left[] = {a}, right[] = {21 - a};
            berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, left, 1, right, n, BERLU_SMOOTH_COLLINEAR};
            berlu_smooth *f;
            berlu_transition t;
            assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
            assert_int_equal(berlu_smooth_transition(f, 0, &t), BERLU_OK);

            q control[32], width = q_int(21);
            for (int k = 0; k <= n; k++) {
                q node = q_sub(q_frac(21L * k, n), q_int(a));
                control[k] = k <= m ? q_int(0) : node;
                assert_true(fabs(t.control[k] - q_near(control[k])) <= 21 * 0x1p-52);
            }
            qpoly p = qpoly_bernstein(control, n);
            int found_left = -1, found_right = -1;
            for (int order = 0, go_left = 1, go_right = 1; order <= n; order++) {
                q line = order == 0 ? q_int(21 - a) : order == 1 ? q_int(1) : q_int(0);
                found_left += go_left = go_left && q_sign(qpoly_value(p, q_int(0))) == 0;
                found_right += go_right = go_right && q_equal(qpoly_value(p, q_int(1)), line);
                p = qpoly_scale(qpoly_derivative(p), q_div(q_int(1), width));
            }
            assert_int_equal(t.contact_left, found_left);
            assert_int_equal(t.contact_right, found_right);
            assert_true(found_left >= m && found_right >= m);
            /* the slope is bounded by its neighbours exactly where lambda = m+1 - (2m+1) theta is
             * in [0, 1] */
            q lambda = q_sub(q_int(m + 1), q_frac((long)n * a, 21));
            int bounded = q_sign(lambda) >= 0 && q_compare(lambda, q_int(1)) <= 0;
            double turn = q_near(lambda) / (2 * q_near(lambda) - 1); /* where the slope is extreme, if not bounded */
            double extreme = bounded ? 0.5 : berlu_smooth_slope(f, 21 * turn - a);
            assert_int_equal(extreme >= 0 && extreme <= 1, bounded);
            assert_true(fabs(berlu_smooth_lipschitz(f) - fmax(1, fabs(extreme))) <=
                        64 * 0x1p-53 * fmax(1, fabs(extreme)));
            berlu_smooth_free(f);
            q_reset();
        }
}

static void contact_order_of_the_library_is_half_the_degree(void **state)
{
    (void)state;
    for (size_t i = 0; berlu_smooth_name(i); i++)
        for (int degree = 2; degree <= (i < 8 ? 16 : 5); degree++) {
            berlu_smooth *f;
            assert_int_equal(berlu_smooth_named(&f, berlu_smooth_name(i), NULL, 0.25, degree), BERLU_OK);
            assert_int_equal(berlu_smooth_contact_order(f), degree / 2);
            assert_int_equal(berlu_smooth_degree(f), degree);
            berlu_smooth_free(f);
        }
}

static void a_kink_without_jump_is_analytic(void **state)
{
    (void)state;
    double kinks[] = {1}, slopes[] = {2, 2}, eps[] = {0.5};
    berlu_smooth_spec spec = {1, kinks, slopes, 0, 0, eps, 1, NULL, 2, BERLU_SMOOTH_BERNSTEIN};
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_make(&f, &spec), BERLU_OK);
    assert_int_equal(berlu_smooth_contact_order(f), BERLU_SMOOTH_ANALYTIC);
    assert_true(berlu_smooth_value(f, 1.25) == 2.5 && berlu_smooth_max_gap(f) == 0);
    berlu_smooth_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(joins_have_exactly_m_derivatives_and_the_next_one_jumps_as_documented, after),
        cmocka_unit_test_teardown(slope_is_the_smoothstep_between_the_two_slopes, after),
        cmocka_unit_test_teardown(odd_degree_equals_the_even_one_below, after),
        cmocka_unit_test_teardown(degree_two_of_the_leaky_kink_is_berlu, after),
        cmocka_unit_test_teardown(degree_two_is_solvable_only_with_the_kink_at_the_centre, after),
        cmocka_unit_test_teardown(off_centre_contact_is_the_floor_of_n_theta_and_the_library_says_so, after),
        cmocka_unit_test_teardown(collinear_ends_give_order_m_for_every_theta, after),
        cmocka_unit_test_teardown(contact_order_of_the_library_is_half_the_degree, after),
        cmocka_unit_test_teardown(a_kink_without_jump_is_analytic, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
