/* files.h - images given by their paths, as a set without labels. SPDX-License-Identifier: MIT
 *
 * For prediction: the test split of the set has these images in this order, every label 0. `like`
 * describes the training set and provides the classes. Every file is decoded once here, so that a
 * missing or broken one is refused by name before anything is computed. `paths` outlives the
 * source. */
#ifndef DATA_FILES_H
#define DATA_FILES_H

#include "data/data.h"

berlu_status data_open_files(data_source **out, const char *const *paths, size_t count, const data_info *like);

#endif
