/* checkpoint_files.h - the files of a checkpoint, for checkpoint*.c alone.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_CHECKPOINT_FILES_H
#define TRAIN_CHECKPOINT_FILES_H

#include "io/safetensors.h"
#include "train/checkpoint.h"

/* Model, state and, where an average of the weights is maintained, ema. */
extern const char *const checkpoint_file_names[];
size_t checkpoint_file_count(int ema);

/* Joins "FOLDER/NAME"; BERLU_ERR_ARG where it is too long. */
berlu_status checkpoint_path(char out[CHECKPOINT_PATH], const char *folder, const char *name);

/* The weights (or their average) with the network's activations and `facts` in the metadata. */
enum { WEIGHT_FACTS = 15 };
berlu_status weights_write(const folder_handle *in, const char *name, engine *e, engine_array array,
                           const st_text *facts, size_t fact_count);

/* `settings` is the canonical text, or NULL. */
berlu_status state_write(const folder_handle *in, const char *name, engine *e, const train_state *s,
                         const char *settings);

/* The format of a state file; BERLU_ERR_INPUT for another file or a later version. */
berlu_status state_format(const safetensors *file, int *format);

/* With `set` 0 both only check that every tensor exists and fits. array_read() reads one array of
 * the engine from the tensors named prefix + parameter. */
berlu_status state_read(const safetensors *file, engine *e, train_state *s, int set);
berlu_status array_read(engine *e, engine_array array, const safetensors *file, const char *prefix, int set);

#endif
