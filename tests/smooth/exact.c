/* exact.c - see exact.h. SPDX-License-Identifier: MIT */
#include "exact.h"

#include <stdlib.h>

typedef struct chunk {
    struct chunk *next;
    int used;
    mpq_t items[512];
} chunk;
static chunk *pool;

static q q_new(void)
{
    if (!pool || pool->used == 512) {
        chunk *fresh = calloc(1, sizeof *fresh);
        if (!fresh)
            abort();
        fresh->next = pool;
        pool = fresh;
    }
    q result = pool->items[pool->used++];
    mpq_init(result);
    return result;
}

void q_reset(void)
{
    while (pool) {
        chunk *next = pool->next;
        for (int i = 0; i < pool->used; i++)
            mpq_clear(pool->items[i]);
        free(pool);
        pool = next;
    }
}

q q_frac(long numerator, long denominator)
{
    q result = q_new();
    mpq_set_si(result, denominator < 0 ? -numerator : numerator, (unsigned long)labs(denominator));
    mpq_canonicalize(result);
    return result;
}

q q_int(long value)
{
    return q_frac(value, 1);
}

q q_double(double value)
{
    q result = q_new();
    mpq_set_d(result, value);
    return result;
}

q q_add(q a, q b)
{
    q result = q_new();
    mpq_add(result, a, b);
    return result;
}

q q_sub(q a, q b)
{
    q result = q_new();
    mpq_sub(result, a, b);
    return result;
}

q q_mul(q a, q b)
{
    q result = q_new();
    mpq_mul(result, a, b);
    return result;
}

q q_div(q a, q b)
{
    q result = q_new();
    mpq_div(result, a, b);
    return result;
}

q q_pow(q a, int exponent)
{
    q result = q_int(1);
    for (int i = 0; i < abs(exponent); i++)
        mpq_mul(result, result, a);
    if (exponent < 0)
        mpq_inv(result, result);
    return result;
}

q q_abs(q a)
{
    q result = q_new();
    mpq_abs(result, a);
    return result;
}

q q_max(q a, q b)
{
    return mpq_cmp(a, b) >= 0 ? a : b;
}

int q_compare(q a, q b)
{
    int order = mpq_cmp(a, b);
    return (order > 0) - (order < 0);
}

int q_equal(q a, q b)
{
    return mpq_equal(a, b) != 0;
}

int q_sign(q a)
{
    return mpq_sgn(a);
}

double q_near(q a)
{
    return mpq_get_d(a);
}

long q_floor(q a)
{
    mpz_t whole;
    mpz_init(whole);
    mpz_fdiv_q(whole, mpq_numref(a), mpq_denref(a));
    long result = mpz_get_si(whole);
    mpz_clear(whole);
    return result;
}

q q_choose(int n, int k)
{
    q result = q_int(k < 0 || k > n ? 0 : 1);
    for (int i = 1; i <= k && k <= n; i++)
        result = q_mul(result, q_frac(n - k + i, i));
    return result;
}

qpoly qpoly_number(q value)
{
    return (qpoly){0, {value}};
}

qpoly qpoly_linear(q constant, q slope)
{
    return (qpoly){1, {constant, slope}};
}

qpoly qpoly_add(qpoly a, qpoly b)
{
    if (a.degree < b.degree)
        return qpoly_add(b, a);
    for (int i = 0; i <= b.degree; i++)
        a.c[i] = q_add(a.c[i], b.c[i]);
    return a;
}

qpoly qpoly_mul(qpoly a, qpoly b)
{
    qpoly result = {.degree = a.degree + b.degree};
    if (result.degree > QPOLY_MAX)
        abort();
    for (int i = 0; i <= result.degree; i++)
        result.c[i] = q_int(0);
    for (int i = 0; i <= a.degree; i++)
        for (int j = 0; j <= b.degree; j++)
            result.c[i + j] = q_add(result.c[i + j], q_mul(a.c[i], b.c[j]));
    return result;
}

qpoly qpoly_scale(qpoly a, q factor)
{
    for (int i = 0; i <= a.degree; i++)
        a.c[i] = q_mul(a.c[i], factor);
    return a;
}

qpoly qpoly_power(qpoly a, int exponent)
{
    qpoly result = qpoly_number(q_int(1));
    for (int i = 0; i < exponent; i++)
        result = qpoly_mul(result, a);
    return result;
}

qpoly qpoly_derivative(qpoly a)
{
    if (a.degree == 0)
        return qpoly_number(q_int(0));
    for (int i = 0; i < a.degree; i++)
        a.c[i] = q_mul(a.c[i + 1], q_int(i + 1));
    a.degree--;
    return a;
}

