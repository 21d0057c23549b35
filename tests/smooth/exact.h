/* exact.h - rational arithmetic in which the tests state the mathematics.
 * SPDX-License-Identifier: MIT
 *
 * Numbers are GMP rationals from a pool: functions return new ones and nobody frees them one by
 * one; q_reset() at the end of a test does. Polynomials are in monomial form in t, so that no
 * method is shared with the tested code. The smoothed function is built from its definition alone:
 * control values are values of the kinked function. */
#ifndef TESTS_SMOOTH_EXACT_H
#define TESTS_SMOOTH_EXACT_H

#include <gmp.h>
#include <stddef.h>
#include <stdint.h>

typedef mpq_ptr q;

q q_frac(long numerator, long denominator);
q q_int(long value);
q q_double(double value); /* exactly */
q q_add(q a, q b);
q q_sub(q a, q b);
q q_mul(q a, q b);
q q_div(q a, q b);
q q_pow(q a, int exponent); /* also negative */
q q_abs(q a);
q q_max(q a, q b);
int q_compare(q a, q b);
int q_equal(q a, q b);
int q_sign(q a);
double q_near(q a); /* within one unit in the last place */
long q_floor(q a);
q q_choose(int n, int k);
void q_reset(void);

enum { QPOLY_MAX = 48 };
typedef struct qpoly {
    int degree;
    q c[QPOLY_MAX + 1];
} qpoly;

qpoly qpoly_number(q value);
qpoly qpoly_linear(q constant, q slope);
qpoly qpoly_bernstein(q *control, int degree); /* as a polynomial in t */
qpoly qpoly_add(qpoly a, qpoly b);
qpoly qpoly_mul(qpoly a, qpoly b);
qpoly qpoly_scale(qpoly a, q factor);
qpoly qpoly_power(qpoly a, int exponent);
qpoly qpoly_derivative(qpoly a);
qpoly qpoly_integral(qpoly a); /* 0 at 0 */
qpoly qpoly_compose(qpoly outer, qpoly inner);
q qpoly_value(qpoly a, q t);
int qpoly_equal(qpoly a, qpoly b);
qpoly qpoly_smoothstep(int m); /* by integrating t^(m-1) (1-t)^(m-1), not by the binomial sum */

/* A piecewise-linear function and its smoothing, by definition. */
enum { EXACT_KINKS = 8 };
typedef struct exact {
    size_t count;
    q x[EXACT_KINKS], slope[EXACT_KINKS + 1], left[EXACT_KINKS], right[EXACT_KINKS]; /* left, right: half-widths */
    q at_x, at_y;
    int degree;
} exact;

q exact_kinked(const exact *f, q x);
void exact_control(const exact *f, size_t kink, q *out); /* degree + 1 values */
qpoly exact_transition(const exact *f, size_t kink);     /* in t from 0 to 1 */
/* The derivative of the given order; joins belong to the transition. */
q exact_value(const exact *f, q x, int order);

/* Reproducible draws. */
typedef struct draws {
    uint64_t state;
} draws;
uint64_t draw_bits(draws *d);
long draw_int(draws *d, long low, long high);        /* both ends included */
double draw_real(draws *d, double low, double high); /* a double, 53 random bits */
q draw_frac(draws *d, long low, long high);          /* with a denominator up to 64 */

#endif
