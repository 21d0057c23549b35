/* berlu/smooth.h - makes functions with kinks as smooth as you like. SPDX-License-Identifier: MIT
 *
 * A piecewise-linear function is given by its kinks, the slopes between them and one value. Around
 * each kink, on an interval of half-width eps, the smoother puts the Bernstein polynomial of the
 * function itself. With degree n and m = n/2 the result has m continuous derivatives at every join,
 * is unchanged elsewhere, and keeps the properties that matter: its Lipschitz constant is that of
 * the kinked function to the last digit, it stays monotone or convex where that was, and it lies on
 * one side of the kinked function. BerLU is leaky ReLU smoothed with degree 2. docs/math.md has the
 * proofs in short.
 *
 *     #include <berlu/berlu.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         const double kinks[] = {0, 6}, slopes[] = {0, 1, 0}, eps[] = {0.5};
 *         berlu_smooth_spec spec = {2, kinks, slopes, 0, 0, eps, 1, NULL, 4,
 *                                   BERLU_SMOOTH_BERNSTEIN};
 *         berlu_smooth *f;
 *         if (berlu_smooth_make(&f, &spec) != BERLU_OK) {
 *             fprintf(stderr, "%s\n", berlu_last_error());
 *             return 1;
 *         }
 *         printf("f(0) = %g, f'(0) = %g\n", berlu_smooth_value(f, 0), berlu_smooth_slope(f, 0));
 *         printf("%d continuous derivatives, Lipschitz constant %g, never further than %g "
 *                "from relu6\n",
 *                berlu_smooth_contact_order(f), berlu_smooth_lipschitz(f),
 *                berlu_smooth_max_gap(f));
 *         berlu_smooth_free(f);
 *         return 0;
 *     }
 *
 * A berlu_smooth is never changed after it was made: threads may share it. All calls compute in
 * double. Calls that return a number return NaN for a NULL handle (or 0 for counts) and leave a
 * message in berlu_last_error(). Calls that make something set *out to NULL when they fail. */
#ifndef BERLU_SMOOTH_H
#define BERLU_SMOOTH_H

#include <stddef.h>

#include <berlu/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct berlu_smooth berlu_smooth;

enum {
    BERLU_SMOOTH_MIN_DEGREE = 2,
    BERLU_SMOOTH_MAX_DEGREE = 16,
    BERLU_SMOOTH_MAX_KINKS = 4096,
    BERLU_SMOOTH_ANALYTIC = 1000 /* the contact order of a join whose two sides are one polynomial */
};

/* ---- Making ---------------------------------------------------------------------------------- */

/** Choice of a transition's control values. With the kink at the centre of its interval both are
 *  the same. */
typedef enum berlu_smooth_form {
    BERLU_SMOOTH_BERNSTEIN = 0, /* the Bernstein polynomial of the kinked function: every guarantee but the order is
 *                                  kept off the centre; contact floor(n theta) and floor(n (1 - theta)) */
    BERLU_SMOOTH_COLLINEAR = 1  /* degree 2m+1, m+1 control values on each line: order m at both joins wherever the kink
                                   is; the slope stays between its neighbours only for theta in [m, m+1] / (2m+1) */
} berlu_smooth_form;

/** A continuous piecewise-linear function and how to smooth it. {0} with the pointers set is degree
 *  0: set a degree. */
typedef struct berlu_smooth_spec {
    size_t kink_count;       /* 0 to BERLU_SMOOTH_MAX_KINKS */
    const double *kinks;     /* kink_count numbers, increasing */
    const double *slopes;    /* kink_count + 1 numbers: left of the first kink, between kinks, right of the last */
    double at_x, at_y;       /* the kinked function has the value at_y at at_x */
    const double *eps;       /* half-widths in [2^-60, 2^60]: the transition of kink i is [x - eps, x + eps] */
    size_t eps_count;        /* 1 (for all kinks) or kink_count */
    const double *eps_right; /* NULL, or eps_count numbers: the transition is [x - eps, x + eps_right] */
    int degree;              /* 2 to 16 */
    berlu_smooth_form form;
} berlu_smooth_spec;

