/* landscape.h - the loss of a network around its weights. SPDX-License-Identifier: MIT
 *
 * Directions are random and filter-normalised (Li et al. 2018): every row of a linear layer and
 * every kernel of a convolution has the length of that row of the weights, because a ReLU network
 * before a norm may scale its weights without changing its output. Biases, norms, positions, tokens
 * and activation parameters do not move. Lines and planes are in units of that normalisation: at 1
 * every filter has moved by its own length.
 *
 * Sharpness is the rise of the loss after one step of length rho up the gradient, as in
 * sharpness-aware minimisation (Foret et al. 2021). Everything is deterministic given the seed. */
#ifndef ANALYZE_LANDSCAPE_H
#define ANALYZE_LANDSCAPE_H

#include "analyze/hessian.h"
#include "analyze/opened.h"

typedef struct landscape_options {
    size_t directions;  /* lines, at least 1; a plane needs 2 */
    size_t points;      /* of a line, odd, so that the middle is the weights themselves */
    size_t grid;        /* points of a side of the plane, odd; 0: no plane */
    double radius;      /* of lines and plane */
    size_t eigenvalues; /* 0: none */
    size_t steps;       /* of Lanczos */
    double step;        /* of differences; 0: hessian_step() */
    double rho;
    uint64_t seed;
    void (*tick)(void *context, size_t done, size_t total); /* passes over the images; may be NULL */
    void *context;
} landscape_options;

typedef struct landscape {
    double loss, gradient; /* at the weights; the gradient's length */
    double sharpness;
    size_t directions, points, grid, found;
    double *t;         /* `points` places of a line */
    double *line;      /* loss, direction by direction */
    double *curvature; /* d' H d of each direction */
    double *side;      /* `grid` places of the plane's sides */
    double *plane;     /* loss, row by row: direction 1 upwards, direction 0 across */
    eigenvalue *eigen; /* `found` of them */
    arena memory;
} landscape;

berlu_status landscape_find(landscape *out, opened *o, const landscape_options *options);
void landscape_free(landscape *l);

/* Direction `index` around the weights of a network. */
void direction_draw(double *out, const graph *g, const double *weights, uint64_t seed, uint32_t index);

/* The number of passes over the images that landscape_find() makes. */
size_t landscape_passes(const landscape_options *o);

#endif