qpoly qpoly_integral(qpoly a)
{
    qpoly result = {.degree = a.degree + 1, .c = {q_int(0)}};
    for (int i = 0; i <= a.degree; i++)
        result.c[i + 1] = q_div(a.c[i], q_int(i + 1));
    return result;
}

qpoly qpoly_compose(qpoly outer, qpoly inner)
{
    qpoly result = qpoly_number(outer.c[outer.degree]);
    for (int i = outer.degree - 1; i >= 0; i--)
        result = qpoly_add(qpoly_mul(result, inner), qpoly_number(outer.c[i]));
    return result;
}

q qpoly_value(qpoly a, q t)
{
    q sum = a.c[a.degree];
    for (int i = a.degree - 1; i >= 0; i--)
        sum = q_add(q_mul(sum, t), a.c[i]);
    return sum;
}

int qpoly_equal(qpoly a, qpoly b)
{
    if (a.degree < b.degree)
        return qpoly_equal(b, a);
    for (int i = 0; i <= a.degree; i++)
        if (i <= b.degree ? !q_equal(a.c[i], b.c[i]) : q_sign(a.c[i]) != 0)
            return 0;
    return 1;
}

qpoly qpoly_bernstein(q *control, int degree)
{
    qpoly sum = qpoly_number(q_int(0)), t = qpoly_linear(q_int(0), q_int(1)), s = qpoly_linear(q_int(1), q_int(-1));
    for (int k = 0; k <= degree; k++) {
        qpoly basis = qpoly_mul(qpoly_power(t, k), qpoly_power(s, degree - k));
        sum = qpoly_add(sum, qpoly_scale(basis, q_mul(control[k], q_choose(degree, k))));
    }
    return sum;
}

qpoly qpoly_smoothstep(int m)
{
    qpoly t = qpoly_linear(q_int(0), q_int(1)), s = qpoly_linear(q_int(1), q_int(-1));
    qpoly rise = qpoly_integral(qpoly_mul(qpoly_power(t, m - 1), qpoly_power(s, m - 1)));
    return qpoly_scale(rise, q_div(q_int(1), qpoly_value(rise, q_int(1))));
}

/* Adds slope times length of each segment from the anchor to x. */
q exact_kinked(const exact *f, q x)
{
    int forward = q_compare(x, f->at_x) >= 0;
    q low = forward ? f->at_x : x, high = forward ? x : f->at_x, rise = q_int(0);
    for (size_t i = 0; i <= f->count; i++) {
        q from = i > 0 ? q_max(low, f->x[i - 1]) : low;
        q to = i < f->count && q_compare(f->x[i], high) < 0 ? f->x[i] : high;
        if (q_compare(from, to) < 0)
            rise = q_add(rise, q_mul(f->slope[i], q_sub(to, from)));
    }
    return forward ? q_add(f->at_y, rise) : q_sub(f->at_y, rise);
}

void exact_control(const exact *f, size_t kink, q *out)
{
    q from = q_sub(f->x[kink], f->left[kink]), width = q_add(f->left[kink], f->right[kink]);
    for (int k = 0; k <= f->degree; k++)
        out[k] = exact_kinked(f, q_add(from, q_mul(width, q_frac(k, f->degree))));
}

qpoly exact_transition(const exact *f, size_t kink)
{
    q control[32];
    exact_control(f, kink, control);
    return qpoly_bernstein(control, f->degree);
}

q exact_value(const exact *f, q x, int order)
{
    for (size_t i = 0; i < f->count; i++) {
        q from = q_sub(f->x[i], f->left[i]), width = q_add(f->left[i], f->right[i]);
        q t = q_div(q_sub(x, from), width);
        if (q_sign(t) < 0 || q_compare(t, q_int(1)) > 0)
            continue;
        qpoly p = exact_transition(f, i);
        for (int k = 0; k < order; k++)
            p = qpoly_scale(qpoly_derivative(p), q_div(q_int(1), width));
        return qpoly_value(p, t);
    }
    if (order == 0)
        return exact_kinked(f, x);
    size_t i = 0;
    while (i < f->count && q_compare(x, f->x[i]) > 0)
        i++;
    return order == 1 ? f->slope[i] : q_int(0);
}

uint64_t draw_bits(draws *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

long draw_int(draws *d, long low, long high)
{
    return low + (long)(draw_bits(d) % (uint64_t)(high - low + 1));
}

double draw_real(draws *d, double low, double high)
{
    return low + (high - low) * ((double)(draw_bits(d) >> 11) * 0x1p-53);
}

q draw_frac(draws *d, long low, long high)
{
    long denominator = draw_int(d, 1, 64);
    return q_frac(draw_int(d, low * denominator, high * denominator), denominator);
}
