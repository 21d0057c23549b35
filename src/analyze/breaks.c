/* breaks.c - where a function is not smooth. SPDX-License-Identifier: MIT
 *
 * The library knows the joins of smoothed functions, at any width and order of contact. All other
 * breaks are found by search, so that a new activation needs no entry here: an interval is smooth
 * when the slope inside it follows the cubic through slope and curvature at its ends, and the
 * curvature their mean. Otherwise it is bisected; smooth functions stop after a few bisections, a
 * jump of slope or curvature is narrowed down to adjacent numbers. The first intervals are powers
 * of two around 0, where narrow features are. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "act/act_internal.h"
#include "analyze/expect.h"

enum { DEPTH = 120, INTERVALS = 200000 };

typedef struct spot {
    double x, slope, second;
} spot;

typedef struct hunt {
    breaks *out;
    const subject *subject;
    double steepest;
    int left; /* intervals left to examine: bounds the search in functions that are rough everywhere */
} hunt;

static spot look(const subject *s, double x)
{
    berlu_act_point at = subject_at(s, x);
    return (spot){x, at.slope, at.second};
}

static int is_smooth(const hunt *h, const spot *a, const spot *b)
{
    static const double places[] = {0.5, 0.2, 0.83};
    double width = b->x - a->x, bent = fmax(fabs(a->second), fabs(b->second));
    for (size_t i = 0; i < COUNT(places); i++) {
        double t = places[i], rise = b->slope - a->slope, first = width * a->second, last = width * b->second;
        double cubic = a->slope + t * (first + t * (3 * rise - 2 * first - last + t * (first + last - 2 * rise)));
        spot at = look(h->subject, a->x + t * width);
        bent = fmax(bent, fabs(at.second));
        if (!(fabs(at.slope - cubic) <= 1e-7 * h->steepest))
            return 0;
        if (!(fabs(at.second - a->second - t * (b->second - a->second)) <= 0.02 * bent + 1e-6 * h->steepest))
            return 0;
    }
    return 1;
}

static double beside(double x)
{
    return 8 * DBL_EPSILON * fabs(x) + 0x1p-72;
}

/* Inserts in order and without duplicates: a break seen from both sides differs by a few units of
 * its last digit. */
static void add(hunt *h, double x)
{
    breaks *b = h->out;
    size_t i = b->count;
    while (i > 0 && b->at[i - 1] >= x - 4 * beside(x))
        i--;
    if ((i < b->count && fabs(b->at[i] - x) <= 4 * beside(x)) || b->count == BREAKS_MAX)
        return;
    for (size_t k = b->count++; k > i; k--) {
        b->at[k] = b->at[k - 1];
        b->jump[k] = b->jump[k - 1];
    }
    double jump = look(h->subject, x + beside(x)).slope - look(h->subject, x - beside(x)).slope;
    b->at[i] = x;
    b->jump[i] = fabs(jump) > 1e-6 * h->steepest ? jump : 0;
}

static void search(hunt *h, spot a, spot b, int depth)
{
    double width = b.x - a.x, finest = 4 * DBL_EPSILON * fmax(fabs(a.x), fabs(b.x)) + 0x1p-80;
    if (width <= finest || depth == DEPTH) {
        add(h, fabs(a.x + b.x) < 0x1p-70 ? 0 : (a.x + b.x) / 2);
        return;
    }
    if (h->left-- <= 0 || is_smooth(h, &a, &b))
        return;
    spot middle = look(h->subject, a.x + width / 2);
    search(h, a, middle, depth + 1);
    search(h, middle, b, depth + 1);
}

/* Both ends of the transitions that the library knows: of berlu and smelu by their width, of
 * smooth(...) from its function. */
static void add_known(hunt *h, double range)
{
    const berlu_act *act = h->subject->act;
    double scale = fabs((double)act->scale);
    int width = berlu_act_param_find(act, "eps");
    width = width < 0 ? berlu_act_param_find(act, "beta") : width;
    if (width >= 0 && h->subject->params[width] / scale < range) {
        add(h, -h->subject->params[width] / scale);
        add(h, h->subject->params[width] / scale);
    }
    const berlu_smooth *f = act->shape.exact;
    for (size_t i = 0; f && i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        if (berlu_smooth_transition(f, i, &t) != BERLU_OK)
            continue;
        const double ends[] = {t.from / (double)act->scale, t.to / (double)act->scale};
        for (int k = 0; k < 2; k++)
            if (fabs(ends[k]) < range)
                add(h, ends[k]);
    }
}

/* Edges of the first intervals: 0, then powers of two and one number between up to the range, on
 * both sides. */
static double edge(int i)
{
    int octave = (abs(i) - 1) / 2;
    double size = ldexp((abs(i) - 1) % 2 ? 1.37 : 1, octave - 62);
    return i == 0 ? 0 : i < 0 ? -size : size;
}

void breaks_find(breaks *out, const subject *s, double range)
{
    hunt h = {.out = out, .subject = s, .left = INTERVALS};
    int last = 1;
    while (edge(last) < range)
        last++;
    for (int i = -last; i <= last; i++)
        h.steepest = fmax(h.steepest, fabs(look(s, edge(i)).slope));
    *out = (breaks){0};
    add_known(&h, range);
    spot before = look(s, -range);
    for (int i = -last + 1; i <= last; i++) {
        double x = fmin(edge(i), range);
        if (!(x > before.x))
            continue;
        spot next = look(s, x);
        search(&h, before, next, 0);
        before = next;
    }
}
