/* svg_series.c - marks inside the frame of a plot. SPDX-License-Identifier: MIT
 *
 * One function per mark; svg_series_draw() at the end chooses. Coordinates are those of the nested
 * <svg> that clips at the frame. */
#include <math.h>

#include "io/svg_internal.h"

static const char *const palette[SVG_COLORS] = {"#2b7bba", "#e07b1a", "#2f9e5b", "#d1495b",
                                                "#8e5cc2", "#1a9aa0", "#d6539c", "#9a7419"};

/* Amber to violet at a middling lightness: ordered, and readable on white and on black. */
static const char *const shades[SVG_SHADES] = {"#e0a52e", "#dc8a3c", "#d4704c", "#c7595f",
                                               "#b54a74", "#9f418a", "#8b49a6", "#7a57c0"};

const char *svg_color(const svg_series *s)
{
    if (s->color >= SVG_SHADE)
        return shades[(s->color - SVG_SHADE) % SVG_SHADES];
    return s->color < 0 ? "#8a8f98" : palette[s->color % SVG_COLORS];
}

/* Dash pattern of a line, an attribute or "": by its mark, and one for each repetition of the
 * colours. */
static const char *dash_of(const svg_series *s)
{
    static const char *const rounds[] = {"", " stroke-dasharray=\"6 4\"", " stroke-dasharray=\"2 3\"",
                                         " stroke-dasharray=\"9 3 2 3\""};
    if (s->mark == SVG_DASHED || s->mark == SVG_VERTICALS)
        return rounds[s->mark == SVG_DASHED ? 1 : 2];
    return s->mark == SVG_LINE && s->color > 0 && s->color < SVG_SHADE ? rounds[s->color / SVG_COLORS % 4] : "";
}

/* ---- series ---------------------------------------------------------------------------------- */

/* A coordinate in the frame, or NaN; far outside is clamped, so that numbers stay short. */
static double place_x(const svg_frame *f, double x)
{
    double at = svg_scale_map(&f->x, x) * f->width;
    return isfinite(at) ? fmin(fmax(at, -1e4), 1e4) : NAN;
}

static double place_y(const svg_frame *f, double y)
{
    double at = (1 - svg_scale_map(&f->y, y)) * f->height;
    return isfinite(at) ? fmin(fmax(at, -1e4), 1e4) : NAN;
}

/* "M x y L x y ..." over the points; a point that is not finite begins a new path, moves below the
 * resolution are left out. */
static void path_add(text *out, const svg_frame *f, const svg_series *s)
{
    double last_x = NAN, last_y = NAN;
    for (size_t i = 0; i < s->count; i++) {
        double x = place_x(f, s->x[i]), y = place_y(f, s->y[i]);
        if (isnan(x) || isnan(y)) {
            last_x = last_y = NAN;
            continue;
        }
        if (fabs(x - last_x) < 0.05 && fabs(y - last_y) < 0.05 && i + 1 < s->count)
            continue;
        text_add(out, "%c%.2f %.2f", isnan(last_x) ? 'M' : 'L', x, y);
        last_x = x;
        last_y = y;
    }
}

static void curve_draw(text *out, const svg_frame *f, const svg_series *s)
{
    double width = s->width > 0 ? s->width : s->mark == SVG_POLYGON ? 1.2 : 2;
    text_add(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.3g\" stroke-linejoin=\"round\"%s d=\"",
             svg_color(s), width, dash_of(s));
    path_add(out, f, s);
    text_string(out, "\"/>\n");
}

/* Ends a mark that was begun with "<circle ..." or the like: with the text of its point, if
 * there is one. */
static void mark_end(text *out, const svg_series *s, size_t i, const char *tag)
{
    if (!s->titles || !s->titles[i]) {
        text_string(out, "/>");
        return;
    }
    text_string(out, "><title>");
    html_text(out, s->titles[i]);
    text_add(out, "</title></%s>", tag);
}

static void points_draw(text *out, const svg_frame *f, const svg_series *s)
{
    if (s->mark == SVG_HOLLOW)
        text_add(out, "<g class=\"ground\" fill=\"#ffffff\" stroke=\"%s\" stroke-width=\"1.6\">", svg_color(s));
    else
        text_add(out, "<g fill=\"%s\">", svg_color(s));
    for (size_t i = 0; i < s->count; i++) {
        double x = place_x(f, s->x[i]), y = place_y(f, s->y[i]);
        if (isnan(x) || isnan(y))
            continue;
        text_add(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.2\"", x, y);
        mark_end(out, s, i, "circle");
    }
    text_string(out, "</g>\n");
}

