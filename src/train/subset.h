/* subset.h - a fixed, class-balanced subset of images. SPDX-License-Identifier: MIT
 *
 * N images, as many of each class as the set allows: the first of each class in a fixed random
 * order (independent of the run's seed), so that all runs of a study use the same images and
 * smaller subsets are contained in larger ones. */
#ifndef TRAIN_SUBSET_H
#define TRAIN_SUBSET_H

#include "data/loader.h"

/* The indices of `wanted` images of the part, ascending; free() it. `setting` names the option in
 * messages: BERLU_ERR_ARG if the part has fewer. */
berlu_status subset_choose(uint64_t **out, const data_source *data, data_split split, loader_part part, size_t holdout,
                           size_t wanted, const char *setting);

#endif
