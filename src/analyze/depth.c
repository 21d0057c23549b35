/* depth.c - see depth.h. SPDX-License-Identifier: MIT
 *
 * The correlation map is iterated as the gap 1 - c, never as c: with c = cos t, X and Y become C
 * u + S v and C u - S v for independent normals u, v (C = cos t/2, S = sin t/2), and
 *
 *     1 - c_(l+1) = sw2 / (2 q_(l+1)) E[(f(X) - f(Y))^2],
 *
 * a sum of squares without cancellation. The integral over u and v is split along the lines
 * where X or Y meets a break of f: the inner variable is the one in which those lines are steep
 * (u for c >= 0), and the outer one is split where two of the lines cross. */
#include "analyze/depth.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "analyze/expect.h"
#include "base/status.h"
#include "base/threads.h"

enum { OCTAVES = 200, NODES = 16 };
enum { EDGES = 2 * BREAKS_MAX + 64, OUTER_MAX = 4096 };

typedef struct plane {
    const subject *subject;
    const breaks *breaks;
    gauss_rule rule, brief; /* the second for panels too narrow for the first */
    double scale, width;    /* sqrt(q); panels of the inner variable */
    double across, along;   /* of the outer and of the inner variable: C and S, or S and C */
    int positive;           /* c >= 0: u is the inner variable */
    size_t panels;          /* outer ones */
    double edge[OUTER_MAX + 1], part[OUTER_MAX];
    int is_known[OCTAVES]; /* E (f(X) - f(Y))^2 / gap, for gaps of 2^-(k+1) to 2^-k at Chebyshev nodes of log gap */
    double known[OCTAVES][NODES];
} plane;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether f is not smooth between two close inputs. */
static int is_broken(const plane *p, double low, double high)
{
    for (size_t i = 0; i < p->breaks->count; i++)
        if (low < p->breaks->at[i] && p->breaks->at[i] < high)
            return 1;
    return 0;
}

/* f(x + d) - f(x - d), squared. For small d by the slope at the two Gauss points, whose error is
 * of order d^5, because the difference of the values loses the digits of d. */
static double pair_square(const plane *p, double inner, double outer)
{
    double x = p->scale * (p->positive ? p->along * inner : p->across * outer), change;
    double d = p->scale * (p->positive ? p->across * outer : p->along * inner);
    if (fabs(d) < 1e-3 && !is_broken(p, x - fabs(d), x + fabs(d))) {
        const double gauss = 0.57735026918962576451;
        change = d * (subject_at(p->subject, x + gauss * d).slope + subject_at(p->subject, x - gauss * d).slope);
    } else {
        change = subject_at(p->subject, x + d).value - subject_at(p->subject, x - d).value;
    }
    return change * change;
}

/* Where X or Y meets a break at this outer value, sorted, between the ends. */
static size_t inner_edges(const plane *p, double outer, double edges[EDGES])
{
    size_t count = 0;
    edges[count++] = p->positive ? -EXPECT_REACH : 0; /* for c < 0 both halves of v are alike */
    edges[count++] = EXPECT_REACH;
    for (size_t i = 0; i < p->breaks->count; i++) {
        double k = p->breaks->at[i] / p->scale, shift = p->across * outer;
        double first = (k - shift) / p->along;
        double second = p->positive ? (k + shift) / p->along : (shift - k) / p->along;
        if (first > edges[0] && first < EXPECT_REACH)
            edges[count++] = first;
        if (second > edges[0] && second < EXPECT_REACH)
            edges[count++] = second;
    }
    qsort(edges, count, sizeof *edges, by_size);
    return count;
}

static double inner_integral(const plane *p, double outer)
{
    double edges[EDGES], sum = 0;
    size_t count = inner_edges(p, outer, edges);
    for (size_t i = 0; i + 1 < count; i++) {
        double pieces = ceil((edges[i + 1] - edges[i]) / p->width), half = (edges[i + 1] - edges[i]) / pieces / 2;
        const gauss_rule *rule = 16 * half < p->width ? &p->brief : &p->rule;
        for (double k = 0; k < pieces; k++)
            for (int g = 0; g < rule->points; g++) {
                double z = edges[i] + half * (2 * k + 1 + rule->x[g]);
                sum += half * rule->w[g] * normal_density(z) * pair_square(p, z, outer);
            }
    }
    return sum;
}

