/* fill.h - reproducible weights and images that need no file and no random generator.
 * SPDX-License-Identifier: MIT
 *
 * A value is a function of the tensor's name and the element's index, defined by integer operations
 * and one rounding, so a program in any language computes the same bits. With it two
 * implementations are compared by a handful of numbers (tests/models/test_known_answers.c). The
 * scales keep every layer's output of order one: norm weights differ from 1, LayerScale is not
 * 1e-6, biases are not 0, so no mistake hides behind a neutral value. */
#ifndef MODELS_FILL_H
#define MODELS_FILL_H

#include <stddef.h>
#include <stdint.h>

uint32_t fill_hash(const char *name);              /* FNV-1a, 32 bits */
double fill_unit(uint32_t hash, uint32_t element); /* in [-1, 1), 24 bits */

void fill_parameter(float *out, const char *name, int rank, const int64_t *size);
void fill_input(float *out, size_t count); /* images, already normalised */
extern const int fill_labels[2];           /* of the two images of a filled batch */

#endif
