/* smooth_plot.c - see smooth_plot.h. SPDX-License-Identifier: MIT
 *
 * One plot per derivative, from the function itself to the highest continuous one (at least the
 * second, at most the fourth), over the same range of x. The given function is a broad pale line
 * under the thin smoothed one, so that both are visible where they agree; its slope has gaps at the
 * kinks. Where a transition would be tiny in the range of all kinks, a second column shows the
 * neighbourhood of the first kink. */
#include "smooth_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "io/svg.h"

enum { POINTS = 801, CURVES = 8, ORDERS = 5, COLUMNS = 2 };

typedef struct curve {
    const berlu_smooth *f;
    berlu_smooth *own; /* to be freed, or NULL */
    char label[64];
} curve;

typedef struct drawing {
    arena memory;
    curve curves[CURVES];
    size_t count;
    int orders; /* derivatives drawn, the function itself included */
    int close;  /* a second column shows the neighbourhood of the first kink */
    svg_plot plots[ORDERS * COLUMNS];
} drawing;

static berlu_transition transition_at(const berlu_smooth *f, size_t i)
{
    berlu_transition t = {0};
    berlu_smooth_transition(f, i, &t);
    return t;
}

/* The derivative of the given order of the piece that x lies in. */
static double derivative(const berlu_smooth *f, double x, int order)
{
    berlu_piece p = {0};
    if (order == 0)
        return berlu_smooth_value(f, x);
    for (size_t i = 0; i < berlu_smooth_piece_count(f); i++)
        if (berlu_smooth_piece(f, i, &p) == BERLU_OK && x <= p.to)
            break;
    double c = p.bounded ? x - (p.from / 2 + p.to / 2) : x, sum = 0;
    for (int j = p.degree; j >= order; j--) {
        double factor = p.monomial[j];
        for (int k = 0; k < order; k++)
            factor *= j - k;
        sum = sum * c + factor;
    }
    return p.polynomial ? sum : sum + p.scale * pow(p.rate, order) * exp(p.rate * x);
}

/* The slope before smoothing, by a difference that never spans a kink (NaN there: a gap in the
 * line). */
static double kinked_slope(const berlu_smooth *f, double x, double step)
{
    double h = step / 4;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++)
        if (fabs(x - transition_at(f, i).x) <= step)
            return NAN;
    return (berlu_smooth_kinked(f, x + h) - berlu_smooth_kinked(f, x - h)) / (2 * h);
}

/* ---- series ---------------------------------------------------------------------------------- */

static berlu_status joins_add(drawing *d, svg_series *out, double low, double high)
{
    const berlu_smooth *f = d->curves[0].f;
    size_t kinks = berlu_smooth_kink_count(f), count = 0;
    double *x = ARENA_ARRAY(&d->memory, double, 2 * kinks + 1);
    if (!x)
        return BERLU_ERR_MEMORY;
    if (d->count > 1 && kinks && transition_at(d->curves[1].f, 0).to != transition_at(f, 0).to)
        kinks = 0;                                     /* several eps: lines of the first one alone would mislead */
    for (size_t i = 0; i < kinks && kinks <= 6; i++) { /* more lines would be unreadable */
        berlu_transition t = transition_at(f, i);
        if (t.to < low || t.from > high)
            continue;
        x[count++] = t.from;
        x[count++] = t.to;
    }
    *out = (svg_series){.x = x, .count = count, .mark = SVG_VERTICALS, .color = SVG_GREY};
    return BERLU_OK;
}

static berlu_status given_add(drawing *d, svg_series *out, const double *x, int order)
{
    const berlu_smooth *f = d->curves[0].f;
    double *y = ARENA_ARRAY(&d->memory, double, POINTS);
    if (!y)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < POINTS; i++)
        y[i] = order ? kinked_slope(f, x[i], x[1] - x[0]) : berlu_smooth_kinked(f, x[i]);
    *out =
        (svg_series){.label = order ? NULL : "given", .x = x, .y = y, .count = POINTS, .color = SVG_GREY, .width = 6};
    return BERLU_OK;
}

