/* svg.c - draws figures. SPDX-License-Identifier: MIT
 *
 * A plot from top to bottom: title, legend (one row, more when it does not fit), the frame with grid and curves,
 * numbers, the axis' title. Curves live in a nested <svg>, which clips them at the frame. Colours stand as attributes,
 * for programs that know no style sheets; the style sheet only turns the greys over for dark mode. */
#include "io/svg.h"

#include <math.h>
#include <string.h>

#include "base/file.h"

enum {
    MARGIN_LEFT = 62,
    MARGIN_RIGHT = 18,
    TITLE_HEIGHT = 26,
    LEGEND_HEIGHT = 20,
    BOTTOM_HEIGHT = 26,  /* numbers under the axis */
    AXIS_TITLE = 20,     /* and its title */
    CHARACTER_WIDTH = 7, /* of the legend, on average */
    SWATCH = 26,
    LEGEND_GAP = 18,
    HEAD_TITLE = 34,
    HEAD_SUBTITLE = 28,
};

static const char *const palette[SVG_COLORS] = {"#2b7bba", "#e07b1a", "#2f9e5b", "#d1495b",
                                                "#8e5cc2", "#1a9aa0", "#d6539c", "#9a7419"};

typedef struct frame {
    double left, top, width, height; /* of the area with the curves, inside the file */
    svg_scale x, y;
} frame;

static const char *color_of(const svg_series *s)
{
    return s->color < 0 ? "#8a8f98" : palette[s->color % SVG_COLORS];
}

/* How a line is broken: by its mark, and each further round through the colours in its own way. */
static const char *dash_of(const svg_series *s)
{
    static const char *const rounds[] = {"", " stroke-dasharray=\"6 4\"", " stroke-dasharray=\"2 3\"",
                                         " stroke-dasharray=\"9 3 2 3\""};
    if (s->mark == SVG_DASHED || s->mark == SVG_VERTICALS)
        return rounds[s->mark == SVG_DASHED ? 1 : 2];
    return s->mark == SVG_LINE && s->color > 0 ? rounds[s->color / SVG_COLORS % 4] : "";
}

static void escape(text *out, const char *words)
{
    for (; *words; words++) {
        if (*words == '<')
            text_string(out, "&lt;");
        else if (*words == '&')
            text_string(out, "&amp;");
        else if (*words == '"')
            text_string(out, "&quot;");
        else if ((unsigned char)*words >= 0x20) /* control characters are not allowed in XML */
            text_bytes(out, words, 1);
    }
}

static void words_at(text *out, double x, double y, int size, const char *anchor, const char *class, const char *words)
{
    text_add(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" class=\"%s\" fill=\"%s\"%s>", x, y,
             size, anchor, class, strcmp(class, "ink") == 0 ? "#22262e" : "#5b616b",
             strcmp(class, "ink") == 0 ? " font-weight=\"600\"" : "");
    escape(out, words);
    text_string(out, "</text>\n");
}

/* -- axes ---------------------------------------------------------------------------------------------------------- */

static void tick_label(text *out, const svg_ticks *ticks, size_t i)
{
    int e = ticks->exponent[i];
    const char *minus = "\u2212"; /* as wide as a digit, unlike '-' */
    double value = ticks->value[i];
    if (ticks->decimals >= 0)
        text_add(out, "%s%.*f", value < 0 ? minus : "", ticks->decimals, fabs(value));
    else if (e == 0 || (e >= -3 && e <= 3)) /* also plain numbers of odd size, whose exponent is 0 */
        text_add(out, "%s%g", value < 0 ? minus : "", fabs(value));
    else
        text_add(out, "10<tspan dy=\"-5\" font-size=\"9\">%s%d</tspan>", e < 0 ? minus : "", e < 0 ? -e : e);
}

static void axis_draw(text *out, const frame *f, const svg_axis *axis, int vertical)
{
    svg_ticks ticks;
    const svg_scale *scale = vertical ? &f->y : &f->x;
    svg_ticks_make(&ticks, scale, (int)(vertical ? f->height / 44 : f->width / 72) + 2);
    for (size_t i = 0; i < ticks.count; i++) {
        double at = svg_scale_map(scale, ticks.value[i]);
        double x = f->left + at * f->width, y = f->top + (1 - at) * f->height;
        const char *strong = ticks.value[i] == 0 && !scale->log ? "axis" : "grid";
        const char *stroke = ticks.value[i] == 0 && !scale->log ? "#9aa0a9" : "#e3e6ea";
        if (vertical)
            text_add(out, "<path d=\"M%.1f %.1fh%.1f\" class=\"%s\" stroke=\"%s\"/>\n", f->left, y, f->width, strong,
                     stroke);
        else
            text_add(out, "<path d=\"M%.1f %.1fv%.1f\" class=\"%s\" stroke=\"%s\"/>\n", x, f->top, f->height, strong,
                     stroke);
        text_add(out,
                 "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" text-anchor=\"%s\" class=\"soft\" fill=\"#5b616b\">",
                 vertical ? f->left - 8 : x, vertical ? y + 4 : f->top + f->height + 17, vertical ? "end" : "middle");
        tick_label(out, &ticks, i);
        text_string(out, "</text>\n");
    }
    if (!axis->title)
        return;
    if (!vertical) {
        words_at(out, f->left + f->width / 2, f->top + f->height + BOTTOM_HEIGHT + 10, 12, "middle", "soft",
                 axis->title);
        return;
    }
    text_add(out, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">", f->left - 48, f->top + f->height / 2);
    words_at(out, 0, 0, 12, "middle", "soft", axis->title);
    text_string(out, "</g>\n");
}

