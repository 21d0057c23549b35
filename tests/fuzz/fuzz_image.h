/* fuzz_image.h - any bytes as an image, whole and in part: what the targets of all decoders do.
 * SPDX-License-Identifier: MIT
 *
 * The memory limit keeps a single input fast; every byte of what was decoded is read. */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

#include <stdlib.h>

#include "data/image.h"

typedef berlu_status (*image_decoder)(image *out, const void *bytes, size_t size, const image_request *request);

static void choose(void *context, int width, int height, image_part *part)
{
    const uint8_t *bytes = context;
    part->left = bytes[0] % width;
    part->top = bytes[1] % height;
    part->width = 1 + bytes[2] % (width - part->left);
    part->height = 1 + bytes[3] % (height - part->top);
    part->least = bytes[4] % 64;
}

/* Reads every pixel, so that an image shorter than it says shows under the address sanitizer. */
static void look(const image *i)
{
    volatile uint8_t last;
    for (size_t k = 0; k < (size_t)i->width * (size_t)i->height * 3; k++)
        last = i->pixels[k];
    (void)last;
}

static inline int image_any_bytes(const uint8_t *bytes, size_t size, image_decoder decode)
{
    image out = {0};
    uint8_t wish[5] = {0};
    for (size_t i = 0; i < size; i++)
        wish[i % 5] = (uint8_t)(wish[i % 5] * 31 + bytes[i]);
    image_request whole = {.byte_limit = 1 << 20}, part = {.choose = choose, .context = wish, .byte_limit = 1 << 20};
    if (decode(&out, bytes, size, &whole) == BERLU_OK)
        look(&out);
    if (decode(&out, bytes, size, &part) == BERLU_OK)
        look(&out);
    image_free(&out);
    return 0;
}

#endif
