/* test_values.c - the library's values against the definition in rationals.
 * SPDX-License-Identifier: MIT
 *
 * Kinks, slopes and points are random doubles, which are rationals, so the exact result is known.
 * Bounds count roundings (u = 2^-53): a bump takes at most 6m + 12 of them (r three, its powers and
 * Q two each per step), and a rounding of c moves a value by at most |c| times the jump and the
 * slopes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exact.h"
#include <berlu/smooth.h>

#define U 0x1p-53

static int after(void **state)
{
    (void)state;
    q_reset();
    return 0;
}

typedef struct sample {
    berlu_smooth *f;
    exact e;
    double kinks[EXACT_KINKS], slopes[EXACT_KINKS + 1], left[EXACT_KINKS], right[EXACT_KINKS];
    double size; /* scale of the values' rounding errors */
} sample;

/* A random function with `count` kinks; its transitions do not overlap. */
static sample sample_make(draws *d, size_t count, int degree, int off_centre)
{
    sample s = {.e = {.count = count, .degree = degree}};
    double at_x = draw_real(d, -3, 3), at_y = draw_real(d, -1, 1), x = draw_real(d, -4, -2);
    for (size_t i = 0; i < count; i++) {
        double interval = draw_real(d, 0.25, 2);
        s.kinks[i] = x;
        s.left[i] = i ? fmin(s.left[i - 1], interval / 2) : interval / 2;
        x += interval;
    }
    for (size_t i = 0; i < count; i++) { /* half of the smaller distance to a neighbour, or less */
        double near = fmin(i ? s.kinks[i] - s.kinks[i - 1] : 2, i + 1 < count ? s.kinks[i + 1] - s.kinks[i] : 2);
        s.left[i] = near * draw_real(d, 0.05, 0.49);
        s.right[i] = off_centre ? near * draw_real(d, 0.05, 0.49) : s.left[i];
    }
    for (size_t i = 0; i <= count; i++)
        s.slopes[i] = draw_real(d, -2, 2);
    berlu_smooth_spec spec = {count,  s.kinks, s.slopes, at_x,   at_y,
                              s.left, count,   s.right,  degree, BERLU_SMOOTH_BERNSTEIN};
    assert_int_equal(berlu_smooth_make(&s.f, &spec), BERLU_OK);
    for (size_t i = 0; i < count; i++) {
        s.e.x[i] = q_double(s.kinks[i]);
        s.e.left[i] = q_double(s.left[i]);
        s.e.right[i] = q_double(s.right[i]);
    }
    for (size_t i = 0; i <= count; i++)
        s.e.slope[i] = q_double(s.slopes[i]);
    s.e.at_x = q_double(at_x);
    s.e.at_y = q_double(at_y);
    s.size = fabs(at_y) + 2 * (double)count * 8; /* |slope| <= 2 over a distance of at most 8, kink by kink */
    return s;
}

static double error(double got, q want)
{
    return fabs(q_near(q_sub(q_double(got), want)));
}

static double point_draw(draws *d, const sample *s)
{
    size_t i = (size_t)draw_int(d, 0, (long)s->e.count - 1);
    return draw_int(d, 0, 3) ? s->kinks[i] + draw_real(d, -s->left[i], s->right[i]) : draw_real(d, -6, 6);
}

static void values_agree_with_the_definition(void **state)
{
    (void)state;
    draws d = {11};
    for (int degree = 2; degree <= 16; degree++)
        for (int off_centre = 0; off_centre < 2; off_centre++) {
            sample s = sample_make(&d, (size_t)draw_int(&d, 1, 5), degree, off_centre);
            double roundings = (6 * (degree / 2) + 12) * (off_centre ? 4 : 1); /* off centre a sum of up to n terms */
            for (int i = 0; i < 12; i++) {
                double x = point_draw(&d, &s);
                q want = exact_value(&s.e, q_double(x), 0);
                assert_true(error(berlu_smooth_value(s.f, x), want) <= roundings * U * s.size);
                assert_true(error(berlu_smooth_casteljau(s.f, x), want) <= 4 * degree * roundings * U * s.size);
                assert_true(error(berlu_smooth_kinked(s.f, x), exact_kinked(&s.e, q_double(x))) <= 12 * U * s.size);
            }
            berlu_smooth_free(s.f);
            q_reset();
        }
}

