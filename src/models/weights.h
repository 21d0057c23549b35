/* weights.h - a model's parameters: drawn, filled, read, written. SPDX-License-Identifier: MIT
 *
 * All functions work on an engine's arrays by name. Reading checks the whole file before the first
 * value is set: when it fails, the model is unchanged. */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "engine/engine.h"
#include "io/safetensors.h"

/* Initial weights, a function of the seed alone: Philox, PURPOSE_INIT, the hash of the parameter's
 * name in the epoch word, the element as index. Normal draws outside [-2, 2] are redrawn (timm's
 * own function clamps, which leaves a weight of exactly -2 about once in 2^24 draws: a deliberate
 * difference). Activation parameters start at the activation's own values. */
typedef struct init_options {
    double std;     /* deviation of linear and convolution weights that timm draws with 0.02; 0: 0.02 */
    double std_fc1; /* the same for the weights of every mlp.fc1 alone; 0: as the others */
} init_options;
berlu_status weights_init(engine *e, uint64_t seed, const init_options *options); /* options may be NULL */

/* The values that weights_init() gives to one parameter; `parameter` is fill_hash() of its name. */
void init_draw(float *out, size_t count, param_init init, uint64_t seed, uint32_t parameter);

/* The initialisation of a parameter as one word: tn02 n1e-6 ufN c1e-6 zero one, as in timm's
 * tables. Returns out. */
enum { INIT_CODE = 32 };
const char *init_code(char out[INIT_CODE], param_init init);

/* The known-answer fill: every parameter a fixed function of its name (fill.c). */
berlu_status weights_fill(engine *e);

/* Reads every parameter from the file by name. Missing, extra, misshapen and wrongly typed tensors
 * are refused, each by name. Shapes are compared without trailing ones, so a 1x1 convolution reads
 * a linear layer's weight; torch's `act.weight` is read as prelu's `act.alpha`. */
berlu_status weights_load_path(engine *e, const char *path);

/* Reads what fits, to go on from it: the weights of another task, of timm, of another activation.
 * A head for another number of classes, or none, is left as it is in the engine, and so are
 * activation parameters that the file has not; those of the file that the network has not are
 * passed over. Everything else must fit as for weights_load_path(). */
typedef struct weights_begun {
    int taken;        /* parameters set */
    int new_head;     /* the head was left as it is */
    uint64_t classes; /* of the file's head, where new_head; 0: it has none */
    int own_acts;     /* activation parameters that were left as they are */
    int unused_acts;  /* those of the file that the network has not */
} weights_begun;
berlu_status weights_begin(engine *e, const safetensors *file, weights_begun *out);

/* Writes one of the engine's arrays under the parameters' names, whole or not at all; "format":
 * "pt" stands first in the metadata, as readers in Python expect it. */
berlu_status weights_save_in(engine *e, engine_array array, const folder_handle *in, const char *name,
                             const st_text *metadata, size_t texts);

#endif