static berlu_status curve_add(drawing *d, svg_series *out, const double *x, size_t which, int order)
{
    double *y = ARENA_ARRAY(&d->memory, double, POINTS);
    if (!y)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < POINTS; i++)
        y[i] = derivative(d->curves[which].f, x[i], order);
    *out = (svg_series){.label = order ? NULL : d->curves[which].label,
                        .x = x,
                        .y = y,
                        .count = POINTS,
                        .color = (int)which,
                        .width = 2};
    return BERLU_OK;
}

/* Control points of the function, or of its slope: the differences, one fewer. */
static berlu_status controls_add(drawing *d, svg_series *out, double low, double high, int order)
{
    const berlu_smooth *f = d->curves[0].f;
    size_t most = berlu_smooth_kink_count(f) * (BERLU_SMOOTH_MAX_DEGREE + 1) + 1, count = 0;
    double *x = ARENA_ARRAY(&d->memory, double, most), *y = ARENA_ARRAY(&d->memory, double, most);
    if (!x || !y)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t = transition_at(f, i);
        int n = t.degree;
        double width = t.to - t.from;
        for (int k = 0; k <= n - order && t.to >= low && t.from <= high; k++) {
            x[count] = n - order ? t.from + width * k / (n - order) : t.from;
            y[count++] = order ? n * (t.control[k + 1] - t.control[k]) / width : t.control[k];
        }
    }
    *out = (svg_series){
        .label = order ? NULL : "control points", .x = x, .y = y, .count = count, .mark = SVG_POINTS, .color = 1};
    return BERLU_OK;
}

/* ---- plots ----------------------------------------------------------------------------------- */

static berlu_status plot_add(drawing *d, svg_plot *out, double low, double high, int order, const char *around)
{
    static const char *const titles[ORDERS] = {"f", "f'", "f''", "f'''", "f''''"};
    svg_series *series = ARENA_ARRAY(&d->memory, svg_series, CURVES + 3);
    double *x = ARENA_ARRAY(&d->memory, double, POINTS);
    text title = {0};
    size_t count = 0;
    if (!series || !x)
        return BERLU_ERR_MEMORY;
    for (size_t i = 0; i < POINTS; i++)
        x[i] = low + (high - low) * (double)i / (POINTS - 1);
    TRY(joins_add(d, &series[count++], low, high));
    if (order < 2)
        TRY(given_add(d, &series[count++], x, order));
    for (size_t i = 0; i < d->count; i++)
        TRY(curve_add(d, &series[count++], x, i, order));
    if (d->count == 1 && order < 2 && berlu_smooth_kink_count(d->curves[0].f) > 0 &&
        (!d->close || *around)) /* the points would hide a tiny transition */
        TRY(controls_add(d, &series[count++], low, high, order));
    text_add(&title, "%s%s", titles[order], around);
    const char *kept = title.failed ? NULL : arena_strdup(&d->memory, title.data);
    text_free(&title);
    if (!kept)
        return BERLU_ERR_MEMORY;
    *out = (svg_plot){.title = kept, .x = {.low = low, .high = high}, .series = series, .count = count};
    if (order + 1 == d->orders)
        out->x.title = "x";
    return BERLU_OK;
}

/* The range that shows all kinks with some of the outer lines, for the widest of the curves. */
static void range_find(const drawing *d, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (size_t i = 0; i < d->count; i++) {
        const berlu_smooth *f = d->curves[i].f;
        size_t count = berlu_smooth_kink_count(f);
        if (count == 0)
            continue;
        berlu_transition first = transition_at(f, 0), last = transition_at(f, count - 1);
        double margin = fmax(0.35 * (last.x - first.x), fmax(first.x - first.from, last.to - last.x));
        *low = fmin(*low, first.from - margin);
        *high = fmax(*high, last.to + margin);
    }
    if (!(*low < *high))
        *low = -1, *high = 1;
}

static int orders_find(const drawing *d)
{
    int most = 2;
    for (size_t i = 0; i < d->count; i++) {
        int order = berlu_smooth_contact_order(d->curves[i].f);
        if (order < BERLU_SMOOTH_ANALYTIC && order > most)
            most = order;
    }
    return (most < ORDERS - 1 ? most : ORDERS - 1) + 1;
}

/* ---- the figure ------------------------------------------------------------------------------ */

