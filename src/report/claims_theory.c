/* claims_theory.c - C1 to C6: claims that need no training. SPDX-License-Identifier: MIT
 *
 * Exact arithmetic is arithmetic in double on numbers whose products need few bits (1/4, 3/64):
 * nothing is rounded, so "equal" means equal. The rest is in src/analyze. */
#include <math.h>
#include <string.h>

#include <berlu/act.h>
#include <berlu/smooth.h>

#include "analyze/depth.h"
#include "analyze/lipschitz.h"
#include "report/claims.h"

static berlu_status settle(claim_result *r, claim_word word, const char *size, const char *figures)
{
    r->direction = claim_word_name(word);
    r->size = size;
    r->why = "";
    r->figures = figures;
    return figures ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* ---- C1 -------------------------------------------------------------------------------------- */

/* Continuously differentiable, with slopes between those of the kinked function: this preserves its
 * Lipschitz constant and its monotony. */
static int keeps_shape(const berlu_smooth *f)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        if (berlu_smooth_transition(f, i, &t) != BERLU_OK)
            return 0;
        low = fmin(low, fmin(t.left, t.right));
        high = fmax(high, fmax(t.left, t.right));
    }
    int good = berlu_smooth_contact_order(f) >= 1 && berlu_smooth_lipschitz(f) == fmax(fabs(low), fabs(high));
    for (int i = -1024; i <= 1024; i++) {
        double slope = berlu_smooth_slope(f, i / 128.0);
        good = good && slope >= low - 1e-15 && slope <= high + 1e-15;
    }
    return good;
}

static berlu_status c1(claim_result *r, const evidence *e)
{
    static const int degrees[] = {2, 4, 8, 16};
    int tried = 0, kept = 0;
    for (size_t i = 0; berlu_smooth_name(i); i++)
        for (size_t d = 0; d < COUNT(degrees); d++) {
            berlu_smooth *f = NULL;
            berlu_status status = berlu_smooth_named(&f, berlu_smooth_name(i), NULL, 0.125, degrees[d]);
            if (status == BERLU_ERR_MEMORY)
                return status;
            /* Functions of curved pieces (elu, hard_swish) are smoothed differently; the claim is
             * about lines. */
            double slope[BERLU_SMOOTH_MAX_KINKS + 1];
            if (f && berlu_smooth_gradient(f, 0, slope, NULL, NULL) == BERLU_OK) {
                tried++;
                kept += keeps_shape(f);
            }
            berlu_smooth_free(f);
        }
    return settle(r, kept == tried && tried ? CLAIM_HELD : CLAIM_NOT_HELD, "",
                  arena_printf(e->memory,
                               "%d of %d smoothed functions (the piecewise-linear ones of the catalogue, degrees 2 to "
                               "16) have a continuous slope, the Lipschitz constant of the kinked function to the last "
                               "digit, and slopes between its slopes",
                               kept, tried));
}

/* ---- C2, C3 ---------------------------------------------------------------------------------- */

static const double alphas[] = {0, 0.015625, 0.25, 0.5, -0.5, 1.5}, widths[] = {0.015625, 0.5, 1, 4};

static berlu_status c2(claim_result *r, const evidence *e)
{
    int tried = 0, equal = 0;
    for (size_t a = 0; a < COUNT(alphas); a++)
        for (size_t w = 0; w < COUNT(widths); w++) {
            double alpha = alphas[a], eps = widths[w];
            berlu_smooth *f = NULL;
            berlu_transition t;
            TRY(berlu_smooth_named(&f, "leaky_relu", &alpha, eps, 2));
            /* Value and slope at the left join fix the first two control values, at the right join
             * the last two: the middle one is found twice, so there is one solution if both agree
             * and none otherwise. */
            double first = -alpha * eps, from_left = first + alpha * eps, last = eps, from_right = last - eps;
            tried++;
            equal += berlu_smooth_transition(f, 0, &t) == BERLU_OK && from_left == from_right &&
                     t.control[0] == first && t.control[1] == from_left && t.control[2] == last;
            berlu_smooth_free(f);
        }
    return settle(r, equal == tried ? CLAIM_HELD : CLAIM_NOT_HELD, "",
                  arena_printf(e->memory,
                               "%d of %d pairs of alpha and eps give (-alpha eps, 0, eps) exactly; value and slope at "
                               "the two joins leave no other choice",
                               equal, tried));
}

