/* piece.c - the function as a list of polynomials, for use elsewhere. SPDX-License-Identifier: MIT
 *
 * Monomial coefficients come from closed forms with integer or dyadic factors, not from differences
 * of control values: at degree 16 those would lose half of the digits. */
#include <math.h>
#include <string.h>

#include "smooth/bernstein.h"
#include "smooth/smooth.h"

/* Centred: y + (left + right)/2 c + jump/2 eps p(c / eps). */
static void centred_monomial(const berlu_smooth *f, const knot *k, double *out)
{
    double scale = k->jump / 2 * k->eps_left;
    out[0] = k->y + scale * f->bump.p[0];
    out[1] = k->left / 2 + k->right / 2;
    for (int j = 1; j <= f->bump.m; j++) {
        scale /= k->eps_left * k->eps_left;
        out[2 * j] = scale * f->bump.p[j];
    }
}

/* The derivative of order q, at t = 1/2 and times 2^(degree-q), of the polynomial whose control
 * values are 0 but for a 1 at `place`; without the factor degree!/(degree-q)!. An integer. */
static long long spike_derivative(int degree, int place, int q)
{
    long long sum = 0;
    for (int l = 0; l <= q; l++)
        sum += ((q - l) % 2 ? -1 : 1) * binomial(q, l) * binomial(degree - q, place - l);
    return sum;
}

/* Off centre: the control values of the second derivative are 0 but for two neighbours, lambda and
 * 1 - lambda. */
static void offcentre_monomial(const berlu_smooth *f, const knot *k, double *out)
{
    int n = f->piece_degree;
    double width = k->eps_left + k->eps_right, c = (k->eps_right - k->eps_left) / 2;
    double turn = bump_turn(f, k, c), factor = k->jump * (n - 1) / width / 2;
    out[0] = k->y + (c < 0 ? k->left : k->right) * c + k->jump * bump_height(f, k, c);
    out[1] = c < 0 ? k->left + k->jump * turn : k->right - k->jump * turn;
    for (int j = 2; j <= n; j++) {
        double whole = k->lambda * (double)spike_derivative(n - 2, k->split - 1, j - 2) +
                       (1 - k->lambda) * (double)spike_derivative(n - 2, k->split, j - 2);
        out[j] = factor * ldexp(whole, j - n);
        factor *= (n - j) / width / (j + 1); /* the next derivative, and 1/j! */
    }
}

static void curved_monomial(const berlu_smooth *f, const knot *k, double *out)
{
    double scale = 1;
    bernstein_to_monomial(out, k->control, f->piece_degree);
    for (int j = 0; j <= f->piece_degree; j++) {
        out[j] *= scale;
        scale /= k->to - k->from;
    }
}

static void transition_piece(const berlu_smooth *f, const knot *k, berlu_piece *out)
{
    *out = (berlu_piece){
        .from = k->from, .to = k->to, .transition = 1, .polynomial = 1, .degree = f->piece_degree, .bounded = 1};
    memcpy(out->bernstein, k->control, sizeof k->control);
    (f->curved ? curved_monomial : k->centred ? centred_monomial : offcentre_monomial)(f, k, out->monomial);
}

static void line_piece(const berlu_smooth *f, size_t i, berlu_piece *out)
{
    line l = line_at(f, i);
    double origin = out->bounded ? out->from / 2 + out->to / 2 : 0;
    out->degree = 1;
    out->monomial[0] = l.y + l.slope * (origin - l.x);
    out->monomial[1] = l.slope;
    if (out->bounded) {
        out->bernstein[0] = l.y + l.slope * (out->from - l.x);
        out->bernstein[1] = l.y + l.slope * (out->to - l.x);
    }
}

static void curve_piece(const berlu_smooth *f, size_t i, berlu_piece *out)
{
    const berlu_curve *c = curve_at(f, i);
    double origin = out->bounded ? out->from / 2 + out->to / 2 : 0;
    out->degree = c->square != 0 ? 2 : 1;
    out->monomial[0] = c->constant + origin * (c->linear + c->square * origin);
    out->monomial[1] = c->linear + 2 * c->square * origin;
    out->monomial[2] = c->square;
    out->polynomial = c->scale == 0 || c->rate == 0;
    if (!out->polynomial) {
        out->scale = c->scale;
        out->rate = c->rate;
    } else if (out->bounded) {
        double a = curve_value(c, out->from), b = curve_value(c, out->to), half = (out->to - out->from) / 2;
        out->bernstein[0] = a;
        out->bernstein[1] = out->degree == 2 ? a + half * curve_slope(c, out->from) : b;
        out->bernstein[2] = out->degree == 2 ? b : 0;
    }
}

static void given_piece(const berlu_smooth *f, size_t i, berlu_piece *out)
{
    *out = (berlu_piece){.from = piece_from(f, i), .to = piece_to(f, i), .polynomial = 1};
    out->bounded = isfinite(out->from) && isfinite(out->to);
    (f->curved ? curve_piece : line_piece)(f, i, out);
}

static int piece_is_empty(const berlu_smooth *f, size_t i)
{
    return !(piece_from(f, i) < piece_to(f, i));
}

size_t berlu_smooth_piece_count(const berlu_smooth *f)
{
    if (!f)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_piece_count() was given NULL"), (size_t)0;
    size_t count = 2 * f->count + 1;
    for (size_t i = 0; i <= f->count; i++)
        count -= (size_t)piece_is_empty(f, i);
    return count;
}

berlu_status berlu_smooth_piece(const berlu_smooth *f, size_t index, berlu_piece *out)
{
    if (!f || !out)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_piece() was given NULL");
    size_t rest = index;
    for (size_t i = 0; i <= f->count; i++) {
        if (!piece_is_empty(f, i) && rest-- == 0) {
            given_piece(f, i, out);
            return BERLU_OK;
        }
        if (i < f->count && rest-- == 0) {
            transition_piece(f, &f->knots[i], out);
            return BERLU_OK;
        }
    }
    return berlu_fail(BERLU_ERR_ARG, "there is no piece %zu; the function has %zu", index, berlu_smooth_piece_count(f));
}
