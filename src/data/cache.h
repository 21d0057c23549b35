/* cache.h - a set of images decoded and resized once, in one file. SPDX-License-Identifier: MIT */
#ifndef DATA_CACHE_H
#define DATA_CACHE_H

#include "data/data.h"

typedef void (*cache_progress)(void *context, size_t done, size_t all);

/* Writes every image of `source` as a side x side RGB image (short edge to `side`, centre crop,
 * bicubic) into the file `path`, which appears whole or not at all. Broken images are reported;
 * while they are within max_bad, their place is taken by one that reads as broken again. progress
 * may be NULL; it is called from this thread only. */
berlu_status cache_write(data_source *source, const char *path, int side, int threads, cache_progress progress,
                         void *context);

/* data_open("packed:PATH") reads it back: the same labels, names of classes, normalisation and
 * order. */

#endif
