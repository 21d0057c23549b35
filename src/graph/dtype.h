/* dtype.h - the types of a tensor's elements, and their conversion on the host.
 * SPDX-License-Identifier: MIT */
#ifndef GRAPH_DTYPE_H
#define GRAPH_DTYPE_H

#include <stddef.h>

#include "graph/graph.h"

size_t dtype_bytes(tensor_dtype dtype); /* of one element */
const char *dtype_name(tensor_dtype dtype);

/* Both round once, to nearest even. Integers are not converted: DTYPE_I32 and DTYPE_U8 must not be
 * passed. */
void dtype_to_f64(double *to, const void *from, tensor_dtype dtype, size_t count);
void dtype_from_f64(void *to, tensor_dtype dtype, const double *from, size_t count);
void dtype_to_f32(float *to, const void *from, tensor_dtype dtype, size_t count);
void dtype_from_f32(void *to, tensor_dtype dtype, const float *from, size_t count);

#endif
