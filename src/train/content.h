/* content.h - what the paths of a run's settings lead to, as hashes. SPDX-License-Identifier: MIT
 *
 * A run is known by what it was trained on and not by where that lay. Hashing every pixel of a
 * large set at every start would take hours, so a set is known by its class names, all its
 * labels, and the pixels of some images of each split, evenly spaced: another set, another order
 * of classes or files, another size and a set that grew are told apart; a few changed pixels are
 * not. */
#ifndef TRAIN_CONTENT_H
#define TRAIN_CONTENT_H

#include "data/data.h"
#include "data/sha256.h"

enum { CONTENT_IMAGES = 64 }; /* of each split */

berlu_status content_of_data(char out[SHA256_TEXT], data_source *data);

#endif
