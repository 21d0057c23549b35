/* network.h - the model and the weights that settings or a finished run describe. SPDX-License-Identifier: MIT */
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

/* Where the settings name a file of product algorithms: held while a process chooses, so that several which begin at the same
 * time agree. close() lets go; -1: there is nothing to hold. */
int network_hold_algorithms(const train_settings *s);

/* The images of the next forward: where the loader has them, or as draws over the set that the engine uses. */
void network_feed(engine *e, const loader_batch *b);

/* The data of the settings, and the number of classes they agree on. */
berlu_status network_data(data_source **out, size_t *classes, const train_settings *s, const berlu_log *log);

/* Where a run keeps its weights: checkpoint `which` ("last", "best", or a step) and `file` in it. A newest one
 * that is broken is passed over for the one before it, with a warning in `log`. */
berlu_status network_weights(char *out, size_t size, const char *run, const char *which, const char *file,
                             const berlu_log *log);

/* The activations that a file of weights names in its metadata, into s->act; `found` 0 where it names none. */
berlu_status network_acts(train_settings *s, const char *weights, int *found);

/* What a file of weights says about its network besides the activations: model, image_size, patch, stride, stem, classes,
 * mean, std; what a network does not have is left out. `mean` and `std` as in the settings, and borrowed. */
enum { NETWORK_FACTS = 8 };
typedef struct network_facts {
    st_text list[NETWORK_FACTS];
    size_t count;
    char numbers[NETWORK_FACTS][16];
} network_facts; /* points into itself: do not move it */
void network_describe(network_facts *out, const model_config *m, const char *mean, const char *std);

/* A network that only answers: the teacher of a distillation. Text: a run's folder, or MODEL:FILE. */
typedef struct teacher {
    model *model;
    engine *engine;
    char hash[SHA256_TEXT]; /* of the file of its weights */
} teacher;
/* On the student's device; NULL: one of its own. */
berlu_status teacher_open(teacher *out, const train_settings *student, const model_config *like, device *on,
                          const berlu_log *log);
void teacher_close(teacher *t);
/* Logits for a whole batch, until the next call. */
berlu_status teacher_logits(teacher *t, const loader_batch *b, const float **logits);

#endif
