/* onnx.h - writes networks as ONNX files. SPDX-License-Identifier: MIT
 *
 * An onnx_body is a list of nodes in the making: that of a graph, or that of a model-local
 * function. Every call appends one node or one constant and returns the name of what it computes,
 * so that a formula is written as nested calls:
 *
 *     onnx_op(b, "Mul", ONNX_IN(x, onnx_op(b, "Sigmoid", ONNX_IN(x), NULL)), NULL)
 *
 * A failed allocation is remembered; names are then "" and onnx_write() returns the status. The
 * file has IR version 8 and opset 17, the oldest that knows functions and LayerNormalization: a
 * runtime refuses what is newer than itself. */
#ifndef IO_ONNX_H
#define IO_ONNX_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "io/safetensors.h"

enum { ONNX_OPSET = 17, ONNX_IR = 8 };
#define ONNX_DOMAIN "berlu" /* of functions */

typedef struct onnx_body {
    text nodes, initializers;
    arena memory; /* of names */
    int made;     /* names so far */
    int function; /* a function has no initializers: constants are nodes */
} onnx_body;

typedef struct onnx_attr {
    const char *name;
    enum { ONNX_INT, ONNX_FLOAT, ONNX_INTS } kind;
    int64_t i;
    float f;
    const int64_t *ints;
    size_t count;
} onnx_attr;

/* Inputs, and attributes, as lists that end themselves. */
#define ONNX_IN(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define ONNX_ATTR(...) ((const onnx_attr[]){__VA_ARGS__, {0}})

/* One node with one output; attributes may be NULL. onnx_call() is a node of domain `berlu`. */
const char *onnx_op(onnx_body *b, const char *op, const char *const *inputs, const onnx_attr *attributes);
const char *onnx_call(onnx_body *b, const char *function, const char *const *inputs);
void onnx_name(onnx_body *b, const char *from, const char *to); /* `to` is what `from` is: for outputs */

/* Constants: a scalar, a list of integers, and a tensor of f32 under its own name (copied). */
const char *onnx_scalar(onnx_body *b, double value);
const char *onnx_integers(onnx_body *b, const int64_t *values, size_t count);
const char *onnx_tensor(onnx_body *b, const char *name, const float *values, const int64_t *size, int rank);

/* A function of domain `berlu` whose body computes `output` from `inputs`; appended to a list of
 * functions. */
void onnx_function(text *functions, const char *name, const char *const *inputs, const char *output,
                   const onnx_body *body);

/* A tensor of f32 with the batch as its first, free dimension. */
typedef struct onnx_port {
    const char *name;
    const int64_t *size; /* without the batch */
    int rank;
} onnx_port;

typedef struct onnx_model {
    const onnx_body *body;
    onnx_port input, output;
    const text *functions; /* may be NULL */
    const st_text *metadata;
    size_t texts;
} onnx_model;
berlu_status onnx_write(const char *path, const onnx_model *m); /* whole or not at all */

void onnx_free(onnx_body *b);

#endif