/* -- series -------------------------------------------------------------------------------------------------------- */

/* A place in the frame, or NaN; far outside is brought near, so that numbers stay short. */
static double place_x(const frame *f, double x)
{
    double at = svg_scale_map(&f->x, x) * f->width;
    return isfinite(at) ? fmin(fmax(at, -1e4), 1e4) : NAN;
}

static double place_y(const frame *f, double y)
{
    double at = (1 - svg_scale_map(&f->y, y)) * f->height;
    return isfinite(at) ? fmin(fmax(at, -1e4), 1e4) : NAN;
}

/* "M x y L x y ..." over the points; what is not finite lifts the pen, what moves by less than a hair is left out. */
static void path_add(text *out, const frame *f, const svg_series *s)
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

static void curve_draw(text *out, const frame *f, const svg_series *s)
{
    double width = s->width > 0 ? s->width : s->mark == SVG_POLYGON ? 1.2 : 2;
    text_add(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.3g\" stroke-linejoin=\"round\"%s d=\"",
             color_of(s), width, dash_of(s));
    path_add(out, f, s);
    text_string(out, "\"/>\n");
}

static void points_draw(text *out, const frame *f, const svg_series *s)
{
    text_add(out, "<g fill=\"%s\">", color_of(s));
    for (size_t i = 0; i < s->count; i++) {
        double x = place_x(f, s->x[i]), y = place_y(f, s->y[i]);
        if (!isnan(x) && !isnan(y))
            text_add(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.2\"/>", x, y);
    }
    text_string(out, "</g>\n");
}

static void verticals_draw(text *out, const frame *f, const svg_series *s)
{
    text_add(out, "<path fill=\"none\" stroke=\"%s\" stroke-dasharray=\"2 3\" d=\"", color_of(s));
    for (size_t i = 0; i < s->count; i++)
        if (!isnan(place_x(f, s->x[i])))
            text_add(out, "M%.2f 0v%.2f", place_x(f, s->x[i]), f->height);
    text_string(out, "\"/>\n");
}

static void band_draw(text *out, const frame *f, const svg_series *s)
{
    const char *pen = "M";
    text_add(out, "<path fill=\"%s\" fill-opacity=\"0.18\" stroke=\"none\" d=\"", color_of(s));
    for (size_t k = 0; k < 2 * s->count; k++) { /* there along y, back along y2 */
        size_t i = k < s->count ? k : 2 * s->count - 1 - k;
        double x = place_x(f, s->x[i]), y = place_y(f, k < s->count ? s->y[i] : s->y2[i]);
        if (isnan(x) || isnan(y))
            continue;
        text_add(out, "%s%.2f %.2f", pen, x, y);
        pen = "L";
    }
    text_string(out, "\"/>\n");
}

static void series_draw(text *out, const frame *f, const svg_series *s)
{
    if (s->mark == SVG_VERTICALS)
        verticals_draw(out, f, s);
    else if (s->mark == SVG_BAND)
        band_draw(out, f, s);
    else if (s->mark != SVG_POINTS)
        curve_draw(out, f, s);
    if (s->mark == SVG_POINTS || s->mark == SVG_POLYGON)
        points_draw(out, f, s);
}

/* -- legend -------------------------------------------------------------------------------------------------------- */

/* Characters, not bytes, of UTF-8. */
static int length_of(const char *words)
{
    int count = 0;
    for (; *words; words++)
        count += ((unsigned char)*words & 0xc0) != 0x80;
    return count;
}