/* The paper's formula on [-eps, eps]. */
static double closed_value(double x, double alpha, double eps)
{
    double square = (1 - alpha) / (4 * eps);
    return x <= -eps ? alpha * x : x >= eps ? x : square * x * x + (1 + alpha) / 2 * x + (1 - alpha) * eps / 4;
}

static double closed_slope(double x, double alpha, double eps)
{
    return x <= -eps ? alpha : x >= eps ? 1 : (1 - alpha) / (2 * eps) * x + (1 + alpha) / 2;
}

static berlu_status c3(claim_result *r, const evidence *e)
{
    enum { POINTS = 257 };
    const double alpha = 0.25, eps = 0.5;
    berlu_act *act = NULL;
    berlu_smooth *f = NULL;
    float x[POINTS], y[POINTS];
    int equal = 0;
    double worst = 0, ulp = ldexp(1, -24); /* of eps */
    berlu_status status;
    TRY_DONE(berlu_act_make(&act, "berlu:alpha=0.25,eps=0.5"));
    TRY_DONE(berlu_smooth_named(&f, "leaky_relu", &alpha, eps, 2));
    for (int i = 0; i < POINTS; i++)
        x[i] = (float)(i - POINTS / 2) / 77; /* rounded, as inputs of kernels are */
    TRY_DONE(berlu_act_forward(act, BERLU_F32, y, x, POINTS));
    for (int i = 0; i < POINTS; i++) {
        double at = (double)(i - POINTS / 2) / 128, value = closed_value(at, alpha, eps),
               slope = closed_slope(at, alpha, eps);
        equal += berlu_smooth_casteljau(f, at) == value && berlu_smooth_slope(f, at) == slope &&
                 berlu_act_at(act, at, NULL).value == value && berlu_act_at(act, at, NULL).slope == slope;
        worst = fmax(worst, fabs((double)y[i] - closed_value(x[i], alpha, eps)) / ulp);
    }
done:
    berlu_smooth_free(f);
    berlu_act_free(act);
    TRY(status);
    return settle(r, equal == POINTS && worst <= 2 ? CLAIM_HELD : CLAIM_NOT_HELD, "",
                  arena_printf(e->memory,
                               "closed form, Bernstein form and reference agree exactly at %d of %d points; the f32 "
                               "kernel within %.2g ulp of eps (bound 2)",
                               equal, POINTS, worst));
}

/* ---- C4, C5 ---------------------------------------------------------------------------------- */

static berlu_status found_of(lipschitz *out, const char *spec)
{
    berlu_act *act = NULL;
    berlu_status status = berlu_act_make(&act, spec);
    if (status == BERLU_OK)
        lipschitz_find(out, act);
    berlu_act_free(act);
    return status;
}

/* The largest |alpha| after training, over the runs with BerLU; `missing` when one of their cells
 * is not complete. */
static double alpha_trained(claim_result *r, const evidence *e, int *missing)
{
    double most = NAN;
    for (size_t i = 0; i < e->v->count; i++)
        for (size_t c = 0; c < e->v->studies[i].cell_count; c++) {
            const view_cell *cell = &e->v->studies[i].cells[c];
            const cell_sites *s = &e->sites[i][c];
            if (isnan(cell->eps) || !claim_counts_cell(e, &e->v->studies[i], cell, "C4"))
                continue;
            *missing |= s->run_count && cell->done.count < cell->of->count;
            for (size_t k = 0; k < s->run_count; k++)
                if (!isnan(s->runs[k].alpha)) {
                    most = fmax(most, s->runs[k].alpha);
                    claim_study(r, e, &e->v->studies[i]);
                    r->n++;
                }
        }
    return most;
}

