/* constraint.h - bounds of learned activation parameters.
 * SPDX-License-Identifier: MIT
 *
 * Every update projects each alpha and eps onto its interval: the nearest allowed value replaces it
 * (engine_bound). The syntax is a list of items separated by commas, each NAME:LOW:HIGH with either
 * end omitted, or NAME>=LOW, NAME<=HIGH, |NAME|<=HIGH:
 *
 *     none    alpha:0:    alpha>=0    |alpha|<=1    alpha:-0.1:1    alpha:0.0078125:,eps>=0.001
 *
 * eps always stays inside the range for which activations are defined, with or without a rule. */
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

/* Refuses a rule for a parameter that none of these activations learns. The trainer itself reports
 * activations that learn nothing, and texts that are no activation. */
berlu_status constraint_idle(const char *rules, const char *const *acts, size_t count);

/* The rules for the engine: ends as floats, rounded inwards. Returns how many of the three
 * parameters are bounded. */
int constraint_bounds(const constraint *c, engine_bound out[3]);

#endif
