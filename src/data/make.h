/* make.h - writes a set out as folders of PNG files. SPDX-License-Identifier: MIT */
#ifndef DATA_MAKE_H
#define DATA_MAKE_H

#include "data/data.h"

typedef void (*make_progress)(void *context, size_t done, size_t all);

/* FOLDER/train/CLASS/NUMBER.png and FOLDER/val/CLASS/NUMBER.png. FOLDER must not exist; it appears
 * atomically. */
berlu_status make_folder(data_source *source, const char *folder, int threads, make_progress progress, void *context);

#endif