static void outer_panel(void *context, size_t i)
{
    plane *p = context;
    double middle = (p->edge[i] + p->edge[i + 1]) / 2, half = (p->edge[i + 1] - p->edge[i]) / 2, sum = 0;
    const gauss_rule *rule = 16 * half < p->width ? &p->brief : &p->rule;
    for (int g = 0; g < rule->points; g++) {
        double z = middle + half * rule->x[g];
        sum += half * rule->w[g] * normal_density(z) * inner_integral(p, z);
    }
    p->part[i] = sum;
}

/* Edges of the outer variable: its ends, the crossings of the break lines, and enough between. */
static void outer_edges(plane *p)
{
    double cuts[2 + BREAKS_MAX * BREAKS_MAX];
    double low = p->positive ? 0 : -EXPECT_REACH; /* for c >= 0 both halves of v are alike */
    size_t count = 0;
    cuts[count++] = low;
    cuts[count++] = EXPECT_REACH;
    for (size_t i = 0; i < p->breaks->count; i++)
        for (size_t j = 0; j < p->breaks->count; j++) {
            double sum = p->positive ? p->breaks->at[i] - p->breaks->at[j] : p->breaks->at[i] + p->breaks->at[j];
            double at = sum / (2 * p->scale * p->across);
            if (at > low && at < EXPECT_REACH)
                cuts[count++] = at;
        }
    qsort(cuts, count, sizeof *cuts, by_size);
    double width = fmin(3, p->width * p->along / p->across);
    p->panels = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        double pieces = ceil((cuts[i + 1] - cuts[i]) / width);
        for (double k = 0; k < pieces && p->panels < OUTER_MAX; k++)
            p->edge[p->panels++] = cuts[i] + (cuts[i + 1] - cuts[i]) * k / pieces;
    }
    p->edge[p->panels] = EXPECT_REACH;
}

/* E[(f(X) - f(Y))^2] at a gap of 1 - c */
static double difference(plane *p, double gap, int threads)
{
    double near = sqrt(gap / 2), common = sqrt(1 - gap / 2); /* S and C: 1 - cos t = 2 sin^2 t/2 */
    if (gap == 0)
        return 0;
    p->positive = gap <= 1;
    p->along = p->positive ? common : near;
    p->across = p->positive ? near : common;
    outer_edges(p);
    threads_for(threads, p->panels, outer_panel, p);
    return 2 * tree_sum(p->part, p->panels); /* the other half is its mirror image */
}

/* difference() / gap for a fixed q. The map is analytic in log gap, so sixteen nodes an octave
 * hold it to rounding, and a thousand layers need some hundred integrals. Above one half the
 * branch point at a gap of 2 is too near. */
static double difference_ratio(plane *p, double gap, int threads)
{
    int octave = gap > 0 ? (int)floor(-log2(gap)) : OCTAVES;
    if (octave < 1 || octave >= OCTAVES)
        return gap > 0 ? difference(p, gap, threads) / gap : 0;
    double middle = -(octave + 0.5) * M_LN2, top = 0, bottom = 0;
    for (int j = 0; j < NODES && !p->is_known[octave]; j++) {
        double node = exp(middle + M_LN2 / 2 * cos(M_PI * (j + 0.5) / NODES));
        p->known[octave][j] = difference(p, node, threads) / node;
    }
    p->is_known[octave] = 1;
    for (int j = 0; j < NODES; j++) { /* the barycentric formula */
        double angle = M_PI * (j + 0.5) / NODES, off = log(gap) - middle - M_LN2 / 2 * cos(angle);
        if (off == 0)
            return p->known[octave][j];
        double weight = (j % 2 ? -1 : 1) * sin(angle) / off;
        top += weight * p->known[octave][j];
        bottom += weight;
    }
    return top / bottom;
}

/* 4 / B^2 where 1 - f(c) = gap - B gap^1.5 + ...: each kink adds 2 / (3 sqrt pi) sw2 J^2 n(x /
 * sqrt q). */
static double kink_coefficient(const breaks *b, double sw2, double q)
{
    double sum = 0;
    for (size_t i = 0; i < b->count; i++)
        sum += b->jump[i] * b->jump[i] * normal_density(b->at[i] / sqrt(q));
    double bend = 2 / (3 * sqrt(M_PI)) * sw2 * sum;
    return 4 / (bend * bend);
}