/** Makes a smoothed function; everything in `spec` is copied. Transitions may touch but not overlap
 *  (docs/math.md has the reason). Returns BERLU_ERR_ARG with a message for counts that do not fit,
 *  kinks that do not increase, numbers that are not finite, eps or degree out of range, overlap;
 *  BERLU_ERR_MEMORY. *out is NULL after a failure. */
BERLU_API berlu_status berlu_smooth_make(berlu_smooth **out, const berlu_smooth_spec *spec);

/** One piece of a function that is not linear: constant + linear x + square x^2 + scale * (exp(rate
 *  x) - 1). */
typedef struct berlu_curve {
    double constant, linear, square, scale, rate;
} berlu_curve;

/** Smooths a continuous function made of curves: each transition is the Hermite polynomial of
 *  degree 2m+1 that matches the values and m derivatives of both neighbours, m = 1 for degree 2 and
 *  3, m = 2 for degree 4 and 5. The order of contact is m; slopes may leave the range of their
 *  neighbours (berlu_smooth_lipschitz() is exact all the same). A function that jumps at a kink is
 *  refused. */
typedef struct berlu_smooth_curves {
    size_t kink_count;
    const double *kinks;
    const berlu_curve *curves; /* kink_count + 1 */
    const double *eps;
    size_t eps_count;
    int degree; /* 2 to 5 */
} berlu_smooth_curves;
BERLU_API berlu_status berlu_smooth_make_curves(berlu_smooth **out, const berlu_smooth_curves *spec);

/** A function of the catalogue: relu, leaky_relu, prelu, relu6, hard_tanh, hard_sigmoid, abs,
 *  soft_shrink, and by Hermite polynomials (degree 2 to 5) hard_swish, elu. `parameter` is the
 *  alpha of leaky_relu (0.01), prelu (0.25), elu (1) or the lambda of soft_shrink (0.5); NULL takes
 *  those defaults, and for the others it must be NULL. */
BERLU_API berlu_status berlu_smooth_named(berlu_smooth **out, const char *name, const double *parameter, double eps,
                                          int degree);

/** The names above, index 0, 1, ...; NULL after the last. */
BERLU_API const char *berlu_smooth_name(size_t index);

/** Reads "smooth(kinks=-3,3; slopes=0,1,0; eps=0.1; degree=4)". Keys: kinks, slopes, at (x=y), eps
 *  and eps_right (one number, or one per kink), degree, form (bernstein or collinear). Defaults: at
 *  0=0, eps 0.01, degree 2. */
BERLU_API berlu_status berlu_smooth_parse(berlu_smooth **out, const char *text);

BERLU_API berlu_status berlu_smooth_clone(berlu_smooth **out, const berlu_smooth *f);
BERLU_API void berlu_smooth_free(berlu_smooth *f); /* NULL is allowed */

/* ---- Values ---------------------------------------------------------------------------------- */

/** The value, as line plus bump: exact rounding behaviour outside the transitions, no cancellation
 *  inside. NaN gives NaN; infinities give the limits. */
BERLU_API double berlu_smooth_value(const berlu_smooth *f, double x);

/** First and second derivative. Where the second one jumps (order 1) the joins belong to the
 *  transition. */
BERLU_API double berlu_smooth_slope(const berlu_smooth *f, double x);
BERLU_API double berlu_smooth_curvature(const berlu_smooth *f, double x);

/** The value again, inside the transitions by de Casteljau's algorithm on the control points. */
BERLU_API double berlu_smooth_casteljau(const berlu_smooth *f, double x);

/** The function before smoothing. */
BERLU_API double berlu_smooth_kinked(const berlu_smooth *f, double x);

/** Derivatives of the value at x by slopes, kinks and eps; each array may be NULL. The anchor
 *  (at_x, at_y) stays.
 *
 *  slopes  kink_count + 1 numbers.
 *  kinks   kink_count numbers: the kink moves with its transition. (For an anchor exactly on a
 *          kink: as it moves right.)
 *  eps     kink_count numbers: the transition grows, eps_right in proportion.
 *
 *  Functions made of curves have none of these: BERLU_ERR_UNSUPPORTED. */
BERLU_API berlu_status berlu_smooth_gradient(const berlu_smooth *f, double x, double *slopes, double *kinks,
                                             double *eps);

/** The x with value y. Functions that are not strictly monotone, and values that no finite double
 *  gives, are refused. */
