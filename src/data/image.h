/* image.h - an image in memory, and decoding of JPEG and PNG. SPDX-License-Identifier: MIT
 *
 * Within src/data an image is always 8-bit RGB, three bytes a pixel, rows from the top without
 * gaps. Every file is converted to that form by the rules of Pillow's convert("RGB") (grey
 * repeated, alpha dropped, palette looked up, CMYK multiplied out, the high byte of 16 bits); EXIF
 * orientation is ignored, as torchvision and timm do.
 *
 * A decoder learns the size of an image before it decodes, so the caller chooses the part in
 * between: a random resized crop of a large JPEG is then decoded at 1/2, 1/4 or 1/8 scale, and rows
 * below it are never converted. Read on: decode_jpeg.c, decode_png.c, resize.h. */
#ifndef DATA_IMAGE_H
#define DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { IMAGE_SIDE_LIMIT = 65535, IMAGE_FILE_LIMIT = 256 << 20, IMAGE_SLACK = 64 };
#define IMAGE_PIXEL_LIMIT ((size_t)89478485) /* where Pillow warns of a decompression bomb */

/* A buffer that keeps its memory from image to image. {0} is empty. */
typedef struct image {
    uint8_t *pixels; /* width * height * 3 bytes */
    int width, height;
    size_t capacity; /* bytes held; IMAGE_SLACK more than the pixels, so that a vector load may run over the end */
} image;

/* Ensures capacity for width x height; the content is undefined. Grows only. */
berlu_status image_reserve(image *i, int width, int height);
void image_free(image *i);

/* Selects a part of a width x height image, in its full-size pixels. `least` > 0 allows a scaled
 * decoding as long as both sides of the part stay at least `least` pixels (or full size); 0
 * requests the exact pixels. */
typedef struct image_part {
    int left, top, width, height;
    int least;
} image_part;
typedef struct image_file { /* the bytes of a file, kept from image to image; {0} is empty */
    unsigned char *bytes;
    size_t capacity;
} image_file;
berlu_status image_file_reserve(image_file *file, size_t bytes, const char *path); /* grows only */
typedef struct image_request {
    void (*choose)(void *context, int width, int height, image_part *part); /* NULL: all of it, exactly */
    void *context;
    image_file *file;  /* where to read a file into; NULL: memory for this call alone */
    size_t byte_limit; /* of memory for one decoded image; 0: IMAGE_PIXEL_LIMIT pixels */
} image_request;

/* Calls choose (or takes the whole) and checks its result. For readers of images. */
image_part image_ask(const image_request *request, int width, int height);

/* Copies a part of an image in memory. */
berlu_status image_copy_part(image *out, const uint8_t *pixels, int width, image_part part);

/* Moves a part of an image to the front of its own buffer. */
void image_crop_in_place(image *i, image_part part);

/* Decodes by magic bytes, never by name. BERLU_ERR_INPUT with the reason (without a path: the
 * caller has it) when the bytes are no JPEG or PNG, broken, truncated or too large. The content of
 * `out` is then undefined. */
berlu_status image_decode(image *out, const void *bytes, size_t size, const image_request *request);
berlu_status image_decode_jpeg(image *out, const void *bytes, size_t size, const image_request *request);
berlu_status image_decode_png(image *out, const void *bytes, size_t size, const image_request *request);

/* Shared by the decoders. The first refuses sizes beyond the limits above, in 64-bit arithmetic,
 * before anything is allocated; the second refuses what the request's own limit does not allow. */
berlu_status image_check_size(uint64_t width, uint64_t height);
berlu_status image_check_bytes(uint64_t bytes, const image_request *request);

#endif