/* The limit of a transition of width 0: leaky_relu for berlu, relu for smelu. */
static berlu_status kinked_make(berlu_act **out, const berlu_act *act)
{
    char words[96], number[NUMBER_TEXT], slope[NUMBER_TEXT];
    berlu_act_param_info info = {.value = 0};
    *out = NULL;
    if (strcmp(berlu_act_name(act), "berlu") == 0) {
        TRY(berlu_act_param(act, 0, &info));
        assert(strcmp(info.name, "alpha") == 0);
    } else if (strcmp(berlu_act_name(act), "smelu") != 0) {
        return BERLU_OK;
    }
    snprintf(words, sizeof words, "leaky_relu:alpha=%s,scale=%s", number_text_f32(slope, (float)info.value),
             number_text_f32(number, act->scale));
    return berlu_act_make(out, words);
}

static berlu_status edge_find(depth *out, const subject *s, const breaks *b, double q)
{
    moments m, kinked_moments = {.slope2 = NAN};
    breaks kinked_breaks;
    berlu_act *kinked;
    double rival = NAN;
    moments_find(&m, s, b, sqrt(q));
    TRY(kinked_make(&kinked, s->act));
    if (kinked) {
        subject line = subject_of(kinked, PARAMS_AS_WRITTEN);
        breaks_find(&kinked_breaks, &line, EXPECT_REACH * sqrt(q));
        moments_find(&kinked_moments, &line, &kinked_breaks, sqrt(q));
        rival = kink_coefficient(&kinked_breaks, 1 / kinked_moments.slope2, q);
    }
    berlu_act_free(kinked);
    if (!(m.slope2 > 0))
        return berlu_fail(BERLU_ERR_ARG, "%s: is constant at this scale, so nothing travels through it",
                          berlu_act_name(s->act));
    double sb2 = q - m.square / m.slope2;
    out->edge = sb2 >= -1e-12 * q; /* 0 for the relu family, up to rounding */
    out->sw2 = out->edge ? 1 / m.slope2 : kinked ? 1 / kinked_moments.slope2 : q / m.square;
    out->sb2 = out->edge ? fmax(sb2, 0) : 0;
    out->chi = out->sw2 * m.slope2;
    out->beta_q = isinf(m.second2) ? 0 : 2 * m.slope2 / (q * m.second2);
    out->exponent = !out->edge ? 0 : isinf(m.second2) ? 2 : 1;
    out->coefficient = out->exponent == 2 ? kink_coefficient(b, out->sw2, q) : out->exponent == 1 ? out->beta_q : NAN;
    out->crossover = kinked && out->beta_q > 0 ? rival / out->beta_q : NAN;
    return BERLU_OK;
}

static int is_shown(int layer, int last)
{
    int lead = layer, power = 1;
    while (lead >= 10 && lead % 10 == 0)
        lead /= 10, power *= 10;
    return layer == last || lead == 1 || lead == 2 || lead == 3 || lead == 5 || lead == 7;
}

berlu_status depth_find(depth *out, const berlu_act *act, const depth_settings *s)
{
    assert(s->q > 0 && s->c0 >= -1 && s->c0 <= 1 && s->layers >= 1);
    breaks b;
    subject f = subject_of(act, PARAMS_AS_WRITTEN);
    *out = (depth){0};
    plane *p = malloc(sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, "the correlation map");
    breaks_find(&b, &f, 2 * EXPECT_REACH * sqrt(s->q));
    berlu_status status = edge_find(out, &f, &b, s->q);
    *p = (plane){.subject = &f, .breaks = &b};
    gauss_make(&p->rule, GAUSS_POINTS);
    gauss_make(&p->brief, 8);
    double gap = 1 - s->c0, q = s->q, chi = 1;
    for (int layer = 1; status == BERLU_OK && layer <= s->layers; layer++) {
        moments m;
        if (layer == 1 || !out->edge) { /* on the edge q stays */
            if (q > 3 * s->q) /* the search covered twice the range: only functions without an edge drift this far */
                breaks_find(&b, &f, EXPECT_REACH * sqrt(q));
            moments_find(&m, &f, &b, sqrt(q));
            p->width = panels_width(&f, &b, sqrt(q));
        }
        p->scale = sqrt(q);
        chi *= out->edge ? 1 : out->sw2 * m.slope2;
        double next = out->edge ? q : out->sb2 + out->sw2 * m.square;
        double square = out->edge ? gap * difference_ratio(p, gap, s->threads) : difference(p, gap, s->threads);
        gap = out->sw2 * square / (2 * next);
        q = next;
        if (is_shown(layer, s->layers) && out->count < DEPTH_POINTS)
            out->curve[out->count++] = (depth_point){layer, gap, q, chi, NAN};
    }
    free(p);
    return status == BERLU_OK && s->width ? depth_simulate(out, act, s) : status;
}
