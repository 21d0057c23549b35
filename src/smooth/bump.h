/* bump.h - the coefficients of one centred transition of order m. SPDX-License-Identifier: MIT
 *
 * At a kink of jump 1 and half-width 1, with c the distance from the kink, r = (1 - |c|) / 2 and v
 * = |c|, the smoothed function lies above the kinked one by h = r^(m+1) Q(v), and its slope differs
 * from that of the nearer line by T = r^m W(v) (docs/math.md, "Line plus bump"). All coefficients
 * are positive, so nothing cancels, and dyadic, so they are exact in double and in float. They are
 * computed in integers; no table is typed in. */
#ifndef SMOOTH_BUMP_H
#define SMOOTH_BUMP_H

enum { BUMP_MAX = 8 }; /* m of degree 16 */

typedef struct bump {
    int m;
    double q[BUMP_MAX];     /* Q, ascending in v; m of them */
    double w[BUMP_MAX];     /* W, ascending in v; m of them */
    double p[BUMP_MAX + 1]; /* the even polynomial p(u) >= |u| of the transition, ascending in u^2; m + 1 of them */
    double peak;            /* K: the second derivative at the kink is K / 2 */
} bump;

/* m = 1 to BUMP_MAX. */
void bump_make(bump *out, int m);

/* n over k as an integer; 0 outside 0 <= k <= n. Exact up to n = 61. */
long long binomial(int n, int k);

#endif
