/* constraint.h - bounds that learned activation parameters are kept in. SPDX-License-Identifier: MIT
 *
 * After an update every alpha and eps is projected onto its interval: the nearest allowed value takes its place. Written
 * as items joined by commas; each is NAME:LOW:HIGH with either end left out, or NAME>=LOW, NAME<=HIGH, |NAME|<=HIGH:
 *
 *     none    alpha:0:    alpha>=0    |alpha|<=1    alpha:-0.1:1    alpha:0.0078125:,eps>=0.001
 *
 * eps always stays inside the range for which activations are defined, asked for or not. */
#ifndef TRAIN_CONSTRAINT_H
#define TRAIN_CONSTRAINT_H

#include <stddef.h>

#include "engine/engine.h"

typedef struct interval {
    double low, high;
} interval;

typedef struct constraint {
    interval alpha, eps, beta;
} constraint;

berlu_status constraint_parse(constraint *out, const char *rules);

/* The interval of the parameter with that name ("alpha", "eps", ...); all numbers for one that has no rule. */
interval constraint_of(const constraint *c, const char *parameter);

/* Projects values in place onto the floats inside; returns how many moved. NaN stays NaN: it is for others to notice. */
size_t interval_project(interval i, float *values, size_t count);

/* The activation parameters of a network that have bounds, found once; and their projection, the average of the weights
 * likewise, after every update. */
typedef struct projected {
    int parameter;
    size_t count;
    interval bounds;
} projected;
typedef struct projection {
    projected *items;
    int count;
} projection;
berlu_status projection_make(projection *out, const graph *g, const constraint *c);
void projection_free(projection *p);
berlu_status projection_apply(const projection *p, engine *e);

#endif