/* The slope's own rate of change is at most |J| K_m / (2 eps) and multiplies the rounding of c. */
static void slopes_and_curvatures_agree_with_the_definition(void **state)
{
    (void)state;
    draws d = {12};
    for (int degree = 2; degree <= 16; degree++)
        for (int off_centre = 0; off_centre < 2; off_centre++) {
            sample s = sample_make(&d, (size_t)draw_int(&d, 1, 5), degree, off_centre);
            double roundings = (6 * (degree / 2) + 12) * (off_centre ? 4 : 1);
            for (int i = 0; i < 12; i++) {
                double x = point_draw(&d, &s), least = 4;
                for (size_t k = 0; k < s.e.count; k++)
                    least = fmin(least, fmin(s.left[k], s.right[k]));
                double bend = 4 * degree / least; /* bounds |f''| for |J| <= 4 */
                assert_true(error(berlu_smooth_slope(s.f, x), exact_value(&s.e, q_double(x), 1)) <=
                            roundings * U * (4 + bend * 8));
                assert_true(error(berlu_smooth_curvature(s.f, x), exact_value(&s.e, q_double(x), 2)) <=
                            roundings * U * bend * (1 + 8 * degree / least));
            }
            berlu_smooth_free(s.f);
            q_reset();
        }
}

/* The tail of a smoothed relu is bump alone: its relative error stays small right up to the
 * join. */
static void bump_of_a_relu_is_relatively_exact(void **state)
{
    (void)state;
    draws d = {13};
    for (int degree = 2; degree <= 16; degree += 2) {
        berlu_smooth *f;
        double eps = draw_real(&d, 0.001, 4);
        assert_int_equal(berlu_smooth_named(&f, "relu", NULL, eps, degree), BERLU_OK);
        exact e = {1, {q_int(0)}, {q_int(0), q_int(1)}, {q_double(eps)}, {q_double(eps)}, q_int(0), q_int(0), degree};
        for (int i = 0; i < 40; i++) {
            double x = -eps * (1 - ldexp(draw_real(&d, 0.5, 1), (int)-draw_int(&d, 0, 40)));
            double want = q_near(exact_value(&e, q_double(x), 0));
            assert_true(want > 0);
            assert_true(error(berlu_smooth_value(f, x), exact_value(&e, q_double(x), 0)) <=
                        (6 * (degree / 2) + 12) * U * want);
        }
        berlu_smooth_free(f);
        q_reset();
    }
}

static void outside_the_transitions_nothing_is_changed(void **state)
{
    (void)state;
    draws d = {14};
    berlu_smooth *f;
    double alpha = 0.01;
    assert_int_equal(berlu_smooth_named(&f, "leaky_relu", &alpha, 0.5, 6), BERLU_OK);
    for (int i = 0; i < 1000; i++) {
        double x = draw_real(&d, 0.5, 100);
        assert_true(berlu_smooth_value(f, x) == x && berlu_smooth_value(f, -x) == -x * alpha);
        assert_true(berlu_smooth_slope(f, x) == 1 && berlu_smooth_slope(f, -x) == alpha);
    }
    assert_true(berlu_smooth_value(f, 0.5) == 0.5 && berlu_smooth_slope(f, 0.5) == 1);
    assert_true(berlu_smooth_value(f, -0.5) == -0.005 && berlu_smooth_slope(f, -0.5) == alpha);
    berlu_smooth_free(f);
}

