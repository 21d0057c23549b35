/* svg_scale.c - ranges and ticks of an axis. SPDX-License-Identifier: MIT
 *
 * Ticks are multiples of 1, 2 or 5 times a power of ten, as many as fit; logarithmic axes have
 * whole decades, thinned where there are too many. */
#include <math.h>

#include "io/svg_internal.h"

static void range_add(double value, int log, double *low, double *high)
{
    if (!isfinite(value) || (log && !(value > 0)))
        return;
    value = log ? log10(value) : value;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* Everything that point k of a series puts on the axis. */
static void point_add(const svg_plot *plot, size_t index, size_t k, int vertical, int log, double *low, double *high)
{
    const svg_series *s = &plot->series[index];
    if (!vertical) {
        double half = s->mark == SVG_BARS ? 0.5 : 0;
        range_add(s->x[k] - half, log, low, high);
        range_add((s->mark == SVG_INTERVALS ? s->x2[k] : s->x[k]) + half, log, low, high);
    } else if (s->mark == SVG_STACK) {
        range_add(svg_stacked(plot, index, k), log, low, high);
    } else if (s->mark != SVG_VERTICALS) {
        range_add(s->y[k], log, low, high);
        if (s->mark == SVG_BAND || s->mark == SVG_ERRORS)
            range_add(s->y2[k], log, low, high);
    }
    if (vertical && (s->mark == SVG_BARS || s->mark == SVG_STACK))
        range_add(0, log, low, high);
}

static int has_mark(const svg_plot *plot, svg_mark mark)
{
    for (size_t i = 0; i < plot->count; i++)
        if (plot->series[i].mark == mark)
            return 1;
    return 0;
}

static void range_find(const svg_plot *plot, int vertical, int log, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (size_t i = 0; i < plot->count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++)
            point_add(plot, i, k, vertical, log, low, high);
    if (!(*low <= *high)) /* nothing to show */
        *low = 0, *high = 1;
    int dots_alone = (has_mark(plot, SVG_POINTS) || has_mark(plot, SVG_HOLLOW)) && !has_mark(plot, SVG_LINE) &&
                     !has_mark(plot, SVG_DASHED);
    double margin = vertical || has_mark(plot, SVG_INTERVALS) || dots_alone ? 0.06 * (*high - *low) : 0;
    if (!(*high - *low > 1e-9 * fmax(fabs(*low), fabs(*high)))) /* all the same, up to rounding */
        margin = *low == 0 ? 1 : 0.5 * fabs(*low);
    int flat = *low == 0 && *high == 0 && !log; /* zero throughout: a share or a count more often than not */
    int rests = *low == 0 && !log && (has_mark(plot, SVG_BARS) || has_mark(plot, SVG_STACK));
    *low -= rests ? 0 : flat ? 0.06 : margin; /* bars and areas stand on the frame */
    *high += margin;
}

berlu_status svg_scale_make(svg_scale *out, const svg_plot *plot, int vertical)
{
    const svg_axis *axis = vertical ? &plot->y : &plot->x;
    if (axis->names) {
        double first = -0.5, last = (double)axis->name_count - 0.5;
        *out = (svg_scale){.low = vertical ? last : first, .high = vertical ? first : last};
        return BERLU_OK;
    }
    out->log = axis->log;
    if (axis->low == axis->high) {
        range_find(plot, vertical, axis->log, &out->low, &out->high);
        return BERLU_OK;
    }
    if (!isfinite(axis->low) || !isfinite(axis->high) || axis->low > axis->high || (axis->log && !(axis->low > 0)))
        return berlu_fail(BERLU_ERR_ARG, "plot '%s': its %s axis cannot go from %g to %g",
                          plot->title ? plot->title : "", vertical ? "vertical" : "horizontal", axis->low, axis->high);
    out->low = axis->log ? log10(axis->low) : axis->low;
    out->high = axis->log ? log10(axis->high) : axis->high;
    return BERLU_OK;
}

double svg_scale_map(const svg_scale *scale, double value)
{
    if (scale->log && !(value > 0))
        return NAN;
    return ((scale->log ? log10(value) : value) - scale->low) / (scale->high - scale->low);
}

/* Inside of two decades whole powers are too few: 1, 2, 5, and below one decade 3 and 7 as well. */
static void parts_make(svg_ticks *out, const svg_scale *scale)
{
    static const double wide[] = {1, 2, 5}, narrow[] = {1, 2, 3, 5, 7};
    int is_wide = scale->high - scale->low > 1;
    const double *parts = is_wide ? wide : narrow;
    size_t count = is_wide ? COUNT(wide) : COUNT(narrow);
    for (double e = floor(scale->low); e <= scale->high; e++)
        for (size_t i = 0; i < count && out->count < SVG_TICKS; i++) {
            double at = e + log10(parts[i]);
            if (at >= scale->low - 1e-9 && at <= scale->high + 1e-9)
                out->value[out->count++] = parts[i] * pow(10, e);
        }
}

static void decades_make(svg_ticks *out, const svg_scale *scale, int most)
{
    double first = ceil(scale->low - 1e-9), last = floor(scale->high + 1e-9), step = 1;
    out->decimals = -1;
    if (scale->high - scale->low < 2) {
        parts_make(out, scale);
        return;
    }
    while ((last - first) / step + 1 > most)
        step += 1;
    for (double e = first; e <= last && out->count < SVG_TICKS; e += step) {
        out->exponent[out->count] = (int)e;
        out->value[out->count++] = pow(10, e);
    }
}

/* Multiples of 1, 2 or 5 times a power of ten, about `most` of them. */
static void multiples_make(svg_ticks *out, double low, double high, int most)
{
    static const double steps[] = {1, 2, 5, 10};
    double span = high - low, power = pow(10, floor(log10(span / most))), step = 0;
    for (size_t i = 0; i < COUNT(steps) && !(step > 0 && span / step <= most); i++)
        step = steps[i] * power;
    int digits = (int)-floor(log10(step) + 1e-9);
    double size = fmax(fabs(low), fabs(high));
    out->decimals = size >= 1e6 || size < 1e-4 ? -1 : digits > 0 ? digits : 0;
    double first = ceil(low / step - 1e-9);
    for (int i = 0; i < SVG_TICKS && (first + i) * step <= high + 1e-9 * span; i++)
        out->value[out->count++] = (first + i) * step + 0.0; /* + 0: no "-0" */
}

void svg_ticks_make(svg_ticks *out, const svg_scale *scale, int most)
{
    enum { FEWEST = 3 }; /* a scale with one or two numbers cannot be read */
    *out = (svg_ticks){0};
    if (scale->log)
        decades_make(out, scale, most);
    if (scale->log && (out->count >= FEWEST || scale->high - scale->low > 1))
        return;
    *out = (svg_ticks){0};
    if (scale->log)
        multiples_make(out, pow(10, scale->low), pow(10, scale->high), most);
    else
        multiples_make(out, scale->low, scale->high, most);
}
