/* onnx.h - a model with its weights as an ONNX file. SPDX-License-Identifier: MIT
 *
 * The model's own graph is translated op by op (onnx_ops.c) and activation by activation
 * (onnx_act.c) into standard operators of opset 17. Input `image` [batch, 3, side, side], output
 * `logits` [batch, classes]; the batch is free. */
#ifndef MODELS_ONNX_H
#define MODELS_ONNX_H

#include "engine/engine.h"
#include "io/onnx.h"
#include "models/models.h"

typedef struct onnx_options {
    int functions; /* each BerLU is one node of a function in domain `berlu`, which the file defines */
    const st_text *metadata;
    size_t texts;
} onnx_options;

/* `e` is an engine of the model's graph whose weights lie in host memory. BERLU_ERR_UNSUPPORTED
 * names an activation that has no form in ONNX. */
berlu_status model_write_onnx(const char *path, const model *m, engine *e, const onnx_options *options);

/* ---- between the files ----------------------------------------------------------------------- */

/* The value of an activation at `x`; `params` are the names of its parameters' tensors, in order.
 * NULL: it has no form, and the message is set. */
const char *onnx_act(onnx_body *b, const berlu_act *act, const char *x, const char *const *params);

/* BerLU of degree 2m as line plus bump; m of an activation. */
int onnx_half_degree(const berlu_act *act);
const char *onnx_berlu(onnx_body *b, const char *x, const char *alpha, const char *eps, int m);

typedef struct onnx_emitter {
    onnx_body body;
    const graph *g;
    engine *e;
    const char **names; /* of each tensor of the graph; NULL: not computed (yet) */
    int functions;
    unsigned degrees; /* bit m: a BerLU of degree 2m was called */
} onnx_emitter;
berlu_status onnx_emit(onnx_emitter *e, const node *n);

#endif