static berlu_status c4(claim_result *r, const evidence *e)
{
    static const struct {
        const char *spec;
        double want;
    } tries[] = {{"berlu", 1},
                 {"berlu:alpha=0.25,eps=1", 1},
                 {"berlu:alpha=-0.5", 1},
                 {"berlu:alpha=1.5", 1.5},
                 {"berlu:alpha=-2,eps=10", 2}};
    int missing = 0;
    double worst = 0, trained = alpha_trained(r, e, &missing);
    for (size_t i = 0; i < COUNT(tries); i++) {
        lipschitz l = {0};
        TRY(found_of(&l, tries[i].spec));
        worst = fmax(worst, fabs(l.found - tries[i].want));
    }
    const char *figures = isnan(trained)
                              ? arena_printf(e->memory, "found within %.1g of max(1, |alpha|)", worst)
                              : arena_printf(e->memory,
                                             "found within %.1g of max(1, |alpha|); after training |alpha| is at most "
                                             "%.3f over the sites of %zu runs",
                                             worst, trained, r->n);
    claim_word word = worst <= 1e-12 && !(trained > 1) ? CLAIM_HELD : CLAIM_NOT_HELD;
    TRY(settle(r, word, isnan(trained) || trained <= 1 ? "inside" : "outside", figures));
    if (isnan(trained) || missing) {
        r->partial = 1;
        r->why = missing ? "fewer seeds than registered" : "no trained alpha in this report";
    }
    return BERLU_OK;
}

static berlu_status c5(claim_result *r, const evidence *e)
{
    const char *figures = "";
    int wrong = 0;
    for (size_t i = 0; lipschitz_paper_act(i); i++) {
        const char *name = lipschitz_paper_act(i);
        lipschitz l = {0};
        if (strcmp(name, "berlu") == 0) /* judged by C4 */
            continue;
        TRY(found_of(&l, name));
        wrong += strcmp(l.verdict, "right") != 0;
        figures = arena_printf(e->memory, "%s%s%s %.6f (paper %.3f: %s)", figures, *figures ? ", " : "", name, l.found,
                               l.paper, l.verdict);
        if (!figures)
            return BERLU_ERR_MEMORY;
    }
    return settle(r, wrong ? CLAIM_NOT_HELD : CLAIM_HELD, wrong ? "outside" : "inside", figures);
}

/* ---- C6 -------------------------------------------------------------------------------------- */

static berlu_status c6(claim_result *r, const evidence *e)
{
    static const char *const acts[] = {"relu", "gelu", "berlu"};
    const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = 1, .threads = 1};
    const double paper = 4.5 * M_PI * M_PI; /* the paper's 9 pi^2 / 2 */
    depth d[COUNT(acts)] = {{0}};
    for (size_t i = 0; i < COUNT(acts); i++) {
        berlu_act *act = NULL;
        berlu_status status = berlu_act_make(&act, acts[i]);
        if (status == BERLU_OK)
            status = depth_find(&d[i], act, &settings);
        berlu_act_free(act);
        if (status != BERLU_OK)
            return status;
    }
    int relu = d[0].edge && d[0].exponent == 2 && fabs(d[0].coefficient - paper) <= 1e-9 * paper,
        gelu = d[1].edge && d[1].exponent == 1 && fabs(d[1].coefficient - d[1].beta_q) <= 1e-9 * d[1].beta_q;
    return settle(r, relu && gelu && d[2].edge ? CLAIM_HELD : CLAIM_NOT_HELD, relu && gelu ? "inside" : "outside",
                  arena_printf(e->memory,
                               "q = 1: relu %.4f / l^%d (paper %.4f / l^2), gelu %.4f / l^%d with beta_q = %.4f; berlu "
                               "%s",
                               d[0].coefficient, d[0].exponent, paper, d[1].coefficient, d[1].exponent, d[1].beta_q,
                               d[2].edge ? "has an edge of chaos"
                                         : "has no edge of chaos (f(0) > 0), so the law does not apply to it"));
}

berlu_status claims_theory(claim_result out[CLAIMS], const evidence *e)
{
    static berlu_status (*const each[])(claim_result *, const evidence *) = {c1, c2, c3, c4, c5, c6};
    for (size_t i = 0; i < COUNT(each); i++)
        TRY(each[i](&out[i], e));
    return BERLU_OK;
}
