/* contour.h - level lines of a function on a grid, by marching squares.
 * SPDX-License-Identifier: MIT */
#ifndef ANALYZE_CONTOUR_H
#define ANALYZE_CONTOUR_H

#include "base/arena.h"

/* Points of a curve in pieces: a NaN ends a piece. */
typedef struct contour {
    size_t count;
    double *x, *y;
} contour;

/* The points where `values` (n x n, row by row: row b at side[b] upwards, column a at side[a])
 * reaches `level`, by linear interpolation inside the cells. Cells with a value that is not finite
 * are left out. Allocates from the arena. */
berlu_status contour_find(contour *out, arena *memory, const double *values, const double *side, size_t n,
                          double level);

#endif
