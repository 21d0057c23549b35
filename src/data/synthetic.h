/* synthetic.h - drawing one image of the built-in set. SPDX-License-Identifier: MIT */
#ifndef DATA_SYNTHETIC_H
#define DATA_SYNTHETIC_H

#include <stddef.h>
#include <stdint.h>

enum { SYNTHETIC_SIDE_LEAST = 16, SYNTHETIC_SIDE_MOST = 1024 };

/* Image `index` of a split, size x size RGB; its label is index % classes (10 or 100). The same
 * bytes on every machine: only + - * / sqrt and integers are used. */
void synthetic_draw(uint8_t *rgb, int size, size_t classes, uint64_t seed, int split, uint64_t index);

/* "disc-striped": shape and texture of a class. Alphabetical, so that a folder of them has the same
 * class numbers. */
const char *synthetic_class(size_t classes, size_t label, char *out, size_t size);

#endif
