/* evaluate.h - a network's accuracy over a set of images. SPDX-License-Identifier: MIT */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include <stdatomic.h>

#include "data/loader.h"
#include "engine/engine.h"
#include "train/metrics.h"

/* Every image of the loader once, in stored order, through an engine of mode INFER whose batch is the loader's. The
 * last batch may be short; what pads it is not counted. `stop`, when not NULL, ends it early with BERLU_ERR_STOPPED;
 * `tick`, when not NULL, hears how many images are done. `correct`, when not NULL, has a bit per image of the loader (bit
 * i % 8 of byte i / 8, in the loader's order) that tells whether the likeliest class is the right one; it is 0 for an image
 * that could not be read. */
berlu_status evaluate(engine *e, loader *l, score *out, unsigned char *correct, const atomic_int *stop,
                      void (*tick)(void *context, uint64_t images), void *context);

#endif
