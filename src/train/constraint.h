/* constraint.h - bounds that learned activation parameters are kept in. SPDX-License-Identifier: MIT
 *
 * Every update projects each alpha and eps onto its interval: the nearest allowed value replaces it (engine_bound). Written
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

/* Refuses a rule for a parameter that none of these activations learns. Where they learn nothing at all, or one is no
 * activation, the trainer says so. */
berlu_status constraint_idle(const char *rules, const char *const *acts, size_t count);

/* The interval of the parameter with that name ("alpha", "eps", ...); all numbers for one that has no rule. */
interval constraint_of(const constraint *c, const char *parameter);

/* The same as the engine takes it: ends as floats, rounded inwards. Returns how many of the three have an end. */
int constraint_bounds(const constraint *c, engine_bound out[3]);

#endif
