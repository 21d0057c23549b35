/* svg.h - plots as SVG. SPDX-License-Identifier: MIT
 *
 * A figure is a grid of plots under a title; a plot has two axes and series. Colours are chosen to
 * be readable on white and on black; the file paints its own background and follows the reader's
 * dark mode. No scripts, no fonts to fetch, no ids that could clash when several figures stand in
 * one page.
 *
 *     svg_series curve = {.label = "berlu", .x = x, .y = y, .count = n};
 *     svg_plot plot = {.title = "BerLU", .x = {.title = "x"}, .series = &curve, .count = 1};
 *     svg_figure figure = {.plots = &plot, .count = 1};
 *     status = svg_save("berlu.svg", &figure); */
#ifndef IO_SVG_H
#define IO_SVG_H

#include <stddef.h>

#include "base/text.h"

typedef enum svg_mark {
    SVG_LINE,      /* a curve; points that are not finite break it */
    SVG_DASHED,    /* a dashed curve */
    SVG_POINTS,    /* dots */
    SVG_POLYGON,   /* thin straight lines with a dot at each point */
    SVG_VERTICALS, /* a thin vertical line at each x; y is not read and may be NULL */
    SVG_BAND,      /* the area between y and y2, pale */
    SVG_HOLLOW,    /* rings, for points that are shown but not evaluated */
    SVG_BARS,      /* a bar from 0 to y at each x; several series of bars in a plot stand side by side */
    SVG_ERRORS,    /* a whisker from y to y2 at each x, over the bars of the series before it if that has some */
    SVG_INTERVALS, /* a horizontal whisker from x to x2 at each y */
    SVG_STACK,     /* an area of height y on top of the stacks before it in the plot; the same x for all of them */
} svg_mark;

enum { SVG_COLORS = 8, SVG_GREY = -1 };    /* colours repeat after 8; repetitions are dashed, dotted, both */
enum { SVG_SHADE = 1000, SVG_SHADES = 8 }; /* SVG_SHADE + 0 to 7: an ordered scale, for layers and epochs */

typedef struct svg_series {
    const char *label; /* NULL: not in the legend */
    const double *x, *y, *y2;
    size_t count;
    svg_mark mark;
    int color;                 /* 0, 1, ... or SVG_GREY */
    double width;              /* of curves; 0: the usual one */
    const double *x2;          /* SVG_INTERVALS */
    const char *const *titles; /* NULL, or one text per point, which a reader sees over dots, rings and bars */
} svg_series;

typedef struct svg_axis {
    const char *title; /* NULL: none */
    double low, high;  /* equal: from the series, with a small margin */
    int log;           /* decades; values that are not positive are left out */
    /* Categories: value i (0, 1, ...) is at the centre of the category names[i]. Upwards
     * axes begin at the top, as one reads. low, high and log are ignored. */
    const char *const *names; /* NULL: numbers */
    size_t name_count;
} svg_axis;

typedef struct svg_plot {
    const char *title;
    svg_axis x, y;
    const svg_series *series;
    size_t count;
} svg_plot;

typedef struct svg_figure {
    const char *title, *subtitle; /* NULL: none */
    const svg_plot *plots;
    size_t count;
    int columns;       /* 0: one */
    int width, height; /* of one plot with its axes; 0: 640 x 360. Small ones are SVG_SMALL_WIDTH x SVG_SMALL_HEIGHT */
    /* For a page that holds the figure: no namespace and no style sheet of its own. The page styles
     * the classes ground, ink, soft, grid, axis and line, for light and dark alike. */
    int inside_page;
} svg_figure;

enum { SVG_WIDTH = 640, SVG_HEIGHT = 360, SVG_SMALL_WIDTH = 320, SVG_SMALL_HEIGHT = 200 };

/* Failures are lack of memory (and, when saving, of disk), or BERLU_ERR_ARG for an invalid axis:
 * not finite, low above high, a logarithmic one that is not positive. */
berlu_status svg_write(text *out, const svg_figure *figure);
berlu_status svg_save(const char *path, const svg_figure *figure);

/* Adds words as text of a plot, of at most `most` characters: the middle of longer ones gives way
 * to an ellipsis. */
void svg_words_cut(text *out, const char *words, int most);

#endif