static void special_inputs_give_nan_and_limits(void **state)
{
    (void)state;
    for (size_t i = 0; berlu_smooth_name(i); i++) {
        berlu_smooth *f;
        assert_int_equal(berlu_smooth_named(&f, berlu_smooth_name(i), NULL, 0.25, 4), BERLU_OK);
        assert_true(isnan(berlu_smooth_value(f, NAN)) && isnan(berlu_smooth_slope(f, NAN)));
        assert_true(isnan(berlu_smooth_curvature(f, NAN)) && isnan(berlu_smooth_casteljau(f, NAN)));
        assert_true(isnan(berlu_smooth_kinked(f, NAN)));
        assert_false(isnan(berlu_smooth_value(f, INFINITY)) || isnan(berlu_smooth_value(f, -INFINITY)));
        assert_false(isnan(berlu_smooth_slope(f, INFINITY)) || isnan(berlu_smooth_slope(f, -INFINITY)));
        assert_true(berlu_smooth_curvature(f, INFINITY) == 0 && berlu_smooth_curvature(f, -INFINITY) == 0);
        assert_true(berlu_smooth_value(f, 0.0) == berlu_smooth_value(f, -0.0));
        berlu_smooth_free(f);
    }
    berlu_smooth *f;
    assert_int_equal(berlu_smooth_named(&f, "relu6", NULL, 0.25, 4), BERLU_OK);
    assert_true(berlu_smooth_value(f, INFINITY) == 6 && berlu_smooth_value(f, -INFINITY) == 0);
    berlu_smooth_free(f);
    assert_int_equal(berlu_smooth_named(&f, "elu", NULL, 0.25, 4), BERLU_OK);
    assert_true(berlu_smooth_value(f, INFINITY) == INFINITY && berlu_smooth_value(f, -INFINITY) == -1);
    berlu_smooth_free(f);
}

/* f is linear in the slopes: one step of 1 gives the derivative without error. By kink and eps: a
 * central difference with the step h = 2^-60, whose error is of order h^2, in exact arithmetic. */
static q moved(exact f, q x, char what, size_t i, q step)
{
    if (what == 's')
        f.slope[i] = q_add(f.slope[i], step);
    if (what == 'x')
        f.x[i] = q_add(f.x[i], step);
    if (what == 'e') { /* theta stays */
        f.right[i] = q_mul(f.right[i], q_div(q_add(f.left[i], step), f.left[i]));
        f.left[i] = q_add(f.left[i], step);
    }
    return exact_value(&f, x, 0);
}

static q difference(const exact *f, q x, char what, size_t i)
{
    q h = q_double(0x1p-60);
    q rise = q_sub(moved(*f, x, what, i, h), moved(*f, x, what, i, q_sub(q_int(0), h)));
    return q_div(rise, q_mul(q_int(2), h));
}

static void parameter_derivatives_are_those_of_the_definition(void **state)
{
    (void)state;
    draws d = {15};
    for (int degree = 2; degree <= 16; degree += 2)
        for (int off_centre = 0; off_centre < 2; off_centre++) {
            sample s = sample_make(&d, (size_t)draw_int(&d, 1, 3), degree, off_centre);
            double slopes[EXACT_KINKS + 1], kinks[EXACT_KINKS], eps[EXACT_KINKS];
            double roundings = (6 * (degree / 2) + 12) * (off_centre ? 4 : 1);
            for (int i = 0; i < 5; i++) {
                double x = point_draw(&d, &s);
                q at = q_double(x);
                assert_int_equal(berlu_smooth_gradient(s.f, x, slopes, kinks, eps), BERLU_OK);
                for (size_t k = 0; k <= s.e.count; k++)
                    assert_true(error(slopes[k], q_sub(moved(s.e, at, 's', k, q_int(1)), exact_value(&s.e, at, 0))) <=
                                roundings * U * 12);
                for (size_t k = 0; k < s.e.count; k++) {
                    double bend = 4 * degree / fmin(s.left[k], s.right[k]);
                    assert_true(error(kinks[k], difference(&s.e, at, 'x', k)) <= roundings * U * (4 + bend * 8));
                    assert_true(error(eps[k], difference(&s.e, at, 'e', k)) <= roundings * U * (4 + bend * 8));
                }
            }
            berlu_smooth_free(s.f);
            q_reset();
        }
}

static void derivative_by_eps_is_the_closed_form(void **state)
{
    (void)state;
    draws d = {16};
    for (int m = 1; m <= 8; m++) {
        berlu_smooth *f;
        double alpha = draw_real(&d, -1, 1), e = draw_real(&d, 0.1, 2), eps;
        assert_int_equal(berlu_smooth_named(&f, "prelu", &alpha, e, 2 * m), BERLU_OK);
        double peak = (1 - alpha) * q_near(q_choose(2 * m, m)) / ldexp(1, 2 * m + 1);
        for (int i = 0; i <= 100; i++) {
            double x = e * (i / 50.0 - 1), u = x / e;
            assert_int_equal(berlu_smooth_gradient(f, x, NULL, NULL, &eps), BERLU_OK);
            assert_true(fabs(eps - peak * pow(1 - u * u, m)) <= (6 * m + 20) * U * peak);
        }
        berlu_smooth_free(f);
    }
}