BERLU_API berlu_status berlu_smooth_inverse(const berlu_smooth *f, double y, double *x);

/* ---- Properties ------------------------------------------------------------------------------ */

/** One transition. Its control points are (from + (to - from) k / degree, control[k]), k = 0 to
 *  degree. */
typedef struct berlu_transition {
    double from, to;    /* the joins */
    double x, y;        /* the kink */
    double left, right; /* the slopes on its two sides (of curves: at the kink) */
    double eps_left, eps_right;
    int degree;
    double control[BERLU_SMOOTH_MAX_DEGREE + 1];
    int contact_left, contact_right; /* derivatives that agree at the joins; BERLU_SMOOTH_ANALYTIC: all */
} berlu_transition;

BERLU_API size_t berlu_smooth_kink_count(const berlu_smooth *f);
BERLU_API berlu_status berlu_smooth_transition(const berlu_smooth *f, size_t index, berlu_transition *out);

/** The pieces cover the line from -inf to inf, in order; a piece between touching transitions does
 *  not exist. */
typedef struct berlu_piece {
    double from, to;
    int transition; /* 1: made by the smoother; 0: the given function */
    int polynomial; /* 0: scale * (exp(rate x) - 1) has to be added to the monomial form */
    int degree;
    int bounded; /* 0: no Bernstein form, and the monomial form is in x instead of x - (from + to) / 2 */
    double bernstein[BERLU_SMOOTH_MAX_DEGREE + 1]; /* control values on [from, to]; only if bounded and polynomial */
    double monomial[BERLU_SMOOTH_MAX_DEGREE + 1];  /* ascending */
    double scale, rate;
} berlu_piece;

BERLU_API size_t berlu_smooth_piece_count(const berlu_smooth *f);
BERLU_API berlu_status berlu_smooth_piece(const berlu_smooth *f, size_t index, berlu_piece *out);

/** The degree it was made with. */
BERLU_API int berlu_smooth_degree(const berlu_smooth *f);

/** The least contact order over all joins; BERLU_SMOOTH_ANALYTIC when there is no kink, or none
 *  that bends. -1 for NULL. */
BERLU_API int berlu_smooth_contact_order(const berlu_smooth *f);

/** The exact Lipschitz constant: the supremum of |slope|. INFINITY where there is none. */
BERLU_API double berlu_smooth_lipschitz(const berlu_smooth *f);

/** The largest distance to the function before smoothing. */
BERLU_API double berlu_smooth_max_gap(const berlu_smooth *f);

/** 1 strictly increasing, -1 strictly decreasing, 0 neither. */
BERLU_API int berlu_smooth_monotone(const berlu_smooth *f);

/** C source (C99, double, needs <math.h>) of `double smooth_NAME(double x)` and
 *  `double smooth_NAME_slope(double x)`. `name` is a letter, then letters, digits and '_'. *out is
 *  a text to be freed with free(); NULL after a failure. */
BERLU_API berlu_status berlu_smooth_source(const berlu_smooth *f, const char *name, char **out);

/* ---- A registry: smoothed functions under names ---------------------------------------------- */

/** Names, each standing for a function. A registered name works wherever the registry is passed and
 *  an activation's name is expected. Not for two threads at once while one of them adds. */
typedef struct berlu_registry berlu_registry;

BERLU_API berlu_status berlu_registry_make(berlu_registry **out);
BERLU_API void berlu_registry_free(berlu_registry *r); /* with all its functions; NULL is allowed */

/** Keeps a copy of `f` under `name`: a letter, then letters, digits and '_', at most 63, all of
 *  them ASCII. Refused are names that are taken, the names of the built-in activations
 *  (berlu_act_builtin()) and the word `smooth`. */
BERLU_API berlu_status berlu_registry_add(berlu_registry *r, const char *name, const berlu_smooth *f);

/** The function of that name, owned by the registry; NULL when there is none (that is no error). */
BERLU_API const berlu_smooth *berlu_registry_find(const berlu_registry *r, const char *name);

/** The names in order of registration, index 0, 1, ...; NULL after the last. */
BERLU_API const char *berlu_registry_name(const berlu_registry *r, size_t index);

#ifdef __cplusplus
}
#endif
#endif
