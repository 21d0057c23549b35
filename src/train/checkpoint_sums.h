/* checkpoint_sums.h - checksums of a checkpoint's files.
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_CHECKPOINT_SUMS_H
#define TRAIN_CHECKPOINT_SUMS_H

#include "base/file.h"

/* Writes FOLDER/checksums: a line "SUM NAME" for each of the `count` files. */
berlu_status sums_write(const folder_handle *in, const char *folder, const char *const *names, size_t count);

/* Compares the files with it; BERLU_ERR_INPUT names the first that differs or is not listed. A
 * folder without the file passes unless it is `required`: berlu 0.1.0 did not write one. */
berlu_status sums_check(const char *folder, const char *const *names, size_t count, int required);

#endif
