/* smoothed_numbers.h - layout of a smoothed function in act_shape.numbers.
 * SPDX-License-Identifier: MIT
 *
 * smoothed.c writes it, smoothed.h reads it; CUDA gets it by value. The function has `count` knots
 * (1 to 8) and count + 1 slopes; the transition of knot i is the nearest for x < until[i]. */
#ifndef ACT_FORMULAS_SMOOTHED_NUMBERS_H
#define ACT_FORMULAS_SMOOTHED_NUMBERS_H

enum {
    SMOOTHED_KNOTS = 8,
    SMOOTHED_COUNT = 0,
    SMOOTHED_PEAK = 1,   /* K_m */
    SMOOTHED_Q = 2,      /* 8: coefficients of Q_m, ascending */
    SMOOTHED_W = 10,     /* 8: of W_m */
    SMOOTHED_X = 18,     /* 8: kinks */
    SMOOTHED_Y = 26,     /* 8: the kinked function there */
    SMOOTHED_EPS = 34,   /* 8 */
    SMOOTHED_SLOPE = 42, /* 9 */
    SMOOTHED_UNTIL = 51, /* 7 */
    SMOOTHED_NUMBERS = 58
};

#endif
