/* finite.h - searches an engine's array for elements that are not finite.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_FINITE_H
#define TRAIN_FINITE_H

#include "engine/engine.h"

/* The first parameter of an array with elements that are not finite. */
typedef struct not_finite {
    const char *name; /* NULL: all are finite */
    size_t bad, count;
} not_finite;

/* Fails only where the array cannot be read: a failed device, no memory. */
berlu_status finite_look(engine *e, engine_array array, not_finite *out);

#endif
