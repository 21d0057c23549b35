/* subset.h - a fixed, balanced part of a set of images. SPDX-License-Identifier: MIT
 *
 * N images, as many of each class as the set allows: the first of each class in an order drawn
 * once for all (not by the run's seed), so that every run of a study sees the same images and a
 * smaller part lies inside a larger one. */
#ifndef TRAIN_SUBSET_H
#define TRAIN_SUBSET_H

#include "data/loader.h"

/* The indices of `wanted` images of the part, ascending; free() it. `setting` names the option
 * in messages: BERLU_ERR_ARG where the part has fewer. */
berlu_status subset_choose(uint64_t **out, const data_source *data, data_split split, loader_part part, size_t holdout,
                           size_t wanted, const char *setting);

#endif
