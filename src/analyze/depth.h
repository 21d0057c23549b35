/* depth.h - how the correlation of two inputs evolves through a deep random network.
 * SPDX-License-Identifier: MIT
 *
 * Mean-field theory of wide fully connected networks (Hayou, Doucet, Rousseau 2019): weights N(0,
 * sw2 / width), biases N(0, sb2). On the edge of chaos (chi = sw2 E f'^2 = 1 at the fixed point q)
 * two inputs neither converge nor diverge exponentially: 1 - c_l falls as beta_q / l for functions
 * with a finite curvature and as a constant over l^2 for those with a kink. An edge needs sb2 >= 0;
 * convex functions with f(0) > 0 such as BerLU have none, at any width of the transition. */
#ifndef ANALYZE_DEPTH_H
#define ANALYZE_DEPTH_H

#include <stddef.h>
#include <stdint.h>

#include <berlu/act.h>

typedef struct depth_settings {
    double q;      /* variance of the pre-activations, > 0 */
    double c0;     /* correlation of the inputs, -1 to 1 */
    int layers;    /* >= 1 */
    int threads;   /* 0: the default */
    size_t width;  /* of a simulated network; 0: none */
    uint64_t seed; /* of its weights */
} depth_settings;

typedef struct depth_point {
    int layer;
    double gap;       /* 1 - c_l */
    double q;         /* q_l */
    double chi;       /* the product of sw2 E f'^2 over the layers so far */
    double simulated; /* 1 - c_l of the simulated network; NaN without */
} depth_point;

enum { DEPTH_POINTS = 64 };

typedef struct depth {
    int edge; /* whether there is an edge of chaos at this q */
    double sw2,
        sb2;    /* on the edge; without one: sb2 = 0 and the gain of the kinked function, or the one that preserves q */
    double chi; /* sw2 E f'^2 at q: 1 on the edge */
    int exponent;       /* of the law: 1 smooth, 2 kinked; 0 without an edge (exponential) */
    double beta_q;      /* 2 E f'^2 / (q E f''^2); 0 for a kink */
    double coefficient; /* 1 - c_l ~ coefficient / l^exponent; NaN without an edge */
    double crossover;   /* layers before a smoothed kink behaves as smooth; NaN where there is no kinked counterpart */
    size_t count;
    depth_point curve[DEPTH_POINTS]; /* at 1, 2, 3, 5, 7, 10, 20, 30 ... and the last layer */
} depth;

berlu_status depth_find(depth *out, const berlu_act *act, const depth_settings *settings);

/* Runs the curve's layers through one random network of f32 layers and fills `simulated`
 * (simulate.c). */
berlu_status depth_simulate(depth *d, const berlu_act *act, const depth_settings *settings);

#endif
