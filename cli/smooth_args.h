/* smooth_args.h - the function of `berlu smooth` and `berlu smooth check`.
 * SPDX-License-Identifier: MIT
 *
 * A function comes from one of five sources: the catalogue, the text smooth(...), a YAML file,
 * --kinks and --slopes, or --points. */
#ifndef CLI_SMOOTH_ARGS_H
#define CLI_SMOOTH_ARGS_H

#include <berlu/smooth.h>

#include "io/smooth_yaml.h"
#include "options.h"

/* clang-format off */
#define SMOOTH_ROWS \
    {"function", OPTION_STRING, "NAME", .flags = OPTION_ARGUMENT, \
     .help = "of the catalogue, or a text smooth(...), or a YAML file; else give --kinks and --slopes, or --points"}, \
    {"kinks", OPTION_STRING, "A,B,...", .flags = OPTION_MANY, .help = "where the slope changes, increasing"}, \
    {"slopes", OPTION_STRING, "S0,S1,...", .flags = OPTION_MANY, \
     .help = "one more than kinks: left of the first, between, right of the last"}, \
    {"points", OPTION_STRING, "X:Y,X:Y,...", .flags = OPTION_MANY, \
     .help = "corners of the function, from left to right; the first and the last line go on beyond them, or see --outer"}, \
    {"outer", OPTION_STRING, "S,T", .flags = OPTION_MANY, \
     .help = "slopes left of the first and right of the last of --points, which become kinks"}, \
    {"eps", OPTION_STRING, "E", .flags = OPTION_MANY, \
     .help = "half-width of the transitions, or one per kink (default 0.01)"}, \
    {"eps-right", OPTION_STRING, "E", .flags = OPTION_MANY, \
     .help = "the same right of the kinks, for kinks off the centre"}, \
    {"degree", OPTION_STRING, "N", .help = "2 to 16; half of it is the number of continuous derivatives (default 2)"}, \
    {"at", OPTION_STRING, "X=Y", .help = "a point of the function before smoothing (default 0=0)"}, \
    {"form", OPTION_CHOICE, .choices = "bernstein|collinear", .help = "of off-centre transitions (default bernstein)"}, \
    {"alpha", OPTION_FLOAT, "A", .help = "the parameter of leaky_relu, prelu, elu"}, \
    {"lambda", OPTION_FLOAT, "L", .help = "the parameter of soft_shrink"}
/* clang-format on */

enum { SMOOTH_TITLE = 200 };
typedef struct smooth_made {
    berlu_smooth *f;
    char name[SMOOTH_NAME];   /* a word */
    char title[SMOOTH_TITLE]; /* "BerLU: leaky_relu smoothed, alpha 0.1, eps 1, degree 2" */
} smooth_made;
berlu_status smooth_make(const options *o, smooth_made *out); /* free out->f */

/* The same function with another half-width of all transitions (NaN: unchanged) or another degree
 * (0: unchanged). */
berlu_status smooth_again(berlu_smooth **out, const berlu_smooth *f, double eps, int degree);

int smooth_is_collinear(const berlu_smooth *f);

/* A warning about joins where the first derivative is not continuous, with the remedy; "" if it
 * is. */
enum { SMOOTH_WARNING = 320 };
const char *smooth_warning(char out[SMOOTH_WARNING], const berlu_smooth *f);

#endif