/* "eps=0.1,0.5" or "degree=2,4,8" */
static berlu_status overlay_read(drawing *d, const berlu_smooth *f, const char *words)
{
    int degree = strncmp(words, "degree=", 7) == 0;
    if (!degree && strncmp(words, "eps=", 4) != 0)
        return berlu_fail(BERLU_ERR_ARG, "option --overlay: '%s' is not eps=V,V,... or degree=N,N,...", words);
    for (const char *at = strchr(words, '=') + 1;; at++) {
        char item[64];
        double value = NAN;
        size_t length = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), at);
        if (d->count == CURVES)
            return berlu_fail(BERLU_ERR_ARG, "option --overlay: more than %d are not told apart", CURVES);
        if (!number_parse(item, &value) || (degree && (value != floor(value) || fabs(value) > 1000)))
            return berlu_fail(BERLU_ERR_ARG, "option --overlay: '%s' is no %s", item, degree ? "degree" : "half-width");
        curve *c = &d->curves[d->count];
        snprintf(c->label, sizeof c->label, "%s %g", degree ? "degree" : "eps", value);
        berlu_status status = smooth_again(&c->own, f, degree ? NAN : value, degree ? (int)value : 0);
        if (status != BERLU_OK)
            return status;
        c->f = c->own;
        d->count++;
        at += length;
        if (!*at)
            return BERLU_OK;
    }
}

static const char *order_words(char *out, size_t size, int order)
{
    if (order >= BERLU_SMOOTH_ANALYTIC)
        return "all derivatives continuous";
    snprintf(out, size, "%d continuous derivative%s", order, order == 1 ? "" : "s");
    return out;
}

static berlu_status figure_fill(drawing *d, svg_figure *figure)
{
    double low, high;
    char around[64];
    berlu_transition first = transition_at(d->curves[0].f, 0);
    range_find(d, &low, &high);
    d->orders = orders_find(d);
    double width = first.to - first.from;
    d->close = width > 0 && width < (high - low) / 12;
    snprintf(around, sizeof around, ", around the kink at %.6g", first.x);
    for (int order = 0; order < d->orders; order++) {
        TRY(plot_add(d, &d->plots[figure->count++], low, high, order, ""));
        if (d->close)
            TRY(plot_add(d, &d->plots[figure->count++], first.from - width / 2, first.to + width / 2, order, around));
    }
    figure->columns = d->close || figure->count > 3 ? 2 : 1;
    figure->width = figure->columns == 2 ? 520 : 680;
    figure->height = figure->count > 2 ? 280 : 0;
    return BERLU_OK;
}

/* The common part of the curves of an overlay: the title without the key that differs. */
static void title_shorten(char title[SMOOTH_TITLE], const char *overlay)
{
    char *degree = strstr(title, ", degree "), *eps = strstr(title, ", eps ");
    if (strncmp(overlay, "degree", 6) == 0 && degree)
        *degree = 0;
    else if (degree && eps)
        memmove(eps, degree, strlen(degree) + 1);
}

berlu_status smooth_plot_save(const smooth_made *made, const char *overlay, const char *path)
{
    char subtitle[160], order[64], title[SMOOTH_TITLE];
    drawing *d = calloc(1, sizeof *d);
    if (!d)
        return berlu_fail_memory(sizeof *d, "the plot");
    svg_figure figure = {.title = title, .subtitle = subtitle, .plots = d->plots};
    berlu_status status = BERLU_OK;
    strcpy(title, made->title);
    snprintf(subtitle, sizeof subtitle, "%s, Lipschitz constant %.6g, largest gap %.6g",
             order_words(order, sizeof order, berlu_smooth_contact_order(made->f)), berlu_smooth_lipschitz(made->f),
             berlu_smooth_max_gap(made->f));
    if (overlay) {
        snprintf(subtitle, sizeof subtitle, "the same function with %.100s", overlay);
        title_shorten(title, overlay);
        TRY_DONE(overlay_read(d, made->f, overlay));
    } else {
        d->curves[d->count++] = (curve){.f = made->f, .label = "smoothed"};
    }
    TRY_DONE(figure_fill(d, &figure));
    TRY_DONE(svg_save(path, &figure));
done:
    for (size_t i = 0; i < d->count; i++)
        berlu_smooth_free(d->curves[i].own);
    arena_free(&d->memory);
    free(d);
    return status;
}
