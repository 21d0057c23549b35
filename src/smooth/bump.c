/* bump.c - computes the coefficients of bump.h in integers. SPDX-License-Identifier: MIT
 *
 * Degree 2m on the left half: t = r, and only the control values right of the kink lie above the
 * line, by (k - m) / m:
 *
 *     h = sum over k > m  of (k - m)/m C(2m,k) r^k (1-r)^(2m-k),
 *     T = sum over k >= m of C(2m-1,k) r^k (1-r)^(2m-1-k).
 *
 * Take out r^(m+1) and r^m, put r = (1-v)/2 and 1-r = (1+v)/2: both rests are 2^(1-m) times a sum
 * of weight_j (1-v)^j (1+v)^(m-1-j) with whole weights. (k-m)/m C(2m,k) is whole because k/m
 * C(2m,k) = 2 C(2m-1,k-1). */
#include "smooth/bump.h"

#include <math.h>

long long binomial(int n, int k)
{
    if (k < 0 || k > n)
        return 0;
    long long result = 1;
    for (int i = 1; i <= k; i++)
        result = result * (n - k + i) / i; /* whole after each step: it is C(n-k+i, i) */
    return result;
}

/* Adds weight * (1-v)^j (1+v)^(count-1-j) to the whole coefficients `sum` of v^0 .. v^(count-1). */
static void product_add(long long sum[BUMP_MAX], int count, int j, long long weight)
{
    for (int power = 0; power < count; power++) {
        long long coefficient = 0;
        for (int i = 0; i <= power; i++)
            coefficient += (i % 2 ? -1 : 1) * binomial(j, i) * binomial(count - 1 - j, power - i);
        sum[power] += weight * coefficient;
    }
}

/* p is the Taylor polynomial of degree m of sqrt(1-w), w = 1 - u^2: the coefficient of w^k is
 * -C(2k,k) / ((2k-1) 4^k). */
static void even_part_make(double p[BUMP_MAX + 1], int m)
{
    for (int j = 0; j <= m; j++) {
        long long sum = 0; /* 4^m times the coefficient of u^(2j) */
        for (int k = j; k <= m; k++)
            sum -= (binomial(2 * k, k) / (2 * k - 1)) * binomial(k, j) * (1LL << (2 * (m - k)));
        p[j] = ldexp((double)(j % 2 ? -sum : sum), -2 * m);
    }
}

void bump_make(bump *out, int m)
{
    long long q[BUMP_MAX] = {0}, w[BUMP_MAX] = {0};
    for (int j = 0; j < m; j++) {
        int k = m + 1 + j;
        product_add(q, m, j, 2 * binomial(2 * m - 1, k - 1) - binomial(2 * m, k));
        product_add(w, m, j, binomial(2 * m - 1, m + j));
    }
    *out = (bump){.m = m};
    for (int j = 0; j < m; j++) {
        out->q[j] = ldexp((double)q[j], 1 - m);
        out->w[j] = ldexp((double)w[j], 1 - m);
    }
    even_part_make(out->p, m);
    out->peak = ldexp((double)(m * binomial(2 * m - 1, m)), 2 - 2 * m);
}