static void gradient_beyond_all_transitions_is_finite_where_it_should_be(void **state)
{
    (void)state;
    berlu_smooth *f;
    double slopes[3], kinks[2], eps[2];
    assert_int_equal(berlu_smooth_named(&f, "relu6", NULL, 0.5, 4), BERLU_OK);
    assert_int_equal(berlu_smooth_gradient(f, INFINITY, slopes, kinks, eps), BERLU_OK);
    assert_true(slopes[0] == 0 && slopes[1] == 6 && slopes[2] == INFINITY);
    assert_true(kinks[0] == -1 && kinks[1] == 1 && eps[0] == 0 && eps[1] == 0);
    assert_int_equal(berlu_smooth_gradient(f, NAN, slopes, kinks, eps), BERLU_OK);
    assert_true(isnan(slopes[1]) && isnan(kinks[0]) && isnan(eps[1]));
    berlu_smooth_free(f);
    assert_int_equal(berlu_smooth_named(&f, "elu", NULL, 0.5, 4), BERLU_OK);
    assert_int_equal(berlu_smooth_gradient(f, 0, slopes, kinks, eps), BERLU_ERR_UNSUPPORTED);
    berlu_smooth_free(f);
}

/* Every piece's two forms against the definition, coefficient by coefficient for the centred
 * monomials. */
static void pieces_cover_the_line_and_give_the_values(void **state)
{
    (void)state;
    draws d = {17};
    for (int degree = 2; degree <= 16; degree++)
        for (int off_centre = 0; off_centre < 2; off_centre++) {
            sample s = sample_make(&d, (size_t)draw_int(&d, 1, 4), degree, off_centre);
            double end = -INFINITY;
            size_t count = berlu_smooth_piece_count(s.f);
            assert_int_equal(count, 2 * s.e.count + 1);
            for (size_t i = 0; i < count; i++) {
                berlu_piece p;
                assert_int_equal(berlu_smooth_piece(s.f, i, &p), BERLU_OK);
                assert_true(p.from == end);
                end = p.to;
                assert_int_equal(p.bounded, i > 0 && i + 1 < count);
                double x = draw_real(&d, fmax(p.from, -9), fmin(p.to, 9));
                q want = exact_value(&s.e, q_double(x), 0), sum = q_int(0);
                q c = p.bounded ? q_sub(q_double(x), q_div(q_add(q_double(p.from), q_double(p.to)), q_int(2)))
                                : q_double(x);
                for (int j = p.degree; j >= 0; j--)
                    sum = q_add(q_mul(sum, c), q_double(p.monomial[j]));
                double slack = 16 * degree * U * s.size;
                assert_true(fabs(q_near(q_sub(sum, want))) <= slack * (off_centre ? 8 : 1));
                if (!p.bounded)
                    continue;
                q control[32], t = q_div(q_sub(q_double(x), q_double(p.from)), q_sub(q_double(p.to), q_double(p.from)));
                for (int j = 0; j <= p.degree; j++)
                    control[j] = q_double(p.bernstein[j]);
                assert_true(fabs(q_near(q_sub(qpoly_value(qpoly_bernstein(control, p.degree), t), want))) <= slack);
            }
            assert_true(end == INFINITY);
            berlu_piece none;
            assert_int_equal(berlu_smooth_piece(s.f, count, &none), BERLU_ERR_ARG);
            berlu_smooth_free(s.f);
            q_reset();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_agree_with_the_definition, after),
        cmocka_unit_test_teardown(slopes_and_curvatures_agree_with_the_definition, after),
        cmocka_unit_test_teardown(bump_of_a_relu_is_relatively_exact, after),
        cmocka_unit_test_teardown(outside_the_transitions_nothing_is_changed, after),
        cmocka_unit_test_teardown(special_inputs_give_nan_and_limits, after),
        cmocka_unit_test_teardown(parameter_derivatives_are_those_of_the_definition, after),
        cmocka_unit_test_teardown(derivative_by_eps_is_the_closed_form, after),
        cmocka_unit_test_teardown(gradient_beyond_all_transitions_is_finite_where_it_should_be, after),
        cmocka_unit_test_teardown(pieces_cover_the_line_and_give_the_values, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
