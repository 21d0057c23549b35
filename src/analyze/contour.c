/* contour.c - marching squares. SPDX-License-Identifier: MIT
 *
 * Each cell of the grid is cut on its own. The level crosses an edge whose ends lie on different
 * sides of it, at the point of linear interpolation. Two crossings are one piece; four are a
 * saddle, where the mean of the corners decides which crossings belong together. Pieces are not
 * joined to lines: a plot shows the same. */
#include "analyze/contour.h"

#include <math.h>

enum { EDGES = 4, NUMBERS = 6 }; /* of a cell; a cell has at most two pieces of two points and a NaN each */

typedef struct point {
    double x, y;
} point;

/* Corners of a cell in circular order: (a, b), (a+1, b), (a+1, b+1), (a, b+1); edge i goes from
 * corner i to the next. */
static size_t crossings(point out[EDGES], const double v[EDGES], const point at[EDGES], double level)
{
    size_t count = 0;
    for (int i = 0; i < EDGES; i++) {
        int k = (i + 1) % EDGES;
        if ((v[i] > level) == (v[k] > level))
            continue;
        double t = (level - v[i]) / (v[k] - v[i]);
        out[count++] = (point){at[i].x + t * (at[k].x - at[i].x), at[i].y + t * (at[k].y - at[i].y)};
    }
    return count;
}

static void piece_add(contour *out, point a, point b)
{
    const point three[] = {a, b, {NAN, NAN}};
    for (int i = 0; i < 3; i++) {
        out->x[out->count] = three[i].x;
        out->y[out->count++] = three[i].y;
    }
}

static void cell_add(contour *out, const double *values, const double *side, size_t n, size_t a, size_t b, double level)
{
    const double v[EDGES] = {values[b * n + a], values[b * n + a + 1], values[(b + 1) * n + a + 1],
                             values[(b + 1) * n + a]};
    const point at[EDGES] = {
        {side[a], side[b]}, {side[a + 1], side[b]}, {side[a + 1], side[b + 1]}, {side[a], side[b + 1]}};
    point cross[EDGES];
    if (!isfinite(v[0] + v[1] + v[2] + v[3]))
        return;
    size_t count = crossings(cross, v, at, level);
    if (count == 2)
        piece_add(out, cross[0], cross[1]);
    if (count != 4)
        return;
    /* A saddle: the mean decides which corners are connected. Edges are in circular order, so
     * neighbours cut off one corner. */
    int apart = ((v[0] + v[1] + v[2] + v[3]) / 4 > level) == (v[0] > level);
    piece_add(out, cross[0], cross[apart ? 1 : 3]);
    piece_add(out, cross[2], cross[apart ? 3 : 1]);
}

berlu_status contour_find(contour *out, arena *memory, const double *values, const double *side, size_t n, double level)
{
    size_t most = n > 1 ? NUMBERS * (n - 1) * (n - 1) : 1;
    *out = (contour){.x = ARENA_ARRAY(memory, double, most), .y = ARENA_ARRAY(memory, double, most)};
    if (!out->x || !out->y)
        return BERLU_ERR_MEMORY;
    for (size_t b = 0; b + 1 < n; b++)
        for (size_t a = 0; a + 1 < n; a++)
            cell_add(out, values, side, n, a, b, level);
    return BERLU_OK;
}
