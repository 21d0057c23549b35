/* test_bump.c - the coefficients of the line-plus-bump form, recomputed in rationals.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exact.h"
#include "smooth/bump.h"

static int after(void **state)
{
    (void)state;
    q_reset();
    return 0;
}

/* The coefficients of the library as a polynomial, read without rounding. */
static qpoly read(const double *c, int count)
{
    qpoly result = {.degree = count - 1};
    for (int i = 0; i < count; i++)
        result.c[i] = q_double(c[i]);
    return result;
}

/* v -> (1 - v) / 2 */
static qpoly depth(void)
{
    return qpoly_linear(q_frac(1, 2), q_frac(-1, 2));
}

/* a_k = a_(k-1) (2k-3) / (2k), w = 1 - u^2, as a polynomial in u. */
static qpoly taylor(int m)
{
    qpoly w = {2, {q_int(1), q_int(0), q_int(-1)}}, sum = qpoly_number(q_int(1));
    q a = q_int(1);
    for (int k = 1; k <= m; k++) {
        a = q_mul(a, q_frac(2 * k - 3, 2 * k));
        sum = qpoly_add(sum, qpoly_scale(qpoly_power(w, k), a));
    }
    return sum;
}

static void p_is_the_taylor_polynomial_of_the_square_root(void **state)
{
    (void)state;
    for (int m = 1; m <= BUMP_MAX; m++) {
        bump b;
        bump_make(&b, m);
        qpoly square = {2, {q_int(0), q_int(0), q_int(1)}};
        assert_true(qpoly_equal(qpoly_compose(read(b.p, m + 1), square), taylor(m)));
    }
}

static void bump_is_half_of_p_minus_v(void **state)
{
    (void)state;
    for (int m = 1; m <= BUMP_MAX; m++) {
        bump b;
        bump_make(&b, m);
        qpoly height = qpoly_mul(qpoly_power(depth(), m + 1), read(b.q, m));
        qpoly above = qpoly_add(taylor(m), qpoly_linear(q_int(0), q_int(-1)));
        assert_true(qpoly_equal(height, qpoly_scale(above, q_frac(1, 2))));
    }
}

static void turn_is_the_smoothstep_of_the_depth(void **state)
{
    (void)state;
    for (int m = 1; m <= BUMP_MAX; m++) {
        bump b;
        bump_make(&b, m);
        qpoly turn = qpoly_mul(qpoly_power(depth(), m), read(b.w, m));
        assert_true(qpoly_equal(turn, qpoly_compose(qpoly_smoothstep(m), depth())));
    }
}

static void all_coefficients_of_q_and_w_are_positive(void **state)
{
    (void)state;
    for (int m = 1; m <= BUMP_MAX; m++) {
        bump b;
        bump_make(&b, m);
        for (int i = 0; i < m; i++) {
            assert_true(b.q[i] > 0);
            assert_true(b.w[i] > 0);
            assert_true((float)b.q[i] == b.q[i] && (float)b.w[i] == b.w[i]); /* exact in float too */
        }
    }
}

static void peak_is_the_slope_of_the_smoothstep_at_the_kink(void **state)
{
    (void)state;
    for (int m = 1; m <= BUMP_MAX; m++) {
        bump b;
        bump_make(&b, m);
        q slope = qpoly_value(qpoly_derivative(qpoly_smoothstep(m)), q_frac(1, 2));
        assert_true(q_equal(q_double(b.peak), slope));
        q factorials = q_int(1); /* 4^(1-m) (2m-1)! / ((m-1)!)^2 */
        for (int i = 1; i < 2 * m; i++)
            factorials = q_mul(factorials, q_int(i));
        for (int i = 1; i < m; i++)
            factorials = q_div(factorials, q_int((long)i * i));
        assert_true(q_equal(q_double(b.peak), q_mul(factorials, q_pow(q_int(4), 1 - m))));
    }
}

/* A few rows as printed in docs/math.md. */
static void documented_rows_are_what_is_computed(void **state)
{
    (void)state;
    static const double q4[] = {35. / 8, 47. / 8, 25. / 8, 5. / 8}, w4[] = {8, 29. / 2, 10, 5. / 2};
    static const double q8[] = {6435, 25147, 46143, 50535, 35145, 15345, 3861, 429};
    static const double p8[] = {6435, 51480, -60060, 72072, -64350, 40040, -16380, 3960, -429};
    bump b;
    bump_make(&b, 4);
    for (int i = 0; i < 4; i++)
        assert_true(b.q[i] == q4[i] && b.w[i] == w4[i]);
    bump_make(&b, 8);
    for (int i = 0; i < 8; i++)
        assert_true(b.q[i] == q8[i] / 128);
    for (int i = 0; i < 9; i++)
        assert_true(b.p[i] == p8[i] / 32768);
}

static void binomials_are_those_of_the_recurrence(void **state)
{
    (void)state;
    for (int n = 0; n <= 40; n++)
        for (int k = -1; k <= n + 1; k++)
            assert_true(binomial(n, k) == (k == 0 || k == n ? (n >= 0 && k >= 0 && k <= n)
                                                            : binomial(n - 1, k - 1) + binomial(n - 1, k)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(p_is_the_taylor_polynomial_of_the_square_root, after),
        cmocka_unit_test_teardown(bump_is_half_of_p_minus_v, after),
        cmocka_unit_test_teardown(turn_is_the_smoothstep_of_the_depth, after),
        cmocka_unit_test_teardown(all_coefficients_of_q_and_w_are_positive, after),
        cmocka_unit_test_teardown(peak_is_the_slope_of_the_smoothstep_at_the_kink, after),
        cmocka_unit_test_teardown(documented_rows_are_what_is_computed, after),
        cmocka_unit_test_teardown(binomials_are_those_of_the_recurrence, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