double svg_bar_place(const svg_plot *plot, size_t index, double *width)
{
    size_t before = 0, all = 0;
    for (size_t i = 0; i < plot->count; i++) {
        before += i < index && plot->series[i].mark == SVG_BARS;
        all += plot->series[i].mark == SVG_BARS;
    }
    *width = all ? 0.8 / (double)all : 0;
    return all ? ((double)before + 0.5) * *width - 0.4 : 0;
}

static void bars_draw(text *out, const svg_frame *f, const svg_plot *plot, size_t index)
{
    const svg_series *s = &plot->series[index];
    double width, shift = svg_bar_place(plot, index, &width), base = f->y.log ? f->height : place_y(f, 0);
    text_add(out, "<g fill=\"%s\" fill-opacity=\"0.85\">", svg_color(s));
    for (size_t i = 0; i < s->count; i++) {
        double left = place_x(f, s->x[i] + shift - 0.47 * width), right = place_x(f, s->x[i] + shift + 0.47 * width);
        double y = place_y(f, s->y[i]);
        if (isnan(left) || isnan(right) || isnan(y))
            continue;
        text_add(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", left, fmin(y, base),
                 fmax(right - left, 0.5), fabs(base - y));
        mark_end(out, s, i, "rect");
    }
    text_string(out, "</g>\n");
}

enum { CAP = 4 }; /* half the length of a whisker's ends */

/* Vertical whiskers. Those that follow bars stand where the bars do, and in ink, to be seen on
 * them. */
static void errors_draw(text *out, const svg_frame *f, const svg_plot *plot, size_t index)
{
    const svg_series *s = &plot->series[index];
    int on_bars = index > 0 && plot->series[index - 1].mark == SVG_BARS;
    double width, shift = on_bars ? svg_bar_place(plot, index - 1, &width) : 0;
    text_add(out, "<path fill=\"none\" stroke-width=\"1.4\" %s stroke=\"%s\" d=\"", on_bars ? "class=\"line\"" : "",
             on_bars ? "#22262e" : svg_color(s));
    for (size_t i = 0; i < s->count; i++) {
        double x = place_x(f, s->x[i] + shift), low = place_y(f, s->y[i]), high = place_y(f, s->y2[i]);
        if (!isnan(x) && !isnan(low) && !isnan(high))
            text_add(out, "M%.2f %.2fh%dM%.2f %.2fV%.2fM%.2f %.2fh%d", x - CAP, low, 2 * CAP, x, low, high, x - CAP,
                     high, 2 * CAP);
    }
    text_string(out, "\"/>\n");
}

static void intervals_draw(text *out, const svg_frame *f, const svg_series *s)
{
    text_add(out, "<path fill=\"none\" stroke-width=\"%.3g\" stroke=\"%s\" d=\"", s->width > 0 ? s->width : 1.8,
             svg_color(s));
    for (size_t i = 0; i < s->count; i++) {
        double y = place_y(f, s->y[i]), low = place_x(f, s->x[i]), high = place_x(f, s->x2[i]);
        if (!isnan(y) && !isnan(low) && !isnan(high))
            text_add(out, "M%.2f %.2fv%dM%.2f %.2fH%.2fM%.2f %.2fv%d", low, y - CAP, 2 * CAP, low, y, high, high,
                     y - CAP, 2 * CAP);
    }
    text_string(out, "\"/>\n");
}

double svg_stacked(const svg_plot *plot, size_t index, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k <= index; k++)
        if (plot->series[k].mark == SVG_STACK && i < plot->series[k].count && isfinite(plot->series[k].y[i]))
            sum += plot->series[k].y[i];
    return sum;
}

