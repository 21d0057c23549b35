/* svg.c - draws plots: frame, axes, legend, figure. SPDX-License-Identifier: MIT
 *
 * A plot from top to bottom: title, legend (one row, more when it does not fit), the frame with
 * grid and curves, numbers, the axis' title. A legend that all plots share stands above them.
 * Curves live in a nested <svg>, which clips them at the frame. Colours are attributes, for
 * programs without style sheets; the style sheet only inverts the greys for dark mode. */
#include "io/svg.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "io/svg_internal.h"

static const double NARROW_CHARACTER = 6.5; /* in which a name that is wrapped or cut still fits */

enum {
    MARGIN_LEFT = 62,
    MARGIN_RIGHT = 18,
    TITLE_HEIGHT = 26,
    LEGEND_HEIGHT = 20,
    BOTTOM_HEIGHT = 26,  /* numbers under the axis */
    AXIS_TITLE = 20,     /* and its title */
    CHARACTER_WIDTH = 7, /* of the legend and of names, on average */
    TITLE_CHARACTER = 8,
    TWO_LINES = 28, /* height of a name that is wrapped */
    SWATCH = 26,
    LEGEND_GAP = 18,
    LEGEND_BELOW = 6, /* between the legend of a figure and its plots */
    HEAD_TITLE = 34,
    HEAD_SUBTITLE = 28,
};

static void text_begin(text *out, double x, double y, int size, const char *anchor, const char *class)
{
    text_add(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" class=\"%s\" fill=\"%s\"%s>", x, y,
             size, anchor, class, strcmp(class, "ink") == 0 ? "#22262e" : "#5b616b",
             strcmp(class, "ink") == 0 ? " font-weight=\"600\"" : "");
}

static void words_at(text *out, double x, double y, int size, const char *anchor, const char *class, const char *words)
{
    text_begin(out, x, y, size, anchor, class);
    html_text(out, words);
    text_string(out, "</text>\n");
}

static int is_start(char c) /* of a character of UTF-8 */
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Characters, not bytes. */
static int length_of(const char *words)
{
    int count = 0;
    for (; *words; words++)
        count += is_start(*words);
    return count;
}

/* ---- words that must fit --------------------------------------------------------------------- */

static const char *character_at(const char *words, int index)
{
    while (*words && (index > 0 || !is_start(*words)))
        index -= is_start(*words++) && index > 0;
    return words;
}

static void html_span(text *out, const char *from, const char *to)
{
    text span = {0};
    text_bytes(&span, from, (size_t)(to - from));
    html_text(out, span.data ? span.data : "");
    out->failed |= span.failed;
    text_free(&span);
}

void svg_words_cut(text *out, const char *words, int most)
{
    int length = length_of(words), head = (most - 1) / 2;
    if (length <= most) {
        html_text(out, words);
        return;
    }
    html_span(out, words, character_at(words, head));
    text_string(out, "\u2026");
    html_text(out, character_at(words, length - (most - 1 - head)));
}

/* The whole words, which a reader sees over what is cut. */
static void whole_title(text *out, const char *words)
{
    text_string(out, "<title>");
    html_text(out, words);
    text_string(out, "</title>");
}

/* As words_at(), in one line of at most `most` characters. */
static void words_fit(text *out, double x, double y, int size, const char *anchor, const char *class, const char *words,
                      int most)
{
    text_begin(out, x, y, size, anchor, class);
    if (length_of(words) > most)
        whole_title(out, words);
    svg_words_cut(out, words, most);
    text_string(out, "</text>\n");
}

/* Where a line of at most `most` characters ends: after the last space, or where it is full. */
static const char *line_end(const char *words, int most)
{
    const char *full = character_at(words, most);
    for (const char *at = full; at > words + (full - words) / 2; at--)
        if (at[-1] == ' ')
            return at;
    return full;
}

