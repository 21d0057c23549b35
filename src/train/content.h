/* content.h - hashes of the content behind the paths in a run's settings.
 * SPDX-License-Identifier: MIT
 *
 * A run is identified by the content it was trained on, not by its path. Hashing every pixel of a
 * large set at every start would take hours, so the hash covers the class names, all labels and the
 * pixels of some evenly spaced images of each split: it distinguishes sets, orders of classes and
 * files, and sizes, but not a few changed pixels. */
#ifndef TRAIN_CONTENT_H
#define TRAIN_CONTENT_H

#include "data/data.h"
#include "data/sha256.h"

enum { CONTENT_IMAGES = 64 }; /* of each split */

berlu_status content_of_data(char out[SHA256_TEXT], data_source *data);

#endif
