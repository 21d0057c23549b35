/* png.h - writes an image as PNG. SPDX-License-Identifier: MIT */
#ifndef IO_PNG_H
#define IO_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Writes width x height RGB bytes, rows from the top; the file is written atomically. */
berlu_status png_write(const char *path, const uint8_t *rgb, int width, int height);

/* The same into memory: *out is malloc'ed. */
berlu_status png_encode(void **out, size_t *size, const uint8_t *rgb, int width, int height);

#endif