/* In two lines around y, with an ellipsis where even these are too short. */
static void words_wrap(text *out, double x, double y, const char *words, int most)
{
    const char *end = line_end(words, most);
    text_begin(out, x, y - 3, 12, "end", "soft");
    if (length_of(end) > most)
        whole_title(out, words);
    html_span(out, words, end);
    text_add(out, "<tspan x=\"%.1f\" dy=\"14\">", x);
    svg_words_cut(out, end, most);
    text_string(out, "</tspan></text>\n");
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void tick_label(text *out, const svg_ticks *ticks, size_t i)
{
    int e = ticks->exponent[i];
    const char *minus = "\u2212"; /* as wide as a digit, unlike '-' */
    double value = ticks->value[i];
    if (ticks->decimals >= 0)
        text_add(out, "%s%.*f", value < 0 ? minus : "", ticks->decimals, fabs(value));
    else if (e == 0 || (e >= -3 && e <= 3)) /* also numbers without an exponent, which is then 0 */
        text_add(out, "%s%g", value < 0 ? minus : "", fabs(value));
    else
        text_add(out, "10<tspan dy=\"-5\" font-size=\"9\">%s%d</tspan>", e < 0 ? minus : "", e < 0 ? -e : e);
}

/* The widest name of a category, in pixels. */
static double names_width(const svg_axis *axis)
{
    int most = 0;
    for (size_t i = 0; axis->names && i < axis->name_count; i++) {
        int length = length_of(axis->names[i]);
        most = length > most ? length : most;
    }
    return most * CHARACTER_WIDTH;
}

/* Names under the axis are slanted when they would overlap. */
static int names_lean(const svg_axis *axis, double width)
{
    return axis->names && names_width(axis) + 8 > width / (double)(axis->name_count ? axis->name_count : 1);
}

/* `space` pixels are beside the axis, or below it. */
static void names_draw(text *out, const svg_frame *f, const svg_axis *axis, int vertical, double space)
{
    int lean = names_lean(axis, f->width);
    int most = (int)((space - 12) / (vertical ? 1 : 0.6) / NARROW_CHARACTER);
    int wraps = vertical && f->height / (double)axis->name_count >= TWO_LINES;
    for (size_t i = 0; i < axis->name_count; i++) {
        double at = svg_scale_map(vertical ? &f->y : &f->x, (double)i);
        double x = f->left + at * f->width, y = f->top + (1 - at) * f->height;
        if (vertical) {
            text_add(out, "<path d=\"M%.1f %.1fh%.1f\" class=\"grid\" stroke=\"#e3e6ea\"/>\n", f->left, y, f->width);
            if (wraps && length_of(axis->names[i]) > most)
                words_wrap(out, f->left - 8, y, axis->names[i], most);
            else
                words_fit(out, f->left - 8, y + 4, 12, "end", "soft", axis->names[i], most);
        } else if (lean) {
            text_add(out, "<g transform=\"translate(%.1f %.1f) rotate(-35)\">", x + 4, f->top + f->height + 15);
            words_fit(out, 0, 0, 12, "end", "soft", axis->names[i], most);
            text_string(out, "</g>\n");
        } else {
            words_at(out, x, f->top + f->height + 17, 12, "middle", "soft", axis->names[i]);
        }
    }
}

static void numbers_draw(text *out, const svg_frame *f, int vertical)
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
}

static void axis_draw(text *out, const svg_frame *f, const svg_axis *axis, int vertical, double side, double below)
{
    if (axis->names)
        names_draw(out, f, axis, vertical, vertical ? side - (axis->title ? AXIS_TITLE : 0) : below);
    else
        numbers_draw(out, f, vertical);
    if (!axis->title)
        return;
    if (!vertical) {
        words_at(out, f->left + f->width / 2, f->top + f->height + below + 10, 12, "middle", "soft", axis->title);
        return;
    }
    text_add(out, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">", f->left - side + 14, f->top + f->height / 2);
    words_at(out, 0, 0, 12, "middle", "soft", axis->title);
    text_string(out, "</g>\n");
}

/* ---- legend ---------------------------------------------------------------------------------- */

/* Draws the legend with its first row at y, or with out = NULL only counts the rows. */
static int legend_draw(text *out, const svg_plot *plot, double left, double y, double width)
{
    double x = 0;
    int rows = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const svg_series *s = &plot->series[i];
        if (!s->label)
            continue;
        double need = fmin(SWATCH + CHARACTER_WIDTH * length_of(s->label), width);
        if (rows == 0 || x + need > width) {
            x = 0;
            rows++;
        }
        if (out) {
            double row = y + LEGEND_HEIGHT * (rows - 1);
            svg_swatch_draw(out, s, left + x, row);
            words_fit(out, left + x + SWATCH, row + 4, 12, "start", "soft", s->label,
                      (int)((width - SWATCH) / CHARACTER_WIDTH));
        }
        x += need + LEGEND_GAP;
    }
    return rows;
}

/* Whether the legend of the first plot is that of the whole figure: no other plot has one. It then
 * goes over all plots, whose frames stay aligned. */
static int legend_is_shared(const svg_figure *figure)
{
    for (size_t i = 1; i < figure->count; i++)
        if (legend_draw(NULL, &figure->plots[i], 0, 0, SVG_WIDTH))
            return 0;
    return figure->count > 1;
}

/* ---- plot and figure ------------------------------------------------------------------------- */

