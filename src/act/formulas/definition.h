/* definition.h - the contents of an activation's C file (act/formulas/NAME.c).
 * SPDX-License-Identifier: MIT
 *
 * One constant, `const act_definition act_NAME`: name, parameters, bounds, and the function in
 * double over the C library. That function is the reference of the tests, of the analyses and of
 * the f64 engine, so it must be right to a few units of 2^-53 wherever f32 results are normal,
 * tails and the neighbourhood of zeros included. */
#ifndef ACT_FORMULAS_DEFINITION_H
#define ACT_FORMULAS_DEFINITION_H

#include <berlu/act.h>

#include "act/formulas/shape.h"

typedef struct act_param_definition {
    const char *name; /* "alpha"; the same in options, study files, state dicts */
    double initial;   /* the default */
    double low, high; /* range of a spec, ends included; -INFINITY and INFINITY: any finite number */
    int learned;      /* 1: learned unless `learn=` says otherwise */
    double least;     /* the smallest magnitude of a spec; 0: any number, zero included */
} act_param_definition;

typedef struct act_definition {
    const char *name;
    const char *about; /* one line for people: the formula in text */
    size_t param_count;
    act_param_definition params[BERLU_ACT_PARAMS];
    int degree; /* the default degree where the function has one, else 0 */
    int inner;  /* 1: used to make others, not a name for people */

    double ulp, slope_ulp; /* bounds of the f32 kernels over all floats (normal results); see berlu_act_ulp() */

    /* Value and all derivatives at one point. `p` holds param_count numbers. Fills value, slope,
     * second and param[]. */
    void (*point)(berlu_act_point *out, double x, const double *p, const act_shape *shape);
    double (*lipschitz)(const double *p, const act_shape *shape);
    /* Whether the derivative can be computed from the output for these parameters; NULL: never. */
    int (*from_output)(const double *p, const act_shape *shape);
    int from_output_f32; /* 1: only from f32 outputs, because rounding to 16 bits loses the side of a kink */
    /* Refuses parameters that are in their ranges but do not go together; NULL: there are none. */
    berlu_status (*check)(const double *p);
} act_definition;

/* The most frequent values of the last two: 1, and always. */
double act_lipschitz_one(const double *p, const act_shape *shape);
int act_from_output_always(const double *p, const act_shape *shape);

#endif
