/* svg_internal.h - shared by the files of io/svg. SPDX-License-Identifier: MIT
 *
 * svg_scale.c: ranges and ticks. svg_series.c: marks inside the frame. svg.c: frame,
 * axes, legend, figure. */
#ifndef IO_SVG_INTERNAL_H
#define IO_SVG_INTERNAL_H

#include "io/svg.h"

/* Maps values of an axis onto [0, 1]. */
typedef struct svg_scale {
    double low,
        high; /* of a logarithmic axis: the decimal logarithms; categories from top to bottom: low is above high */
    int log;
} svg_scale;

berlu_status svg_scale_make(svg_scale *out, const svg_plot *plot, int vertical);
double svg_scale_map(const svg_scale *scale, double value); /* NaN for a value without a position */

enum { SVG_TICKS = 24 };
typedef struct svg_ticks {
    size_t count;
    double value[SVG_TICKS];
    int exponent[SVG_TICKS]; /* logarithmic axes: the label is 10 to this */
    int decimals;            /* else: digits after the point, or -1 for %g */
} svg_ticks;
void svg_ticks_make(svg_ticks *out, const svg_scale *scale, int most);

/* The area with the curves, inside the file. */
typedef struct svg_frame {
    double left, top, width, height;
    svg_scale x, y;
} svg_frame;

const char *svg_color(const svg_series *s);

void svg_series_draw(text *out, const svg_frame *f, const svg_plot *plot, size_t index);
void svg_swatch_draw(text *out, const svg_series *s, double x, double y); /* 18 wide, beside a legend's text */

/* The sum of the stacks up to series `index` (itself included) at its point i. */
double svg_stacked(const svg_plot *plot, size_t index, size_t i);

/* The distance of the bars of series `index` from x, in units of the axis, and their width. */
double svg_bar_place(const svg_plot *plot, size_t index, double *width);

#endif