/* Forth along its own top, back along the top of the stacks below. */
static void stack_draw(text *out, const svg_frame *f, const svg_plot *plot, size_t index)
{
    const svg_series *s = &plot->series[index];
    const char *pen = "M";
    text_add(out, "<path fill=\"%s\" fill-opacity=\"0.7\" stroke=\"none\" d=\"", svg_color(s));
    for (size_t k = 0; k < 2 * s->count; k++) {
        size_t i = k < s->count ? k : 2 * s->count - 1 - k;
        double sum = k < s->count ? svg_stacked(plot, index, i) : index ? svg_stacked(plot, index - 1, i) : 0;
        double x = place_x(f, s->x[i]), y = f->y.log && !(sum > 0) ? f->height : place_y(f, sum);
        if (isnan(x) || isnan(y))
            continue;
        text_add(out, "%s%.2f %.2f", pen, x, y);
        pen = "L";
    }
    text_string(out, "\"/>\n");
}

static void verticals_draw(text *out, const svg_frame *f, const svg_series *s)
{
    text_add(out, "<path fill=\"none\" stroke=\"%s\" stroke-dasharray=\"2 3\" d=\"", svg_color(s));
    for (size_t i = 0; i < s->count; i++)
        if (!isnan(place_x(f, s->x[i])))
            text_add(out, "M%.2f 0v%.2f", place_x(f, s->x[i]), f->height);
    text_string(out, "\"/>\n");
}

static void band_draw(text *out, const svg_frame *f, const svg_series *s)
{
    const char *pen = "M";
    text_add(out, "<path fill=\"%s\" fill-opacity=\"0.18\" stroke=\"none\" d=\"", svg_color(s));
    for (size_t k = 0; k < 2 * s->count; k++) { /* forth along y, back along y2 */
        size_t i = k < s->count ? k : 2 * s->count - 1 - k;
        double x = place_x(f, s->x[i]), y = place_y(f, k < s->count ? s->y[i] : s->y2[i]);
        if (isnan(x) || isnan(y))
            continue;
        text_add(out, "%s%.2f %.2f", pen, x, y);
        pen = "L";
    }
    text_string(out, "\"/>\n");
}

static int has_dots(const svg_series *s)
{
    return s->mark == SVG_POINTS || s->mark == SVG_HOLLOW || s->mark == SVG_POLYGON;
}

void svg_series_draw(text *out, const svg_frame *f, const svg_plot *plot, size_t index)
{
    const svg_series *s = &plot->series[index];
    switch (s->mark) {
    case SVG_VERTICALS:
        verticals_draw(out, f, s);
        break;
    case SVG_BAND:
        band_draw(out, f, s);
        break;
    case SVG_BARS:
        bars_draw(out, f, plot, index);
        break;
    case SVG_ERRORS:
        errors_draw(out, f, plot, index);
        break;
    case SVG_INTERVALS:
        intervals_draw(out, f, s);
        break;
    case SVG_STACK:
        stack_draw(out, f, plot, index);
        break;
    case SVG_LINE:
    case SVG_DASHED:
    case SVG_POLYGON:
        curve_draw(out, f, s);
        break;
    case SVG_POINTS:
    case SVG_HOLLOW:
        break;
    }
    if (has_dots(s))
        points_draw(out, f, s);
}

void svg_swatch_draw(text *out, const svg_series *s, double x, double y)
{
    const char *opacity = s->mark == SVG_BAND ? "0.18" : s->mark == SVG_STACK ? "0.7" : "0.85";
    if (s->mark == SVG_BAND || s->mark == SVG_BARS || s->mark == SVG_STACK)
        text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"10\" fill=\"%s\" fill-opacity=\"%s\"/>", x,
                 y - 5, svg_color(s), opacity);
    else if (s->mark == SVG_ERRORS)
        text_add(out, "<path d=\"M%.1f %.1fh8m-4 0v10m-4 0h8\" fill=\"none\" stroke=\"%s\"/>", x + 5, y - 5,
                 svg_color(s));
    else if (s->mark != SVG_POINTS && s->mark != SVG_HOLLOW)
        text_add(out, "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"%s/>", x, y, svg_color(s), dash_of(s));
    if (s->mark == SVG_HOLLOW)
        text_add(out,
                 "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" class=\"ground\" fill=\"#ffffff\" stroke=\"%s\" "
                 "stroke-width=\"1.6\"/>",
                 x + 9, y, svg_color(s));
    else if (has_dots(s))
        text_add(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>", x + 9, y, svg_color(s));
}
