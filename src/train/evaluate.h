/* evaluate.h - a network's accuracy over a set of images. SPDX-License-Identifier: MIT */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include <stdatomic.h>

#include "data/loader.h"
#include "engine/engine.h"
#include "train/metrics.h"

/* Evaluates every image of the loader once, in stored order, with an engine of mode INFER whose
 * batch is the loader's. Padding of a short last batch is not counted.
 *
 * correct  NULL, or receives a bit per image (bit i % 8 of byte i / 8, in the loader's order):
 *          whether the likeliest class is the right one; 0 for an unreadable image
 * stop     NULL, or ends the evaluation early with BERLU_ERR_STOPPED once non-zero
 * tick     NULL, or called with the number of images done */
berlu_status evaluate(engine *e, loader *l, score *out, unsigned char *correct, const atomic_int *stop,
                      void (*tick)(void *context, uint64_t images), void *context);

#endif
