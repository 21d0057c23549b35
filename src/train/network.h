/* network.h - models, weights and data from settings or from a run.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H

#include "data/loader.h"
#include "data/sha256.h"
#include "engine/engine.h"
#include "io/safetensors.h"
#include "models/models.h"
#include "train/recipe.h"

/* The model of the settings with `classes` classes. */
berlu_status network_create(model **out, const train_settings *s, size_t classes);

/* The backend that the settings ask for, and how its device is opened. */
berlu_status network_device(engine_options *out, const train_settings *s);

/* Locks the file of GEMM algorithms that the settings name while this process chooses, so that
 * processes started together agree. close() unlocks; -1: nothing is locked. */
int network_hold_algorithms(const train_settings *s);

/* Feeds a batch to the next forward: pixels in the loader's memory, or draws from the engine's
 * set. */
void network_feed(engine *e, const loader_batch *b);

/* Opens the data of the settings; `classes` receives the number of classes of both. */
berlu_status network_data(data_source **out, size_t *classes, const train_settings *s, const berlu_log *log);

/* The path of a run's weights: `file` in checkpoint `which` ("last", "best", or a step). A damaged
 * newest checkpoint is skipped for the one before it, with a warning in `log`. */
berlu_status network_weights(char *out, size_t size, const char *run, const char *which, const char *file,
                             const berlu_log *log);

/* Takes the sizes in the metadata of a file of weights (image_size, patch, stride, stem) that the
 * user did not give. */
berlu_status network_sizes(train_settings *s, const char *weights);

/* Reads the activations named in the metadata of a file of weights into s->act; `found` is 0 where
 * there are none. */
berlu_status network_acts(train_settings *s, const char *weights, int *found);

/* Metadata of a file of weights besides the activations: model, image_size, patch, stride, stem,
 * classes, mean, std, without those that the network lacks. `mean` and `std` are borrowed. */
enum { NETWORK_FACTS = 8 };
typedef struct network_facts {
    st_text list[NETWORK_FACTS];
    size_t count;
    char numbers[NETWORK_FACTS][16];
} network_facts; /* holds pointers into itself: do not copy it */
void network_describe(network_facts *out, const model_config *m, const char *mean, const char *std);

/* The teacher of a distillation, inference only: a run's folder, or MODEL:FILE. */
typedef struct teacher {
    model *model;
    engine *engine;
    char hash[SHA256_TEXT]; /* of the file of its weights */
} teacher;
/* Opens it on the student's device; NULL: on one of its own. */
berlu_status teacher_open(teacher *out, const train_settings *student, const model_config *like, device *on,
                          const berlu_log *log);
void teacher_close(teacher *t);
/* Logits of a batch, valid until the next call. */
berlu_status teacher_logits(teacher *t, const loader_batch *b, const float **logits);

#endif