static berlu_status plot_draw(text *out, const svg_plot *plot, double left, double top, double width, double height,
                              int with_legend)
{
    double side = MARGIN_LEFT, below = BOTTOM_HEIGHT;
    if (plot->y.names) /* names may take two fifths; longer ones are wrapped or cut in their middle */
        side = fmin(names_width(&plot->y) + 16 + (plot->y.title ? AXIS_TITLE : 0), 0.4 * width);
    svg_frame f = {.left = left + side, .width = fmax(width - side - MARGIN_RIGHT, 20)};
    if (names_lean(&plot->x, f.width))
        below = fmin(12 + 0.6 * names_width(&plot->x), 0.4 * height);
    TRY(svg_scale_make(&f.x, plot, 0));
    TRY(svg_scale_make(&f.y, plot, 1));
    double title = plot->title ? TITLE_HEIGHT : 8;
    int rows = with_legend ? legend_draw(NULL, plot, 0, 0, f.width) : 0;
    f.top = top + title + rows * LEGEND_HEIGHT + (rows ? 4 : 0);
    f.height = fmax(top + height - below - (plot->x.title ? AXIS_TITLE : 0) - f.top, 40);
    if (plot->title)
        words_fit(out, left + fmin(side, MARGIN_LEFT), top + 17, 14, "start", "ink", plot->title,
                  (int)((width - fmin(side, MARGIN_LEFT)) / TITLE_CHARACTER));
    if (with_legend)
        legend_draw(out, plot, f.left, top + title + LEGEND_HEIGHT / 2.0, f.width);
    axis_draw(out, &f, &plot->x, 0, side, below);
    axis_draw(out, &f, &plot->y, 1, side, below);
    text_add(out, "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" overflow=\"hidden\">\n", f.left, f.top,
             f.width, f.height);
    for (size_t i = 0; i < plot->count; i++)
        svg_series_draw(out, &f, plot, i);
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
             "<svg%s viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
             "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n<title>",
             figure->inside_page ? "" : " xmlns=\"http://www.w3.org/2000/svg\"", width, height, width, height);
    html_text(out, figure->title                           ? figure->title
                   : figure->count && figure->plots->title ? figure->plots->title
                                                           : "plot");
    text_string(out, "</title>\n");
    if (!figure->inside_page) {
        text_string(out, "<style>@media (prefers-color-scheme: dark) { .ground { fill: #14171c } "
                         ".ink { fill: #e8eaed } .soft { fill: #aab0ba } .grid { stroke: #2a2f38 } "
                         ".axis { stroke: #6b727d } .line { stroke: #e8eaed } }</style>\n");
        text_add(out, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" rx=\"6\" fill=\"#ffffff\"/>\n", width,
                 height);
    }
    if (figure->title)
        words_at(out, MARGIN_LEFT, 28, 18, "start", "ink", figure->title);
    if (figure->subtitle)
        words_at(out, MARGIN_LEFT, figure->title ? 47 : 24, 12, "start", "soft", figure->subtitle);
}

berlu_status svg_write(text *out, const svg_figure *figure)
{
    size_t columns = figure->columns > 0 ? (size_t)figure->columns : 1;
    size_t rows = (figure->count + columns - 1) / columns;
    double width = figure->width > 0 ? figure->width : SVG_WIDTH,
           height = figure->height > 0 ? figure->height : SVG_HEIGHT;
    double head = (figure->title ? HEAD_TITLE : 6) + (figure->subtitle ? HEAD_SUBTITLE : 0);
    double all = width * (double)columns - MARGIN_LEFT - MARGIN_RIGHT, legend = head + LEGEND_HEIGHT / 2.0;
    int shared = legend_is_shared(figure);
    int lines = shared ? legend_draw(NULL, figure->plots, 0, 0, all) : 0;
    head += LEGEND_HEIGHT * lines + (lines ? LEGEND_BELOW : 0);
    head_draw(out, figure, width * (double)columns, head + (height + 8) * (double)rows + 6);
    if (shared)
        legend_draw(out, figure->plots, MARGIN_LEFT, legend, all);
    for (size_t i = 0; i < figure->count; i++) {
        double left = width * (double)(i % columns), top = head + (height + 8) * (double)(i / columns);
        TRY(plot_draw(out, &figure->plots[i], left, top, width, height, !shared));
    }
    text_string(out, "</svg>\n");
    return text_status(out);
}

berlu_status svg_save(const char *path, const svg_figure *figure)
{
    text out = {0};
    berlu_status status;
    TRY_DONE(svg_write(&out, figure));
    status = file_write_atomic(path, out.data, out.length);
done:
    text_free(&out);
    return status;
}