static void swatch_draw(text *out, const svg_series *s, double x, double y)
{
    if (s->mark == SVG_BAND)
        text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"10\" fill=\"%s\" fill-opacity=\"0.18\"/>", x,
                 y - 5, color_of(s));
    else if (s->mark != SVG_POINTS)
        text_add(out, "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"%s/>", x, y, color_of(s), dash_of(s));
    if (s->mark == SVG_POINTS || s->mark == SVG_POLYGON)
        text_add(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>", x + 9, y, color_of(s));
}

/* Draws the legend with its first row at y, or with out = NULL only counts the rows. */
static int legend_draw(text *out, const svg_plot *plot, double left, double y, double width)
{
    double x = 0;
    int rows = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const svg_series *s = &plot->series[i];
        if (!s->label)
            continue;
        double need = SWATCH + CHARACTER_WIDTH * length_of(s->label);
        if (rows == 0 || x + need > width) {
            x = 0;
            rows++;
        }
        if (out) {
            double row = y + LEGEND_HEIGHT * (rows - 1);
            swatch_draw(out, s, left + x, row);
            words_at(out, left + x + SWATCH, row + 4, 12, "start", "soft", s->label);
        }
        x += need + LEGEND_GAP;
    }
    return rows;
}

/* -- plot and figure ----------------------------------------------------------------------------------------------- */

static berlu_status plot_draw(text *out, const svg_plot *plot, double left, double top, double width, double height)
{
    frame f = {.left = left + MARGIN_LEFT, .width = width - MARGIN_LEFT - MARGIN_RIGHT};
    berlu_status status = svg_scale_make(&f.x, plot, 0);
    if (status == BERLU_OK)
        status = svg_scale_make(&f.y, plot, 1);
    if (status != BERLU_OK)
        return status;
    double title = plot->title ? TITLE_HEIGHT : 8;
    int rows = legend_draw(NULL, plot, 0, 0, f.width);
    f.top = top + title + rows * LEGEND_HEIGHT + (rows ? 4 : 0);
    f.height = fmax(top + height - BOTTOM_HEIGHT - (plot->x.title ? AXIS_TITLE : 0) - f.top, 40);
    if (plot->title)
        words_at(out, f.left, top + 17, 14, "start", "ink", plot->title);
    legend_draw(out, plot, f.left, top + title + LEGEND_HEIGHT / 2.0, f.width);
    axis_draw(out, &f, &plot->x, 0);
    axis_draw(out, &f, &plot->y, 1);
    text_add(out, "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" overflow=\"hidden\">\n", f.left, f.top,
             f.width, f.height);
    for (size_t i = 0; i < plot->count; i++)
        series_draw(out, &f, &plot->series[i]);
    text_string(out, "</svg>\n");
    text_add(out,
             "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" class=\"axis\" "
             "stroke=\"#9aa0a9\"/>\n",
             f.left, f.top, f.width, f.height);
    return BERLU_OK;
}

static void head_draw(text *out, const svg_figure *figure, double width, double height)
{
    text_add(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
             "role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n",
             width, height, width, height);
    text_string(out, "<title>");
    escape(out, figure->title ? figure->title : figure->count && figure->plots->title ? figure->plots->title : "plot");
    text_string(out, "</title>\n<style>@media (prefers-color-scheme: dark) { .ground { fill: #14171c } "
                     ".ink { fill: #e8eaed } .soft { fill: #aab0ba } .grid { stroke: #2a2f38 } "
                     ".axis { stroke: #6b727d } }</style>\n");
    text_add(out, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" rx=\"6\" fill=\"#ffffff\"/>\n", width, height);
    if (figure->title)
        words_at(out, MARGIN_LEFT, 28, 18, "start", "ink", figure->title);
    if (figure->subtitle)
        words_at(out, MARGIN_LEFT, figure->title ? 47 : 24, 12, "start", "soft", figure->subtitle);
}

berlu_status svg_write(text *out, const svg_figure *figure)
{
    size_t columns = figure->columns > 0 ? (size_t)figure->columns : 1;
    size_t rows = (figure->count + columns - 1) / columns;
    double width = figure->width > 0 ? figure->width : 640, height = figure->height > 0 ? figure->height : 360;
    double head = (figure->title ? HEAD_TITLE : 6) + (figure->subtitle ? HEAD_SUBTITLE : 0);
    head_draw(out, figure, width * (double)columns, head + (height + 8) * (double)rows + 6);
    for (size_t i = 0; i < figure->count; i++) {
        double left = width * (double)(i % columns), top = head + (height + 8) * (double)(i / columns);
        berlu_status status = plot_draw(out, &figure->plots[i], left, top, width, height);
        if (status != BERLU_OK)
            return status;
    }
    text_string(out, "</svg>\n");
    return text_status(out);
}

berlu_status svg_save(const char *path, const svg_figure *figure)
{
    text out = {0};
    berlu_status status = svg_write(&out, figure);
    if (status == BERLU_OK)
        status = file_write_atomic(path, out.data, out.length);
    text_free(&out);
    return status;
}
